from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from huggingface_hub import HfApi, close_session, constants, hf_hub_download

from bundler.adapters.source_hub.adapter import HubSource
from bundler.demo.hub import Fault, LoopbackHub
from bundler.domain.lock import LockedFile, LockedModel
from bundler.domain.sources import ModelRef
from bundler.errors import SourceError, SpaceError
from bundler.format.digests import git_blob_sha1
from bundler.format.ingest import digest_bytes
from tests.fakes.ports import Count

REPO = "acme/tiny"
WEIGHTS = os.urandom(300_000)
CONFIG = b'{"architectures": ["Tiny"]}\n'
CARD = b"---\nlicense: apache-2.0\n---\n# Tiny\n"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoopbackHub:
    # No user's home, token or proxy takes part.
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "home" / "token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "hub" / REPO
    (folder / "sub").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "config.json").write_bytes(CONFIG)
    (folder / "README.md").write_bytes(CARD)
    (folder / "sub" / "empty.txt").touch()
    return LoopbackHub(tmp_path / "hub", tokens={"acme/gated": "hf_right"}, page=2)


@pytest.fixture
def url(hub: LoopbackHub) -> Iterator[str]:
    close_session()
    with hub as address:
        yield address
        close_session()


def _source(url: str, **more: object) -> HubSource:
    return HubSource(endpoint=url, **{"token": False, "pause_s": 0.0, **more})  # type: ignore[arg-type]


def _ref(**more: object) -> ModelRef:
    return ModelRef.model_validate({"repo": REPO, "revision": "main", **more})


def _pinned(url: str, path: str = "model.safetensors") -> tuple[LockedModel, LockedFile]:
    model = _source(url).pin(_ref(), Path())
    return model, next(file for file in model.files if file.path == path)


def _sent(hub: LoopbackHub) -> list[tuple[str | None, int]]:
    return [(item.range, item.sent) for item in hub.requests if "/resolve/" in item.path]


def test_a_branch_is_pinned_to_its_commit_with_sizes_digests_and_licence(
    hub: LoopbackHub, url: str
) -> None:
    model = _source(url).pin(_ref(), Path())
    assert (model.name, model.source, model.origin) == ("tiny", "hub", REPO)
    assert model.revision == hub.commit(REPO)
    assert model.licence == "apache-2.0"
    assert [file.path for file in model.files] == [
        "README.md", "config.json", "model.safetensors", "sub/empty.txt"
    ]  # fmt: skip
    weights = model.files[2]
    assert (weights.size, weights.sha256, weights.git_sha1) == (
        len(WEIGHTS), digest_bytes(WEIGHTS).sha256, None
    )  # fmt: skip
    config = model.files[1]
    assert (config.sha256, config.git_sha1) == (
        None, git_blob_sha1(hub.root / REPO / "config.json")
    )  # fmt: skip
    assert not any(request.path.endswith("agent-harnesses") for request in hub.requests)


def test_a_commit_is_pinned_to_itself(hub: LoopbackHub, url: str) -> None:
    commit = hub.commit(REPO)
    assert _source(url).pin(_ref(revision=commit), Path()).revision == commit


def test_filters_work_as_the_hub_client_has_them(url: str) -> None:
    model = _source(url).pin(_ref(include=["*.json", "sub/"], exclude=["config*"]), Path())
    assert [file.path for file in model.files] == ["sub/empty.txt"]


def test_filters_that_leave_nothing_are_refused(url: str) -> None:
    with pytest.raises(SourceError, match="none of its 4 files is left after the filters"):
        _source(url).pin(_ref(include=["*.gguf"]), Path())


