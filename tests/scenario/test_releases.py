"""Several releases side by side: switching, going back, removing, checking; with real engines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from bundler.deploy.root import _locked
from bundler.format.digests import sha256_file
from tests.fakes.runtime import python_archive
from tests.fakes.site import Site, gone

pytestmark = pytest.mark.slow

WISH = {
    "expected": [{"concurrency": 4, "metric": "output_tokens_per_s", "min": 1e9, "source": "w"}]
}


def answers(here: Site) -> bool:
    """Ask the engine itself."""
    body = json.dumps({"model": "toy", "messages": [], "max_tokens": 4}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{here.small.port}/v1/chat/completions",
        data=body,
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bool(json.load(answer)["choices"][0]["message"]["content"] == "pong")
    except OSError:
        return False


def ids(here: Site) -> dict[str, str]:
    """Which release is used as what."""
    found = here.json("releases")["releases"]
    return {one["use"]: one["bundle_id"] for one in found if one["use"]}


def pair(site: Any, *args: str, serve: bool = True, **changes: Any) -> tuple[Site, str, str]:
    """A root with an old release that serves, and a new bundle that came in; their ids."""
    old = site("--slot", "old")
    old.up()
    if serve:
        old.do("start", "--quiet")
    new = site(*args, "--slot", "new", **changes)
    new.bring()
    before, after = (b["bundle_id"] for b in new.json("status")["bundles"])
    return new, before, after


def test_an_upgrade_that_crashes_on_the_first_request_brings_the_old_one_back(site: Any) -> None:
    here, before, after = pair(site, "--die-on-first-request")
    began = time.monotonic()
    said = here.do("upgrade", "--quiet", code=13)
    assert time.monotonic() - began < 30
    assert "healthy on /health and died on the first request" in said
    assert f"{before} serves again" in said
    assert answers(here)
    assert ids(here) == {"current": before}
    [service] = here.json("status")["services"]
    assert (service["bundle_id"], service["state"]) == (before, "ready")
    assert not (here.root / "upgrade.json").exists()
    assert after in [one["bundle_id"] for one in here.json("releases")["releases"]]


def test_an_upgrade_that_passes_stays_and_rollback_goes_back_and_forth(site: Any) -> None:
    here, before, after = pair(site)
    done = here.json("upgrade", "--quiet")
    assert (done["verdict"], done["current"], done["rolled_back"]) == ("PASS", after, False)
    assert ids(here) == {"current": after, "previous": before}
    assert f"{before} serves" in here.do("rollback", "--quiet")
    assert answers(here)
    assert ids(here) == {"current": before, "previous": after}
    assert here.json("status")["services"][0]["bundle_id"] == before
    here.do("stop")
    assert "nothing serves" in here.do("rollback", "--quiet")
    assert ids(here) == {"current": after, "previous": before}
    assert here.json("status")["services"] == []


@pytest.mark.slow
def test_an_upgrade_that_fails_its_acceptance_is_taken_back(site: Any) -> None:
    here, before, _ = pair(site, acceptance=WISH)
    done = here.json("upgrade", "--quiet", code=10)
    assert (done["verdict"], done["current"], done["rolled_back"]) == ("FAIL", before, True)
    assert answers(here)
    assert ids(here) == {"current": before}
    assert done["serving"][0]["bundle_id"] == before


@pytest.mark.slow
def test_an_inconclusive_upgrade_stays_unless_strict(site: Any) -> None:
    here, before, after = pair(site, acceptance={"requests": 20})
    assert here.json("upgrade", "--quiet", "--strict", code=11)["current"] == before
    assert answers(here)
    assert here.json("upgrade", "--quiet", code=11)["current"] == after
    assert answers(here)


@pytest.mark.slow
def test_a_failed_upgrade_of_what_did_not_serve_starts_nothing(site: Any) -> None:
    here, before, _ = pair(site, "--die-at-start", serve=False)
    said = here.do("upgrade", "--quiet", code=13)
    assert f"{before} is in use again; nothing serves" in said
    assert ids(here) == {"current": before}
    assert here.json("status")["services"] == []


@pytest.mark.slow
def test_a_first_upgrade_that_fails_leaves_no_release_in_use(site: Any) -> None:
    here = site("--die-at-start")
    here.bring()
    assert "no release is in use, as before" in here.do("upgrade", "--quiet", code=13)
    assert ids(here) == {}


def test_rollback_without_a_way_back_says_so(site: Any) -> None:
    here = site()
    here.do("rollback", code=17)
    here.do("releases", code=17)
    here.do("upgrade", code=17)
    here.up()
    assert "no previous release" in here.do("rollback", code=17)
    [one] = here.json("releases")["releases"]
    assert "in use already" in here.do("rollback", one["bundle_id"], code=17)
    assert "in use already" in here.do("upgrade", code=17)
    assert "other-1 is not installed here" in here.do("rollback", "other-1", code=17)


@pytest.mark.slow
def test_a_rollback_that_does_not_start_brings_back_what_served(site: Any) -> None:
    bad = site("--die-at-start")
    bad.up()
    good = site()
    good.bring()
    good.do("install", "--quiet")
    good.do("start", "--quiet")
    current = ids(good)["current"]
    said = good.do("rollback", "--quiet", code=13)
    assert f"{current} serves again" in said
    assert answers(good)
    assert ids(good)["current"] == current


@pytest.mark.slow
def test_what_was_revoked_does_not_come_back(site: Any, tmp_path: Path) -> None:
    here, before, after = pair(site)
    here.do("upgrade", "--quiet")
    digest = json.loads((here.root / "releases" / before / "release.json").read_text())
    keys, lists = tmp_path / "b0" / "keys", tmp_path / "lists"
    words = ["--sign-with", str(keys / "k.key.pem"), "--reason", "hole", "--out", str(lists)]
    assert run(["trust", "revoke", digest["manifest_sha256"], *words]) == 0
    [statement] = lists.glob("revocations-*.json")
    here.do("trust", "add", str(statement), "--key", str(keys / "k.pub.pem"))
    assert "revoked" in here.do("rollback", "--quiet", code=8)
    assert answers(here)
    assert ids(here)["current"] == after


def start_upgrade(here: Site) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "bundler", "upgrade", "--root", str(here.root), "--quiet"],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def engines(here: Site) -> list[int]:
    """Every process that was started from this root, recorded or not."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes()
        except OSError:
            continue
        if f"{here.root}/releases/".encode() in words and b"llama-server" in words:
            found.append(int(line.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["installing", "stopping", "starting", "judging"])
def test_a_killed_upgrade_loses_nothing(site: Any, moment: str) -> None:
    here, before, after = pair(site, *(["--slow-start"] if moment == "starting" else []))
    process = start_upgrade(here)

    def reached() -> bool:
        state = here.root / "run" / "toy.json"
        new = state.is_file() and after in state.read_text()
        return {
            "installing": (here.root / "releases" / after).is_dir(),
            "stopping": (here.root / "upgrade.json").exists(),
            "starting": new,
            "judging": new
            and "first_completion" in state.read_text()
            and "pong" in state.read_text(),
        }[moment]

    while not reached():
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    unfinished = here.json("releases")["unfinished_upgrade"]
    if moment == "installing":
        assert unfinished is None
        assert answers(here)
        return
    assert unfinished == after
    for bundle_id in (before, after):
        here.do("uninstall", bundle_id, "--force", "--purge", code=17)
    assert f"{before} serves again" in here.do("rollback", "--quiet")
    assert answers(here)
    assert ids(here) == {"current": before}
    here.do("stop")
    assert not engines(here)


KILLED_AT_THE_RECORD = """
import os, signal, sys
from bundler.cli.app import run
from bundler.deploy.root import _locked
from bundler.deploy.root import Root
real = Root.write
def write(self, path, data):
    if path.parent.name == "run":
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, path, data)
Root.write = write
run(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_kill_before_an_engine_is_recorded_leaves_no_engine(site: Any) -> None:
    here, before, _ = pair(site)
    words = ["upgrade", "--root", str(here.root), "--quiet"]
    done = subprocess.run([sys.executable, "-c", KILLED_AT_THE_RECORD, *words], check=False)
    assert done.returncode == -signal.SIGKILL
    ending = time.monotonic() + 5
    while engines(here) and time.monotonic() < ending:
        time.sleep(0.05)
    assert not engines(here)
    assert f"{before} serves again" in here.do("rollback", "--quiet")
    assert answers(here)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.05, 0.3, 0.6, 0.9, 1.2, 1.6])
def test_an_upgrade_killed_at_any_moment_has_a_way_back(site: Any, delay: float) -> None:
    here, before, after = pair(site)
    process = start_upgrade(here)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    if here.json("releases")["unfinished_upgrade"]:
        here.do("rollback", "--quiet")
    assert answers(here)
    assert ids(here)["current"] in (before, after)
    here.do("stop")
    assert not engines(here)
    here.do("gc", "--yes")
    here.do("start", "--quiet")
    assert answers(here)


@pytest.mark.slow
def test_a_killed_upgrade_goes_on_with_the_same_command(site: Any) -> None:
    here, before, after = pair(site, "--slow-start")
    process = start_upgrade(here)
    while (here.root / "current").readlink().name != after:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = here.json("upgrade", "--quiet")
    assert (done["verdict"], done["current"]) == ("PASS", after)
    assert ids(here) == {"current": after, "previous": before}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_upgrade_that_is_ended_brings_the_old_one_back(
    site: Any, number: signal.Signals
) -> None:
    here, before, after = pair(site, "--never-healthy")
    process = start_upgrade(here)
    state = here.root / "run" / "toy.json"
    while not (state.is_file() and after in state.read_text()):
        time.sleep(0.02)
    pid = json.loads(state.read_text())["pid"]
    time.sleep(0.3)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    assert f"{before} serves again" in said.decode()
    assert gone(pid)
    assert answers(here)
    assert ids(here) == {"current": before}


def tree(root: Path) -> int:
    """Bytes on the disk, each inode once."""
    seen = {}
    for path in root.rglob("*"):
        found = path.lstat()
        if path.is_file() and not path.is_symlink():
            seen[found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def test_uninstall_and_gc_free_what_they_say(site: Any) -> None:
    here, before, after = pair(site, serve=False)
    here.do("install", after, "--quiet")
    assert ids(here) == {"current": after, "previous": before}
    assert "is the release in use" in here.do("uninstall", after, code=17)
    decision = here.root / "bundles" / before / "decisions" / "0" / "approval-0123456789abcdef.json"
    decision.parent.mkdir(parents=True)
    decision.write_bytes(b"a reviewer's no")
    size = tree(here.root)
    gone_release = here.json("uninstall", before, "--purge")
    assert gone_release["freed_bytes"] == size - tree(here.root) > 0
    assert decision.is_file()
    assert (gone_release["release_removed"], gone_release["import_forgotten"]) == (True, True)
    assert ids(here) == {"current": after}
    assert not list((here.root / "releases").glob(".*"))
    assert [b["bundle_id"] for b in here.json("status")["bundles"]] == [after]
    shown = here.json("gc")
    size = tree(here.root)
    assert (shown["removed"], {one["kind"] for one in shown["found"]}) == (False, {"object"})
    assert shown["bytes"] > 0
    assert tree(here.root) == size
    assert here.json("gc", "--yes")["found"] == shown["found"]
    assert tree(here.root) == size - shown["bytes"]
    assert here.json("gc")["found"] == []
    assert "nothing to free" in here.do("gc")
    here.do("start", "--quiet")
    assert answers(here)
    assert "services run" in here.do("uninstall", after, "--force", code=17)
    here.do("stop")
    here.do("uninstall", after, "--force", "--purge")
    assert here.json("releases")["releases"] == []
    here.do("gc", "--yes")
    assert not [path for path in (here.root / "store").rglob("*") if path.is_file()]
    here.up()
    here.do("start", "--quiet")


def test_a_purged_import_leaves_its_release_serving_and_gc_says_what_stays(site: Any) -> None:
    """Models are hard links: the store's name for them goes, and their bytes stay."""
    here = site()
    here.up()
    [one] = here.json("releases")["releases"]
    assert one["shared_bytes"] > 400_000
    assert one["own_bytes"] > 0
    record = next((here.root / "bundles").glob("*/manifest.json"))
    kept = record.read_bytes()
    record.unlink()
    shown = here.json("gc")
    model = [one for one in shown["found"] if one["bytes"] == 0]
    assert model
    assert shown["bytes"] <= tree(here.root / "store") - one["shared_bytes"]
    record.write_bytes(kept)
    assert here.json("gc")["found"] == []


def test_gc_finds_what_killed_commands_left_and_nothing_that_is_needed(site: Any) -> None:
    here, before, after = pair(site, serve=False)
    root = here.root
    (root / "releases" / after / "venv").mkdir(parents=True)
    (root / "releases" / after / "venv" / "x").write_bytes(b"x" * 5000)
    (root / "releases" / ".gone" / "old.0").mkdir(parents=True)
    (root / "releases" / ".again" / before).mkdir(parents=True)
    (root / "runtime" / "0123456789ab.partial").mkdir(parents=True)
    (root / "store" / "partial").mkdir(exist_ok=True)
    (root / "store" / "partial" / ("f" * 64)).write_bytes(b"y" * 5000)
    (root / "run").mkdir(exist_ok=True)
    (root / "run" / "toy.json.999999999.1.new").write_bytes(b"z")
    (root / "run" / f"toy.json.{os.getpid()}.1.new").write_bytes(b"z")
    (root / "current.new").symlink_to("nowhere")
    shown = here.json("gc")
    found = sorted(Path(one["path"]).relative_to(root).as_posix() for one in shown["found"])
    assert found == sorted(
        [
            f"releases/{after}", "releases/.gone/old.0", f"releases/.again/{before}",
            "runtime/0123456789ab.partial", f"store/partial/{'f' * 64}",
            "run/toy.json.999999999.1.new", "current.new",
        ]
    )  # fmt: skip
    size = tree(root)
    (root / "tool").mkdir()
    with _locked(root / "tool" / ".lock"):
        assert "another airbundle command" in here.do("gc", "--yes", code=17)
    said = here.do("gc", "--yes")
    assert "freed" in said
    assert tree(root) == size - shown["bytes"]
    here.do("start", "--quiet")
    assert answers(here)


def test_gc_frees_tools_of_bundles_that_are_gone(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the bootstrap leaves them: a folder for each bundle it was run from, and a launcher of the last."""
    here, before, after = pair(site, serve=False)
    root = here.root
    tools = {name: root / "tool" / (name * 12)[:12] for name in ("a", "b", "c", "d", "e")}
    tools["imported"], tools["installed"] = (root / "tool" / one[-12:] for one in (after, before))
    runtime = root / "runtime" / "0123456789ab"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "python3").write_bytes(b"python" * 1000)
    for folder in tools.values():
        (folder / "venv" / "bin").mkdir(parents=True)
        (folder / "venv" / "bin" / "airbundle").write_bytes(b"tool" * 1000)
        (folder / "complete").write_text(folder.name)
    (tools["a"] / "venv" / "bin" / "python").symlink_to(runtime / "bin" / "python3")
    (root / "bin").mkdir(exist_ok=True)
    # The root had another name when it was written.
    started = f"/elsewhere/tool/{tools['b'].name}/venv/bin/airbundle"
    (root / "bin" / "airbundle").write_text(f'#!/bin/sh\nexec {started} "$@"\n')
    monkeypatch.setattr("sys.prefix", str(tools["c"] / "venv"))
    # The bootstrap was killed before it had finished, and after.
    (tools["d"] / "complete").unlink()
    (root / "tool" / f"{tools['d'].name}.partial").mkdir()
    (root / "tool" / f"{tools['e'].name}.partial").mkdir()
    (root / "tool" / ".lock").touch()
    shown = here.json("gc")
    wanted = [
        ("runtime", runtime), ("tool", tools["a"]),
        ("tool", root / "tool" / f"{tools['e'].name}.partial"),
    ]  # fmt: skip
    assert sorted((one["kind"], Path(one["path"])) for one in shown["found"]) == wanted
    size = tree(root)
    here.do("gc", "--yes")
    assert tree(root) == size - shown["bytes"]
    assert not tools.pop("a").exists()
    # Now that its bootstrap is not to be continued, nothing holds the last one.
    assert [one["path"] for one in here.json("gc")["found"]] == [str(tools.pop("e"))]
    here.do("gc", "--yes")
    assert all(folder.is_dir() for folder in tools.values())
    monkeypatch.undo()
    assert [one["path"] for one in here.json("gc")["found"]] == [str(tools["c"])]


def test_an_interrupted_import_is_no_garbage(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = site()

    def killed(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bundler.deploy.storing.StoreSink._name", killed)
        here.bring(code=130)
    assert here.json("gc")["found"] == []


def site_packages(here: Site, bundle_id: str) -> Path:
    return next((here.root / "releases" / bundle_id).glob("venv/lib/python*/site-packages"))


def test_an_installed_release_is_checked_to_the_last_file(site: Any) -> None:
    here = site()
    here.up()
    here.do("start", "--quiet")
    bundle_id = ids(here)["current"]
    assert here.json("verify", "--installed")["files"] > 10
    folder, packages = here.root / "releases" / bundle_id, site_packages(here, bundle_id)
    changed = packages / "toy_engine.py"
    changed.write_bytes(changed.read_bytes() + b"\n# changed\n")
    # Whoever changes a file may change the list beside it too.
    listed = next(packages.glob("toy_engine*.dist-info")) / "RECORD"
    listed.write_text(listed.read_text().replace("toy_engine.py,sha256=", "toy_engine.py,sha256=A"))
    script = folder / "venv" / "bin" / "llama-server-toy"
    script.write_bytes(script.read_bytes() + b"# changed\n")
    (packages / "toy_dependency.py").unlink()
    (packages / "extra.pth").write_text("import os\n")
    model = folder / "models" / "toy" / "설명서.txt"
    model.unlink()
    model.write_text("다른 설명\n", encoding="utf-8")
    said = here.do("verify", "--installed", bundle_id, "--quiet", code=7)
    inside = packages.relative_to(folder)
    for line in (
        f"{inside}/toy_engine.py: changed",
        "venv/bin/llama-server-toy: changed",
        "models/toy/설명서.txt: changed",
        f"{inside}/toy_dependency.py: missing",
        f"{inside}/extra.pth: no wheel and no bundle brought it",
    ):
        assert line in said
    assert "install" in said
    assert "--again" in said
    assert answers(here)
    again = here.do("install", "--again", "--quiet")
    assert "started again" in again
    assert answers(here)
    assert here.json("verify", "--installed")["ok"]
    assert not list((here.root / "releases").glob(".*"))
    here.do("stop")


@pytest.mark.slow
def test_making_anew_leaves_the_old_one_when_it_fails(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site()
    here.up()
    here.do("start", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr("bundler.deploy.install.Installer._make_environment", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            here.do("install", "--again", "--quiet")
    assert answers(here)
    assert here.json("gc")["found"] == []
    assert here.json("verify", "--installed")["ok"]


def test_a_kill_between_the_two_renames_is_mended_by_install(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site()
    here.up()
    bundle_id = ids(here)["current"]
    real = Path.rename

    def killed(self: Path, target: Path) -> Path:
        if self.parent.name == ".again":
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        here.do("install", "--again", "--quiet", code=130)
    assert not (here.root / "releases" / bundle_id).exists()
    kinds = [(one["kind"], one["why"]) for one in here.json("gc")["found"]]
    assert kinds == [("release", "half removed")]
    here.do("start", "--quiet", code=17)
    here.do("install", "--quiet")
    here.do("gc", "--yes")
    here.do("start", "--quiet")
    assert answers(here)
    assert here.json("verify", "--installed")["ok"]


@pytest.mark.slow
def test_a_carried_python_is_checked_and_freed_with_its_last_release(
    site: Any, tmp_path: Path
) -> None:
    archive = python_archive(tmp_path / "cpython.tar.gz")
    sha256 = sha256_file(archive)
    here = site(files=({"path": str(archive), "sha256": sha256, "role": "python-runtime"},))
    here.up()
    assert here.json("verify", "--installed")["ok"]
    assert here.json("gc")["found"] == []
    home = here.root / "runtime" / sha256[:12]
    victim = next(path for path in home.rglob("*.py") if path.is_file())
    victim.chmod(0o644)
    victim.write_bytes(victim.read_bytes() + b"# changed")
    (home / "python" / "stranger").write_bytes(b"x")
    said = here.do("verify", "--installed", "--quiet", code=7)
    assert f"{victim.relative_to(here.root)}: changed" in said
    assert "python/stranger: no wheel" in said
    here.do("install", "--again", "--quiet")
    assert here.json("verify", "--installed")["ok"]
    assert here.json("gc")["found"] == []
    here.do("uninstall", ids(here)["current"], "--force")
    assert [one["kind"] for one in here.json("gc")["found"]] == ["runtime"]
    here.do("gc", "--yes")
    assert not home.exists()
    here.do("install", "--quiet")
    assert here.json("verify", "--installed")["ok"]
