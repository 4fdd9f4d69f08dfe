"""How an engine hands out KV-cache memory, and so how many requests of a length fit.

vLLM cuts the memory into blocks that all kinds of layers share, so that a block has one size
(`vllm/v1/core/kv_cache_utils.py`, `_get_kv_cache_groups_uniform_page_size`): layers are put into
groups of as many layers as the rarest kind has, and a request takes blocks for each group. With
linear layers a block is made so long that it holds the state of one of them
(`vllm/platforms/interface.py`, `Setting attention block size to ...`). llama.cpp gives every slot
its own stretch for the whole context.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from bundler.build.kvcache import Numbers, state_bytes, token_bytes
from bundler.domain.model_facts import LayerGroup, ModelFacts

_SMALLEST_BLOCK = 16
_MLA_STEP = 128
_FAR = 2**40
# A group is widened instead of split when one kind has hardly more layers than the other.
_NEARLY_EQUAL = 1.5


class Room(Protocol):
    """Memory that requests share. `bytes_` are those of one GPU."""

    def requests(self, bytes_: int, context: int) -> int:
        """Most requests of `context` tokens at once."""


@dataclass(frozen=True)
class Table:
    """Layers that share one block table; `tables` of them alike. A block holds `tokens` tokens."""

    tables: int
    kind: str
    tokens: int = 0
    window: int = 0


@dataclass(frozen=True)
class Pool:
    """Blocks of vLLM. `states` blocks hold a recurrent state, `in_flight` tokens wait in a batch."""

    block_bytes: int
    tables: tuple[Table, ...]
    in_flight: int
    states: int

    def blocks(self, bytes_: int) -> int:
        """Blocks in so much memory."""
        return max(bytes_, 0) // self.block_bytes

    def blocks_for(self, context: int) -> int:
        """Blocks of one request of `context` tokens."""
        return sum(table.tables * self._of(table, context) for table in self.tables)

    def _of(self, table: Table, context: int) -> int:
        if table.kind == "linear":
            return self.states
        if table.kind == "sliding":
            held = min(table.window - 1 + self.in_flight, context)
            return -(-held // table.tokens) + 1
        return -(-context // table.tokens)

    def requests(self, bytes_: int, context: int) -> int:
        """Most requests of `context` tokens at once, as vLLM's `Maximum concurrency` counts them."""
        return self.blocks(bytes_) // max(self.blocks_for(context), 1)

    def words(self, context: int) -> str:
        """The calculation of `blocks_for`."""
        parts = [
            f"{table.tables} x {self._of(table, context)} for {table.kind} layers"
            for table in self.tables
        ]
        return f"{self.blocks_for(context)} blocks of {self.block_bytes} bytes ({', '.join(parts)})"


