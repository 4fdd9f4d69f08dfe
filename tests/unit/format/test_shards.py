"""The volume plan: every byte once, nothing over the limit, small files whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.adapters.volumes_zip import ZipVolumes
from bundler.errors import SpaceError
from bundler.format.shards import member_names, plan_volumes
from bundler.ports import Member

FORM = ZipVolumes()
BLOCK = 4096


@given(st.lists(st.integers(0, 400_000), max_size=30), st.integers(65_536, 300_000))
def test_every_byte_is_planned_once_and_no_volume_is_over_the_limit(
    sizes: list[int], limit: int
) -> None:
    files = [(f"folder/file{n}", size) for n, size in enumerate(sizes)]
    volumes = plan_volumes(files, limit, FORM, BLOCK)
    names = member_names(files, volumes)
    covered = [0] * len(files)
    for volume in volumes:
        members = [Member(names[piece], piece.size, 0) for piece in volume]
        last = FORM.layout(members)[-1]
        assert last.offset + last.size <= limit
        for piece in volume:
            assert piece.start == covered[piece.file]
            assert piece.start % BLOCK == 0
            covered[piece.file] += piece.size
    assert covered == sizes


def test_a_small_file_is_not_cut() -> None:
    volumes = plan_volumes([("big", 70_000), ("small", 4_000)], 100_000, FORM, BLOCK)
    assert [[(p.file, p.size) for p in v] for v in volumes] == [[(0, 70_000), (1, 4_000)]]
    volumes = plan_volumes([("big", 97_000), ("small", 4_000)], 100_000, FORM, BLOCK)
    assert (1, 0, 4_000) in [(p.file, p.start, p.size) for v in volumes for p in v]


def test_no_volume_is_left_with_a_small_rest() -> None:
    """900 blocks in volumes of 400: not 400, 400 and 100."""
    limit = 400 * BLOCK + 1000
    volumes = plan_volumes([("big", 900 * BLOCK)], limit, FORM, BLOCK)
    sizes = [sum(piece.size for piece in volume) // BLOCK for volume in volumes]
    assert len(sizes) == 3
    assert sum(sizes) == 900
    assert max(sizes) - min(sizes) <= 2


def test_a_limit_without_room_for_data_is_refused() -> None:
    with pytest.raises(SpaceError):
        plan_volumes([("x" * 200, 10)], 600, FORM, BLOCK)


def test_parts_are_numbered() -> None:
    files = [("m.safetensors", 250_000)]
    volumes = plan_volumes(files, 100_000, FORM, BLOCK)
    names = member_names(files, volumes)
    assert [names[v[0]] for v in volumes] == [f"m.safetensors.part{n}of3" for n in (1, 2, 3)]


def test_a_terabyte_is_planned_without_touching_data() -> None:
    files = [(f"m{n}", 10 * 2**30) for n in range(100)]
    volumes = plan_volumes(files, 2**32 - 1, FORM, 2**26)
    assert 250 < len(volumes) < 260
