"""Blocks: the unit in which files are hashed, cut, resumed and repaired.

A block starts at a multiple of the manifest's `block_size` in its file. A file's content id is derived
from its blocks alone, so that it is known as soon as each block is proved, in any order and on any
number of cores, and no manifest can give a file another file's id.
"""

from __future__ import annotations

from collections.abc import Sequence

from bundler.domain.manifest import Entry
from bundler.domain.sizes import MAX_BLOCK, MIN_BLOCK
from bundler.format.digests import sha256_hex

# What a volume may leave unused because files are cut between blocks.
_SHARE = 16


def block_size_for(limit: int) -> int:
    """The block size of a bundle with volumes of at most `limit` bytes: 64 MiB, less for small ones."""
    return max(MIN_BLOCK, min(MAX_BLOCK, 1 << max((limit // _SHARE).bit_length() - 1, 0)))


def block_count(size: int, block_size: int) -> int:
    """How many blocks a file of `size` bytes has; an empty file has one."""
    return max(1, -(-size // block_size))


def content_id(entry: Entry) -> str:
    """What a store names the file by: SHA-256 over its size and the SHA-256 of each block.

    The text `airbundle content 1`, the size in decimal and the blocks' digests in hexadecimal, each on
    a line that ends in a newline.
    """
    return content_id_of(entry.size, [block.sha256 for block in entry.blocks])


def content_id_of(size: int, digests: Sequence[str]) -> str:
    """`content_id` of a file of that size and those blocks."""
    return sha256_hex("\n".join(["airbundle content 1", str(size), *digests, ""]).encode())
