"""The exported playbook, run by the real Ansible against this host."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
pytestmark = pytest.mark.slow


def play(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {
        **os.environ,
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"), "ANSIBLE_REMOTE_TEMP": str(folder / "tmp"),
        "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(folder / "home"), "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    return subprocess.run(
        [str(ANSIBLE), "-i", "inventory.ini", "airbundle.yml", *words],
        cwd=folder, env=env, capture_output=True, text=True,
    )  # fmt: skip


def recap(said: str, what: str) -> int:
    [line] = [line for line in said.splitlines() if line.startswith("here ") and "ok=" in line]
    return int(line.split(f"{what}=")[1].split()[0])


@pytest.fixture
def rollout(site: Any, tmp_path: Path) -> Any:
    """A playbook folder for a bundle, and the host (this one) with airbundle itself in its root."""

    def make(*args: str, **changes: Any) -> tuple[Any, Path]:
        here = site(*args, **changes)
        here.bring()
        here.do("install", "--quiet")
        folder = tmp_path / "play"
        here.do("export", "--format", "ansible", "--out", str(folder))
        [bundle] = [b["bundle_id"] for b in here.json("status")["bundles"]]
        other = tmp_path / "other"
        program = other / "bin" / "airbundle"
        program.parent.mkdir(parents=True, exist_ok=True)
        # The small bundle carries a stand-in of the tool.
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m bundler "$@"\n')
        program.chmod(0o755)
        values = yaml.safe_load((folder / "airbundle.vars.yml").read_text(encoding="utf-8"))
        assert values["airbundle_id"] == bundle
        values |= {
            "airbundle_root": str(other),
            "airbundle_folder": str(tmp_path / "incoming"),
            "airbundle_source": str(here.small.out),
            "airbundle_key": str(tmp_path / "incoming.pem"),
            "airbundle_key_source": str(here.small.public),
            # This host is whatever it is.
            "airbundle_preflight": False,
        }
        (folder / "airbundle.vars.yml").write_text(yaml.safe_dump(values), encoding="utf-8")
        (folder / "inventory.ini").write_text(
            f"here ansible_connection=local ansible_python_interpreter={sys.executable}\n"
        )
        here.root = other
        return here, folder

    return make


def test_the_rollout_serves_is_accepted_and_changes_nothing_when_run_again(
    rollout: Any,
) -> None:
    here, folder = rollout()
    done = play(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    [service] = here.json("status")["services"]
    assert service["state"] == "ready"
    assert "PASS" in (folder / "reports" / "here" / "report.html").read_text(encoding="utf-8")
    again = play(folder)
    assert again.returncode == 0, again.stdout + again.stderr
    assert recap(again.stdout, "changed") == 0, again.stdout
    assert [s["pid"] for s in here.json("status")["services"]] == [service["pid"]]


def test_a_bundle_that_dies_on_its_first_request_fails_the_rollout(rollout: Any) -> None:
    here, folder = rollout("--die-on-first-request")
    done = play(folder)
    assert done.returncode != 0
    assert "died on the first request" in done.stdout
    assert here.json("status")["services"] == []


def test_what_the_operator_filled_in_stays(rollout: Any) -> None:
    here, folder = rollout()
    before = (folder / "airbundle.vars.yml").read_bytes()
    play(folder)
    words = here.json("export", "--format", "ansible", "--out", str(folder))
    assert [Path(name).name for name in words["files"]] == ["airbundle.yml"]
    assert (folder / "airbundle.vars.yml").read_bytes() == before
    checked = play(folder, "--syntax-check")
    assert checked.returncode == 0, json.dumps(checked.stderr)
