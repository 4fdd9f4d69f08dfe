"""Which licence a text is: by the sentences that only this licence has, with its words normalised.

Stated names are worth more than a recognised text. A text that is none of these stays unknown.
"""

from __future__ import annotations

import re

MAX_TEXT = 512 * 2**10
_NOT_WORDS = re.compile(r"[^a-z0-9.]+")
_TITLE_LETTERS = 2000


def _norm(text: str) -> str:
    return _NOT_WORDS.sub(" ", text.lower()).strip()


_MIT_GRANT = _norm(
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and"
    " associated documentation files"
)
_MIT_NOTICE = _norm("shall be included in all copies or substantial portions of the Software")
_BSD_START = _norm(
    "Redistribution and use in source and binary forms, with or without modification"
)
_BSD_SECOND = _norm("Redistributions in binary form must reproduce the above copyright notice")
_BSD_NO_NAMES = _norm("to endorse or promote products derived from this software without specific")
_BSD_ADVERT = _norm("All advertising materials mentioning features or use of this software must")
_ISC = _norm(
    "Permission to use, copy, modify, and/or distribute this software for any purpose with or without"
    " fee is hereby granted"
)
_ISC_OLD = _ISC.replace("and or", "and")
_ISC_NOTICE = _norm("provided that the above copyright notice and this permission notice appear")
_HPND = _norm("Permission to use, copy, modify, and distribute this software and its documentation")
# Python's own file tells its history first, and has older licences behind.
_PYTHON_START = _norm("A. HISTORY OF THE SOFTWARE")
_PYTHON = _norm("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2")
# Licence by the beginning of its text (title and version).
_TITLES = (
    ("apache license version 2.0", "Apache-2.0"),
    ("mozilla public license version 2.0", "MPL-2.0"),
    ("mozilla public license version 1.1", "MPL-1.1"),
    ("gnu affero general public license version 3", "AGPL-3.0"),
    ("gnu lesser general public license version 3", "LGPL-3.0"),
    ("gnu lesser general public license version 2.1", "LGPL-2.1"),
    ("gnu general public license version 3", "GPL-3.0"),
    ("gnu general public license version 2", "GPL-2.0"),
    ("eclipse public license v 2.0", "EPL-2.0"),
    ("boost software license version 1.0", "BSL-1.0"),
    ("cc0 1.0 universal", "CC0-1.0"),
)
_SENTENCES = (
    (_norm("This is free and unencumbered software released into the public domain"), "Unlicense"),
    (_norm("This LICENSE AGREEMENT is between the Python Software Foundation"), "PSF-2.0"),
    (_norm("The origin of this software must not be misrepresented"), "Zlib"),
    (_norm("End User License Agreement NVIDIA CUDA Toolkit"), "LicenseRef-NVIDIA-CUDA-EULA"),
    (_norm("NVIDIA Software License Agreement"), "LicenseRef-NVIDIA-Software-License"),
    (_norm("LICENSE AGREEMENT FOR NVIDIA SOFTWARE DEVELOPMENT KITS"), "LicenseRef-NVIDIA-SDK-License"),
    (_norm("NVIDIA CUDA Toolkit EULA"), "LicenseRef-NVIDIA-CUDA-EULA"),
    (_norm("Tongyi Qianwen LICENSE AGREEMENT"), "LicenseRef-Tongyi-Qianwen"),
)  # fmt: skip


def recognised(text: str) -> tuple[str, ...]:
    """SPDX identifiers of the licences in a text, sorted; none when it is none of the known ones.

    Of the GPL's family the text alone does not tell `only` from `or later`; `only` is given, which
    promises less.
    """
    words = _norm(text[:MAX_TEXT])
    found = set()
    # The CUDA EULA and many bundles quote other licences; only what stands first is the file's own.
    title = words[:_TITLE_LETTERS]
    for opening, spdx in _TITLES:
        if opening in title[: 400 + len(opening)]:
            found.add(f"{spdx}-only" if "GPL" in spdx else spdx)
            break
    found |= {spdx for sentence, spdx in _SENTENCES if sentence in title}
    if title.startswith(_PYTHON_START) and _PYTHON in words:
        found = {"PSF-2.0"}
    if not found:
        found |= set(_permissive(words))
    return tuple(sorted(found))


def _permissive(words: str) -> list[str]:
    found = []
    if _MIT_GRANT in words:
        found.append("MIT" if _MIT_NOTICE in words else "MIT-0")
    if _BSD_START in words and _BSD_ADVERT in words:
        found.append("BSD-4-Clause")
    elif _BSD_START in words and _BSD_NO_NAMES in words:
        found.append("BSD-3-Clause")
    elif _BSD_START in words and _BSD_SECOND in words:
        found.append("BSD-2-Clause")
    if _ISC in words or _ISC_OLD in words:
        found.append("ISC" if _ISC_NOTICE in words else "0BSD")
    if _HPND in words:
        found.append("HPND")
    return found
