"""What runs against what was asked for, through the command line and a real process."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Q8 = {"kv_cache_dtype": "q8_0"}


def test_what_was_asked_for_runs(site: Any) -> None:
    here = site(settings=Q8)
    here.up()
    [state] = here.json("start", "--quiet")
    assert state["running"]["kv_dtype"] == ["q8_0"]
    [seen] = here.json("kernels")
    assert (seen["running"]["kv_tokens"], seen["mismatches"]) == (4096, [])
    said = here.do("kernels", "toy")
    assert "unknown" in said  # attention: the toy says nothing of it
    checks = here.json("accept", "--quiet")["checks"]
    assert next((c["what"], c["verdict"]) for c in checks) == ("KV-cache type: q8_0", "PASS")


def test_another_kv_cache_than_asked_for_is_a_failure(site: Any) -> None:
    here = site("--ignores-kv", settings=Q8)
    here.up()
    said = here.do("start", "--quiet")
    assert "KV-cache type: asked q8_0, runs f16" in said
    assert "KV-cache type: asked q8_0, runs f16" in here.do("kernels", code=10)
    [seen] = here.json("kernels", code=10)
    assert "K (f16)" in seen["mismatches"][0]["line"]
    judged = here.json("accept", "--quiet", code=10)
    [failed] = [check for check in judged["checks"] if check["verdict"] == "FAIL"]
    assert (failed["what"], failed["measured"]) == ("KV-cache type: q8_0", "f16")
    page = next(name for name in here.json("report")["files"] if name.endswith(".html"))
    assert "KV 캐시 자료형: q8_0" in Path(page).read_text(encoding="utf-8")


@pytest.mark.slow
def test_silence_is_unknown_and_decides_nothing(site: Any) -> None:
    here = site("--silent", settings=Q8)
    here.up()
    here.do("start", "--quiet")
    assert "unknown" in here.do("kernels")
    judged = here.json("accept", "--quiet", code=11)
    [open_] = [check for check in judged["checks"] if check["verdict"] == "INCONCLUSIVE"]
    assert open_["measured"] == "unknown"


def test_kernels_of_what_was_never_started(site: Any) -> None:
    here = site()
    here.up()
    assert "was not started here" in here.do("kernels", code=17)
    assert "nope" in here.do("kernels", "nope", code=17)
