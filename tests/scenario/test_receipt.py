"""`airbundle receipt`: one signed document that says that approved, installed and measured are one."""

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.cli.app import run

SMALL = {"concurrency": [2], "requests": 60, "output_tokens": 4}
pytestmark = pytest.mark.slow


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    private, public = tmp_path / "site.key.pem", tmp_path / "site.pub.pem"
    wiring.generate_keys(private, public)
    return private, public


@pytest.fixture
def measured(site: Any) -> Any:
    here = site(acceptance=SMALL)
    here.up()
    try:
        here.do("start", "--quiet")
        here.do("accept", "--quiet")
    finally:
        here.do("stop")
    return here


def test_it_ties_what_was_sent_to_what_was_measured(
    measured: Any, keys: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = keys
    out = tmp_path / "receipt.json"
    made = measured.json("receipt", "make", "--out", str(out), "--sign-with", str(private))
    assert made["measured"]["verdict"] == "PASS"
    assert made["installed"]["files"] > 3
    assert made["left_out"] == ["host", "people", "reasons"]
    text = out.read_text(encoding="utf-8")
    for private_thing in (platform.node(), str(measured.root), "/venv/", "pong"):
        assert private_thing not in text.replace('"host": {', "")
    assert len(text) < 20_000
    # No tool of ours is needed to check it.
    subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public, "-in", out,
         "-sigfile", f"{out}.sig"], check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    words = ["receipt", "verify", str(out), "--key", str(public)]
    assert run([*words, "--bundle", str(measured.small.out)]) == 0
    assert "measured" in capsys.readouterr().out
    changed = text.replace('"PASS"', '"FAIL"', 1)
    out.write_text(changed, encoding="utf-8")
    assert run(words) == 8
    assert "was changed since" in capsys.readouterr().err


def test_it_is_about_one_bundle_alone(
    measured: Any, keys: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = keys
    out = tmp_path / "receipt.json"
    measured.do("receipt", "make", "--out", str(out), "--sign-with", str(private), "--quiet")
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text("{}", encoding="utf-8")
    assert run(["receipt", "verify", str(out), "--key", str(public), "--bundle", str(other)]) == 8
    assert "is about manifest" in capsys.readouterr().err


def test_what_may_leave_leaves(measured: Any, keys: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["receipt", "make", "--out", str(tmp_path / "r.json"), "--sign-with", str(keys[0])]
    made = measured.json(*words, "--allow", "host", "--allow", "reasons")
    assert made["host"]["host"] == platform.node()
    assert made["left_out"] == ["people"]


def test_nothing_is_signed_of_a_release_that_was_changed(
    measured: Any, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "receipt.json"
    words = ["receipt", "make", "--out", str(out), "--sign-with", str(keys[0]), "--quiet"]
    program = measured.root / "current/venv/bin/llama-server-toy"
    kept = program.read_bytes()
    program.write_bytes(kept + b"\n")
    assert "llama-server-toy: changed" in measured.do(*words, code=7)
    program.write_bytes(kept)
    log = measured.root / "audit.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    assert "is missing" in measured.do(*words, code=7)
    assert not out.exists()


def test_a_run_before_the_installation_is_no_evidence(
    measured: Any, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    record = measured.root / "current/release.json"
    told = json.loads(record.read_bytes())
    record.write_text(json.dumps(told | {"installed": "2999-01-01T00:00:00Z"}), encoding="utf-8")
    words = ["receipt", "make", "--out", str(tmp_path / "r.json"), "--sign-with", str(keys[0])]
    assert "is older than the release" in measured.do(*words, "--quiet", code=17)