@pytest.mark.parametrize(
    ("ref", "message", "hint"),
    [
        ({"repo": "acme/none"}, "no such repository", "HF_TOKEN"),
        ({"revision": "v9"}, "no such revision", "`revision`"),
    ],
)
def test_what_does_not_exist_is_named_with_what_to_do(
    url: str, ref: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        _source(url).pin(_ref(**ref), Path())
    assert hint in caught.value.hint
    assert url in str(caught.value)


def test_a_gated_repository_is_refused_when_pinned_and_opens_with_its_token(
    hub: LoopbackHub, url: str
) -> None:
    (hub.root / REPO).rename(hub.root / "acme/gated")
    for token in (False, "hf_wrong"):
        with pytest.raises(SourceError, match="access is restricted") as caught:
            _source(url, token=token).pin(_ref(repo="acme/gated"), Path())
        assert "HF_TOKEN" in caught.value.hint
    assert _source(url, token="hf_right").pin(_ref(repo="acme/gated"), Path()).files


def test_offline_mode_says_which_variable_to_unset(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, file = _pinned(url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for attempt in (
        lambda: _source(url).pin(_ref(), Path()),
        lambda: _source(url).fetch(model, file, tmp_path / "into", Path(), Count()),
    ):
        with pytest.raises(SourceError, match="set to offline") as caught:
            attempt()
        assert "HF_HUB_OFFLINE" in caught.value.hint


def test_a_refused_connection_is_one_line_without_the_password(
    hub: LoopbackHub, url: str, tmp_path: Path
) -> None:
    model, file = _pinned(url)
    dead = "http://user:secret@127.0.0.1:9"
    for attempt in (
        lambda: _source(dead).pin(_ref(), Path()),
        lambda: _source(dead).fetch(model, file, tmp_path, Path(), Count()),
    ):
        with pytest.raises(SourceError, match="refused") as caught:
            attempt()
        assert "proxy" in caught.value.hint
        assert "secret" not in str(caught.value)


def test_an_unsafe_path_is_refused_before_anything_is_written(url: str, tmp_path: Path) -> None:
    model, file = _pinned(url)
    evil = file.model_copy(update={"path": "../outside"})
    with pytest.raises(SourceError, match="refused"):
        _source(url).fetch(model, evil, tmp_path / "into", Path(), Count())
    assert not (tmp_path / "into").exists()


def test_every_file_arrives_whole_and_is_counted(
    hub: LoopbackHub, url: str, tmp_path: Path
) -> None:
    counted = Count()
    source = _source(url)
    model = source.pin(_ref(), Path())
    for file in model.files:
        path = source.fetch(model, file, tmp_path / "into", Path(), counted)
        assert path == tmp_path / "into" / file.path
        assert path.read_bytes() == (hub.root / REPO / file.path).read_bytes()
    assert counted.total == model.size
    assert not (tmp_path / "home").exists()


def test_a_complete_file_is_not_asked_for_again(hub: LoopbackHub, url: str, tmp_path: Path) -> None:
    model, file = _pinned(url)
    for _ in range(2):
        _source(url).fetch(model, file, tmp_path, Path(), Count())
    assert _sent(hub) == [(None, len(WEIGHTS))]


def test_a_cut_connection_is_resumed_within_the_call_without_sending_a_byte_twice(
    hub: LoopbackHub, url: str, tmp_path: Path
) -> None:
    model, file = _pinned(url)
    hub.faults.append(Fault("model.safetensors", cut_after=100_000))
    path = _source(url).fetch(model, file, tmp_path, Path(), Count())
    assert path.read_bytes() == WEIGHTS
    assert _sent(hub) == [(None, 100_000), ("bytes=100000-", 200_000)]


def test_a_second_call_resumes_what_a_failed_one_left(
    hub: LoopbackHub, url: str, tmp_path: Path
) -> None:
    model, file = _pinned(url)
    hub.faults += [
        Fault("model.safetensors", cut_after=100_000),
        Fault("model.safetensors", status=503, times=4),
    ]
    with pytest.raises(SourceError, match="HTTP 503") as caught:
        _source(url).fetch(model, file, tmp_path, Path(), Count())
    assert "resumes" in caught.value.hint
    hub.requests.clear()
    assert _source(url).fetch(model, file, tmp_path, Path(), Count()).read_bytes() == WEIGHTS
    assert _sent(hub) == [("bytes=100000-", 200_000)]


@pytest.mark.parametrize("path", ["/revision/main", "model.safetensors"])
def test_a_busy_server_is_asked_again(
    hub: LoopbackHub, url: str, tmp_path: Path, path: str
) -> None:
    hub.faults.append(Fault(path, status=503))
    model, file = _pinned(url)
    assert _source(url).fetch(model, file, tmp_path, Path(), Count()).read_bytes() == WEIGHTS


def test_a_partial_that_is_too_long_is_thrown_away(url: str, tmp_path: Path) -> None:
    model, file = _pinned(url)
    (tmp_path / file.path).write_bytes(bytes(file.size + 1))
    assert _source(url).fetch(model, file, tmp_path, Path(), Count()).read_bytes() == WEIGHTS


def test_a_partial_longer_than_the_hubs_file_is_thrown_away_and_named(
    url: str, tmp_path: Path
) -> None:
    model, file = _pinned(url)
    longer = file.model_copy(update={"size": file.size + 10})
    (tmp_path / file.path).write_bytes(bytes(file.size + 5))
    with pytest.raises(SourceError, match="HTTP 416"):
        _source(url).fetch(model, longer, tmp_path, Path(), Count())
    assert not (tmp_path / file.path).exists()


def test_a_file_longer_than_the_lock_says_is_refused(url: str, tmp_path: Path) -> None:
    model, file = _pinned(url)
    with pytest.raises(SourceError, match="more than the 10 bytes"):
        _source(url).fetch(model, file.model_copy(update={"size": 10}), tmp_path, Path(), Count())
    assert not (tmp_path / file.path).exists()


def test_a_file_that_the_revision_lacks_is_named(url: str, tmp_path: Path) -> None:
    model, file = _pinned(url)
    with pytest.raises(SourceError, match=r"gone\.bin at .*: no such file at this revision"):
        _source(url).fetch(
            model, file.model_copy(update={"path": "gone.bin"}), tmp_path, Path(), Count()
        )


def test_a_full_disk_is_a_space_error(url: str, tmp_path: Path) -> None:
    model, file = _pinned(url)
    (tmp_path / file.path).symlink_to("/dev/full")
    with pytest.raises(SpaceError):
        _source(url).fetch(model, file, tmp_path, Path(), Count())


def test_a_file_over_the_librarys_http_limit_goes_through_the_library(
    hub: LoopbackHub, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, file = _pinned(url)
    gone = file.model_copy(update={"path": "gone.bin"})
    monkeypatch.setattr("bundler.adapters.source_hub.adapter._BY_LIBRARY_OVER", 1000)
    assert _source(url).fetch(model, file, tmp_path / "a", Path(), Count()).read_bytes() == WEIGHTS
    with pytest.raises(SourceError, match="no such file at this revision"):
        _source(url).fetch(model, gone, tmp_path / "b", Path(), Count())
    assert not (tmp_path / "home").exists()


def test_the_loopback_hub_lists_trees_in_pages_for_the_real_client(
    hub: LoopbackHub, url: str
) -> None:
    api = HfApi(endpoint=url, token=False)
    flat = [entry.path for entry in api.list_repo_tree(REPO)]
    assert flat == ["README.md", "config.json", "model.safetensors", "sub"]
    whole = list(api.list_repo_tree(REPO, recursive=True, revision=hub.commit(REPO)))
    assert [entry.path for entry in whole] == [*flat, "sub/empty.txt"]
    assert whole[2].lfs.sha256 == digest_bytes(WEIGHTS).sha256  # type: ignore[union-attr]
    assert [entry.path for entry in api.list_repo_tree(REPO, "sub")] == ["sub/empty.txt"]


@pytest.mark.parametrize("xet_off", [True, False])
def test_the_loopback_hub_serves_the_librarys_own_download(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xet_off: bool
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", xet_off)
    path = hf_hub_download(
        REPO, "model.safetensors", local_dir=tmp_path / "into", endpoint=url, token=False
    )
    assert Path(path).read_bytes() == WEIGHTS


def test_the_loopback_hub_can_serve_wrong_bytes_of_the_right_size(
    hub: LoopbackHub, url: str, tmp_path: Path
) -> None:
    model, file = _pinned(url)
    hub.faults.append(Fault("model.safetensors", wrong_bytes=True))
    found = _source(url).fetch(model, file, tmp_path, Path(), Count()).read_bytes()
    assert len(found) == len(WEIGHTS)
    assert found != WEIGHTS


@pytest.mark.parametrize(
    ("start", "length"), [(0, 8), (1000, 5000), (299_990, 100), (300_000, 5), (0, 0)]
)
def test_a_range_is_read_without_fetching(url: str, start: int, length: int) -> None:
    model, file = _pinned(url)
    assert _source(url).read(model, file, Path(), start, length) == WEIGHTS[start : start + length]


def test_a_range_of_a_small_file_is_read(url: str) -> None:
    model, file = _pinned(url, "config.json")
    assert _source(url).read(model, file, Path(), 0, file.size) == CONFIG


def test_a_range_of_a_file_that_is_gone_is_a_source_error(url: str) -> None:
    model, file = _pinned(url)
    gone = file.model_copy(update={"path": "gone.safetensors"})
    with pytest.raises(SourceError, match="gone"):
        _source(url).read(model, gone, Path(), 0, 8)


def test_a_file_that_ends_early_is_a_source_error(url: str) -> None:
    model, file = _pinned(url)
    longer = file.model_copy(update={"size": 400_000})
    with pytest.raises(SourceError):
        _source(url).read(model, longer, Path(), 250_000, 100_000)


def test_a_server_without_ranges_is_read_no_further_than_needed(hub: LoopbackHub, url: str) -> None:
    with (hub.root / REPO / "big.safetensors").open("wb") as big:
        big.write(b"begin")
        big.seek(2**20)
        big.write(b"later")
        big.truncate(64 * 2**20)
    model, file = _pinned(url, "big.safetensors")
    hub.faults.append(Fault("big.safetensors", no_ranges=True, times=9))
    assert _source(url).read(model, file, Path(), 0, 5) == b"begin"
    assert _source(url).read(model, file, Path(), 2**20, 5) == b"later"
    # What lies in the sockets' buffers when the line is cut has been sent in vain.
    assert all(sent < 32 * 2**20 for _, sent in _sent(hub))
    hub.requests.clear()
    with pytest.raises(SourceError, match="no range from byte 33554432 on") as caught:
        _source(url).read(model, file, Path(), 32 * 2**20, 5)
    assert "build reads the fetched file" in caught.value.hint
    assert len(_sent(hub)) == 1


def test_another_range_than_the_one_asked_for_is_refused(hub: LoopbackHub, url: str) -> None:
    model, file = _pinned(url)
    hub.faults.append(Fault("model.safetensors", shifted=100))
    with pytest.raises(SourceError, match="no range from byte 8 on"):
        _source(url).read(model, file, Path(), 8, 500)


@pytest.mark.parametrize("fault", [{"status": 503}, {"cut_after": 10}])
def test_a_range_is_asked_for_again_when_the_server_is_busy_or_the_line_cut(
    hub: LoopbackHub, url: str, fault: dict[str, int]
) -> None:
    model, file = _pinned(url)
    hub.faults.append(Fault("model.safetensors", **fault))
    assert _source(url).read(model, file, Path(), 100, 5000) == WEIGHTS[100:5100]
    assert [asked for asked, _ in _sent(hub)] == ["bytes=100-5099"] * 2


def test_an_unsafe_path_is_not_asked_for(hub: LoopbackHub, url: str) -> None:
    model, file = _pinned(url)
    with pytest.raises(SourceError, match="refused"):
        _source(url).read(model, file.model_copy(update={"path": "../x"}), Path(), 0, 8)
    assert not _sent(hub)


def test_a_gated_repository_is_read_and_fetched_with_its_token_alone(
    hub: LoopbackHub, url: str, tmp_path: Path
) -> None:
    (hub.root / REPO).rename(hub.root / "acme/gated")
    right = _source(url, token="hf_right")
    model = right.pin(_ref(repo="acme/gated"), Path())
    file = next(item for item in model.files if item.path == "model.safetensors")
    assert right.read(model, file, Path(), 5, 9) == WEIGHTS[5:14]
    assert right.fetch(model, file, tmp_path / "a", Path(), Count()).read_bytes() == WEIGHTS
    for attempt in (
        lambda: _source(url).read(model, file, Path(), 5, 9),
        lambda: _source(url).fetch(model, file, tmp_path / "b", Path(), Count()),
    ):
        with pytest.raises(SourceError, match="access is restricted") as caught:
            attempt()
        assert "HF_TOKEN" in caught.value.hint


def _asked_for_chunks(hub: LoopbackHub) -> bool:
    return any("xet-read-token" in request.path for request in hub.requests)


@pytest.mark.parametrize("off", [True, False])
def test_files_below_the_librarys_limit_come_by_http_whether_xet_is_on_or_off(
    hub: LoopbackHub, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: bool
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", off)
    hub.xet = True
    model, file = _pinned(url)
    path = _source(url).fetch(model, file, tmp_path / "in", Path(), Count())
    assert path.read_bytes() == WEIGHTS
    assert _source(url).read(model, file, Path(), 7, 7) == WEIGHTS[7:14]
    assert not _asked_for_chunks(hub)


@pytest.mark.skipif(find_spec("hf_xet") is None, reason="hf_xet is not installed")
def test_above_the_limit_the_library_asks_for_chunks_and_a_refusal_is_named(
    hub: LoopbackHub, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No chunk server runs here: that the bytes then come is not tested.
    monkeypatch.setattr("bundler.adapters.source_hub.adapter._BY_LIBRARY_OVER", 1000)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    hub.xet = True
    model, file = _pinned(url)
    with pytest.raises(SourceError, match=r"model\.safetensors"):
        _source(url).fetch(model, file, tmp_path / "in", Path(), Count())
    assert _asked_for_chunks(hub)
    assert not (tmp_path / "in" / file.path).exists()


def test_above_the_limit_with_xet_off_the_library_goes_by_http(
    hub: LoopbackHub, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bundler.adapters.source_hub.adapter._BY_LIBRARY_OVER", 1000)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    hub.xet = True
    model, file = _pinned(url)
    path = _source(url).fetch(model, file, tmp_path / "in", Path(), Count())
    assert path.read_bytes() == WEIGHTS
    assert not _asked_for_chunks(hub)


@pytest.mark.parametrize("way", ["off", "missing"])
def test_a_file_that_only_xet_gives_says_what_to_do_when_there_is_none(
    hub: LoopbackHub, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("bundler.adapters.source_hub.adapter._BY_LIBRARY_OVER", 1000)
    monkeypatch.setattr(constants, "MAX_HTTP_DOWNLOAD_SIZE", 1000)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", way == "off")
    if way == "missing":
        monkeypatch.setattr("bundler.adapters.source_hub.adapter.find_spec", lambda name: None)
    model, file = _pinned(url)
    with pytest.raises(SourceError, match="in its chunk protocol only") as caught:
        _source(url).fetch(model, file, tmp_path / "in", Path(), Count())
    assert "HF_HUB_DISABLE_XET" in caught.value.hint
    assert "hf_xet" in caught.value.hint
    assert not _sent(hub)
