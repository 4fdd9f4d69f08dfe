"""What a spec may say, whatever it was written in."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bundler.domain.facts import Quantiles
from bundler.domain.record import Name
from bundler.domain.sizes import parse_size
from bundler.domain.sources import FileRef, ModelRef
from bundler.domain.spec import Acceptance, BundleSpec, Expected, Service, Settings, Slo, Volumes
from bundler.errors import FormatError
from bundler.format.safepath import check_path

NAME = TypeAdapter(Name)
SPEC: dict[str, Any] = {
    "name": "x",
    "target": {"python": "3.12", "glibc": "2.31"},
    "models": [{"repo": "a/b", "revision": "main"}],
    "engine": {"name": "vllm", "version": "0.17.1"},
}


@pytest.mark.parametrize("name", ["a", "a.b-c_D", "0", "console", "com", "com10", "a" * 64, "x_"])
def test_plain_names_are_taken(name: str) -> None:
    assert NAME.validate_python(name) == name
    check_path(name)


@pytest.mark.parametrize(
    "name", ["con", "NUL", "aux.x", "com1", "lpt9.a.b", "a.", "a\n", "", ".a", "-a", "a" * 65, "é"]
)
def test_names_that_some_system_refuses_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        NAME.validate_python(name)


def test_every_name_that_a_spec_may_give_may_be_in_a_bundle() -> None:
    """The rule stands here and in `format.safepath`; they must not drift apart."""
    stems = ["con", "prn", "aux", "nul", "com0", "com9", "lpt0", "lpt9", "conx", "a"]
    for name in [stem + tail for stem in stems for tail in ("", ".", ".x", "-", "_", " ", "?")]:
        try:
            FileRef(path=name, sha256="0" * 64)
        except ValidationError:
            with pytest.raises(FormatError):
                check_path(name)
        else:
            check_path(name)


@pytest.mark.parametrize("path", ["con", "m/nul.gguf", "model\n", "a/.", "a/b.", ".."])
def test_a_model_whose_folder_name_is_no_name_needs_one(path: str) -> None:
    with pytest.raises(ValidationError):
        ModelRef(source="local", path=path)


@pytest.mark.parametrize("path", ["/abs/model", "model", "../model/"])
def test_a_model_path_may_be_absolute_or_relative(path: str) -> None:
    assert ModelRef(source="local", path=path).label == "model"


@pytest.mark.parametrize(
    "path",
    ["", "/", ".", "a/..", "a/", "a/.", "nul.txt", "a.", "a ", "a:b", "a\\b", "a\tb", "a\0", "a\n",
     "a\u0301", "é" * 101],
)  # fmt: skip
def test_a_file_without_a_plain_name_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        FileRef(path=path, sha256="0" * 64)


@pytest.mark.parametrize(
    "url", ["https://h", "https://h/", "https://h/a/", "https://[h/a", "https://h/a b", "ftp://h/a"]
)
def test_an_address_without_a_plain_name_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        FileRef(url=url, sha256="0" * 64)


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ({"path": "../d/a b.tar"}, "a b.tar"),
        ({"path": "/abs/é.run"}, "é.run"),
        ({"path": "a?b/x"}, "x"),
        ({"url": "https://h/d/a.tar.gz?q=/x#f/y"}, "a.tar.gz"),
    ],
)
def test_a_file_is_named_by_the_end_of_its_path_or_address(
    origin: dict[str, str], name: str
) -> None:
    assert FileRef(**origin, sha256="0" * 64).filename == name


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan"), "inf", "nan"])
def test_no_record_takes_infinity_or_nan(bad: Any) -> None:
    for make in (
        lambda: Expected(concurrency=1, metric="ttft_ms_p50", max=bad),
        lambda: Expected(concurrency=1, metric="ttft_ms_p50", min=bad),
        lambda: Acceptance(request_timeout_s=bad),
        lambda: Slo(ttft_ms=bad),
        lambda: Quantiles(p50=bad, p95=None, p99=None),
    ):
        with pytest.raises(ValidationError):
            make()


@pytest.mark.parametrize(
    "given",
    [{"env": {"A=B": "1"}}, {"env": {"": "1"}}, {"env": {"1A": "1"}}, {"env": {"A\0": "1"}},
     {"env": {"A\n": "1"}}, {"env": {"A": "1\0"}}, {"env": {"A": "x" * 32 * 1024}},
     {"args": ["a\0"]}, {"args": ["x" * (32 * 1024 + 1)]}, {"args": ["x" * 30_000] * 20}],
)  # fmt: skip
def test_what_no_process_can_be_given_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**given)


def test_what_a_process_can_be_given_is_taken() -> None:
    settings = Settings.model_validate(
        {"env": {"_A1": 1, "B": "x=y\nz"}, "args": ["x" * 32 * 1024]}
    )
    assert settings.env == {"_A1": "1", "B": "x=y\nz"}


@pytest.mark.parametrize(
    ("text", "size"),
    [("65536", 65536), (" 3.9 GiB ", 4187593113), ("4GB", 4 * 10**9), ("1e9", 10**9), ("1E+2kb", 10**5)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "9" * 400, "1e999", "-1", "inf", "nan", "1XB", "٣GB", "1.GB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_a_volume_size_may_be_a_whole_float() -> None:
    assert Volumes.model_validate({"size": 1e9}).size == 10**9
    for size in (65536.5, float("inf"), float("nan"), "1e99", 10**30):
        with pytest.raises(ValidationError):
            Volumes.model_validate({"size": size})


@pytest.mark.parametrize("size", [0, -1, 65535, 1.0, "0", "1KiB"])
def test_a_volume_too_small_is_told_the_smallest(size: Any) -> None:
    with pytest.raises(ValidationError, match=r"the smallest volume is 64\.0 KiB \(65536 bytes\)"):
        Volumes.model_validate({"size": size})


@pytest.mark.parametrize(
    ("key", "item", "most"),
    [
        ("models", {"repo": "a/b", "revision": "main"}, 100),
        ("services", {"name": "s", "model": "b"}, 100),
        ("files", {"path": "a", "sha256": "0" * 64}, 1000),
    ],
)
def test_lists_have_an_end(key: str, item: dict[str, str], most: int) -> None:
    with pytest.raises(ValidationError, match=f"at most {most} items"):
        BundleSpec.model_validate(SPEC | {key: [item] * (most + 1)})


def test_twins_are_found_when_case_is_ignored() -> None:
    services = [{"name": "s", "model": "b"}, {"name": "S", "model": "b", "port": 1}]
    with pytest.raises(ValidationError, match="'S' occurs twice"):
        BundleSpec.model_validate(SPEC | {"services": services})


ARCHIVE = {"path": "ollama-linux-amd64.tar.zst", "sha256": "0" * 64}


def test_ollama_comes_as_an_archive() -> None:
    spec = BundleSpec.model_validate(
        {**SPEC, "engine": {"name": "ollama", "version": "0.33.0", "archive": ARCHIVE}}
    )
    # `ollama` itself is the name of a client library on PyPI.
    assert spec.engine.distribution == "ollama-runtime"
    url = {"url": "https://h.example/v0.33.0/ollama-linux-amd64.tgz", "sha256": "0" * 64}
    spec = BundleSpec.model_validate(
        {**SPEC, "engine": {"name": "ollama", "version": "0.33.0", "archive": url}}
    )
    assert spec.engine.archive is not None
    assert spec.engine.archive.filename == "ollama-linux-amd64.tgz"


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"name": "ollama"}, "ollama needs `archive`"),
        ({"name": "vllm", "archive": ARCHIVE}, "`archive` is for ollama"),
        ({"name": "ollama", "archive": ARCHIVE, "package": "ollama"}, "leave out package"),
        ({"name": "ollama", "archive": ARCHIVE, "wheels": ["a.whl"]}, "leave out wheels"),
        ({"name": "ollama", "archive": {"path": "x"}}, "sha256"),
        ({"name": "ollama", "archive": {"sha256": "0" * 64}}, "give either `path` or `url`"),
        ({"name": "ollama", "archive": {**ARCHIVE, "role": "other"}}, "role"),
    ],
)
def test_an_engine_has_what_it_comes_from_and_no_more(engine: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        BundleSpec.model_validate({**SPEC, "engine": {"version": "0.33.0", **engine}})


def test_a_gpu_index_is_not_negative() -> None:
    with pytest.raises(ValidationError):
        Service(name="s", model="m", gpus=(-1,))
