from __future__ import annotations

import os
from pathlib import Path

import pytest

from bundler.adapters.source_local import GgufSource, LocalSource
from bundler.domain.lock import LockedModel
from bundler.domain.sources import ModelRef
from bundler.errors import SourceError
from bundler.format.ingest import digest_bytes
from tests.fakes.ports import Count

GGUF = b"GGUF\x03\x00\x00\x00" + bytes(56)


def _ref(source: str, path: str, **more: object) -> ModelRef:
    return ModelRef.model_validate({"source": source, "path": path, **more})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "models" / "tiny"
    for path, data in {
        "config.json": b"{}",
        "model.safetensors": b"weights",
        "sub/tokenizer.json": b"tokens",
        ".git/config": b"history",
        ".cache/huggingface/x.metadata": b"record",
        "README.md": b"---\nlicense: mit\n---\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def _pin(base: Path, path: str = "models/tiny", **more: object) -> LockedModel:
    return LocalSource().pin(_ref("local", path, **more), base)


def _paths(model: LockedModel) -> list[str]:
    return [file.path for file in model.files]


def test_a_folder_is_pinned_with_sizes_and_digests_and_without_histories(
    folder: Path, tmp_path: Path
) -> None:
    model = _pin(tmp_path)
    assert _paths(model) == ["README.md", "config.json", "model.safetensors", "sub/tokenizer.json"]
    assert (model.name, model.source, model.origin) == ("tiny", "local", "models/tiny")
    assert (model.revision, model.licence) == (None, "mit")
    assert model.files[2].size == 7
    assert model.files[2].sha256 == digest_bytes(b"weights").sha256


@pytest.mark.parametrize(
    "card",
    [
        b"# no front matter",
        b"---\nlicense: [\n---\n",
        b"\xff\xfe",
        b"---\n\xff: 1\n---\n",
        b"---\n- a\n---\n",
        b"---\na: " + b"[" * 50_000 + b"\n---\n",
        b"---\nlicense: !!timestamp zz\n---\n",
        b"---\nlicense: !!bool x\n---\n",
        b"---\nlicense: !!int abc\n---\n",
        b"---\n? [a]\n: 1\n---\n",
        b"---\nlicense: 2026-99-99\n---\n",
        b'---\nlicense: "\\ud800"\n---\n',
        b"---\nlicense: {a: b}\n---\n",
        b"---\nlicense: " + b"x" * 300 + b"\n---\n",
        b"---\na: &a [x]\nlicense: [*a, *a]\n---\n",
    ],
    ids=range(15),
)
def test_an_unreadable_card_leaves_the_licence_unknown(
    folder: Path, tmp_path: Path, card: bytes
) -> None:
    (folder / "README.md").write_bytes(card)
    assert _pin(tmp_path).licence is None


def test_several_licences_are_all_told(folder: Path, tmp_path: Path) -> None:
    (folder / "README.md").write_text("---\nlicense: [mit, apache-2.0]\n---\n")
    assert _pin(tmp_path).licence == "mit, apache-2.0"


def test_filters_cross_folders_and_a_slash_means_all_below(folder: Path, tmp_path: Path) -> None:
    assert _paths(_pin(tmp_path, include=["*.json"])) == ["config.json", "sub/tokenizer.json"]
    assert _paths(_pin(tmp_path, include=["*.json"], exclude=["sub/"])) == ["config.json"]
    assert _paths(_pin(tmp_path, include=["CONFIG.json", "sub\\*"])) == ["sub/tokenizer.json"]


def test_filters_of_both_sources_agree(folder: Path, tmp_path: Path) -> None:
    utils = pytest.importorskip("huggingface_hub.utils")
    every = _paths(_pin(tmp_path))
    for include in (["*.json"], ["sub/"], ["sub\\tok*"], ["[cm]*"], ["*"], ["SUB/*"]):
        expected = list(utils.filter_repo_objects(every, allow_patterns=include))
        if expected:
            assert _paths(_pin(tmp_path, include=include)) == expected
        expected = list(utils.filter_repo_objects(every, ignore_patterns=include))
        if expected:
            assert _paths(_pin(tmp_path, exclude=include)) == expected


def test_filters_that_leave_nothing_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file is left after the filters"):
        _pin(tmp_path, include=["*.gguf"])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="none: no such folder"):
        _pin(tmp_path, "none")


