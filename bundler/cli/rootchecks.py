"""What `verify` checks below a root, rather than on media."""

from __future__ import annotations

from pathlib import Path

from bundler import wiring
from bundler.cli.auditing import recorded
from bundler.cli.changed import changed_json, say_changed
from bundler.cli.console import progress, say, show_json
from bundler.domain.sizes import human
from bundler.errors import StateError


def verify_quick(place: Path, *, json: bool, quiet: bool) -> None:
    """`verify --quick`: every import below a root, for drift."""
    from bundler.deploy.quick import quick_check
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_record

    root = Root(place)
    answers = []
    for bundle in root.bundles() or [root.pick_bundle(None)]:
        verified = open_record(root, bundle.name, wiring.gate())
        with recorded(root, "verify --quick", changes=False) as action:
            action.about(verified)
            found = quick_check(root, verified, progress(quiet=quiet or json))
            found.raise_if_bad(root)
        answers.append({"bundle_id": verified.bundle_id, "bytes": found.checked})
        if not json:
            say(f"OK: {verified.bundle_id}, {human(found.checked)} without drift", "bold green")
    if json:
        show_json({"ok": True, "bundles": answers})


def verify_installed(place: Path, bundle: str | None, *, json: bool, quiet: bool) -> None:
    """`verify --installed`: one release below a root, against its bundle."""
    from bundler.deploy.installedcheck import check_installed
    from bundler.deploy.releases import current_release, pick_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_record

    root = Root(place)
    record = pick_release(root, bundle).record if bundle else current_release(root)[1]
    if record is None:
        raise StateError(f"{bundle}: is not wholly installed", hint="Run: airbundle install BUNDLE")
    verified = open_record(root, record.bundle_id, wiring.gate())
    with recorded(root, "verify --installed", changes=False) as action:
        action.about(verified)
        found = check_installed(root, verified, record, progress(quiet=quiet or json))
        found.raise_if_bad()
    if json:
        show_json(
            {
                "ok": True,
                "bundle_id": record.bundle_id,
                "release": record.release_id,
                "changed": changed_json(root, record),
                "files": found.files,
                "bytes": found.bytes,
            }
        )
        return
    say(
        f"OK: release {found.bundle_id}, {found.files} files, {human(found.bytes)} as the bundle says",
        "bold green",
    )
    say_changed(root, record)
