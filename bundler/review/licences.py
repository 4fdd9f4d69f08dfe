"""A package's or model's licence from everything that states one. What no place states is unknown.

Order of weight: a licence expression (PEP 639), the `License` field, trove classifiers, the licence's
own text. For a model: its card, then its licence files, then what the supplier's lock recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from email.message import Message
from functools import cache
from threading import Lock
from typing import Any

from license_expression import ExpressionError, Licensing, get_spdx_licensing

from bundler.domain.inventory import LicenceEvidence, LicenceFacts, LicenceText, Source
from bundler.format.untrusted import shown
from bundler.review.licencenames import CARDS, CLASSIFIERS, NAMES, plain
from bundler.review.licencetexts import recognised

_SAID = 160
_MAX_EXPRESSION = 1000
_NOT_ID = re.compile(r"[^A-Za-z0-9.-]+")


_LOADING = Lock()


def licensing() -> Licensing:
    """The SPDX list."""
    # Its word table is made on the first use, and not for two threads at once.
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> Licensing:
    known = get_spdx_licensing()
    known.parse("MIT")
    return known


def spdx(text: str) -> str:
    """A well-formed SPDX expression of known identifiers (or LicenseRef-...) as SPDX writes it; else empty."""
    if not text or len(text) > _MAX_EXPRESSION:
        return ""
    try:
        parsed = licensing().parse(text)
    except (ExpressionError, ValueError, RecursionError, AttributeError, TypeError):
        return ""
    if parsed is None:
        return ""
    unknown = licensing().unknown_license_keys(parsed)
    if any(not str(key).startswith("LicenseRef-") for key in unknown):
        return ""
    return str(parsed)


def identifiers(expression: str) -> frozenset[str]:
    """The licences that an expression names, exceptions left out."""
    if not expression:
        return frozenset()
    keys: Iterable[Any] = licensing().license_keys(licensing().parse(expression), unique=True)
    return frozenset(map(str, keys))


def wheel_licence(metadata: Message, texts: Sequence[LicenceText]) -> LicenceFacts:
    """Of a wheel's METADATA and licence files."""
    evidence = []
    stated = str(metadata.get("License-Expression") or "").strip()
    if stated:
        evidence.append(_evidence("expression", stated, spdx(stated)))
    field = str(metadata.get("License") or "").strip()
    if field and plain(field) not in ("unknown", "none", "n/a"):
        evidence.append(_evidence("licence-field", field, _free_text(field)))
    classifiers = [
        text
        for text in map(str, metadata.get_all("Classifier") or [])
        if text.startswith("License ::") and text.strip() != "License :: OSI Approved"
    ]
    if classifiers:
        evidence.append(_classified(classifiers))
    return combined(evidence, texts)


def model_licence(
    card: dict[str, Any], texts: Sequence[LicenceText], recorded: str | None
) -> LicenceFacts:
    """Of a model card's front matter and the licence files."""
    evidence = []
    stated = card.get("license")
    for name in stated if isinstance(stated, list) else [stated]:
        if isinstance(name, str) and name:
            named = card.get("license_name")
            link = card.get("license_link")
            said = " ".join(text for text in (name, named, link) if isinstance(text, str))
            evidence.append(_evidence("card", said, _carded(name, named)))
    if recorded and not evidence:
        evidence.append(_evidence("manifest", recorded, _carded(recorded, None)))
    return combined(evidence, texts)


def combined(evidence: Sequence[LicenceEvidence], texts: Sequence[LicenceText]) -> LicenceFacts:
    """All evidence as one: the first place that names a known licence, and whether others differ."""
    rows = list(evidence)
    for text in texts:
        found = recognised(text.text)
        said = f"{text.path}: {shown(' '.join(text.text[:400].split()), 60)}"
        rows.append(_evidence("licence-file", said, " AND ".join(found)))
    stated = [row for row in rows if row.spdx and row.source != "licence-file"]
    files = [row for row in rows if row.spdx and row.source == "licence-file"]
    if stated:
        expression = stated[0].spdx
    else:
        expression = " AND ".join(dict.fromkeys(row.spdx for row in files))
    names = identifiers(expression)
    # Files may hold more than the package's own licence: of what it bundles. None of its own is odd.
    differs = any(not _family(identifiers(row.spdx)) & _family(names) for row in stated[1:])
    inside = [identifiers(row.spdx) for row in files]
    differs |= bool(inside) and not any(_family(one) & _family(names) for one in inside)
    return LicenceFacts(
        expression=spdx(expression), evidence=tuple(rows), conflict=differs, texts=tuple(texts)
    )


def _family(names: frozenset[str]) -> frozenset[str]:
    """What no text tells apart: `only` and `or later`, HPND and MIT-CMU, NVIDIA's several names."""
    return frozenset(
        "LicenseRef-NVIDIA" if name.startswith("LicenseRef-NVIDIA")
        else "HPND" if name == "MIT-CMU"
        else name.removesuffix("-only").removesuffix("-or-later")
        for name in names
    )  # fmt: skip


def _evidence(source: Source, said: str, expression: str) -> LicenceEvidence:
    return LicenceEvidence(
        source=source, said=shown(" ".join(said[: 4 * _SAID].split()), _SAID), spdx=expression
    )


def _free_text(field: str) -> str:
    if "\n" in field and len(field) > 4 * _SAID:
        return " AND ".join(recognised(field))
    named = plain(field)
    if named in NAMES:
        return NAMES[named]
    # "MIT OR Apache-2.0" is an expression; a lone word such as BSD is one only when SPDX has it.
    return spdx(field) or spdx(field.replace(", ", " AND ")) or spdx(field.replace("/", " OR "))


def _classified(classifiers: Sequence[str]) -> LicenceEvidence:
    """Several classifiers say neither `and` nor `or`: all of them are taken to hold."""
    names = [CLASSIFIERS.get(" ".join(text.split()), "") for text in classifiers]
    said = "; ".join(text.removeprefix("License :: ") for text in classifiers)
    whole = " AND ".join(dict.fromkeys(names)) if all(names) else ""
    return _evidence("classifier", said, spdx(whole))


def _carded(name: str, named: object) -> str:
    low = name.strip().lower()
    if low == "other" and isinstance(named, str) and named.strip():
        own = named.strip()
        return spdx(own) or f"LicenseRef-{_NOT_ID.sub('-', own).strip('-')[:60]}"
    return CARDS[low] if low in CARDS else spdx(name)
