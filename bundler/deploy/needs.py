"""Whether this host has what the bundle's shared objects need, as far as one look tells.

The whole of it is preflight's; a glibc that is too old is refused here, since nothing would start.
"""

from __future__ import annotations

import platform
import re

from bundler.domain.needs import HostNeeds
from bundler.errors import HostError


def check_glibc(needs: HostNeeds, glibc: str | None = None) -> None:
    """Refuse a host whose glibc is older than any object needs.

    Args:
        needs: of the manifest.
        glibc: this host's; asked for when left out. Empty where there is none (musl): not judged.

    Raises:
        HostError: too old.
    """
    has = platform.libc_ver()[1] if glibc is None else glibc
    if needs.glibc and has and _numbers(has) < _numbers(needs.glibc):
        who = needs.because.get("glibc", "the engine")
        raise HostError(
            f"this host has glibc {has}, {who} needs {needs.glibc}",
            hint="Have the bundle built for this host's glibc (target.glibc), or use a newer system.",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