def test_a_link_inside_the_folder_is_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "link.json").symlink_to("config.json")
    assert "link.json" in _paths(_pin(tmp_path))


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """As the Hugging Face cache lays a model out."""
    model = tmp_path / "hub" / "models--o--m"
    root = model / "snapshots" / ("0" * 40)
    (root / "onnx").mkdir(parents=True)
    (model / "blobs").mkdir()
    (model / "blobs" / "b1").write_bytes(b"weights")
    (root / "model.safetensors").symlink_to("../../blobs/b1")
    (root / "onnx" / "model.onnx").symlink_to("../../../blobs/b1")
    return root


def test_a_snapshot_of_the_hugging_face_cache_may_be_named(snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to(snapshot)
    for path in (str(snapshot), "short"):
        model = _pin(tmp_path, path)
        assert _paths(model) == ["model.safetensors", "onnx/model.onnx"]
        assert {file.size for file in model.files} == {7}
        LocalSource().fetch(model, model.files[0], tmp_path, tmp_path, Count())


@pytest.mark.parametrize("target", ["../../refs", "/etc/hostname", "../../../models--o--x/blobs/b"])
def test_a_snapshots_link_leads_to_its_own_blobs_only(
    snapshot: Path, tmp_path: Path, target: str
) -> None:
    (snapshot / "../../refs").write_text("x")
    (tmp_path / "hub/models--o--x/blobs").mkdir(parents=True)
    (tmp_path / "hub/models--o--x/blobs/b").write_text("x")
    (snapshot / "config.json").symlink_to(target)
    with pytest.raises(SourceError, match="leads out of the folder"):
        _pin(tmp_path, str(snapshot))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("/etc/hostname", "leads out of the folder"),
        ("../other", "leads out of the folder"),
        ("nowhere", "leads to nothing"),
        ("sub", "a link to a folder"),
        ("loop", "leads to nothing"),
    ],
)
def test_a_link_that_cannot_be_carried_is_refused_unless_it_is_left_out(
    folder: Path, tmp_path: Path, target: str, message: str
) -> None:
    (folder.parent / "other").write_text("x")
    (folder / "loop").symlink_to(target)
    with pytest.raises(SourceError, match=message):
        _pin(tmp_path)
    assert len(_paths(_pin(tmp_path, exclude=["loop", "loop/"]))) == 4


def test_what_is_no_regular_file_is_left_out(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "pipe" not in _paths(_pin(tmp_path))


def test_a_name_that_a_stick_cannot_hold_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "a:b").touch()
    with pytest.raises(SourceError, match="'a:b' is refused"):
        _pin(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "config.json").chmod(0)
    with pytest.raises(SourceError, match=r"config\.json: Permission denied"):
        _pin(tmp_path)


def test_a_local_file_is_given_where_it_lies(folder: Path, tmp_path: Path) -> None:
    model = _pin(tmp_path)
    into = tmp_path / "into"
    path = LocalSource().fetch(model, model.files[3], into, tmp_path, Count())
    assert path == folder / "sub" / "tokenizer.json"
    assert not into.exists()


def test_a_local_file_that_changed_its_size_or_went_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    model = _pin(tmp_path)
    (folder / "config.json").write_bytes(b"{ }")
    with pytest.raises(SourceError, match="has 3 bytes, the lock says 2"):
        LocalSource().fetch(model, model.files[1], tmp_path, tmp_path, Count())
    (folder / "config.json").unlink()
    with pytest.raises(SourceError, match="No such file"):
        LocalSource().fetch(model, model.files[1], tmp_path, tmp_path, Count())


