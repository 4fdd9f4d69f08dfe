"""Runs of volumes that are coded together."""

from __future__ import annotations

# All shares of a stripe are in memory at once.
_STRIPES_BYTES = 32 * 2**20


def stripe_size(shares: int) -> int:
    """Bytes of a share that are coded at once."""
    return max(4096, min(2**20, _STRIPES_BYTES // shares // 4096 * 4096))
