"""`review --against`: the other side of a redline is found, and what differs is shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bundler import wiring
from bundler.cli.console import say, show_json, table
from bundler.cli.streams import OUT
from bundler.errors import MissingVolumeError
from bundler.format import layout
from bundler.format.reviewpack import FOLDER, check_pack

if TYPE_CHECKING:
    from collections.abc import Callable

    from bundler.cli.review_sources import Asked
    from bundler.deploy.sitetrust import SiteTrust
    from bundler.domain.manifest import VerifiedManifest
    from bundler.domain.redline import Redline
    from bundler.domain.vulnerability import VulnerabilityCheck
    from bundler.review.redline import Side
    from bundler.review.subject import Subject

_SHOWN = 40
_WIDEST = 120


def compare(
    old: Path,
    subject: Subject,
    trust: SiteTrust,
    look: Callable[[Path, VerifiedManifest], Subject],
    asked: Asked,
) -> Redline:
    """What a bundle changes against an older one.

    Args:
        old: its folder, its manifest, or an earlier pack's inventory.
        subject: the newer bundle.
        trust: whose signatures count.
        look: takes the inventory of a bundle that lies in a folder.
        asked: an OSV export is asked about both sides.

    Raises:
        MissingVolumeError: there is nothing at `old`.
        TrustError, FormatError, IntegrityError: of what lies there.
    """
    with wiring.review_half():
        from bundler.review.redline import redline
        from bundler.review.redlineside import side_of_bundle
    side = _older(old, trust, look)
    if asked.osv is not None:
        packages = {
            one.name: one.version
            for one in side.components
            if one.kind in ("wheel", "tool") and one.version
        }
        side = replace(side, checked=asked.about(packages))
    return redline(side, side_of_bundle(subject), subject.policy)


def _older(old: Path, trust: SiteTrust, look: Callable[[Path, VerifiedManifest], Subject]) -> Side:
    from bundler.review.redlineside import (
        is_inventory,
        side_of_bundle,
        side_of_inventory,
        side_of_manifest,
    )

    if not old.exists():
        raise MissingVolumeError(
            f"{old}: not there",
            hint="Name a bundle's folder, its manifest.json, or its pack's inventory.json.",
        )
    if old.is_dir():
        verified = trust.open(old)
        if not any((old / volume.name).is_file() for volume in verified.manifest.volumes):
            return side_of_manifest(old, verified)
        subject = look(old, verified)
        return side_of_bundle(replace(subject, checked=flaws_beside(old, verified, trust)))
    if is_inventory(old):
        return side_of_inventory(old)
    # Alone it is compared as it is, and the page says that nobody checked it.
    signed = old.name == layout.MANIFEST and (old.parent / layout.SIGNATURE).is_file()
    return side_of_manifest(old, trust.open(old.parent) if signed else None)


def redline_place(folder: Path) -> Path:
    """Beside the bundle, whose folder may be given as `.`."""
    whole = folder.resolve()
    return whole.with_name(f"{whole.name}.redline")


def flaws_beside(
    folder: Path, verified: VerifiedManifest, trust: SiteTrust
) -> VulnerabilityCheck | None:
    """What the pack beside a bundle says of vulnerabilities; None without a pack that is sound."""
    from bundler.review.redlineside import known_flaws
    from bundler.review.subject import VULNERABILITIES

    path = folder / FOLDER / VULNERABILITIES
    signer = next((key.verifier for key in trust.keys if key.key_id == verified.key_id), None)
    if not path.is_file() or check_pack(folder, verified, signer)[0]:
        return None
    return known_flaws(path)


def show_redline(found: Redline, place: Path, *, json: bool) -> None:
    """To the terminal, or all of it as JSON."""
    if json:
        show_json({"out": str(place), **found.model_dump(mode="json")})
        return
    if found.changes:
        rows = [
            (one.area, one.what, one.component, one.name, one.old[:_WIDEST], one.new[:_WIDEST])
            for one in found.changes[:_SHOWN]
        ]
        table("", ["area", "change", "component", "name", "before", "now"], rows)
    else:
        say("nothing differs in what was compared", "bold")
    if len(found.changes) > _SHOWN:
        say(f"and {len(found.changes) - _SHOWN} more in {place}/redline.html")
    for one in found.uncompared:
        say(f"not compared: {OUT.word(one.area)}: {one.why}", "yellow")
    counts = Counter(one.area for one in found.changes)
    said = ", ".join(f"{OUT.word(area)}: {n}" for area, n in counts.items()) or "no change"
    say(f"{place}: {said}", "bold")
