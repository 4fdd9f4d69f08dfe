"""Blocks: the number of them, what names a file, and digests made in one pass."""

import hashlib
import zlib
from pathlib import Path

import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.domain.sizes import MAX_BLOCK, MIN_BLOCK
from bundler.format import digests
from bundler.format.blocks import block_count, block_size_for, content_id_of
from bundler.format.digests import xxh3_run
from bundler.format.ingest import Digests, digest_bytes, digest_file, joined_crc32

BLOCK = 4096


@pytest.mark.parametrize(
    ("limit", "block"),
    [
        (2**32 - 1, 2**26), (2**40, 2**26), (2**30, 2**26), (2**30 - 1, 2**25), (700 * 2**20, 2**25),
        (200_000, 8192), (65_536, 4096), (1, 4096),
    ],
)  # fmt: skip
def test_blocks_have_64_mib_and_less_for_small_volumes(limit: int, block: int) -> None:
    assert block_size_for(limit) == block
    assert MIN_BLOCK <= block <= MAX_BLOCK


@pytest.mark.parametrize(
    ("size", "count"), [(0, 1), (1, 1), (BLOCK, 1), (BLOCK + 1, 2), (10 * BLOCK, 10)]
)
def test_the_number_of_blocks(size: int, count: int) -> None:
    assert block_count(size, BLOCK) == count
    assert len(digest_bytes(bytes(size), BLOCK).blocks) == count


def test_the_content_id_is_what_the_format_s_document_says() -> None:
    """Worked by hand from docs/bundle-format.md, 1.1."""
    one, two = hashlib.sha256(b"a" * BLOCK).hexdigest(), hashlib.sha256(b"b").hexdigest()
    text = f"airbundle content 1\n{BLOCK + 1}\n{one}\n{two}\n"
    assert content_id_of(BLOCK + 1, [one, two]) == hashlib.sha256(text.encode()).hexdigest()
    page = (Path(__file__).parents[3] / "docs" / "bundle-format.md").read_text(encoding="utf-8")
    assert content_id_of(0, [hashlib.sha256(b"").hexdigest()]) in page


def expected(data: bytes, block_size: int) -> list[tuple[int, str, str, int]]:
    runs = [data[at : at + block_size] for at in range(0, max(len(data), 1), block_size)]
    return [
        (len(r), hashlib.sha256(r).hexdigest(), xxhash.xxh3_128_hexdigest(r), zlib.crc32(r))
        for r in runs
    ]


def check(found: Digests, data: bytes, block_size: int) -> None:
    assert found.size == len(data)
    assert found.sha256 == hashlib.sha256(data).hexdigest()
    assert found.xxh3 == xxhash.xxh3_128_hexdigest(data)
    blocks = [(b.size, b.sha256, b.xxh3, b.crc32) for b in found.blocks]
    assert blocks == expected(data, block_size)
    assert joined_crc32(found.blocks) == zlib.crc32(data)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(size=st.integers(0, 5 * BLOCK), seed=st.integers(0, 255))
def test_all_digests_come_from_one_pass(tmp_path: Path, size: int, seed: int) -> None:
    data = bytes((seed + n * n) % 256 for n in range(size))
    path = tmp_path / "f"
    path.write_bytes(data)
    counted: list[int] = []
    check(digest_file(path, BLOCK, counted.append), data, BLOCK)
    assert sum(counted) == size
    check(digest_bytes(data, BLOCK), data, BLOCK)


def test_blocks_longer_than_a_buffer(tmp_path: Path) -> None:
    data = hashlib.shake_128(b"x").digest(5 * 2**20 + 77)
    path = tmp_path / "f"
    path.write_bytes(data)
    check(digest_file(path, 2**21), data, 2**21)


@pytest.mark.parametrize("mapped", [True, False])
def test_runs_are_hashed_mapped_and_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool
) -> None:
    data = hashlib.shake_128(b"y").digest(3 * 2**20 + 5)
    path = tmp_path / "f"
    path.write_bytes(data)
    if not mapped:
        monkeypatch.setattr(digests, "_mapped_xxh3", lambda *_: None)
    else:
        monkeypatch.setattr(digests, "_WINDOW", 2**20)
    for start, size in ((0, len(data)), (0, 2**20), (2**20, 2 * 2**20 + 5), (4096, 2**21), (7, 9)):
        assert xxh3_run(path, start, size) == xxhash.xxh3_128_hexdigest(data[start : start + size])


def test_a_file_that_became_shorter_is_an_answer_and_no_signal(tmp_path: Path) -> None:
    """Touching a mapped page behind the end of a file would end the process with SIGBUS."""
    path = tmp_path / "f"
    path.write_bytes(bytes(2**21))
    assert xxh3_run(path, 0, 2**23) == xxhash.xxh3_128_hexdigest(bytes(2**21))
