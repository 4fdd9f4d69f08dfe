"""An acceptance run and its receipt, as `accept` and `upgrade` do it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bundler import wiring
from bundler.cli.console import progress
from bundler.cli.judging import LAST, RECORD
from bundler.errors import FormatError, StateError

if TYPE_CHECKING:
    from bundler.accept.correctness.run import Probing
    from bundler.deploy.root import Root
    from bundler.domain.facts import AcceptanceRecord, ReleaseRecord, ServiceState
    from bundler.domain.manifest import Manifest, VerifiedManifest
    from bundler.domain.profile import Profile
    from bundler.domain.spec import Acceptance
    from bundler.ports import Progress


def measure(
    place: Root,
    release: ReleaseRecord,
    verified: VerifiedManifest,
    shown: Progress,
    profiles: Sequence[Path] = (),
) -> tuple[AcceptanceRecord, Path]:
    """Measure a release's running services, judge, and keep the receipt.

    Raises:
        StateError: there is nothing to measure, or a service does not run.
        FormatError: a file of profiles or a golden record is none.
        SpaceError, FileAccessError: the receipt cannot be written.
    """
    from bundler.format.codec import to_bytes

    states = running_states(place, release)
    record = measured(place, release, verified, states, shown, known_profiles(place, profiles))
    folder = place.acceptance / record.began.replace(":", "")
    place.write(folder / RECORD, to_bytes(record))
    place.write(place.acceptance / LAST, folder.name.encode())
    return record, folder / RECORD


def measured(
    place: Root,
    release: ReleaseRecord,
    verified: VerifiedManifest,
    states: tuple[ServiceState, ...],
    shown: Progress,
    profiles: Sequence[Profile] = (),
    plan: Acceptance | None = None,
    users: Sequence[int] | None = None,
) -> AcceptanceRecord:
    """Measure services that run, and judge; by another plan and other numbers of users when given.

    Raises:
        FormatError: a golden record is none.
        FileAccessError: the root cannot be written, so that no receipt could be kept.
    """
    from bundler.accept.pipeline import accept as run_acceptance
    from bundler.deploy.variants import changed_of

    probing = probing_of(place, verified.manifest)
    # Before minutes of measuring, not after: can the receipt be written?
    place.write(place.acceptance / LAST, b"")
    return run_acceptance(
        states=states,
        verified=verified,
        chat=probing.chat,
        clock=wiring.clock(),
        progress=shown,
        host=wiring.host().facts(),
        probing=probing,
        watch=wiring.watch(release.engine_name, probing.chat),
        profiles=profiles,
        services=release.services,
        changed=changed_of(release, verified.manifest.services),
        plan=plan,
        users=users,
    )


def running_states(
    place: Root, release: ReleaseRecord, names: Sequence[str] | None = None
) -> tuple[ServiceState, ...]:
    """The named services of a release as they run, in this order; all of them when none is named.

    Raises:
        StateError: it has none, or one does not run, or is not ready yet.
    """
    from bundler.deploy.observing import observe

    if not release.services:
        raise StateError(f"{release.bundle_id}: holds an engine and no model to measure")
    wanted = [service.name for service in release.services] if names is None else names
    launcher = wiring.launcher(place, progress(quiet=True))
    running = {
        one.state.service: one.state
        for one in observe(launcher, release)
        if launcher.alive(one.state) and one.state.ready_after_s is not None
    }
    absent = [name for name in wanted if name not in running]
    if absent:
        raise StateError(
            f"{', '.join(absent)}: not running, or not ready yet",
            hint="Run: airbundle start --root ROOT",
        )
    return tuple(running[name] for name in wanted)


def known_profiles(place: Root, files: Sequence[Path] = ()) -> tuple[Profile, ...]:
    """Profiles to compare with: those named, those of the root, and those that come with airbundle.

    Raises:
        FormatError: a file is no file of profiles.
        FileAccessError: one cannot be read.
    """
    from bundler.format.profiles import load_profiles, profiles_in, shipped_folder

    named = [profile for path in files for profile in load_profiles(path)]
    own = profiles_in(place.path / "profiles")
    return (*named, *own, *profiles_in(shipped_folder()))


def probing_of(place: Root, manifest: Manifest) -> Probing:
    """What asks a bundle's services whether their answers are right, with the golden records of this root.

    Raises:
        FormatError: a record that is here cannot be read, or is of another model.
    """
    from bundler.accept.correctness.run import Probing
    from bundler.format.golden import model_digest, read_golden

    golden = {}
    for service in manifest.services:
        digest = model_digest(manifest, service.model)
        path = place.golden(digest)
        if path.is_file():
            golden[service.name] = read_golden(path)
            if golden[service.name].model_digest != digest:
                raise FormatError(
                    f"{path}: is of another model ({golden[service.name].model})",
                    hint="Remove it, then: airbundle golden add FILE --root ROOT",
                )
    # llama-server is started with one slot unless the settings say otherwise; vLLM takes hundreds.
    slots = None if manifest.engine.name == "vllm" else 1
    return Probing(wiring.api(place), wiring.chat(place), golden, slots)
