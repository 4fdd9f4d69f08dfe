"""`report --questions`: each answer rests on a record, or names the command that makes one."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.browser import needs_chromium, opened

pytestmark = pytest.mark.slow
SMALL = {"concurrency": [2], "requests": 60, "output_tokens": 4}


def asked(here: Any) -> dict[str, Any]:
    told = here.json("report", "--questions")
    check_sources(here.root, told)
    return {one["key"]: one for one in told["answers"]} | {"told": told}


def check_sources(root: Path, told: Any) -> None:
    """Every statement names bytes that are there and have that SHA-256."""
    for answer in told["answers"]:
        for one in answer["statements"]:
            source = one["source"]
            name, _, line = source["record"].partition(":")
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", source["at"])
            path = root / name
            if name.startswith("models/"):
                path = next((root / "releases").glob(f"*/{name}"))
            data = path.read_bytes()
            if line:
                data = data.splitlines(keepends=True)[int(line) - 1]
            assert hashlib.sha256(data).hexdigest() == source["sha256"], source


def commands(answer: Any) -> list[str]:
    return [one["command"] for one in answer["lacking"]]


def test_each_run_answers_its_question(site: Any, tmp_path: Path) -> None:
    here = site(acceptance=SMALL)
    assert "no release is installed" in here.do("report", "--questions", code=17)
    here.up()
    at = f" --root {here.root}"
    told = asked(here)
    assert told["users"]["state"] == "open"
    assert commands(told["users"])[0] == f"airbundle accept{at}"
    assert told["software"]["state"] == "open"
    assert commands(told["updates"]) == [f"airbundle upgrade{at}", f"airbundle rollback{at}"]
    assert told["compatibility"]["state"] == "partly"
    assert "MoE가 아닌" in told["moe"]["statements"][0]["said"]["ko"]

    here.do("start", "--quiet")
    here.do("accept", "--quiet")
    here.do("accept", "--find-max", "--to", "2", "--quiet")
    here.do("stop")
    told = asked(here)
    assert told["users"]["state"] == "answered"
    said = [one["said"]["en"] for one in told["users"]["statements"]]
    assert "2 users (16 tokens in, 4 out): TTFT p95" in said[0]
    assert "at most 2 users within the SLO (PASS)" in said[1]
    here.do("accept", "--ab", "env.TOY_TOKEN_S=0.05,0.01", "--pairs", "2", "--quiet")
    told = asked(here)
    assert told["software"]["state"] == "answered"
    assert "keep env.TOY_TOKEN_S=0.01" in told["software"]["statements"][0]["said"]["en"]

    new = site("--slot", "new", acceptance=SMALL)
    new.bring()
    new.do("upgrade", "--quiet")
    new.do("rollback", "--quiet", "--no-start")
    told = asked(new)
    assert told["updates"]["state"] == "answered"
    words = [one["said"]["en"] for one in told["updates"]["statements"]]
    assert any(re.search(r"^upgrade \S+ done in \d+ s: PASS", one) for one in words)
    assert any(one.startswith("rollback done in") for one in words)
    assert told["compatibility"]["state"] == "answered"

    log = new.root / "audit.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"upgrade"', b'"upgrxde"', 1))
    for run in (new.root / "acceptance").glob("*-ab/ab.json"):
        run.write_text("{}", encoding="utf-8")
    told = asked(new)
    assert told["updates"]["state"] == "open"
    assert told["software"]["state"] == "open"
    unread = [one["en"] for one in told["told"]["unread"]]
    assert any("ab.json: is no evidence" in one for one in unread)
    assert any("audit.jsonl: is no evidence" in one for one in unread)


@needs_chromium
def test_the_page_reads_in_both_languages(site: Any, tmp_path: Path) -> None:
    here = site(acceptance=SMALL)
    here.up()
    out = tmp_path / "answers"
    said = here.do("report", "--questions", "--out", str(out))
    assert "missing: " in said
    assert sorted(path.name for path in out.iterdir()) == [
        "questions.html", "questions.json", "questions.md"
    ]  # fmt: skip
    assert len(json.loads((out / "questions.json").read_text())["answers"]) == 5
    text = (out / "questions.md").read_text(encoding="utf-8")
    assert f"`airbundle accept --root {here.root}`" in text
    for dark in (False, True):
        with opened(out / "questions.html", dark=dark) as look:
            assert "소프트웨어만으로" in look.page.inner_text("main")
            assert look.axe() == []
            look.page.locator("nav [for=en]").click()
            assert "can software alone improve" in look.page.inner_text("main")
            assert look.axe() == []
            assert look.fits()
            assert (look.requests, look.complaints) == ([], [])
