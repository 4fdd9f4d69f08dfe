"""The audit log of a root: what it says of a whole life, and that no change of it goes unseen."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundler.deploy.audit import Action, AuditLog
from bundler.deploy.root import Root
from bundler.errors import IntegrityError
from bundler.wiring import audit_log

pytestmark = pytest.mark.slow

ADD = """
import sys
from pathlib import Path
from bundler.deploy.audit import Action
from bundler.deploy.root import Root
from bundler.wiring import audit_log
log = audit_log(Root(Path(sys.argv[1])))
for number in range(25):
    log.add(Action("import", detail=f"{sys.argv[2]}/{number}"), "done")
"""


def test_a_whole_life_is_recorded(site: Any) -> None:
    here = site()
    here.up()
    bundle = here.json("status")["bundles"][0]["bundle_id"]
    try:
        here.do("start", "--quiet")
        here.do("accept", "--quiet")
    finally:
        here.do("stop")
    here.do("verify", "--installed", "--quiet")
    here.do("uninstall", bundle, code=17)
    lines = here.json("audit", "show")
    begun, ended = lines[1::2], lines[::2]
    assert [(line["what"], line["outcome"]) for line in begun] == [
        (what, "begun")
        for what in ("install", "start", "accept", "stop", "verify --installed", "uninstall")
    ]
    # The import made the root, so that only its end could be recorded.
    assert [line["outcome"] for line in ended] == [*["done"] * 6, "failed"]
    assert [line["of"] for line in ended] == [None, *(line["number"] for line in begun)]
    [imported, installed, started, accepted] = ended[:4]
    assert {one["bundle_id"] for one in (imported, installed, started, accepted)} == {bundle}
    assert len({one["manifest_sha256"] for one in (imported, installed, started, accepted)}) == 1
    assert accepted["detail"].startswith("PASS; acceptance/")
    assert "is the release in use" in lines[-1]["detail"]
    assert "OK: 13 lines" in here.do("audit", "verify")
    # A reviewer needs no tool of ours.
    for number in range(1, 13):
        told = subprocess.run(
            f"sed -n {number}p audit.jsonl | sha256sum", shell=True, cwd=here.root,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert told.stdout.split()[0] == lines[number]["previous"]


def test_an_import_that_is_refused_is_recorded(site: Any) -> None:
    here = site()
    volume = max(here.small.out.glob("*.zip"))
    volume.unlink()
    here.bring(code=16)
    last = here.json("audit", "show", "--last", "1")
    assert (last[0]["outcome"], volume.name in last[0]["detail"]) == ("failed", True)


def grown(root: Path, lines: int = 6) -> AuditLog:
    log = audit_log(Root(root))
    for number in range(lines):
        log.add(Action("install", detail=f"한글 {number}"), "done")
    return log


def changed(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace(b'"install"', b'"instalL"')
    path.write_bytes(b"".join(lines))


def removed(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: number - 1] + lines[number:]))


def moved(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines.append(lines.pop(number - 1))
    path.write_bytes(b"".join(lines))


def doubled(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:number], lines[number - 1], *lines[number:]]))


def cut_off(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: number - 1]))


def cut_within(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: number - 1]) + lines[number - 1][:-9])


def garbage(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = b"\x00\xff\n"
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("number", [1, 2, 5, 6])
@pytest.mark.parametrize("change", [changed, removed, cut_off, cut_within, garbage])
def test_a_change_is_found_at_its_line(
    tmp_path: Path, number: int, change: Callable[[Path, int], None]
) -> None:
    log = grown(tmp_path)
    assert log.verify().lines == 6
    change(tmp_path / "audit.jsonl", number)
    with pytest.raises(IntegrityError, match=rf"line {number} "):
        log.verify()


@pytest.mark.parametrize(
    ("change", "number", "found"), [(moved, 2, 2), (doubled, 2, 3), (doubled, 6, 7)]
)
def test_a_line_in_another_place_is_found(
    tmp_path: Path, change: Callable[[Path, int], None], number: int, found: int
) -> None:
    log = grown(tmp_path)
    change(tmp_path / "audit.jsonl", number)
    with pytest.raises(IntegrityError, match=rf"line {found} "):
        log.verify()


def test_nothing_is_added_to_a_log_that_was_cut_off(site: Any) -> None:
    here = site()
    here.up()
    cut_off(here.root / "audit.jsonl", 3)
    assert "does not end as audit.head says" in here.do("install", "--quiet", code=7)
    # What serves does not depend on it.
    try:
        assert "warning: not recorded" in here.do("start", "--quiet")
    finally:
        here.do("stop")
    assert "line 3 is missing" in here.do("audit", "verify", code=7)


def test_a_log_made_anew_is_found_by_the_head_that_was_written_down(site: Any) -> None:
    here = site()
    here.up()
    head = here.json("audit", "verify")["head"]
    here.do("install", "--quiet")
    here.do("audit", "verify", "--expect", head)
    (here.root / "audit.jsonl").unlink()
    assert "line 1 is missing" in here.do("audit", "verify", code=7)
    (here.root / "audit.head").unlink()
    here.do("install", "--quiet")
    here.do("install", "--quiet")
    here.do("audit", "verify")
    assert "line 3 was changed" in here.do("audit", "verify", "--expect", head, code=7)
    (here.root / "audit.head").unlink()
    assert "nobody knows where the log ended" in here.do("audit", "verify", code=7)


def test_what_kill_and_power_cuts_leave_is_no_change(tmp_path: Path) -> None:
    log = grown(tmp_path, 3)
    path, head = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    before = head.read_bytes()
    log.add(Action("start"), "begun")
    # Killed between the line and the head.
    head.write_bytes(before)
    assert log.verify().lines == 4
    # Killed within a line.
    with path.open("ab") as file:
        file.write(b'{"at":"2026-')
    assert log.verify().lines == 4
    log.add(Action("stop"), "done")
    assert log.verify().lines == 5


def test_commands_at_the_same_time_each_get_their_line(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", ADD, str(tmp_path), name])
        for name in ("a", "b", "c")
    ]
    try:
        assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    finally:
        for writer in writers:
            writer.kill()
    log = audit_log(Root(tmp_path))
    assert log.verify().lines == 75
    for name in "abc":
        mine = [one.detail for one in log.entries() if one.detail.startswith(name)]
        assert mine == [f"{name}/{number}" for number in range(25)]


def test_what_cannot_be_recorded_does_not_begin(site: Any) -> None:
    here = site()
    here.up()
    (here.root / "audit.jsonl").unlink()
    (here.root / "audit.jsonl").mkdir()
    here.do("install", "--quiet", code=20)
    here.do("rollback", code=20)


def test_hostile_words_do_not_reach_the_terminal(tmp_path: Path) -> None:
    log = audit_log(Root(tmp_path))
    log.add(Action("import", detail="\x1b[2J\n" + "x" * 9000), "failed")
    [entry] = log.entries()
    assert "\x1b" not in entry.detail
    assert "\n" not in entry.detail
    assert len(entry.detail) <= 500
    assert log.verify().lines == 1
