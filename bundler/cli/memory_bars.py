"""One bar for a GPU's memory: weights, overhead, KV cache, and what the engine does not take."""

from __future__ import annotations

from bundler.domain.fit import Fit
from bundler.domain.sizes import human

_BLOCKS = ("█", "▓", "░", "·")
_LETTERS = ("#", "+", "-", ".")


def bars(fit: Fit, width: int, *, unicode: bool) -> list[str]:
    """The bar and its legend, no line wider than `width` columns."""
    signs = _BLOCKS if unicode else _LETTERS
    weights = fit.terms[0].bytes
    overhead = sum(term.bytes for term in fit.terms[1:])
    parts = [weights, overhead, max(0, fit.kv_bytes), max(0, fit.gpu_bytes - fit.usable_bytes)]
    names = ("weights", "overhead", "KV cache", "not used")
    room = max(10, min(width, 120) - 2)
    # Over the GPU's size the bar is as long as what is needed.
    total = max(fit.gpu_bytes, sum(parts), 1)
    columns = [part * room // total for part in parts]
    bar = "".join(sign * count for sign, count in zip(signs, columns, strict=True))
    legend = "  ".join(
        f"{sign} {name} {human(part)}" for sign, name, part in zip(signs, names, parts, strict=True)
    )
    lines = [f"[{bar:<{room}}]", legend, f"of {human(fit.gpu_bytes)} per GPU"]
    if fit.kv_bytes < 0:
        lines.append(f"{human(-fit.kv_bytes)} too much")
    return [line[:width] for line in lines]
