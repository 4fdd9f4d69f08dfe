"""A site's own figures: two real runs, a profile of them, and a third run beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from bundler.format.profiles import load_profiles, profile_bytes


@pytest.mark.slow
def test_two_runs_make_a_profile_that_the_third_is_held_against(
    site: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = site(acceptance={"concurrency": [2]})
    here.up()
    here.do("start", "--quiet")
    runs = [Path(here.json("accept", "--quiet")["record"]).parent for _ in range(2)]
    mine = here.root / "profiles" / "mine.yaml"
    assert run(["baseline", "record", *map(str, runs), "--out", str(mine)]) == 0
    capsys.readouterr()
    [profile] = load_profiles(mine)
    assert profile.fingerprint.model == "toy"
    assert profile.fingerprint.engine_version == "1.0"
    assert len(profile.fingerprint.digest or "") == 64
    assert profile.figures
    assert {len(figure.runs) for figure in profile.figures} == {2}

    # So wide that no busy machine leaves it, then one that none could reach.
    wide = [
        figure.model_copy(update={"low": 1e-6, "high": 1e9})
        for figure in profile.figures
        if figure.metric == "output_tokens_per_s"
    ]
    mine.write_bytes(profile_bytes([profile.model_copy(update={"figures": tuple(wide)})]))
    judged = here.json("accept", "--quiet")
    assert [c["outcome"] for c in judged["comparisons"]] == ["within"]
    assert any(check["what"].startswith("profile ") for check in judged["checks"])
    wish = [figure.model_copy(update={"low": 1e8}) for figure in wide]
    named = tmp_path / "wish.yaml"
    named.write_bytes(
        profile_bytes([profile.model_copy(update={"name": "wish", "figures": tuple(wish)})])
    )
    failed = here.json("accept", "--quiet", "--profile", str(named), code=10)
    assert [c["profile"] for c in failed["comparisons"] if c["outcome"] == "worse"] == ["wish"]

    capsys.readouterr()
    assert run(["baseline", "compare", *map(str, runs), "--json"]) == 0
    [pair] = json.loads(capsys.readouterr().out)
    assert pair["differs"] == []
    assert {row["concurrency"] for row in pair["figures"]} == {2}


def test_a_bad_profile_is_met_before_anything_is_measured(site: Any) -> None:
    here = site()
    here.up()
    here.do("start", "--quiet")
    folder = here.root / "profiles"
    folder.mkdir()
    (folder / "mine.yaml").write_text("profiles: nothing\n", encoding="utf-8")
    assert "mine.yaml: profiles: " in here.do("accept", "--quiet", code=9)
    assert not (here.root / "acceptance" / "last").exists()
