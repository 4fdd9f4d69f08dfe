"""Which language a person is spoken to in: Korean or English, by the locale or as `AIRBUNDLE_LANG` says.

English is the source text everywhere in the code. Korean is put in its place at the one boundary to the
terminal (`streams.Stream.line`, tables, progress, help); `--json`, logs and records stay English.
"""

from __future__ import annotations

import os

from bundler.errors import HostError

VARIABLE = "AIRBUNDLE_LANG"
ENGLISH, KOREAN = "en", "ko"
# POSIX: the first of these that is not empty says the language of messages.
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


def check() -> None:
    """Refuse a language that we do not speak.

    Raises:
        HostError: AIRBUNDLE_LANG is neither `en` nor `ko`.
    """
    said = os.environ.get(VARIABLE, "")
    if said not in ("", ENGLISH, KOREAN):
        raise HostError(
            f"{VARIABLE}={said!r} is not a language that airbundle speaks",
            hint=f"Set {VARIABLE} to {ENGLISH} or {KOREAN}, or unset it.",
        )


def korean() -> bool:
    """Whether Korean is wanted: by name, else by the locale."""
    said = os.environ.get(VARIABLE, "")
    if said:
        return said == KOREAN
    locale = next((value for name in _LOCALE if (value := os.environ.get(name))), "")
    # The console of the Linux kernel has no Hangul: a Korean locale there would show boxes.
    return locale.split(".")[0].split("_")[0] == KOREAN and os.environ.get("TERM") != "linux"


def can_show(encoding: str) -> bool:
    """Whether an encoding has Hangul."""
    try:
        "한글".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
