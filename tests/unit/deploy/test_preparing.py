"""What lies beside an engine before it starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bundler.deploy.preparing import Start, prepare
from bundler.deploy.root import Root
from bundler.domain.facts import ReleaseRecord
from bundler.domain.spec import Service
from bundler.errors import StateError
from bundler.format.codec import parse_manifest
from bundler.ports import Install, LaunchPlan

MANIFEST = Path(__file__).parents[2] / "assets" / "bundle-v1" / "bundle" / "manifest.json"
SHIPPED = parse_manifest(MANIFEST.read_bytes())
ID = "small-0123456789ab"


class Engine:
    """An engine that starts from a file and a link to the model."""

    def __init__(self) -> None:
        self.seen: Install | None = None

    def plan(self, install: Install, service: Service) -> LaunchPlan:
        self.seen = install
        below = install.cache_dir / "engine"
        return LaunchPlan(
            argv=("x",), files={below / "a" / "config": b"new", below / "blob": install.model / "w"}
        )


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(tmp_path / "root")
    made.make(made.bundle(ID))
    shutil.copy(MANIFEST, made.bundle(ID) / "manifest.json")
    folder = made.release(ID)
    (folder / "venv/bin").mkdir(parents=True)
    (folder / "models/toy").mkdir(parents=True)
    (folder / "models/toy/w").write_bytes(b"weights")
    return made


def started(root: Root, engine: Engine, **service: object) -> Start:
    record = ReleaseRecord(
        bundle_id=ID, manifest_sha256="0" * 64, key_id=None, installed="2026-01-02T03:04:05Z",
        root=str(root.path), python="venv/bin/python", engine_name="x", engine_version="1", services=(),
    )  # fmt: skip
    asked = Service.model_validate({"name": "s", "model": "toy", **service})
    return prepare(root, root.release(ID), record, asked, engine)  # type: ignore[arg-type]


def test_files_and_links_are_laid_out_and_what_was_there_before_gives_way(root: Root) -> None:
    below = root.release(ID) / "cache/s/engine"
    (below / "a").mkdir(parents=True)
    (below / "a" / "config").write_bytes(b"old")
    (below / "blob").symlink_to("/nowhere")
    for _ in range(2):
        started(root, Engine())
        assert (below / "a" / "config").read_bytes() == b"new"
        assert (below / "blob").read_bytes() == b"weights"
        assert (below / "blob").is_symlink()
    (below / "blob").unlink()
    (below / "blob").write_bytes(b"a file in its place")
    started(root, Engine())
    assert (below / "blob").read_bytes() == b"weights"


def test_links_follow_a_release_that_is_moved(root: Root) -> None:
    started(root, Engine())
    moved = root.path / "elsewhere"
    root.release(ID).rename(moved)
    assert (moved / "cache/s/engine/blob").read_bytes() == b"weights"


def test_an_engine_is_told_what_the_manifest_says_of_its_models_files(root: Root) -> None:
    engine = Engine()
    started(root, engine)
    assert engine.seen is not None
    assert engine.seen.shipped is not None
    [entry] = [entry for entry in SHIPPED.entries if entry.path == "models/toy/config.json"]
    assert engine.seen.shipped("config.json") == entry
    with pytest.raises(StateError, match="is not of this bundle"):
        engine.seen.shipped("w")


def test_an_engine_without_a_key_gets_none(root: Root) -> None:
    begun = started(root, Engine(), host="0.0.0.0")
    assert "" not in begun.env
    assert not (root.path / "secrets").exists()
