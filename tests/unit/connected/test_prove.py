"""The proof as a whole: what is gathered, what stops a build, what is waived and recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pydantic import ValidationError

from bundler.adapters.engine_llamacpp.adapter import LlamaCppEngine
from bundler.build.pipeline import build, make_lock, make_proof
from bundler.build.prove import refuse, waived
from bundler.build.tools import BuildTools
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding, Level, ranked
from bundler.domain.lock import LockedWheel
from bundler.domain.needs import Tool
from bundler.domain.proof import Answer, Proof
from bundler.domain.spec import BundleSpec, Waiver
from bundler.errors import IncompatibleError, SourceError
from bundler.ports import Advice, Situation
from tests.fakes.small_bundle import SmallBundle


@pytest.fixture
def small(tmp_path: Path) -> SmallBundle:
    made = SmallBundle(tmp_path)
    made.prepare()
    return made


def spec_of(small: SmallBundle, **changes: Any) -> BundleSpec:
    return BundleSpec.model_validate(small.spec().model_dump() | changes)


def prove(small: SmallBundle, tools: BuildTools | None = None, **changes: Any) -> Proof:
    tools = tools or small.tools()
    spec = spec_of(small, **changes)
    lock = make_lock(spec, small.folder, small.tool_wheel(), tools)
    return make_proof(spec, lock, small.folder, tools)


def codes(proof: Proof) -> dict[str, Level]:
    return {item.code: item.level for item in proof.findings}


class Advising(LlamaCppEngine):
    """An engine that adds a setting of its own."""

    def __init__(self, *found: Finding) -> None:
        self._found = found
        self.seen: list[Situation] = []

    def review(self, situation: Situation) -> Advice:
        self.seen.append(situation)
        return Advice(
            findings=self._found,
            env={"SAFE": "1", "OWN": "0"},
            args=("--added",),
            tools=(Tool(name="gcc", why="triton"),),
        )


def test_a_sound_bundle_can_work(small: SmallBundle) -> None:
    proof = prove(small)
    assert proof.answer is Answer.YES
    # airbundle's own wheel is made at the build, and the target names no GPU.
    assert codes(proof) == {"native-unread": Level.NOTE, "fit-unknown": Level.NOTE}
    assert [facts.model_type for facts in proof.models] == ["llama"]


def test_settings_that_are_added_stand_before_the_user_s_own(small: SmallBundle) -> None:
    engine = Advising()
    tools = dataclasses.replace(small.tools(), engine=engine)
    settings = {"env": {"OWN": "1"}, "args": ["--mine"]}
    proof = prove(small, tools, settings=settings)
    (service,) = proof.services
    assert service.settings is not None
    assert service.settings.env == {"SAFE": "1", "OWN": "1"}
    assert service.settings.args == ("--added", "--mine")
    assert [tool.name for tool in proof.needs.tools] == ["gcc"]
    (situation,) = engine.seen
    assert situation.packages == {"toy-engine": "1.0", "toy-dependency": "2.0"}
    assert situation.engine is not None
    assert situation.model is not None


def test_an_error_stops_the_build_before_anything_is_fetched(small: SmallBundle) -> None:
    (small.folder / "model" / "pytorch_model.bin").write_bytes(b"\x80\x02}.")
    with pytest.raises(
        IncompatibleError, match=r"pickle-refused: toy: pytorch_model\.bin"
    ) as caught:
        small.build_only()
    assert caught.value.exit_code == 21
    assert "allow_pickle" in caught.value.details[0]
    assert not small.out.exists()
    assert not (small.folder / "cache" / "objects").exists()


def test_a_waived_error_is_a_warning_and_stands_in_the_manifest(small: SmallBundle) -> None:
    (small.folder / "model" / "pytorch_model.bin").write_bytes(b"\x80\x02}.")
    spec = spec_of(small, waivers=[{"code": "pickle-refused", "reason": "scanned by us"}])
    tools = small.tools()
    lock = make_lock(spec, small.folder, small.tool_wheel(), tools)
    built = build(
        spec=spec, lock=lock, base=small.folder, out=small.out, tool_wheel=small.tool_wheel(),
        signer=None, tools=tools,
    )  # fmt: skip
    (kept,) = built.manifest.waived
    assert (kept.code, kept.reason) == ("pickle-refused", "scanned by us")
    assert kept.what.startswith("toy: pytorch_model.bin")


def test_a_waiver_concerns_its_code_and_subject_alone() -> None:
    found = [
        finding("jit-nvcc", "a", "x"),
        finding("jit-nvcc", "b", "x"),
        finding("no-config", "a", "y"),
    ]
    after = list(waived(found, [Waiver(code="jit-nvcc", subject="a", reason="there")]))
    assert [item.level for item in after] == [Level.WARNING, Level.ERROR, Level.ERROR]
    assert after[0].what == "x (waived: there)"


def test_a_waiver_that_excuses_nothing_is_said(small: SmallBundle) -> None:
    waivers = [{"code": "jit-nvcc", "reason": "nvcc is there"}]
    proof = prove(small, waivers=waivers)
    assert [item.what for item in proof.findings if item.code == "waiver-unused"] == [
        "no jit-nvcc is found"
    ]


def test_a_waiver_of_no_known_code_is_refused(small: SmallBundle) -> None:
    with pytest.raises(ValidationError, match="the nearest is pickle-refused"):
        spec_of(small, waivers=[{"code": "pickle-refussed", "reason": "x"}])


def test_a_broken_model_is_found(small: SmallBundle) -> None:
    path = small.folder / "model" / "toy.gguf"
    path.write_bytes(path.read_bytes()[:300])
    assert codes(prove(small))["model-faulty"] is Level.ERROR


class Unreadable:
    """Stands for an index or a Hub that does not answer."""

    @contextmanager
    def open(self, wheel: LockedWheel) -> Iterator[ZipFile]:
        raise SourceError("the index is away")
        yield

    def read(self, *_: object) -> bytes:
        raise SourceError("the hub is away")


def test_what_cannot_be_read_before_the_fetch_is_a_finding(
    small: SmallBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = dataclasses.replace(small.tools(), wheels=Unreadable())
    monkeypatch.setattr("bundler.adapters.source_local.LocalSource.read", Unreadable.read)
    assert codes(prove(small, tools)) == {
        "engine-unread": Level.WARNING,
        "model-unread": Level.WARNING,
        "native-unread": Level.NOTE,
    }


def test_a_glibc_that_was_not_stated_is_shown(small: SmallBundle) -> None:
    target = {"python": small.spec().target.python}
    assert codes(prove(small, target=target))["glibc-floor"] is Level.NOTE


def test_what_was_read_once_is_remembered(
    small: SmallBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prove(small)
    monkeypatch.setattr("bundler.adapters.source_local.LocalSource.read", Unreadable.read)
    assert prove(small) == first


def test_errors_come_first_and_twins_once() -> None:
    note, error = finding("driver-needed", "a", "x"), finding("no-config", "b", "y")
    assert ranked([note, error, note]) == (error, note)


def test_refusing_names_the_first_and_counts_the_rest() -> None:
    proof = Proof(
        findings=(finding("no-config", "m", "x"), finding("no-weights", "m", "y")), services=()
    )
    with pytest.raises(IncompatibleError, match="no-config: m: x and 1 more") as caught:
        refuse(proof)
    assert len(caught.value.details) == 2
    refuse(Proof(findings=(finding("driver-needed", "m", "x"),), services=()))
