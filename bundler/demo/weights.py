"""Random weights as raw bytes: the same on every Python, and fast without numpy.

A bfloat16 number is sign, eight bits of exponent and seven of mantissa. With the exponent fixed and the
rest random, values lie evenly in +-[2**e, 2**(e+1)); float32 is the same with sixteen zero bits below.
"""

from __future__ import annotations

import random
import zlib

_BIAS = 127


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


def without_rows(data: bytes, width: int, rows: list[int], item: int) -> bytes:
    """Zero whole rows of a matrix of `width` columns and `item` bytes a number."""
    out = bytearray(data)
    size = width * item
    for row in rows:
        out[row * size : (row + 1) * size] = bytes(size)
    return bytes(out)
