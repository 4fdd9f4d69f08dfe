"""Several models of all sources in one lock: fetched once, checked, resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

from bundler.adapters.source_hub.adapter import HubSource
from bundler.adapters.source_local import GgufSource, LocalSource
from bundler.build.fetch import Fetched, Fetcher
from bundler.build.store import ContentStore
from bundler.cli.console import SilentProgress
from bundler.demo.hub import Fault, LoopbackHub
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.domain.lock import Lock
from bundler.domain.sources import ModelRef
from bundler.domain.target import Target
from bundler.errors import IntegrityError
from bundler.ports import Downloader, Task

SHARD = os.urandom(3_000_000)


class NoDownloads:
    """There is nothing but models here."""

    def download(self, url: str, into: Path, task: Task) -> None:
        raise AssertionError(url)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoopbackHub:
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "home" / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for repo in ("acme/model", "acme/draft"):
        folder = tmp_path / "hub" / repo
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(f'{{"model_type": "{repo}"}}')
        (folder / "tokenizer.json").write_text("{}")
    (tmp_path / "hub/acme/model/model.safetensors").write_bytes(SHARD)
    (tmp_path / "hub/acme/draft/model.safetensors").write_bytes(b"small" * 1000)
    (tmp_path / "lora").mkdir()
    (tmp_path / "lora" / "adapter_config.json").write_text("{}")
    write_tiny_gguf(tmp_path / "tiny.gguf")
    return LoopbackHub(tmp_path / "hub")


@pytest.fixture
def fetcher(hub: LoopbackHub, tmp_path: Path) -> Iterator[Fetcher]:
    close_session()
    downloader: Downloader = NoDownloads()
    with hub as address:
        source = HubSource(endpoint=address, token=False, pause_s=0.0)
        yield Fetcher(
            store=ContentStore(tmp_path / "store"),
            sources={"hub": lambda: source, "local": LocalSource, "gguf": GgufSource},
            downloader=downloader,
            progress=SilentProgress(),
            base=tmp_path,
            tool_wheel=tmp_path / "none.whl",
        )
        close_session()


def locked(fetcher: Fetcher, *refs: dict[str, object]) -> Lock:
    models = [ModelRef.model_validate(ref) for ref in refs]
    return Lock(
        spec_sha256="0" * 64, created="2026-01-02T03:04:05Z", airbundle_version="1",
        target=Target(python="3.12", glibc="2.28"), engine_name="vllm", engine_version="1",
        engine_wheels=(),
        models=tuple(fetcher.sources[ref.source]().pin(ref, fetcher.base) for ref in models),
    )  # fmt: skip


def hubref(repo: str, **more: object) -> dict[str, object]:
    return {"repo": repo, "revision": "main", **more}


def contents(fetched: list[Fetched]) -> dict[str, int]:
    return {item.path: item.blob.path.stat().st_size for item in fetched}


def sent(hub: LoopbackHub) -> list[str]:
    return [request.path.rpartition("/")[2] for request in hub.requests
            if "/resolve/" in request.path]  # fmt: skip


def test_models_of_every_source_and_role_come_into_one_bundle(
    hub: LoopbackHub, fetcher: Fetcher
) -> None:
    lock = locked(
        fetcher,
        hubref("acme/model"),
        hubref("acme/draft", role="draft"),
        {"source": "local", "path": "lora", "role": "adapter"},
        {"source": "gguf", "path": "tiny.gguf", "name": "small"},
    )
    found = contents(fetcher.fetch(lock))
    assert len(found) == 8
    assert found["models/model/model.safetensors"] == len(SHARD)
    assert found["models/draft/model.safetensors"] == 5000
    assert "models/lora/adapter_config.json" in found
    assert "models/small/tiny.gguf" in found
    hub.requests.clear()
    assert contents(fetcher.fetch(lock)) == found
    assert not sent(hub)


def test_a_file_that_two_models_share_is_fetched_once(hub: LoopbackHub, fetcher: Fetcher) -> None:
    lock = locked(
        fetcher,
        hubref("acme/model"),
        hubref("acme/model", name="again", role="draft"),
        hubref("acme/model", name="words", role="tokenizer", include=["tokenizer*"]),
    )
    fetched = fetcher.fetch(lock)
    assert all(
        item.blob.path.read_bytes() == SHARD for item in fetched if "safetensors" in item.path
    )
    assert len(fetched) == 7
    # tokenizer.json has the same content in three models, of which the store keeps one.
    assert sorted(sent(hub)) == ["config.json", "model.safetensors", "tokenizer.json"]


def test_wrong_bytes_of_a_file_in_lfs_are_refused_and_fetched_anew(
    hub: LoopbackHub, fetcher: Fetcher
) -> None:
    lock = locked(fetcher, hubref("acme/model"))
    hub.faults.append(Fault("model.safetensors", wrong_bytes=True))
    with pytest.raises(IntegrityError, match=r"model/model\.safetensors.*expected sha256"):
        fetcher.fetch(lock)
    assert contents(fetcher.fetch(lock))["models/model/model.safetensors"] == len(SHARD)


def test_wrong_bytes_outside_lfs_are_refused_by_their_git_id(
    hub: LoopbackHub, fetcher: Fetcher
) -> None:
    lock = locked(fetcher, hubref("acme/model"))
    hub.faults.append(Fault("config.json", wrong_bytes=True))
    with pytest.raises(IntegrityError, match=r"model/config\.json.*expected git blob"):
        fetcher.fetch(lock)


def test_a_branch_that_moves_after_the_lock_does_not_move_the_bundle(
    hub: LoopbackHub, fetcher: Fetcher
) -> None:
    lock = locked(fetcher, hubref("acme/model"))
    (hub.root / "acme/model/model.safetensors").write_bytes(b"another")
    # This Hub knows its newest commit only: the old one is refused rather than replaced.
    with pytest.raises(Exception, match="no such revision"):
        fetcher.fetch(lock)
