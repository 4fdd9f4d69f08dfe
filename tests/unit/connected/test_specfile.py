"""A wrong spec is answered with file, line, key and what would be right."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from bundler.build.resolve import engine_request
from bundler.build.specfile import load_spec, parse_spec
from bundler.domain.sizes import MEDIA, medium_limit
from bundler.domain.spec import BundleSpec
from bundler.errors import SpecError

GOOD = """\
name: x
target:
  python: "3.12"
  glibc: "2.31"
models:
  - repo: a/b
    revision: main
engine:
  name: vllm
  version: 0.17.1
"""
MANIFESTS = sorted((Path(__file__).parents[3] / "manifests").glob("*.yaml"))


def test_there_are_shipped_specs() -> None:
    assert len(MANIFESTS) >= 6


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_every_shipped_spec_loads_and_fits_the_json_schema(path: Path) -> None:
    spec = load_spec(path)
    assert spec.resolved_services()
    jsonschema.validate(
        yaml.safe_load(path.read_text(encoding="utf-8")), BundleSpec.model_json_schema()
    )


BAD = [
    ("nmae: x\n" + GOOD, ["line 1", "unknown key nmae", "did you mean name?", "allowed:"]),
    (GOOD.replace("glibc", "glib"), ["line 4", "target.glib", "did you mean glibc?"]),
    (GOOD.replace('"3.12"', '"3.9"'), ["line 3", "target.python", "'3.10'", "'3.14'", "given: '3.9'"]),
    (GOOD.replace("name: vllm", "name: tgi"), ["line 9", "engine.name", "'vllm'", "'llama.cpp'"]),
    (GOOD.replace("    revision: main\n", ""), ["line 6", "revision"]),
    (GOOD.replace("engine:\n  name: vllm\n  version: 0.17.1\n", ""), ["engine is missing"]),
    (GOOD + "settings:\n  kernel: fast\n", ["line 12", "settings.kernel", "'triton'", "'deepgemm'"]),
    (GOOD + "volumes: {size: lots}\n", ["line 11", "volumes.size", "4GB"]),
    (GOOD + "volumes: {size: 8GB, medium: fat32}\n", ["line 11", "fat32", "4294967295"]),
    (GOOD + "name: y\n", ["line 11", "key name", "line 1"]),
    (GOOD + "models: [\n", ["line", "not YAML"]),
    ("- a\n", ["line 1", "mapping"]),
    (GOOD + "acceptance:\n  expected:\n    - {concurrency: 99, metric: ttft_ms_p50, max: 1}\n",
     ["line 11", "concurrency 99", "[1, 8]"]),
    (GOOD + "services:\n  - {name: s, model: nope}\n", ["nope", "not a model here (b)"]),
    (GOOD + "files:\n  - {path: a, sha256: zz}\n", ["line 12", "files.0.sha256"]),
    (GOOD.replace("repo: a/b", "repo: nonsense"), ["line 6", "models.0.repo"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), BAD)
def test_a_fault_is_named_with_its_line_and_the_allowed_values(text: str, parts: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(text.encode(), "spec.yaml")
    message = str(caught.value)
    assert message.startswith("spec.yaml: ")
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def test_all_faults_are_told_at_once() -> None:
    text = GOOD.replace("glibc", "glib").replace("name: vllm", "name: tgi")
    with pytest.raises(SpecError, match=r"target\.glib.*engine\.name"):
        parse_spec(text.encode(), "s")


def test_other_encodings_and_deep_nesting_are_refused() -> None:
    for data in (b"\xff\xfe", b"[" * 100_000):
        with pytest.raises(SpecError):
            parse_spec(data, "s")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file"):
        load_spec(tmp_path / "none.yaml")


@pytest.mark.parametrize("medium", [*MEDIA, "8GB-usb", "16GB-usb", "256GB-usb", "2000GB-usb"])
def test_every_medium_has_a_size(medium: str) -> None:
    spec = parse_spec((GOOD + f"volumes: {{medium: {medium}}}\n").encode(), "s")
    assert spec.volumes.limit == medium_limit(medium)


@pytest.mark.parametrize("medium", ["16GB", "0GB-usb", "16gb-usb", "usb", "floppy", "99999GB-usb"])
def test_other_media_are_refused(medium: str) -> None:
    assert "volumes.medium" in _refusal(GOOD + f"volumes: {{medium: {medium}}}\n")


@pytest.mark.parametrize(("stick", "volumes"), [(4, 1), (8, 2), (16, 4), (32, 8), (64, 15)])
def test_a_whole_number_of_volumes_fills_a_stick(stick: int, volumes: int) -> None:
    limit = medium_limit(f"{stick}GB-usb")
    assert limit < 2**32
    assert stick * 10**9 * 0.97 < volumes * limit <= stick * 10**9 * 0.98


def _refusal(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(text.encode(), "s")
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 3000
    return message


UNREADABLE = [
    ("? [a, b]\n: 1", "line 1: a key is a word"),
    ("a: 1\n? {a: b}\n: 1", "line 2: a key is a word"),
    ("!!set {? [a]}", "line 1: a key is a word"),
    (GOOD + "description: 2026-99-99", "line 11 not YAML: 2026-99-99 is no timestamp"),
    ("x: 2001-01-01T99:00:00Z", "is no timestamp"),
    ("x: !!timestamp zz", "zz is no timestamp"),
    ("x: !!int abc", "abc is no int"),
    ("x: !!int ''", "is no int"),
    ("x: !!float abc", "abc is no float"),
    ("x: !!bool maybe", "maybe is no bool"),
    ("x: " + "9" * 5000, "is no int"),
    ("x: 0x" + "f" * 5000, "over 64 bits"),
    (GOOD + 'description: "\\ud800"', "line 11: U+D800"),
    (GOOD + 'description: "a\\0"', "line 11: U+0000"),
    ('"\\e[31m": 1', "line 1: U+001B"),
    ("!!a%1bfoo x", "could not determine a constructor"),
    ("a: &x [*x]", "an alias that holds itself"),
    ("a: b\x00", "not YAML"),
    (GOOD + "ON: 1", "Keys should be strings"),
]


@pytest.mark.parametrize(("text", "part"), UNREADABLE)
def test_what_yaml_or_python_cannot_hold_is_a_fault_of_the_spec(text: str, part: str) -> None:
    assert part in _refusal(text)


@pytest.mark.parametrize("link", ["[{}]", "{{<<: [{}]}}"])
def test_aliases_that_stand_for_billions_are_refused_at_once(link: str) -> None:
    lines = ["a0: &a0 {k: 1}"]
    for level in range(1, 12):
        many = ",".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {link.format(many)}")
    assert "once its aliases are followed" in _refusal("\n".join(lines))


def test_an_alias_that_stands_for_little_is_fine() -> None:
    text = GOOD + "settings: &s {env: {A: 1}}\nservices: [{name: s, model: b, settings: *s}]\n"
    spec = parse_spec(text.encode(), "s")
    assert spec.services[0].settings == spec.settings


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        GOOD + "files:\n" + "  - {path: a, sha256: zz}\n" * 40_000,
        GOOD + "services:\n" + "".join(f"  - {{name: s{n}, model: b}}\n" for n in range(15_000)),
        "[" + "a," * 500_000 + "]",
    ],
    ids=["files", "services", "scalars"],
)
def test_a_document_too_large_for_a_spec_is_left_unread(text: str) -> None:
    assert "over 50000 values" in _refusal(text)


def test_ten_faults_are_told_and_the_others_counted() -> None:
    message = _refusal(GOOD + "files:\n" + "  - {path: a, sha256: zz}\n" * 900)
    assert message.count("files.") == 10
    assert message.endswith("; and 890 more")


def test_a_long_value_is_shown_in_part() -> None:
    assert len(_refusal(GOOD.replace("name: vllm", "name: " + "q" * 5000))) < 300


def test_a_file_over_the_limit_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(SpecError, match="over 1048576 bytes"):
        load_spec(path)


@pytest.mark.parametrize(
    ("wheel", "part"),
    [("nodash.whl", "not a wheel's file name"), ("a-x-py3-none-any.whl", "not a wheel's file name"),
     ("none-1-py3-none-any.whl", "no such file")],
)  # fmt: skip
def test_a_wheel_with_a_wrong_name_is_a_fault_of_the_spec(
    tmp_path: Path, wheel: str, part: str
) -> None:
    if not wheel.startswith("none"):
        (tmp_path / wheel).touch()
    spec = parse_spec((GOOD + f"  wheels: [{wheel}]\n").encode(), "s")
    with pytest.raises(SpecError, match=part):
        engine_request(spec, tmp_path, spec.target.with_glibc("2.31"))


def test_a_local_wheel_is_required_at_its_version(tmp_path: Path) -> None:
    (tmp_path / "my_shim-1.0+cpu-py3-none-any.whl").touch()
    spec = parse_spec((GOOD + "  wheels: [my_shim-1.0+cpu-py3-none-any.whl]\n").encode(), "s")
    assert engine_request(spec, tmp_path, spec.target.with_glibc("2.31")).requirements == (
        "vllm==0.17.1",
        "my-shim==1.0+cpu",
    )