def pool(model: ModelFacts, numbers: Numbers, in_flight: int, states: int, step: int = 16) -> Pool:
    """The blocks of vLLM for a model. `step` is the attention backend's smallest block, tokens.

    Layers are grouped as those of the whole model; of each group a pipeline stage keeps its own, and the
    stage with most of them bounds all (`get_kv_cache_configs`: the smallest number of blocks counts).

    Raises:
        ValueError: the KV-cache type is not known, or the model has no layers with a cache.
    """
    kinds = [
        group
        for group in _alike(model.groups)
        if token_bytes(group, numbers) or state_bytes(group, numbers)
    ]
    attention = [group for group in kinds if group.kind != "linear"]
    tokens = {id(group): token_bytes(group, numbers) for group in attention}
    widest = max(tokens.values(), default=0)
    state = max((state_bytes(group, numbers) for group in kinds), default=0)
    if not widest and not state:
        raise ValueError("the model has no layers that keep a cache")
    if all(group.kind in ("full", "mla") for group in kinds):
        whole = sum(-(-group.layers // numbers.stages) * tokens[id(group)] for group in attention)
        table = Table(1, attention[0].kind, _SMALLEST_BLOCK)
        return Pool(_SMALLEST_BLOCK * whole, (table,), in_flight, states)
    page = _page(widest, state, attention, step)
    layers = _layers_of_a_group([group.layers for group in kinds])
    tables = tuple(
        Table(
            -(-group.layers // layers),
            group.kind,
            page // tokens[id(group)] if group.kind != "linear" else 0,
            group.window,
        )
        for group in kinds
    )
    return Pool(-(-layers // numbers.stages) * page, tables, in_flight, states)


def _page(widest: int, state: int, attention: list[LayerGroup], step: int) -> int:
    """Bytes of a block in one layer: the smallest one that holds a state."""
    if not widest:
        return state
    if any(group.kind == "mla" for group in attention) and state:
        step = max(step, _MLA_STEP)
    return max(-(-state // (step * widest)) * step, _SMALLEST_BLOCK) * widest


def _layers_of_a_group(layers: list[int]) -> int:
    fewest, most = min(layers), max(layers)
    return most if most < fewest * _NEARLY_EQUAL else fewest


def _alike(groups: tuple[LayerGroup, ...]) -> list[LayerGroup]:
    """Groups that differ in nothing but their number of layers, put together."""
    merged: dict[LayerGroup, int] = {}
    for group in groups:
        key = group.model_copy(update={"layers": 1})
        merged[key] = merged.get(key, 0) + group.layers
    return [key.model_copy(update={"layers": count}) for key, count in merged.items()]


@dataclass(frozen=True)
class Slots:
    """Stretches of llama.cpp: each request has `token` bytes for each token, and `state` bytes.

    Sliding windows are allocated with one batch more, in steps of 256 tokens
    (https://github.com/ggml-org/llama.cpp/blob/master/src/llama-kv-cache-iswa.cpp). `gpus` share it;
    the `share` that lies on them is less than 1 when layers stay on the CPU.
    """

    token: int
    state: int
    windows: tuple[tuple[int, int], ...]
    batch: int
    gpus: int
    share: Fraction = Fraction(1)

    def bytes_for(self, context: int) -> int:
        """Bytes of one request of `context` tokens, on all GPUs and the host together."""
        sliding = sum(
            token * min(context, -(-(window + self.batch) // 256) * 256)
            for token, window in self.windows
        )
        return self.token * context + self.state + sliding

    def requests(self, bytes_: int, context: int) -> int:
        """Most slots of `context` tokens."""
        if bytes_ < 0 or not self.share:
            return 0 if bytes_ < 0 else _FAR
        return int(bytes_ * self.gpus / (self.share * max(self.bytes_for(context), 1)))


def slots(
    model: ModelFacts,
    numbers: Numbers,
    batch: int,
    gpus: int,
    whole: bool = False,
    share: Fraction = Fraction(1),
) -> Slots:
    """The stretches of llama.cpp for a model; `whole` keeps sliding layers in full (`--swa-full`).

    Raises:
        ValueError: the KV-cache type is not known.
    """
    growing = ("full", "mla", "sliding") if whole else ("full", "mla")
    return Slots(
        token=sum(g.layers * token_bytes(g, numbers) for g in model.groups if g.kind in growing),
        state=sum(g.layers * state_bytes(g, numbers) for g in model.groups),
        windows=tuple(
            (g.layers * token_bytes(g, numbers), g.window)
            for g in model.groups
            if g.kind == "sliding" and not whole
        ),
        batch=batch,
        gpus=gpus,
        share=share,
    )


def longest(room: Room, bytes_: int, requests: int = 1, limit: int = _FAR) -> int:
    """Most tokens that `requests` requests can have at once, at most `limit`; 0 when none fits."""
    low, high = 0, min(limit, _FAR)
    while low < high:
        middle = (low + high + 1) // 2
        if room.requests(bytes_, middle) >= requests:
            low = middle
        else:
            high = middle - 1
    return low
