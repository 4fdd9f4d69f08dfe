"""Erasure codes over volumes: `n` parity shares rebuild any `n` lost ones.

One parity share is the exclusive or of all data shares, in plain Python; more are zfec's systematic
Reed-Solomon code, which the closed side needs only to rebuild (`airbundle[parity]`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from bundler.errors import HostError


class Code(Protocol):
    """A code of `k` data shares. All shares of one call have the same length, bytes."""

    def encode(self, data: Sequence[bytes]) -> list[bytes]:
        """The parity shares of the `k` data shares."""

    def decode(self, shares: Mapping[int, bytes], wanted: Sequence[int]) -> dict[int, bytes]:
        """Lost data shares, by number, from `k` shares that are there (parity from `k` on)."""


def code_of(kind: str, data: int, parity: int) -> Code:
    """The code of a parity set.

    Raises:
        HostError: zfec is not installed here.
    """
    if kind == "xor":
        return _Xor(data)
    try:
        zfec = import_module("zfec")
    except ImportError as cause:
        raise HostError(
            "zfec is not installed, which sets with several parity volumes need",
            hint="Rebuild the volumes on a host that has `airbundle[parity]`.",
        ) from cause
    return _Zfec(zfec, data, parity)


class _Xor:
    def __init__(self, data: int) -> None:
        self._data = data

    def encode(self, data: Sequence[bytes]) -> list[bytes]:
        return [_xor(data)]

    def decode(self, shares: Mapping[int, bytes], wanted: Sequence[int]) -> dict[int, bytes]:
        [lost] = wanted
        others = [shares[number] for number in range(self._data + 1) if number != lost]
        return {lost: _xor(others)}


class _Zfec:
    def __init__(self, library: Any, data: int, parity: int) -> None:
        self._data = data
        shares = data + parity
        self._encoder = library.Encoder(data, shares)
        self._decoder = library.Decoder(data, shares)
        self._parity = list(range(data, shares))

    def encode(self, data: Sequence[bytes]) -> list[bytes]:
        return list(self._encoder.encode(list(data), self._parity))

    def decode(self, shares: Mapping[int, bytes], wanted: Sequence[int]) -> dict[int, bytes]:
        numbers = sorted(shares)[: self._data]
        found = self._decoder.decode([shares[number] for number in numbers], numbers)
        return {number: bytes(found[number]) for number in wanted}


def _xor(shares: Sequence[bytes]) -> bytes:
    total = 0
    for share in shares:
        total ^= int.from_bytes(share, "little")
    return total.to_bytes(len(shares[0]), "little")
