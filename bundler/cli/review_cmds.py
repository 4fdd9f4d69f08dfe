"""What a security reviewer is given: review."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import (
    BundleArgument,
    JsonOption,
    KeysOption,
    QuietOption,
    UnsignedOption,
    VolumeKeyOption,
    volume_key,
)
from bundler.cli.redline import compare, flaws_beside, redline_place, show_redline
from bundler.cli.rehearsing import rehearsable
from bundler.cli.review_sources import Asked
from bundler.errors import (
    EXIT_FAIL,
    EXIT_INCONCLUSIVE,
    KeyFileError,
    StateError,
)
from bundler.format.reviewpack import FOLDER, SIGNATURE

if TYPE_CHECKING:
    from collections.abc import Callable

    from bundler.domain.antivirus import AntivirusResult
    from bundler.domain.manifest import Entry, VerifiedManifest
    from bundler.domain.vulnerability import Severity, VulnerabilityCheck
    from bundler.format.sealing import VolumeKey
    from bundler.ports import Progress, Signer
    from bundler.review.licencepolicy import LicencePolicy
    from bundler.review.subject import Subject

_SHOWN = 20


def review(
    folder: BundleArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder to make; DIR/review when left out.", show_default=False,
            readable=False,
        ),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", help="ko, en or both.")] = "both",
    licences: Annotated[
        Path | None,
        typer.Option(
            "--policy", help="Which licences the site takes (YAML).", show_default=False,
            readable=False,
        ),
    ] = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    sealed_with: VolumeKeyOption = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root", help="Of a delta: the root that holds what it builds on.",
            show_default=False, readable=False,
        ),
    ] = None,
    osv: Annotated[
        Path | None,
        typer.Option(
            "--osv", help="Export of the OSV database (all.zip) to look packages up in.",
            show_default=False, readable=False,
        ),
    ] = None,
    exceptions: Annotated[
        Path | None,
        typer.Option(
            "--exceptions", help="Vulnerabilities that were looked at already (YAML).",
            show_default=False, readable=False,
        ),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(
            "--known", help="An earlier pack's vulnerabilities.json, to make the same pack again.",
            show_default=False, readable=False,
        ),
    ] = None,
    antivirus: Annotated[
        Path | None,
        typer.Option(
            "--antivirus", help="What clamscan or clamdscan printed about the bundle's files.",
            show_default=False, readable=False,
        ),
    ] = None,
    fail_on: Annotated[
        Literal["critical", "high", "medium", "low"] | None,
        typer.Option("--fail-on", help="Exit code 10 from this severity on, and for malware that --antivirus names.", show_default=False),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            help="Only what changed since an approved bundle: its folder, its manifest.json, or its"
            " pack's inventory.json. Into DIR.redline when --out is left out.",
            show_default=False, readable=False,
        ),
    ] = None,
    sign_with: Annotated[
        Path | None,
        typer.Option(
            "--sign-with", help="The builder's private key: signs the pack as `build` does.",
            show_default=False, readable=False,
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """Make the reviewer's pack: what is in a bundle, what could execute, licences, SBOMs, the form.

    With --against, the redline instead: only what changed since another bundle.

    Exit code 0: made, 10: made, and the licence policy or --fail-on refuses something, 11: made, and packages
    that --fail-on asks about could not be looked up, or files were not scanned.
    """
    if lang not in ("ko", "en", "both"):
        raise typer.BadParameter("--lang is ko, en or both")
    language: Literal["ko", "en", "both"] = lang  # type: ignore[assignment]
    with wiring.review_half():
        from bundler.review.licencepolicy import read_policy
        from bundler.review.pack import make_pack, write_pack
        from bundler.review.redlinepage import redline_files
    asked = Asked(osv, exceptions, known, antivirus)
    asked.check(fail_on)
    policy = read_policy(licences) if licences else None
    trust = wiring.gate().site(None, keys=wiring.verifiers(key or []), unsigned=unsigned)
    verified = trust.open(folder)
    signer = wiring.signer(sign_with) if sign_with else None
    place = out or (redline_place(folder) if against else folder / FOLDER)
    _check_place(place, verified, signer, given=out is not None)
    _check_kind(place, redline=against is not None)
    shown = progress(quiet=quiet or json)
    stored = _stored_in(root) if root else None

    def look(where: Path, opened: VerifiedManifest) -> Subject:
        return look_into(where, opened, shown, volume_key(sealed_with), stored, policy)

    subject = look(folder, verified)
    subject = replace(
        subject,
        checked=asked.about(subject.packages),
        scanned=asked.scanned(verified.manifest),
    )
    denied = [
        one.name for one in subject.inventory.components if policy and policy.judge(one) == "deny"
    ]
    if against is None:
        write_pack(make_pack(subject, language), place, signer)
        _show(subject, place, denied, json=json)
    else:
        if subject.checked is None:
            subject = replace(subject, checked=flaws_beside(folder, verified, trust))
        found = compare(against, subject, trust, look, asked)
        write_pack(redline_files(found, language), place, signer)
        show_redline(found, place, json=json)
    if denied:
        raise typer.Exit(EXIT_FAIL)
    if fail_on and (code := _judged(subject, fail_on)):
        raise typer.Exit(code)


def _judged(subject: Subject, fail_on: Severity) -> int:
    """The exit code of what was looked for: found, looked for in part, or nothing found."""
    flaws, scan = subject.checked, subject.scanned
    if (flaws and flaws.at_least(fail_on)) or (scan and scan.hits):
        return EXIT_FAIL
    if (flaws and flaws.unchecked) or (scan and not scan.complete):
        return EXIT_INCONCLUSIVE
    return 0


def _stored_in(root: Path) -> Callable[[Entry], Path | None]:
    from bundler.deploy.root import Root
    from bundler.format.blocks import content_id

    return lambda entry: Root(root).object(content_id(entry))


def _check_place(
    place: Path, verified: VerifiedManifest, signer: Signer | None, *, given: bool
) -> None:
    """Before minutes of reading: what could not be written, or would put less in the place of more."""
    if signer is not None and signer.key_id != verified.key_id:
        raise KeyFileError(
            f"key {signer.key_id} did not sign this bundle, key {verified.key_id} did",
            hint="The pack is signed by the bundle's own key, or not at all.",
        )
    if not given and signer is None and (place / SIGNATURE).is_file():
        raise StateError(
            f"{place}: the pack that the builder signed lies there",
            hint="Give --out FOLDER to make it again; `diff -r` compares the two.",
        )


def _check_kind(place: Path, *, redline: bool) -> None:
    """A pack and a redline say different things: neither takes the other's place."""
    if redline and (place / "review.html").is_file():
        raise StateError(f"{place}: a whole pack lies there", hint="Give another --out.")
    if not redline and (place / "redline.html").is_file():
        raise StateError(f"{place}: a redline lies there", hint="Give another --out.")


