"""Memory of a GPU as a bar of text: weights, overhead, what is left for the KV cache."""

from __future__ import annotations

from bundler.domain.fit import Fit, Term
from bundler.domain.sizes import human

_UNICODE = ("█", "▓", "░", "·")
_ASCII = ("#", "=", "-", ".")
_NARROWEST = 20


def bars(fit: Fit, width: int, unicode: bool) -> list[str]:
    """Lines of at most `width` characters (20 at least); `unicode` when the stream can show blocks.

    The bar is one GPU: weights, overhead, KV cache, and what the engine leaves alone. A sum over the
    memory fills the bar and says by how much it is over.
    """
    width = max(width, _NARROWEST)
    signs = _UNICODE if unicode else _ASCII
    weights, overhead = _parts(fit.terms)
    sizes = (weights, overhead, max(fit.kv_bytes, 0))
    total = max(fit.gpu_bytes, sum(sizes), 1)
    inner = width - 2
    cells = _cells(sizes, total, inner)
    bar = "".join(sign * count for sign, count in zip(signs, cells, strict=False))
    lines = [
        _header(fit, width),
        f"[{bar.ljust(inner, signs[3])}]",
        f"{signs[0]} weights {human(weights)}",
        f"{signs[1]} overhead {human(overhead)} (estimate)",
        f"{signs[2]} KV cache {human(fit.kv_bytes)}"
        if fit.kv_bytes >= 0
        else f"! {human(-fit.kv_bytes)} over what may be used",
        f"{signs[3]} left alone {human(max(fit.gpu_bytes - sum(sizes), 0))}",
    ]
    host = sum(term.bytes for term in fit.host_terms)
    if host:
        lines.append(f"+ {human(host)} in the host's RAM")
    return [line[:width] for line in lines]


def _header(fit: Fit, width: int) -> str:
    """Service and GPU, and as much more as there is room for."""
    each = " each" if fit.gpus > 1 else ""
    gpus = f"{fit.gpus}x {fit.gpu}" if fit.gpus > 1 else fit.gpu
    line = f"{fit.service}: {gpus}"
    for more in (f", {human(fit.gpu_bytes)}{each}", f", KV cache {fit.kv_dtype}"):
        if len(line + more) > width:
            break
        line += more
    return line


def _parts(terms: tuple[Term, ...]) -> tuple[int, int]:
    weights = sum(term.bytes for term in terms if term.name == "weights")
    return weights, sum(term.bytes for term in terms) - weights


def _cells(sizes: tuple[int, ...], total: int, width: int) -> list[int]:
    """Cells for each size: rounded at the running sum, so that they never exceed the width."""
    cells, sum_, drawn = [], 0, 0
    for size in sizes:
        sum_ += size
        end = min(round(width * sum_ / total), width)
        cells.append(end - drawn)
        drawn = end
    return cells
