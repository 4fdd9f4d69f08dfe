"""Archives as strangers make them."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from pathlib import Path

import pytest

from bundler.build import unpacking
from bundler.build.unpacking import Unpacked, unpack
from bundler.errors import HostError, SourceError, SpaceError
from tests.fakes.ollama_release import member, packed, release, zstd


def opened(tmp_path: Path, data: bytes) -> Unpacked:
    archive = tmp_path / "a.tar"
    archive.write_bytes(data)
    into = tmp_path / "into"
    into.mkdir(exist_ok=True)
    return unpack(archive, into)


@pytest.mark.parametrize("form", ["tar", "tgz", "tar.zst"])
def test_a_release_is_unpacked_whatever_it_is_packed_with(tmp_path: Path, form: str) -> None:
    found = opened(tmp_path, release(form))
    assert set(found.files) == {
        "bin/ollama", "lib/ollama/llama-server", "lib/ollama/libtoy.so.1.2.3", "lib/ollama/cuda_v12/text.txt",
    }  # fmt: skip
    assert found.programs == {"bin/ollama", "lib/ollama/llama-server"}
    assert found.links == {
        "lib/ollama/libtoy.so.1": "lib/ollama/libtoy.so.1.2.3",
        "lib/ollama/copy.txt": "lib/ollama/cuda_v12/text.txt",
    }
    assert found.files["lib/ollama/cuda_v12/text.txt"].read_bytes() == b"text\n"


def test_links_are_followed_through_links_and_hard_links_count(tmp_path: Path) -> None:
    hard = tarfile.TarInfo("lib/c")
    hard.type, hard.linkname = tarfile.LNKTYPE, "./lib/a"
    members = [
        member("lib/a", b"x", 0o644),
        member("lib/b", b"->c", 0o777),
        hard,
        member("d/e/f", b"->../../lib/b", 0o777),
    ]
    assert opened(tmp_path, packed(members, "tar")).links == {
        "lib/b": "lib/a",
        "lib/c": "lib/a",
        "d/e/f": "lib/a",
    }


def device(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo("lib/x")
    info.type = kind
    return info


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member("../bin/x", b"x", 0o644)], "component"),
        ([member("/etc/x", b"x", 0o644)], "absolute"),
        ([member("lib/../../x", b"x", 0o644)], "component"),
        ([member("lib/a\nb", b"x", 0o644)], "refused"),
        ([member("lib/a", b"->/etc/passwd", 0o777)], "out of the archive"),
        ([member("lib/a", b"->../../x", 0o777)], "out of the archive"),
        ([member("lib/a", b"->b", 0o777)], "no file"),
        ([member("a", b"->b", 0o777), member("b", b"->a", 0o777)], "no file"),
        ([member("lib/a", b"x", 0o644), member("lib/l", b"->.", 0o777)], "no file"),
        ([member("lib/a", b"x", 0o644), member("./lib/a", b"y", 0o644)], "twice"),
        ([device(tarfile.CHRTYPE)], "device"),
        ([device(tarfile.FIFOTYPE)], "device"),
        ([device(tarfile.GNUTYPE_SPARSE)], "sparse"),
        ([], "no file"),
    ],
)
def test_what_no_release_holds_is_refused(
    tmp_path: Path, members: list[tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]], words: str
) -> None:
    with pytest.raises(SourceError, match=words) as refused:
        opened(tmp_path, packed(members, "tar"))
    assert "a.tar" in str(refused.value)
    # Nothing has a name of the archive's choosing.
    assert not [p for p in (tmp_path / "into").iterdir() if not p.name.isdigit()]
    assert not (tmp_path / "bin").exists()


def test_a_cut_archive_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    for form in ("tgz", "tar.zst"):
        whole = release(form)
        for part in (0, 3, 20, len(whole) // 2, len(whole) - 20):
            with pytest.raises(SourceError):
                opened(tmp_path, whole[:part])


def test_other_bytes_are_no_archive(tmp_path: Path) -> None:
    for data in (
        b"",
        b"PK\x03\x04" * 500,
        b"\x1f\x8b" + b"x" * 600,
        b"\x28\xb5\x2f\xfd" + b"y" * 600,
    ):
        with pytest.raises(SourceError):
            opened(tmp_path, data)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_desert_of_zeros_ends_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object
) -> None:
    monkeypatch.setattr(unpacking, "MOST_BYTES", 5_000_000)
    head = tarfile.TarInfo("lib/a")
    head.size = 4_000_000
    other = tarfile.TarInfo("lib/b")
    other.size = 4_000_000
    plain = head.tobuf() + bytes(4_000_256) + other.tobuf() + bytes(4_000_256) + bytes(1024)
    assert callable(pack)
    with pytest.raises(SourceError, match="unpacks to more than"):
        opened(tmp_path, pack(plain))


def test_a_header_that_never_ends_is_refused(tmp_path: Path) -> None:
    """A pax header of gigabytes would be read into memory whole."""
    head = tarfile.TarInfo("long")
    head.type, head.size = tarfile.XHDTYPE, 2**31
    with pytest.raises(SourceError, match="a header of it is larger"):
        opened(tmp_path, gzip.compress(head.tobuf() + bytes(20_000_000)))


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    head = tarfile.TarInfo("lib/a")
    head.size = 2**40
    with pytest.raises(SourceError, match="unpacks to"):
        opened(tmp_path, head.tobuf() + bytes(10_000))


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 3)
    with pytest.raises(SourceError, match="more than 3"):
        opened(tmp_path, packed([member(f"lib/{n}", b"x", 0o644) for n in range(9)], "tar"))


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    (into / "0").symlink_to("/dev/full")
    with pytest.raises(SpaceError, match="writing"):
        opened(tmp_path, packed([member("lib/a", bytes(2_000_000), 0o644)], "tar"))


def test_zstd_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    data = release("tar.zst")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(HostError, match="zstd") as refused:
        opened(tmp_path, data)
    assert "airbundle[connected]" in refused.value.hint


def test_the_end_mark_ends_it(tmp_path: Path) -> None:
    """What follows the end of a tar archive is nobody's."""
    buffer = io.BytesIO(packed([member("lib/a", b"x", 0o644)], "tar"))
    found = opened(tmp_path, buffer.getvalue() + packed([member("lib/b", b"x", 0o644)], "tar"))
    assert set(found.files) == {"lib/a"}
