"""The one handler: codes, one line, machines."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from bundler.cli import app as cli
from bundler.cli.console import PlainProgress
from bundler.errors import SpaceError, disk_errors


def test_usage_errors_are_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["verify"]) == 2
    assert cli.run(["no-such-command"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("airbundle ")


def test_an_error_is_two_lines_for_people_and_an_object_for_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["plan", str(tmp_path / "none.yaml"), "--json"]) == 3
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert len(captured.err.splitlines()) == 2
    answer = json.loads(captured.out)
    assert answer["kind"] == "SpecError"
    assert answer["exit_code"] == 3
    assert answer["hint"]


def test_an_interrupt_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bundler.build.specfile.load_spec", interrupted)
    assert cli.run(["plan", "x.yaml"]) == 130
    assert "run the same command again" in capsys.readouterr().err


def test_a_real_ctrl_c_is_130_and_no_traceback(tmp_path: Path) -> None:
    import signal
    import time

    fifo = tmp_path / "spec.yaml"
    code = (
        "import sys, time; import bundler.build.specfile as s;"
        "s.load_spec = lambda path: (print('ready', flush=True), time.sleep(30));"
        "from bundler.cli.app import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "plan", fifo],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_no_space_is_its_own_code_and_names_the_place() -> None:
    with (
        pytest.raises(SpaceError, match="writing /x: No space left"),
        disk_errors("writing", Path("/x")),
    ):
        raise OSError(28, "No space left on device")


def test_plain_progress_tells_rate_and_total(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainProgress().task("copy", 100) as task:
        task.advance(100)
    assert capsys.readouterr().err.startswith("copy: 100 B in 0.")


def test_build_without_a_key_says_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["build", "x.yaml", "--out", str(tmp_path / "o")]) == 19
    assert "airbundle keygen" in capsys.readouterr().err


def test_keygen_never_overwrites_and_keeps_the_private_key_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["keygen", "--out", str(tmp_path / "k")]) == 0
    assert (tmp_path / "k.key.pem").stat().st_mode & 0o777 == 0o600
    assert cli.run(["keygen", "--out", str(tmp_path / "k")]) == 17
    assert "exists already" in capsys.readouterr().err


def test_each_command_lives_where_the_table_says() -> None:
    """A run loads one module; a command that is missing from the table would not be found."""
    found: dict[str, str] = {}
    for module in dict.fromkeys(cli.HOMES.values()):
        one = typer.Typer()
        import_module(f"bundler.cli.{module}").register(one)
        names = [
            info.name or (info.callback.__name__ if info.callback else "")
            for info in one.registered_commands
        ]
        names += [
            str(group.typer_instance.info.name)
            for group in one.registered_groups
            if group.typer_instance
        ]
        found |= dict.fromkeys(names, module)
    assert found == cli.HOMES
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*_cmds.py")}
    assert modules == set(cli.HOMES.values())
