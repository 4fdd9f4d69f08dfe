"""Two bundles -> what differs, area by area. What one side does not say is named, never taken as equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from bundler.domain.inventory import Component, Executable, ExecutableKind
from bundler.domain.redline import Area, Redline, RedlineChange, RedlineSide, Uncompared, What
from bundler.domain.vulnerability import Vulnerability, VulnerabilityCheck
from bundler.format.untrusted import shown
from bundler.review.licencepolicy import LicencePolicy

_LONGEST = 600
_UNKNOWN = "unknown"
# One finding stands for many files of these kinds, and its file is the first of them.
_MANY: tuple[ExecutableKind, ...] = ("native", "script", "entry-point")
Settings = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Side:
    """What is known of one bundle; None where nothing is.

    `looked_into`: licences and what could execute are known, not names and digests alone.
    `settings`: part -> setting -> value.
    """

    about: RedlineSide
    components: tuple[Component, ...]
    looked_into: bool
    settings: Settings | None = None
    checked: VulnerabilityCheck | None = None


def redline(old: Side, new: Side, policy: LicencePolicy | None = None) -> Redline:
    """Everything that differs; equal things are not named."""
    pairs = list(_pairs(old.components, new.components))
    both = old.looked_into and new.looked_into
    changes = [
        *_trust(old.about, new.about),
        *_components(pairs, licences=both),
        *_files(pairs),
        *(_executions(pairs) if both else ()),
        *_vulnerabilities(old.checked, new.checked),
        *(_policy(pairs, policy) if both and policy else ()),
        *_settings(old.settings, new.settings),
        *_records(pairs),
    ]
    return Redline(
        old=old.about,
        new=new.about,
        changes=tuple(map(_printable, changes)),
        uncompared=tuple(_uncompared(old, new, policy)),
    )


Pair = tuple[Component | None, Component | None]


def _pairs(old: Iterable[Component], new: Iterable[Component]) -> Iterator[Pair]:
    """Components of one kind and name; of several versions, equal ones belong together first."""
    groups: dict[tuple[str, str], tuple[list[Component], list[Component]]] = defaultdict(
        lambda: ([], [])
    )
    for at, side in enumerate((old, new)):
        for one in side:
            groups[one.kind, one.package if one.kind == "wheel" else one.name][at].append(one)
    for _, (before, after) in sorted(groups.items()):
        for one in list(before):
            twin = next((other for other in after if _bytes_of(other) == _bytes_of(one)), None)
            twin = twin or next((o for o in after if o.version == one.version), None)
            if twin is not None:
                before.remove(one)
                after.remove(twin)
                yield one, twin
        yield from zip_longest(before, after)


def _bytes_of(one: Component) -> tuple[str, tuple[tuple[str, str], ...]]:
    return one.version, tuple((file.path, file.sha256) for file in one.files)


def _label(one: Component) -> str:
    return one.package if one.kind == "wheel" else one.name


def _change(
    area: Area, component: str, name: str, old: str | None, new: str | None, rank: str = ""
) -> RedlineChange:
    what: What = "added" if old is None else "removed" if new is None else "changed"
    return RedlineChange(
        area=area, what=what, component=component, name=name, old=old or "", new=new or "", rank=rank
    )  # fmt: skip


def _printable(change: RedlineChange) -> RedlineChange:
    """Names and values come from files of strangers."""
    texts = {
        key: shown(getattr(change, key), _LONGEST) for key in ("component", "name", "old", "new")
    }
    return change.model_copy(update=texts)


def _trust(old: RedlineSide, new: RedlineSide) -> Iterator[RedlineChange]:
    if old.key_id != new.key_id and (old.source != "manifest" or old.verified):
        yield _change("trust", "", "key", old.key_id or "unsigned", new.key_id or "unsigned",
                      "alarm" if new.key_id is None else "attention")  # fmt: skip
    if old.sequence is not None and new.sequence is not None and new.sequence < old.sequence:
        yield _change("trust", "", "sequence", str(old.sequence), str(new.sequence), "alarm")


def _components(pairs: Iterable[Pair], *, licences: bool) -> Iterator[RedlineChange]:
    for old, new in pairs:
        one = new or old
        if one is None or one.kind == "spec":
            continue
        if old is None or new is None:
            text = _described(one, licences=licences)
            yield _change(
                "component", _label(one), "", text if old else None, text if new else None
            )
            continue
        before, after = _stated(old, licences=licences), _stated(new, licences=licences)
        for field, value in before.items():
            if value != after[field]:
                yield _change("component", _label(one), field, value, after[field])


def _stated(one: Component, *, licences: bool) -> dict[str, str]:
    fields = {"version": one.version, "revision": one.revision, "origin": one.origin}
    if one.kind == "model" and one.revision:
        # A model's version is the start of its revision.
        del fields["version"]
    if licences:
        fields["licence"] = one.licence.expression or _UNKNOWN
    fields["size"] = f"{one.size:,} bytes"
    if one.kind != "model":
        fields["digest"] = one.sha256
    return {field: value or "-" for field, value in fields.items()}


def _described(one: Component, *, licences: bool) -> str:
    said = [one.revision or one.version, one.origin]
    if licences:
        said.append(f"licence {one.licence.expression or _UNKNOWN}")
    said.append(f"{one.size:,} bytes")
    if one.sha256:
        said.append(f"sha256 {one.sha256}")
    elif len(one.files) > 1:
        said.append(f"{len(one.files)} files")
    return "; ".join(text for text in said if text)


def _files(pairs: Iterable[Pair]) -> Iterator[RedlineChange]:
    """Files of models; of what has one file, the component itself says it."""
    for old, new in pairs:
        if old is None or new is None or new.kind != "model":
            continue
        before, after = ({file.path: file.sha256 for file in side.files} for side in (old, new))
        for path in sorted(before.keys() | after.keys()):
            was, now = before.get(path), after.get(path)
            if was != now:
                yield _change("file", _label(new), path.removeprefix(f"models/{new.name}/"),
                              was, now)  # fmt: skip


def _records(pairs: Iterable[Pair]) -> Iterator[RedlineChange]:
    for old, new in pairs:
        one = new or old
        if one is None or one.kind != "spec":
            continue
        before, after = (side.sha256 if side else None for side in (old, new))
        if before != after:
            yield _change("record", "", one.name, before, after)


def _executions(pairs: Iterable[Pair]) -> Iterator[RedlineChange]:
    found: list[RedlineChange] = []
    for old, new in pairs:
        one = new or old
        if one is None:
            continue
        before, after = (_by_identity(side.executes if side else ()) for side in (old, new))
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name, ()), after.get(name, ())
            if [_told(e) for e in was] == [_told(e) for e in now]:
                continue
            ranked = (now or was)[0]
            texts = (" | ".join(e.what for e in side) if side else None for side in (was, now))
            before_text, after_text = texts
            if before_text == after_text:
                before_text, after_text = _more(was), _more(now)
            found.append(
                _change("execution", _label(one), f"{ranked.kind}: {ranked.where}",
                        before_text, after_text, ranked.rank)
            )  # fmt: skip
    order = ("alarm", "attention", "usual")
    yield from sorted(
        found, key=lambda change: (change.what == "removed", order.index(change.rank))
    )


def _by_identity(several: Iterable[Executable]) -> dict[tuple[str, str], tuple[Executable, ...]]:
    found: dict[tuple[str, str], tuple[Executable, ...]] = {}
    for one in several:
        rest = one.what.partition(":")[0] if one.kind in _MANY else one.where
        found[one.kind, rest] = (*found.get((one.kind, rest), ()), one)
    return {
        key: tuple(sorted(group, key=lambda e: (e.where, e.what))) for key, group in found.items()
    }


def _told(one: Executable) -> tuple[str, str, int, str | None]:
    # Of many files the number tells; each one's bytes are the component's digest.
    return one.rank, one.what, one.count, None if one.kind in _MANY else one.digest


def _more(several: Iterable[Executable]) -> str:
    return " | ".join(
        f"{one.what} ({one.rank}, {one.count} files"
        + (f", sha256 {one.digest}" if one.digest and one.kind not in _MANY else "")
        + ")"
        for one in several
    )


def _vulnerabilities(
    old: VulnerabilityCheck | None, new: VulnerabilityCheck | None
) -> Iterator[RedlineChange]:
    if old is None or new is None:
        return
    before, after = _flaws(old), _flaws(new)
    silent = {one.package for side in (old, new) for one in side.unchecked}
    for package, name in sorted(
        before.keys() | after.keys(), key=lambda k: _severest(k, before, after)
    ):
        if package in silent:
            continue
        was, now = before.get((package, name)), after.get((package, name))
        texts = [_flaw(one) if one else None for one in (was, now)]
        if texts[0] != texts[1]:
            one = now or was
            rank = one.advisory.severity if one else ""
            yield _change("vulnerability", package, name, texts[0], texts[1], rank)


def _flaws(checked: VulnerabilityCheck) -> dict[tuple[str, str], Vulnerability]:
    return {(one.package, one.advisory.id): one for one in checked.found}


def _severest(
    key: tuple[str, str],
    before: Mapping[tuple[str, str], Vulnerability],
    after: Mapping[tuple[str, str], Vulnerability],
) -> tuple[bool, int, tuple[str, str]]:
    one = after.get(key) or before[key]
    order = ("critical", "high", "unknown", "medium", "low")
    return key not in after, order.index(one.advisory.severity), key


def _flaw(one: Vulnerability) -> str:
    score = f" {one.advisory.score:g}" if one.advisory.score is not None else ""
    text = f"{one.version}: {one.advisory.severity}{score}"
    if one.excepted:
        text += f"; excepted by {one.excepted.by} until {one.excepted.expires}"
    if one.expired:
        text += f"; the exception by {one.expired.by} expired on {one.expired.expires}"
    return text


def _policy(pairs: Iterable[Pair], policy: LicencePolicy) -> Iterator[RedlineChange]:
    """What the policy does not simply allow, and did not say so of the older bundle."""

    def judged(one: Component | None) -> str | None:
        if one is None or one.kind in ("spec", "tool"):
            return None
        judgement = policy.judge(one)
        return (
            None if judgement == "allow" else f"{judgement}: {one.licence.expression or _UNKNOWN}"
        )

    for old, new in pairs:
        before, after, one = judged(old), judged(new), new or old
        if before != after and one is not None:
            rank = (after or before or "").partition(":")[0]
            yield _change("policy", _label(one), "", before, after, rank)


def _settings(old: Settings | None, new: Settings | None) -> Iterator[RedlineChange]:
    if old is None or new is None:
        return
    for part in sorted(old.keys() | new.keys()):
        before, after = old.get(part, {}), new.get(part, {})
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield _change("setting", part, name, before.get(name), after.get(name))


def _uncompared(old: Side, new: Side, policy: LicencePolicy | None) -> Iterator[Uncompared]:
    if old.about.source == "manifest" and not old.about.verified:
        yield Uncompared(area="trust", why="the older bundle's signature was not checked")
    alike = old.about.manifest_sha256 == new.about.manifest_sha256
    if not alike and not (old.looked_into and new.looked_into):
        why = "of one side only the manifest is known, which says nothing of it"
        yield Uncompared(area="execution", why=why)
        yield Uncompared(area="policy", why=f"licences: {why}")
    elif policy is None:
        yield Uncompared(area="policy", why="no licence policy was given")
    if not alike and (old.settings is None or new.settings is None):
        yield Uncompared(area="setting", why="one side's settings are not known")
    if old.checked is None or new.checked is None:
        both = old.checked is None and new.checked is None
        which = (
            "either side"
            if both
            else "the older bundle"
            if old.checked is None
            else "the newer bundle"
        )
        yield Uncompared(area="vulnerability", why=f"of {which} nobody looked for any")
    else:
        silent = {one.package for side in (old.checked, new.checked) for one in side.unchecked}
        if silent:
            yield Uncompared(
                area="vulnerability",
                why=f"could not be looked up: {shown(', '.join(sorted(silent)), 2000)}",
            )
        if (old.checked.source, old.checked.date) != (new.checked.source, new.checked.date):
            yield Uncompared(
                area="vulnerability",
                why=f"two databases: {shown(old.checked.source)} of {shown(old.checked.date)}, and"
                f" {shown(new.checked.source)} of {shown(new.checked.date)}; a difference may be theirs",
            )
