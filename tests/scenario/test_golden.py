"""Golden records through the command line, from one root to another."""

import json
from pathlib import Path
from typing import Any

import pytest

from bundler.deploy.root import Root

pytestmark = pytest.mark.slow


def test_what_a_model_says_is_kept_compared_and_carried(site: Any, tmp_path: Path) -> None:
    here = site("--logprobs")
    here.up()
    assert "not running" in here.do("golden", "record", code=17)
    here.do("start", "--quiet")
    said = here.do("golden", "record", "--out", str(tmp_path / "out"))
    assert "toy: 6 answers" in said
    [carried] = (tmp_path / "out").iterdir()
    assert Root(here.root).golden(carried.stem).read_bytes() == carried.read_bytes()
    record = json.loads(carried.read_text())
    assert record["greedy"][0]["prompt"] == "english"

    judged = here.json("accept", "--quiet")["checks"]
    golden = {check["what"]: check for check in judged if "golden" in check["what"]}
    assert golden["golden answers, idle"]["verdict"] == "PASS"
    assert "the golden record: 6 prompts" in golden["golden answers, idle"]["measured"]

    # The same model elsewhere said something else: here it is the record that is bent.
    record["greedy"][0]["steps"][3]["token"] = "other"
    carried.write_text(json.dumps(record))
    assert "toy" in here.do("golden", "add", str(carried))
    judged = here.json("accept", "--quiet", code=10)["checks"]
    wrong = [check for check in judged if check["verdict"] == "FAIL"]
    assert {c["what"] for c in wrong} == {"golden answers, idle", "golden answers, under load"}
    assert "english: token 4" in wrong[0]["reason"]

    # What is no record is refused, and the one in use stays.
    kept = Root(here.root).golden(carried.stem).read_bytes()
    for bad in ("{}", "[]", json.dumps({**record, "golden_version": 99})):
        carried.write_text(bad)
        here.do("golden", "add", str(carried), code=9)
    assert Root(here.root).golden(carried.stem).read_bytes() == kept

    # One that lies under another model's name is not believed either.
    Root(here.root).golden(carried.stem).write_text(
        json.dumps({**record, "model_digest": "a" * 64})
    )
    assert "is of another model (toy)" in here.do("accept", "--quiet", code=9)

    telemetry = json.loads(_last_record(here.root).read_text())["telemetry"]
    assert telemetry["processes"]
    assert telemetry["engines"][0]["running"] == 1
    assert {span["what"] for span in telemetry["spans"]} >= {
        "correctness, idle",
        "correctness, x3",
        "x4",
    }


def _last_record(root: Path) -> Path:
    folder = Root(root).acceptance
    return folder / (folder / "last").read_text() / "record.json"


def test_an_engine_without_log_probabilities_cannot_be_recorded(site: Any) -> None:
    here = site()
    here.up()
    here.do("start", "--quiet")
    assert "nothing to record" in here.do("golden", "record", code=17)
    # Nor does it fail for that: nobody asked for golden answers.
    judged = here.json("accept", "--quiet")
    assert not [check for check in judged["checks"] if "golden" in check["what"]]