def look_into(
    folder: Path,
    verified: VerifiedManifest,
    shown: Progress,
    key: VolumeKey | None = None,
    stored: Callable[[Entry], Path | None] | None = None,
    policy: LicencePolicy | None = None,
) -> Subject:
    """The inventory of a bundle that lies in a folder; what it leaves out comes from a store.

    Raises:
        IntegrityError: bytes are not what the signed manifest promises.
    """
    from bundler.format.contents import BlockSource, Contents, InStore, InVolumes
    from bundler.format.places import find_volumes

    with wiring.review_half():
        from bundler.review.inventory import take_inventory
        from bundler.review.subject import Subject

    sources: list[BlockSource] = [InVolumes(find_volumes(verified.manifest, [folder], key))]
    if stored is not None:
        sources.append(InStore(stored))
    contents = Contents(verified.manifest, tuple(sources))
    return Subject(verified, take_inventory(contents, shown), policy)


def _show(subject: Subject, place: Path, denied: list[str], *, json: bool) -> None:
    found = subject.inventory.findings
    counts = dict.fromkeys(("alarm", "attention", "usual"), 0)
    for _, one in found:
        counts[one.rank] += 1
    unknown = [
        one.name for one in subject.inventory.of("wheel", "model", "file") if not one.licence.known
    ]
    if json:
        show_json(
            {
                "out": str(place),
                "bundle_id": subject.verified.bundle_id,
                "manifest_sha256": subject.verified.digest,
                "components": len(subject.inventory.components),
                "findings": counts,
                "alarms": [
                    {"component": owner.name, **one.model_dump(mode="json")}
                    for owner, one in found
                    if one.rank == "alarm"
                ],
                "licence_unknown": unknown,
                "licence_denied": denied,
                "vulnerabilities": _counts(subject),
                "antivirus": subject.scanned.model_dump(mode="json") if subject.scanned else None,
            }
        )
        return
    first = [(owner, one) for owner, one in found if one.rank != "usual"]
    if first:
        rows = [(one.rank, owner.name, one.where, one.what) for owner, one in first[:_SHOWN]]
        table("what could execute", ["rank", "component", "file", "what"], rows)
    if len(first) > _SHOWN:
        say(f"and {len(first) - _SHOWN} more in {place}/review.html")
    if subject.checked is not None:
        _show_flaws(subject.checked)
    if subject.scanned is not None:
        _show_scan(subject.scanned)
    for name in denied:
        say(f"FAIL {name}: the licence policy denies it", "bold red")
    for name in unknown:
        say(f"licence unknown: {name}", "yellow")
    say(
        f"{place}: {len(subject.inventory.components)} components, {counts['alarm']} alarm(s),"
        f" {counts['attention']} to look at",
        "bold",
    )


def _counts(subject: Subject) -> dict[str, object] | None:
    checked = subject.checked
    if checked is None:
        return None
    return {
        "source": checked.source,
        "date": checked.date,
        "checked": checked.checked,
        "unchecked": len(checked.unchecked),
        "found": [one.model_dump(mode="json") for one in checked.found],
    }


def _show_flaws(checked: VulnerabilityCheck) -> None:
    if checked.found:
        rows = [
            (
                one.advisory.severity if one.counts else "excepted",
                f"{one.package} {one.version}",
                one.advisory.id,
                one.advisory.summary[:80],
                ", ".join(one.advisory.fixed[:3]),
            )
            for one in checked.found[:_SHOWN]
        ]
        table("known vulnerabilities", ["severity", "package", "id", "what", "mended in"], rows)
    said = f"{checked.source}, of {checked.date or 'no date'}: {checked.checked} packages looked up"
    if checked.unchecked:
        say(f"{said}, {len(checked.unchecked)} not checked", "yellow")
    else:
        say(said)


def _show_scan(scan: AntivirusResult) -> None:
    for hit in scan.hits[:_SHOWN]:
        say(f"FAIL {hit.path}: {scan.engine} found {hit.name}", "bold red")
    for doubt in scan.doubts:
        say(f"antivirus: {doubt}", "yellow")
    if scan.uncovered:
        say(f"antivirus: {len(scan.uncovered)} files of the bundle are not covered", "yellow")
        for one in scan.uncovered[:_SHOWN]:
            say(f"  {one.path}: {one.why}")
    version, dated = scan.pattern_version or "not stated", scan.pattern_date or "no stated date"
    say(
        f"{scan.engine} {scan.engine_version}, patterns {version} of {dated}: {len(scan.hits)} found"
    )


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(rich_help_panel="Review")(rehearsable(review))