def test_a_lock_cannot_lead_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    model = _pin(tmp_path)
    evil = model.files[0].model_copy(update={"path": "../other"})
    with pytest.raises(SourceError, match="refused"):
        LocalSource().fetch(model, evil, tmp_path, tmp_path, Count())


def _gguf(base: Path, path: str = "m/model.gguf", **more: object) -> LockedModel:
    return GgufSource().pin(_ref("gguf", path, **more), base)


def test_a_gguf_file_is_pinned_and_given_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/model.gguf").write_bytes(GGUF)
    model = _gguf(tmp_path)
    assert (model.source, model.origin, model.revision) == ("gguf", "m/model.gguf", None)
    (file,) = model.files
    assert (file.path, file.size) == ("model.gguf", 64)
    assert file.sha256 == digest_bytes(GGUF).sha256
    path = GgufSource().fetch(model, file, tmp_path / "into", tmp_path, Count())
    assert path == tmp_path / "m/model.gguf"
    path.write_bytes(GGUF + b"x")
    with pytest.raises(SourceError, match="has 65 bytes"):
        GgufSource().fetch(model, file, tmp_path / "into", tmp_path, Count())


def test_a_split_gguf_brings_all_its_parts_whichever_is_named(tmp_path: Path) -> None:
    names = [f"big-{part:05d}-of-00003.gguf" for part in (1, 2, 3)]
    for name in (*names, "other.gguf"):
        (tmp_path / name).write_bytes(GGUF)
    for name in names:
        assert _paths(_gguf(tmp_path, name)) == names


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    (tmp_path / "big-00001-of-00003.gguf").write_bytes(GGUF)
    with pytest.raises(SourceError, match=r"big-00002-of-00003\.gguf, big-00003-of-00003\.gguf"):
        _gguf(tmp_path, "big-00001-of-00003.gguf")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", r"not a GGUF file \(begins with b'vers'"),
        (b"", "not a GGUF file"),
        (b"GGUF", "GGUF version 0"),
        (b"GGUF\x01\x00\x00\x00", "GGUF version 1"),
        (b"GGUF\x00\x00\x00\x03", "GGUF version 50331648"),
    ],
)
def test_what_is_no_gguf_in_use_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    with pytest.raises(SourceError, match=message):
        _gguf(tmp_path, "model.gguf")


def test_a_gguf_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    for path in ("none.gguf", "."):
        with pytest.raises(SourceError, match="no file"):
            _gguf(tmp_path, path, name="m")


def test_filters_on_a_gguf_are_refused() -> None:
    with pytest.raises(ValueError, match="a gguf model is one file"):
        _ref("gguf", "m.gguf", include=["*"])


def test_a_range_is_read_where_the_file_lies(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.bin").write_bytes(bytes(range(200)))
    source = LocalSource()
    model = source.pin(ModelRef(source="local", path="m"), tmp_path)
    assert source.read(model, model.files[0], tmp_path, 100, 5) == bytes(range(100, 105))
    assert source.read(model, model.files[0], tmp_path, 195, 50) == bytes(range(195, 200))
    (tmp_path / "m" / "a.bin").write_bytes(b"short")
    with pytest.raises(SourceError, match="the lock says 200"):
        source.read(model, model.files[0], tmp_path, 0, 5)


def test_a_range_of_each_part_of_a_split_gguf_is_read_where_it_lies(tmp_path: Path) -> None:
    for part in (1, 2):
        (tmp_path / f"m-0000{part}-of-00002.gguf").write_bytes(GGUF + bytes([part]))
    source = GgufSource()
    model = source.pin(_ref("gguf", "m-00001-of-00002.gguf", name="m"), tmp_path)
    assert [source.read(model, file, tmp_path, 64, 9) for file in model.files] == [b"\1", b"\2"]
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(SourceError, match="m-00002-of-00002"):
        source.read(model, model.files[1], tmp_path, 0, 4)
