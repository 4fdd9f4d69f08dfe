"""What a new lock changes against the last one."""

from __future__ import annotations

from typing import Any

from bundler.build.drift import Change, Drift, drift
from bundler.domain.lock import Lock, LockedExtra, LockedFile, LockedModel, LockedWheel
from bundler.domain.target import Target


def wheel(
    name: str, version: str, sha: str = "a", size: int | None = 10, **more: Any
) -> LockedWheel:
    return LockedWheel(
        name=name, version=version, filename=f"{name}-{version}-py3-none-any.whl", url="u",
        size=size, sha256=sha * 64, **more,
    )  # fmt: skip


def model(revision: str, size: int = 5, licence: str | None = None) -> LockedModel:
    return LockedModel(
        name="m", source="hub", origin="o/m", revision=revision, licence=licence,
        files=(LockedFile(path="w", size=size, sha256="b" * 64),),
    )  # fmt: skip


def lock(*wheels: LockedWheel, **changes: Any) -> Lock:
    base = Lock(
        spec_sha256="0" * 64, created="2026-01-01T00:00:00Z", airbundle_version="1",
        target=Target(python="3.12", glibc="2.31"), engine_name="vllm", engine_version="1",
        engine_wheels=wheels,
    )  # fmt: skip
    return base.model_copy(update=changes)


def only(found: Drift) -> Change:
    (change,) = found.changes
    return change


def test_the_same_is_no_drift_whatever_the_date_or_what_was_filled_in() -> None:
    old = lock(wheel("a", "1"), created="2025-01-01T00:00:00Z", spec_sha256="1" * 64)
    new = lock(wheel("a", "1", xxh3="c" * 32, licence="MIT", uploaded="2026-01-01T00:00:00Z"))
    assert not drift(old, new)


def test_added_removed_and_another_version() -> None:
    old = lock(wheel("a", "1"), wheel("b", "1"), wheel("c", "1", size=None))
    new = lock(wheel("a", "2", size=30), wheel("c", "1"), wheel("d", "4"))
    found = drift(old, new)
    assert [(c.name, c.what, c.old, c.new, c.old_bytes, c.new_bytes) for c in found.changes] == [
        ("a", "version", "1", "2", 10, 30),
        ("b", "removed", "1", "", 10, None),
        ("d", "added", "", "4", None, 10),
    ]
    assert (found.old_bytes, found.new_bytes) == (20, 50)


def test_the_same_version_with_other_bytes_is_named_with_both_digests() -> None:
    change = only(drift(lock(wheel("a", "1", "a")), lock(wheel("a", "1", "b"))))
    assert (change.part, change.what) == ("engine", "file")
    assert "sha256 aaaaaaaaaaaa" in change.old
    assert "sha256 bbbbbbbbbbbb" in change.new


def test_a_models_revision_and_its_files() -> None:
    change = only(drift(lock(models=(model("1"),)), lock(models=(model("2", 7),))))
    assert (change.part, change.what, change.old, change.new) == (
        "model",
        "revision",
        "o/m@1",
        "o/m@2",
    )
    assert (change.old_bytes, change.new_bytes) == (5, 7)
    assert only(drift(lock(models=(model("1"),)), lock(models=(model("1", 7),)))).what == "file"
    assert not drift(lock(models=(model("1"),)), lock(models=(model("1"),)))


def test_the_tools_closure_files_and_the_target_count_too() -> None:
    extra = LockedExtra(filename="d.run", role="driver", origin="d.run", sha256="a" * 64, size=1)
    old = lock(tool_wheels=(wheel("uv", "1"),), extras=(extra,))
    new = lock(
        tool_wheels=(wheel("uv", "2"),),
        extras=(extra.model_copy(update={"sha256": "b" * 64}),),
        target=Target(python="3.12", glibc="2.35"),
    )
    found = [(c.part, c.name, c.what) for c in drift(old, new).changes]
    assert found == [
        ("target", "glibc", "version"),
        ("tool", "uv", "version"),
        ("file", "d.run", "file"),
    ]
