"""`accept --ab --apply`: what a comparison found better becomes a release, with a way back."""

from __future__ import annotations

import errno
import json
import random
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.cli.app import run
from bundler.format.digests import sha256_file
from tests.fakes.ab_record import of_release
from tests.fakes.faults import CRASHED, DIED, in_child
from tests.fakes.site import Site

pytestmark = pytest.mark.slow
# Without an objective nothing is judged that a busy machine could miss.
SMALL = {"concurrency": [2], "requests": 10, "output_tokens": 6, "slo": None, "correctness": []}
PAIR = {"TOY_TOKEN_S": "0.04"}


@pytest.fixture
def here(site: Any) -> Site:
    made: Site = site(acceptance=SMALL, settings={"env": PAIR})
    made.up()
    return made


def uses(here: Site) -> dict[str, str]:
    return {one["use"]: one["release"] for one in here.json("releases")["releases"] if one["use"]}


def environment(here: Site) -> dict[str, str]:
    [service] = here.json("status")["services"]
    words = Path(f"/proc/{service['pid']}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def test_the_winner_serves_says_why_and_can_be_taken_back(
    here: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = uses(here)["current"]
    # What a busy machine measures is not comparable: the record is as a quiet one would have written it.
    record = of_release(here, "env.TOY_TOKEN_S", "0.04", "0.004")
    found = here.json("accept", "--ab-record", str(record), "--apply")
    name = found["applied"]["release"]
    assert (found["keep"], found["applied"]["new"]) == ("B", True)
    assert name.startswith(f"{base}+")
    assert uses(here) == {"current": name, "previous": base}
    digest = sha256_file(Path(found["record"]))
    folder = here.root / "releases" / name
    assert sorted(path.name for path in folder.iterdir()) == ["variant.json", "venv"]
    assert (folder / "venv").resolve() == here.root / "releases" / base / "venv"
    assert "ready" in here.do("start", "--quiet")
    assert environment(here)["TOY_TOKEN_S"] == "0.004"
    said = "toy env.TOY_TOKEN_S=0.004 (signed: 0.04)"
    for words in (("status",), ("releases",), ("kernels",), ("verify", "--installed")):
        shown = here.do(*words)
        assert said in shown, words
        assert digest in shown, words
    here.do("export", "--format", "systemd", "--out", str(tmp_path / "units"), "--user")
    # What was measured before is not about these settings.
    private, public = tmp_path / "a.key.pem", tmp_path / "a.pub.pem"
    wiring.generate_keys(private, public)
    receipt = tmp_path / "receipt.json"
    make = ("receipt", "make", "--out", str(receipt), "--sign-with", str(private))
    here.do(*make, code=17)
    assert here.tried("accept", "--quiet") in (0, 11)
    here.do("report", "--out", str(tmp_path / "report"))
    for form in ("md", "html", "json"):
        [text] = [path.read_text() for path in (tmp_path / "report").glob(f"*.{form}")]
        assert digest in text, form
    assert "서명된 번들과 설정이 다름" in (tmp_path / "report" / "report.md").read_text()
    made = here.json(*make)
    [one] = made["installed"]["changed"]["settings"]
    assert (one["setting"], one["now"]) == ("env.TOY_TOKEN_S", None)
    assert made["installed"]["changed"]["ab_records_sha256"] == [digest]
    assert here.json(*make, "--allow", "reasons")["installed"]["changed"]["settings"][0][
        "now"
    ] == "0.004"  # fmt: skip
    told = json.dumps(here.json("audit", "show"))
    assert f"{name} is the release in use" in told
    assert f"SHA-256 {digest}" in told
    here.do("audit", "verify")
    # The bundle is in use already; its own settings are a rollback away.
    assert f"airbundle rollback {base}" in here.do("upgrade", code=17)
    assert f"{base} serves" in here.do("rollback", "--quiet")
    assert environment(here)["TOY_TOKEN_S"] == "0.04"
    assert uses(here) == {"current": base, "previous": name}
    assert "settings differ" not in here.do("status")
    assert f"{name} serves" in here.do("rollback", name, "--quiet")
    assert environment(here)["TOY_TOKEN_S"] == "0.004"
    # Made anew, the files are those of both, and what ran runs again with its settings.
    here.do("install", base, "--again", "--quiet")
    assert environment(here)["TOY_TOKEN_S"] == "0.004"
    assert uses(here)["current"] == name
    assert "compares settings of" in here.do("accept", "--ab-record", found["record"], code=17)


def test_what_wins_nothing_is_not_applied(here: Site) -> None:
    base = uses(here)
    same = ("accept", "--ab", "env.TOY_TOKEN_S=0.01,0.010", "--pairs", "2", "--quiet", "--apply")
    assert "nothing is applied: no difference" in here.do(*same)
    void = ("accept", "--ab", "env.TOY_TOKEN_S=0.01,never", "--pairs", "2", "--quiet", "--apply")
    said = here.json(*void, code=11)
    assert said["applied"] is None
    assert said["applying"].startswith("nothing is applied: undecided")
    for run_, code, words in (
        ({"B": {"verdict": "NOT COMPARABLE"}}, 11, "NOT COMPARABLE in 2 of 4"),
        ({"A": {"verdict": "NOT COMPARABLE"}}, 11, "NOT COMPARABLE in 2 of 4"),
        ({"B": {"verdict": "FAIL"}}, 10, "FAIL in 2 of 4"),
        ({"A": {"wrong": "says 4"}}, 0, "an arm answers wrong"),
    ):
        path = of_release(here, "env.X", "1", "2", run=run_)
        assert words in here.do("accept", "--ab-record", str(path), "--apply", code=code)
    assert uses(here) == base
    assert list((here.root / "releases").iterdir()) == [here.root / "releases" / base["current"]]


def test_a_record_is_not_believed_and_the_setting_in_force_stays(here: Site) -> None:
    base = uses(here)["current"]
    inforce = of_release(here, "env.TOY_TOKEN_S", "9", "0.04")
    said = here.do("accept", "--ab-record", str(inforce), "--apply")
    assert f"nothing to do: {base} has these settings already" in said
    path = of_release(here, "env.X", "1", "2", factor=0.5)
    forged = json.loads(path.read_text()) | {"keep": "B"}
    path.write_text(json.dumps(forged))
    assert "its runs do not say" in here.do("accept", "--ab-record", str(path), "--apply", code=9)
    path.write_text("{" * 9)
    here.do("accept", "--ab-record", str(path), "--apply", code=9)
    outside = here.root.parent / "ab.json"
    outside.write_bytes(inforce.read_bytes())
    assert "lies outside" in here.do("accept", "--ab-record", str(outside), "--apply", code=17)
    unknown = of_release(here, "kernel", "auto", "triton")
    assert "not applied" in here.do("accept", "--ab-record", str(unknown), "--apply", code=3)
    here.do("accept", "--apply", code=2)
    assert uses(here) == {"current": base}


def test_settings_add_up_and_lead_back_to_the_bundles_own(here: Site) -> None:
    base = uses(here)["current"]

    def apply(*words: str) -> str:
        done = here.json("accept", "--ab-record", str(of_release(here, *words)), "--apply")
        return str(done["applied"]["release"])

    one = apply("env.X", "1", "2")
    two = apply("max_num_seqs", "8", "4")
    shown = here.json("releases")["releases"]
    [second] = [entry for entry in shown if entry["release"] == two]
    assert {(d["setting"], d["now"]) for d in second["changed"]["differences"]} == {
        ("env.X", "2"), ("max_num_seqs", "4"),
    }  # fmt: skip
    assert len(second["changed"]["steps"]) == 2
    # The same settings are the same release, and the bundle's own are the bundle's.
    assert apply("max_num_seqs", "4", "8") == one
    assert apply("env.X", "2", "") == base
    assert len(shown) == len(here.json("releases")["releases"])
    assert uses(here) == {"current": base, "previous": one}
    # Files stay as long as a release needs them.
    said = here.do("uninstall", base, "--force", "--purge", code=17)
    assert "its files are those of" in said
    assert "without --purge" in here.do("uninstall", one, "--purge", code=17)
    for name in (one, two):
        here.do("uninstall", name)
    assert "no previous release" in here.do("rollback", code=17)
    here.do("uninstall", base, "--force", "--purge")
    here.do("gc", "--yes")
    assert here.json("releases")["releases"] == []


def test_a_release_whose_record_was_changed_is_found_out(here: Site) -> None:
    path = of_release(here, "env.X", "1", "2")
    name = here.json("accept", "--ab-record", str(path), "--apply")["applied"]["release"]
    variant = here.root / "releases" / name / "variant.json"
    whole = variant.read_text()
    for changed in (whole.replace("env.X", "evn.X"), whole.replace('"base"', '"basis"'), "", "[]"):
        variant.write_text(changed)
        assert str(variant) in here.do("status", code=9)
    variant.write_text(whole)
    release = here.root / "releases" / name.partition("+")[0] / "release.json"
    release.write_text(release.read_text().replace("0.04", "0.05"))
    assert "not those of the signed bundle" in here.do("verify", "--installed", code=7)


@pytest.mark.parametrize("fault", [None, errno.ENOSPC, errno.EIO])
def test_a_kill_or_a_refusal_at_any_step_leaves_a_release_that_serves(
    here: Site, fault: int | None
) -> None:
    base = uses(here)["current"]
    here.do("start", "--quiet")
    path = of_release(here, "env.X", "1", "2")
    words = ["accept", "--ab-record", str(path), "--apply", "--quiet", "--root", str(here.root)]
    at, passed = 0, 0
    while passed >= at:
        at += 1
        code, passed = in_child(lambda: run(words), at, fault)
        passed = at if code == DIED else passed
        assert code != CRASHED, at
        found = uses(here)
        assert found["current"].partition("+")[0] == base, at
        assert here.json("status")["services"][0]["state"] == "ready"
        if found["current"] != base:
            here.do("rollback", base, "--no-start", "--quiet")
            here.do("start", "--quiet")
        here.do("gc", "--yes")
    assert at > 10
    here.do("stop")
    assert here.json("accept", "--ab-record", str(path), "--apply")["applied"]["new"]
    here.do("start", "--quiet")
    assert environment(here)["X"] == "2"


@pytest.mark.parametrize("seed", [1, 2])
def test_in_any_order_nothing_breaks_what_serves(here: Site, seed: int) -> None:
    chance = random.Random(seed)
    base = uses(here)["current"]
    here.do("start", "--quiet")

    for _ in range(30):
        names = [one["release"] for one in here.json("releases")["releases"]]
        code = 0
        match chance.choice(["apply", "back", "named", "remove", "purge", "gc", "install"]):
            case "apply":
                record = of_release(here, "env.X", "-", str(chance.randrange(3)))
                here.do("accept", "--ab-record", str(record), "--apply")
            case "back":
                code = here.tried("rollback")
            case "named":
                code = here.tried("rollback", chance.choice(names))
            case "remove":
                code = here.tried("uninstall", chance.choice(names))
            case "purge":
                code = here.tried("uninstall", chance.choice(names), "--purge")
            case "gc":
                here.do("gc", "--yes")
            case "install":
                here.do("install", "--quiet")
        [service] = here.json("status")["services"]
        assert service["state"] == "ready"
        assert service["release"] in [one["release"] for one in here.json("releases")["releases"]]
        assert uses(here)["current"].partition("+")[0] == base
        assert code in (0, 17)
    here.do("verify", "--installed", "--quiet")
    here.do("stop")
    here.do("start", "--quiet")
    assert here.json("status")["services"][0]["release"] == uses(here)["current"]


def test_the_runs_may_lie_on_another_disk_and_a_strange_name_is_refused(
    here: Site, tmp_path: Path
) -> None:
    record = of_release(here, "env.TOY_TOKEN_S", "0.04", "0.004")
    held = here.root / "acceptance"
    held.rename(tmp_path / "large-disk")
    held.symlink_to(tmp_path / "large-disk")
    strange = record.parent.with_name("a\nb")
    record.parent.rename(strange)
    said = here.do("accept", "--ab-record", str(strange / "ab.json"), "--apply", code=17)
    assert "a\\nb/ab.json': a name with control characters" in said
    strange.rename(record.parent)
    (held / "loop").symlink_to("loop")
    assert "loop" in here.do("accept", "--ab-record", str(held / "loop"), code=20)
    name = here.json("accept", "--ab-record", str(record), "--apply")["applied"]["release"]
    made = json.loads((here.root / "releases" / name / "variant.json").read_text())
    assert made["steps"][0]["record"] == str(record.relative_to(here.root))
