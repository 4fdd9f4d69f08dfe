"""Facts over the Hub's ranges, before the fetch, are those of the fetched files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

from bundler.adapters.source_hub.adapter import HubSource
from bundler.build.modelcheck import judge_model
from bundler.build.modelfacts import read_model
from bundler.demo.hub import LoopbackHub
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe
from bundler.domain.lock import LockedFile
from bundler.domain.model_facts import ModelFacts
from bundler.domain.sources import ModelRef
from bundler.domain.spec import BundleSpec
from tests.fakes.ports import Count


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoopbackHub:
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "home" / "token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    root = tmp_path / "hub"
    write_tiny_qwen35_moe(root / "acme" / "tiny")
    (root / "acme" / "quants").mkdir()
    write_tiny_gguf(root / "acme" / "quants" / "tiny-F32.gguf")
    return LoopbackHub(root)


@pytest.fixture
def source(hub: LoopbackHub) -> Iterator[HubSource]:
    close_session()
    with hub as address:
        yield HubSource(endpoint=address, token=False, pause_s=0.0)
        close_session()


def ref(repo: str = "acme/tiny", **more: object) -> ModelRef:
    return ModelRef.model_validate({"repo": repo, "revision": "main", **more})


def before(source: HubSource, wanted: ModelRef) -> ModelFacts:
    model = source.pin(wanted, Path())
    return read_model(model, lambda file, at, n: source.read(model, file, Path(), at, n))


# The tiny GGUF is smaller than one chunk of its reader.
@pytest.mark.parametrize(("repo", "part"), [("acme/tiny", 0.3), ("acme/quants", 1.0)])
def test_facts_before_the_fetch_are_those_after_it(
    hub: LoopbackHub, source: HubSource, tmp_path: Path, repo: str, part: float
) -> None:
    model = source.pin(ref(repo), Path())
    early = before(source, ref(repo))
    asked = sum(request.sent for request in hub.requests if "/resolve/" in request.path)
    into = tmp_path / "in"
    paths = {file.path: source.fetch(model, file, into, Path(), Count()) for file in model.files}

    def read(file: LockedFile, start: int, length: int) -> bytes:
        return paths[file.path].read_bytes()[start : start + length]

    assert early == read_model(model, read)
    assert early.weight_bytes
    assert not early.faults
    assert asked <= part * model.size


def test_a_shard_that_the_filters_leave_out_is_found_before_anything_is_fetched(
    source: HubSource,
) -> None:
    wanted = ref(exclude=["model-00002*"])
    found = before(source, wanted)
    assert found.missing == ("model-00002-of-00002.safetensors",)
    spec = BundleSpec.model_validate(
        {
            "name": "b",
            "target": {"python": "3.12"},
            "models": [wanted.model_dump()],
            "engine": {"name": "vllm", "version": "1"},
        }
    )
    (one,) = judge_model(wanted, found, spec)
    assert one.code == "shards-missing"
    assert "left out by include and exclude" in one.what


def test_a_shard_cut_on_the_hub_itself_is_found_before_it_is_fetched(
    hub: LoopbackHub, source: HubSource
) -> None:
    path = hub.root / "acme" / "tiny" / "model-00001-of-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert "model-00001-of-00002.safetensors: " in before(source, ref()).faults[0]


def test_models_of_several_roles_are_read_in_one_go(source: HubSource) -> None:
    refs = {
        "model": ref(),
        "tokenizer": ref(name="words", role="tokenizer", include=["tokenizer*"]),
        "draft": ref(name="draft", role="draft"),
    }
    spec = BundleSpec.model_validate(
        {
            "name": "b",
            "target": {"python": "3.12"},
            "models": [one.model_dump() for one in refs.values()],
            "engine": {"name": "vllm", "version": "1"},
        }
    )
    for one in refs.values():
        assert not judge_model(one, before(source, one), spec)
