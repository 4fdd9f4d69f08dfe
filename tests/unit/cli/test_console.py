from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from bundler.cli import console
from bundler.cli.console import PlainProgress, say, show_json, table

HOSTILE = "a\x1b[2J\x9b31m\r\u202eb\udcff"
SHOWN = "a\\x1b[2J\\x9b31m\\r\\u202eb\\udcff"


def run(code: str, closed: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
    """A process of its own: the encoding and the descriptors are settled when Python starts."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code],
        env={**os.environ, **env},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "euc-kr"])
def test_a_stream_of_another_encoding_gets_escapes(encoding: str) -> None:
    code = (
        "from bundler.cli.console import *\n"
        "say('한글 \U0001f600'); table('제목', ['이름'], [['값 \U0001f600']]); PlainProgress().note('메모 \U0001f600')"
    )
    done = run(code, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert b"\\U0001f600" in done.stdout
    assert b"\\U0001f600" in done.stderr
    assert "한글".encode(encoding, "backslashreplace") in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "euc-kr", "utf-8"])
def test_json_is_utf8_or_ascii(encoding: str) -> None:
    code = "from bundler.cli.console import *; show_json({'k': '한글 \U0001f600'})"
    done = run(code, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode()) == {"k": "한글 \U0001f600"}
    assert done.stdout.isascii() == (encoding != "utf-8")


def test_json_of_a_name_that_is_not_utf8_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"name": "\udcff한"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"name": "\udcff한"}


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_takes_nothing_and_breaks_nothing(closed: str) -> None:
    code = (
        "from bundler.cli.console import *\n"
        "show_json({}); say('x'); table('t', ['a'], [['b']]); progress().note('n')\n"
        "with progress().task('t', 1) as task: task.advance(1)"
    )
    done = run(code, closed)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_text_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    table(HOSTILE, ["name"], [[HOSTILE]])
    PlainProgress().note(HOSTILE)
    console.ERR.line(HOSTILE, style="bold red")
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [SHOWN, SHOWN, "name".ljust(len(SHOWN)), SHOWN]
    assert captured.err.splitlines() == [SHOWN, SHOWN]


def test_markup_is_only_text(capsys: pytest.CaptureFixture[str]) -> None:
    say("[red]x[/red]")
    assert capsys.readouterr().out == "[red]x[/red]\n"


def test_requests_are_told_once_with_their_unit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([105.109, 110.0])
    task = console._PlainTask("chat x1", 64, "requests")
    task._began = task._shown = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    task.advance(33)
    task.end()
    assert capsys.readouterr().err.splitlines() == [
        "chat x1: 33 of 64 requests, 6.5 requests/s, 5 s left",
        "chat x1: 33 requests in 10.0 s, 3.3 requests/s",
    ]


def test_bytes_are_told_in_binary_units(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = console._PlainTask("copy", 2**31, "bytes")
    task._began = task._shown = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    task.advance(2**30)
    assert capsys.readouterr().err == "copy: 1.0 GiB of 2.0 GiB, 102.4 MiB/s, 10 s left\n"


def test_work_that_does_not_move_still_says_that_it_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "HEARTBEAT_S", 0.05)
    with PlainProgress().task("chat x1", 64, "requests") as task:
        time.sleep(0.3)
        task.advance(3)
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "chat x1: 0 of 64 requests after 0 s"
    assert any(line.startswith("chat x1: 3 of 64 requests, ") for line in lines)
    assert lines[-1].startswith("chat x1: 3 requests in ")
    assert 5 <= len(lines) <= 14


def test_the_heartbeat_ends_with_its_task_however_it_ends() -> None:
    before = threading.active_count()
    during: list[int] = []

    def breaks() -> None:
        with PlainProgress().task("x", 1):
            during.append(threading.active_count())
            raise KeyError

    with pytest.raises(KeyError):
        breaks()
    assert (during, threading.active_count()) == ([before + 1], before)


@pytest.mark.parametrize("error", [BrokenPipeError, OSError, ValueError])
def test_the_heartbeat_ends_without_a_word_when_stderr_is_gone(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    monkeypatch.setattr(console, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(sys, "stderr", Gone())
    beat = threading.Thread(
        target=console._PlainTask("x", 1, "bytes").beat, args=(threading.Event(),)
    )
    beat.start()
    beat.join(5)
    assert not beat.is_alive()
