"""Random weights as raw bytes: the same on every Python, and fast without numpy.

A bfloat16 number is sign, eight bits of exponent and seven of mantissa. With the exponent fixed and the
rest random, values lie evenly in +-[2**e, 2**(e+1)); float32 is the same with sixteen zero bits below.


A zero row of the output matrix gives a token the logit 0: never the largest, yet often drawn when an
answer is sampled. So channel 0 of the hidden state is kept at one positive number all the way (set by
the embedding, written to by no layer), and on it the output matrix pushes unwanted tokens down.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterable

_BIAS = 127
# Near the other channels' size, so that it does not drown them in the norms; both are exact in bfloat16.
_STEADY = 2.0**-4
_MUTE = -256.0


def bf16(name: str, count: int, exponent: int = -6) -> bytes:
    """`count` random bfloat16 numbers of magnitude 2**exponent to 2**(exponent + 1), little-endian.

    The tensor's name is the seed.
    """
    source = random.Random(zlib.crc32(name.encode()))  # noqa: S311 - weights, not secrets
    field = _BIAS + exponent
    low_bit, high = (field & 1) << 7, field >> 1
    lows = source.randbytes(count).translate(bytes(low_bit | (b & 0x7F) for b in range(256)))
    highs = source.randbytes(count).translate(bytes(high | (b & 0x80) for b in range(256)))
    out = bytearray(2 * count)
    out[0::2], out[1::2] = lows, highs
    return bytes(out)


def f32(name: str, count: int, exponent: int = -6) -> bytes:
    """As `bf16`, widened to float32."""
    narrow = bf16(name, count, exponent)
    out = bytearray(4 * count)
    out[2::4], out[3::4] = narrow[0::2], narrow[1::2]
    return bytes(out)


def bf16_constant(value: float, count: int) -> bytes:
    """`count` times 0.0 or 1.0."""
    return {0.0: b"\x00\x00", 1.0: b"\x80\x3f"}[value] * count


def steady_embedding(data: bytes, width: int, item: int) -> bytes:
    """An embedding matrix of `width` columns and `item` bytes a number, with channel 0 steady."""
    return _with_first_column(data, width, item, _STEADY, range(len(data) // (width * item)))


def steady_output(data: bytes, width: int, item: int) -> bytes:
    """A matrix that writes to the hidden state, `width` columns wide, kept off channel 0."""
    return without_rows(data, width, [0], item)


def muting_head(data: bytes, width: int, item: int, mute: list[int]) -> bytes:
    """An output matrix that never gives the tokens in `mute`, neither greedily nor sampled."""
    rows = range(len(data) // (width * item))
    data = _with_first_column(without_rows(data, width, mute, item), width, item, 0.0, rows)
    return _with_first_column(data, width, item, _MUTE, mute)


def _with_first_column(
    data: bytes, width: int, item: int, value: float, rows: Iterable[int]
) -> bytes:
    out = bytearray(data)
    # The upper half of a float32 is the bfloat16.
    number = struct.pack("<f", value)[4 - item :]
    for row in rows:
        at = row * width * item
        out[at : at + item] = number
    return bytes(out)


def without_rows(data: bytes, width: int, rows: list[int], item: int) -> bytes:
    """Zero whole rows of a matrix of `width` columns and `item` bytes a number."""
    out = bytearray(data)
    size = width * item
    for row in rows:
        out[row * size : (row + 1) * size] = bytes(size)
    return bytes(out)
