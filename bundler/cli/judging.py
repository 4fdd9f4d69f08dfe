"""An acceptance run and its receipt, as `accept` and `upgrade` do it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundler import wiring
from bundler.cli.console import progress, say, table
from bundler.domain.verdict import Verdict
from bundler.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_OK, StateError

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.facts import AcceptanceRecord, ReleaseRecord, ServiceState
    from bundler.domain.manifest import VerifiedManifest
    from bundler.domain.profile import Profile
    from bundler.ports import Progress

RECORD = "record.json"
# Names the newest run; folders are named by time, and clocks can be set back.
LAST = "last"
EXIT = {
    Verdict.PASS: EXIT_OK,
    Verdict.FAIL: EXIT_FAIL,
    Verdict.INCONCLUSIVE: EXIT_INCONCLUSIVE,
}
STYLE = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}


def running_states(
    place: Root, release: ReleaseRecord, names: Sequence[str]
) -> tuple[ServiceState, ...]:
    """The named services as they run, in this order.

    Raises:
        StateError: one does not run, or is not ready yet.
    """
    from bundler.deploy.observing import observe

    launcher = wiring.launcher(place, progress(quiet=True))
    running = {
        one.state.service: one.state
        for one in observe(launcher, release)
        if launcher.alive(one.state) and one.state.ready_after_s is not None
    }
    absent = [name for name in names if name not in running]
    if absent:
        raise StateError(
            f"{', '.join(absent)}: not running, or not ready yet",
            hint="Run: airbundle start --root ROOT",
        )
    return tuple(running[name] for name in names)


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
        FormatError: a file of profiles is none.
        SpaceError, FileAccessError: the receipt cannot be written.
    """
    from bundler.accept.pipeline import accept as run_acceptance
    from bundler.format.codec import to_bytes

    if not release.services:
        raise StateError(f"{release.bundle_id}: holds an engine and no model to measure")
    states = running_states(place, release, [service.name for service in release.services])
    known = known_profiles(place, profiles)
    # Before minutes of measuring, not after: can the receipt be written?
    place.write(place.acceptance / LAST, b"")
    record = run_acceptance(
        states=states,
        verified=verified,
        chat=wiring.chat(place),
        clock=wiring.clock(),
        progress=shown,
        host=wiring.host().facts(),
        profiles=known,
    )
    folder = place.acceptance / record.began.replace(":", "")
    place.write(folder / RECORD, to_bytes(record))
    place.write(place.acceptance / LAST, folder.name.encode())
    return record, folder / RECORD


def as_json(record: AcceptanceRecord, path: Path) -> dict[str, Any]:
    """The judgement for machines."""
    return {
        "record": str(path),
        "verdict": record.verdict.value,
        "checks": [check.model_dump(mode="json") for check in record.checks],
        "comparisons": [found.model_dump(mode="json") for found in record.comparisons],
        "warnings": list(record.warnings),
    }


def show(record: AcceptanceRecord, path: Path) -> None:
    """The judgement for people."""
    table(
        "measured",
        ["service", "#users", "#ok", "#TTFT p50/p95/p99 ms", "#first wave/after p95 ms",
         "#TPOT p50/p95 ms", "#E2E p95 ms", "#output tok/s"],
        [
            [
                level.service,
                str(level.concurrency),
                f"{level.succeeded}/{level.requests}",
                "/".join(map(_ms, (level.ttft.p50, level.ttft.p95, level.ttft.p99))),
                "/".join(_ms(part.ttft.p95 if part else None) for part in (level.burst, level.steady)),
                "/".join(map(_ms, (level.tpot.p50, level.tpot.p95))),
                _ms(level.e2e.p95),
                f"{level.output_tokens_per_s:.1f}",
            ]
            for level in record.levels
        ],
    )  # fmt: skip
    table(
        "judged",
        ["verdict", "service", "#users", "what", "measured", "reason"],
        [
            [c.verdict.value, c.service, str(c.concurrency or "-"), c.what, c.measured, c.reason]
            for c in record.checks
        ],
    )
    if record.comparisons:
        table(
            "beside known figures",
            ["service", "#users", "figure", "#measured", "known", "outcome", "profile"],
            [
                [c.service, str(c.concurrency), c.metric, f"{c.measured:.4g}",
                 f"{c.worst:.4g} to {c.best:.4g}", c.outcome, f"{c.profile} ({c.kind})"]
                for c in record.comparisons
            ],
        )  # fmt: skip
    elif record.fingerprints:
        say("no known figures of this set-up; `airbundle baseline record` keeps these", "dim")
    for warning in record.warnings:
        say(f"warning: {warning}", "yellow")
    say(record.verdict.value, STYLE[record.verdict])
    say(f"record: {path}")


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
