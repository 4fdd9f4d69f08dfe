"""The closed half through the command line: a real uv, real processes, hand-made wheels."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bundler.adapters.process import LocalProcesses
from bundler.cli.app import run
from bundler.deploy.root import Root
from bundler.errors import FileAccessError, IntegrityError
from bundler.format import layout
from bundler.format.blocks import content_id
from bundler.format.codec import parse_manifest
from bundler.format.ingest import digest_file
from bundler.ports import Completed
from tests.fakes.runtime import python_archive
from tests.fakes.site import gone
from tests.fakes.small_bundle import PYTHON, TOY, SmallBundle
from tests.fakes.wheels import make_wheel


def test_the_whole_closed_half(site: Any) -> None:
    here = site(acceptance={"concurrency": [2, 4]})
    here.up()
    [state] = here.json("start", "--quiet")
    assert state["first_completion"] == "pong"
    assert state["url"] == f"http://127.0.0.1:{here.small.port}"
    seen = here.json("status")
    assert seen["bundles"][0]["current"] is True
    assert seen["services"][0]["state"] == "ready"
    assert "toy engine" in here.do("logs")
    judged = here.json("accept", "--quiet")
    assert judged["verdict"] == "PASS"
    files = here.json("report")["files"]
    assert [Path(name).name for name in files] == [
        "report.json", "report.html", "report.md", "report.junit.xml", "report.csv",
    ]  # fmt: skip
    page = Path(files[1]).read_text(encoding="utf-8")
    assert seen["bundles"][0]["bundle_id"] in page
    record = json.loads(Path(files[0]).read_text(encoding="utf-8"))
    assert [level["concurrency"] for level in record["levels"]] == [2, 4]
    here.do("stop")
    assert gone(state["pid"])
    assert here.json("status")["services"] == []


@pytest.mark.slow
def test_no_proxy_of_the_operators_shell_reaches_the_engine(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    here = site()
    here.up()
    here.do("start", "--quiet")
    assert "proxies []" in here.do("logs")


@pytest.mark.slow
def test_an_accept_that_misses_its_range_fails_with_exit_code_10(site: Any) -> None:
    here = site(
        acceptance={
            "expected": [
                {"concurrency": 4, "metric": "output_tokens_per_s", "min": 1e9, "source": "a wish"}
            ]
        }
    )
    here.up()
    here.do("start", "--quiet")
    judged = here.json("accept", "--quiet", code=10)
    failed = [check for check in judged["checks"] if check["verdict"] == "FAIL"]
    assert len(failed) == 1
    assert "a wish" in failed[0]["reason"] + failed[0]["what"]


@pytest.mark.slow
def test_too_few_requests_are_inconclusive_with_exit_code_11(site: Any) -> None:
    here = site(acceptance={"requests": 20})
    here.up()
    here.do("start", "--quiet")
    judged = here.json("accept", "--quiet", code=11)
    assert judged["verdict"] == "INCONCLUSIVE"


def test_sticks_come_in_any_order_and_what_is_missing_is_named(site: Any, tmp_path: Path) -> None:
    here = site()
    volumes = here.small.volumes()
    small_files = [p for p in here.small.out.iterdir() if p.suffix != ".zip"]
    for number, volume in enumerate(reversed(volumes)):
        stick = tmp_path / f"stick{number}"
        stick.mkdir()
        for path in [volume, *small_files]:
            shutil.copy(path, stick)
        last = number == len(volumes) - 1
        said = here.bring(stick, code=0 if last else 16)
        if not last:
            for other in volumes:
                assert (other.name in said) == (other in volumes[: len(volumes) - 1 - number])
            here.do("install", "--quiet", code=17)
    here.do("install", "--quiet")


def test_only_a_damaged_part_is_asked_for_again_and_the_source_is_not_touched(site: Any) -> None:
    here = site()
    volume = here.small.volumes()[0]
    original = volume.read_bytes()
    data = bytearray(original)
    data[len(data) // 2] ^= 4
    volume.write_bytes(bytes(data))
    said = here.bring(code=7)
    assert volume.name in said
    assert volume.read_bytes() == bytes(data)
    [bundle] = here.json("status")["bundles"]
    assert bundle["missing_volumes"] == [volume.name]
    volume.write_bytes(original)
    here.bring()
    here.do("install", "--quiet")


def test_the_wrong_key_imports_nothing(site: Any, tmp_path: Path) -> None:
    here = site()
    run(["keygen", "--out", str(tmp_path / "other")])
    here.do("import", str(here.small.out), "--key", str(tmp_path / "other.pub.pem"), code=8)
    assert not here.root.exists()


@pytest.mark.slow
def test_an_unsigned_bundle_is_marked_in_every_later_report(site: Any) -> None:
    here = site()
    shutil.rmtree(here.small.out)
    here.small.build_only(signed=False)
    here.do("import", str(here.small.out), "--key", str(here.small.public), code=8)
    assert "UNSIGNED" in here.do("import", str(here.small.out), "--unsigned", "--quiet")
    assert "UNSIGNED" in here.do("install", "--quiet")
    assert "UNSIGNED" in here.do("status")
    here.do("start", "--quiet")
    here.do("accept", "--quiet")
    page = Path(here.json("report")["files"][1]).read_text(encoding="utf-8")
    assert "UNSIGNED" in page


def test_a_signed_import_after_an_unsigned_one_makes_it_signed(site: Any) -> None:
    here = site()
    signature = (here.small.out / layout.SIGNATURE).read_bytes()
    (here.small.out / layout.SIGNATURE).unlink()
    here.do("import", str(here.small.out), "--unsigned", "--quiet")
    (here.small.out / layout.SIGNATURE).write_bytes(signature)
    here.bring()
    assert here.json("status")["bundles"][0]["key_id"]
    assert "UNSIGNED" not in here.do("install", "--quiet")


def test_an_engine_that_is_healthy_and_dies_on_the_first_request_is_a_failure(site: Any) -> None:
    here = site("--die-on-first-request")
    here.up()
    said = here.do("start", "--quiet", code=13)
    assert "healthy on /health and died on the first request" in said
    assert "RuntimeError: Unexpected head dim size, 32" in said
    assert "the attention kernel does not take the model's head size (32)" in " ".join(said.split())
    assert here.json("status")["services"] == []


@pytest.mark.slow
def test_an_engine_that_dies_at_start_is_quoted(site: Any) -> None:
    here = site("--die-at-start")
    here.up()
    said = here.do("start", "--quiet", code=13)
    assert "died before it was healthy" in said
    assert "unknown model architecture: 'nope'" in said


def test_a_known_failure_is_told_with_its_meaning_the_fix_and_the_log(site: Any) -> None:
    here = site(
        "--die-saying",
        "ValueError: To serve at least one request with the models's max seq len (262144), (16.0 GiB KV"
        " cache is needed, which is larger than the available KV cache memory (9.6 GiB). Based on the"
        " available memory, the estimated maximum model length is 157216.",
    )
    here.up()
    said = " ".join(here.do("start", "--quiet", code=13).split())
    assert (
        "died before it was healthy: a context of 262144 tokens needs 16.0 GiB of KV cache" in said
    )
    assert "Lower settings.max_model_len" in said
    assert "The whole log: " in said
    assert "Engine core initialization failed" in said


@pytest.mark.slow
def test_an_engine_that_never_gets_healthy_is_stopped(site: Any) -> None:
    here = site("--never-healthy")
    here.up()
    said = here.do("start", "--quiet", "--timeout", "2", code=13)
    assert "not healthy after 2 s" in said
    assert here.json("status")["services"] == []


def test_a_port_in_use_is_named(site: Any) -> None:
    here = site()
    here.up()
    with socket.socket() as other:
        other.bind(("127.0.0.1", here.small.port))
        other.listen()
        assert str(here.small.port) in here.do("start", "--quiet", code=15)
    here.do("start", "--quiet")
    assert "runs already" in here.do("start", "--quiet", code=17)


@pytest.mark.slow
def test_stop_is_firm_when_gentle_does_not_help(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.deploy.launch.STOP_GRACE_S", 1.0)
    here = site("--ignore-sigterm")
    here.up()
    [state] = here.json("start", "--quiet")
    here.do("stop")
    assert gone(state["pid"])


@pytest.mark.slow
def test_a_died_service_is_seen_and_can_be_started_again(site: Any) -> None:
    here = site()
    here.up()
    [state] = here.json("start", "--quiet")
    os.kill(state["pid"], signal.SIGKILL)
    while not gone(state["pid"]):
        time.sleep(0.05)
    assert here.json("status")["services"][0]["state"] == "died"
    here.do("accept", "--quiet", code=17)
    here.do("start", "--quiet")


def test_commands_before_their_time_say_what_comes_first(site: Any) -> None:
    here = site()
    here.do("status", code=17)
    here.do("install", code=17)
    here.do("start", code=17)
    here.do("accept", code=17)
    here.do("report", code=17)
    here.do("logs", code=17)


@pytest.mark.slow
def test_a_failed_install_leaves_the_old_release_in_use(site: Any, tmp_path: Path) -> None:
    here = site()
    here.up()
    before = here.json("status")["bundles"][0]["bundle_id"]
    broken = SmallBundle(tmp_path / "broken", port=here.small.port, bundle_name="broken")
    broken.prepare()
    wheel = next((broken.folder / "wheels").glob("toy_engine*.whl"))
    with zipfile.ZipFile(wheel, "w") as archive:
        # Metadata enough for the builder; no WHEEL file, so that uv refuses it.
        archive.writestr("toy_engine-1.0.dist-info/METADATA", "Name: toy-engine\nVersion: 1.0\n")
    broken.build_only()
    here.do("import", str(broken.out), "--key", str(broken.public), "--quiet")
    here.do("install", "--quiet", code=12)
    bundles = {b["bundle_id"]: b for b in here.json("status")["bundles"]}
    assert bundles.pop(before)["current"]
    assert [b["installed"] for b in bundles.values()] == [False]
    assert not Root(here.root).release(next(iter(bundles))).exists()
    here.do("start", "--quiet")


ABSENT = "absent-thing>=2; sys_platform == 'linux'"


def gapped(
    folder: Path, port: int, needs: str = ABSENT, exclude: tuple[str, ...] = ()
) -> SmallBundle:
    """A bundle whose engine needs, on this host alone, what nobody brought.

    The builder's stand-in resolver takes whatever is in its folder, so its own check sees no gap.
    """
    bundle = SmallBundle(folder, port=port, bundle_name="gapped", exclude=exclude)
    bundle.prepare()
    make_wheel(
        folder / "wheels", "toy-engine", "1.0", {"toy_engine.py": TOY.read_bytes()},
        {"llama-server-toy": "toy_engine:main"},
        requires=("toy-dependency", needs),
    )  # fmt: skip
    bundle.build_only()
    return bundle


@pytest.mark.slow
@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ("absent-thing", "absent-thing is missing"),
        pytest.param("absent-thing==2.0", "absent-thing is missing", marks=pytest.mark.slow),
        pytest.param(ABSENT, "absent-thing is missing", marks=pytest.mark.slow),
        pytest.param("absent-thing[extra]>=1", "absent-thing is missing", marks=pytest.mark.slow),
        ("absent_thing ; python_version > '3'", "absent-thing is missing"),
        ("toy-dependency>=3", "all versions of toy-engine depend on toy-dependency>=3"),
    ],
)
def test_a_wheel_that_this_host_lacks_is_named_and_nothing_is_installed(
    site: Any, tmp_path: Path, needs: str, words: str
) -> None:
    here = site()
    here.up()
    broken = gapped(tmp_path / "gapped", here.small.port, needs)
    here.do("import", str(broken.out), "--key", str(broken.public), "--quiet")
    said = here.do("install", "--quiet", code=12)
    assert "not complete on this host: " in said
    assert words in said
    installed = {b["bundle_id"][:3]: b["installed"] for b in here.json("status")["bundles"]}
    assert installed == {"sma": True, "gap": False}


def test_what_the_spec_leaves_out_is_no_gap(site: Any, tmp_path: Path) -> None:
    here = site()
    meant = gapped(tmp_path / "meant", here.small.port, exclude=("absent-thing",))
    here.do("import", str(meant.out), "--key", str(meant.public), "--quiet")
    here.do("install", "--quiet")


def test_a_file_that_drifted_in_the_store_is_not_installed(site: Any) -> None:
    here = site()
    here.bring()
    _, big = the_model(here.root)
    big.chmod(0o644)
    data = bytearray(big.read_bytes())
    data[100] ^= 1
    big.write_bytes(bytes(data))
    assert "toy.gguf" in here.do("install", "--quiet", code=7)
    here.bring()
    here.do("install", "--quiet")


def test_a_changed_record_in_the_root_is_not_trusted(site: Any) -> None:
    here = site()
    here.bring()
    manifest = next((here.root / "bundles").glob(f"*/{layout.MANIFEST}"))
    manifest.write_bytes(manifest.read_bytes().replace(b"toy-engine", b"bad-engine"))
    here.do("install", code=8)


@pytest.mark.slow
def test_a_release_uses_the_python_that_the_bundle_carries(site: Any, tmp_path: Path) -> None:
    archive = python_archive(tmp_path / "cpython.tar.gz")
    sha256 = digest_file(archive).sha256
    carried = {"path": str(archive), "sha256": sha256, "role": "python-runtime"}
    here = site(files=(carried,))
    here.up()
    [python] = (here.root / "releases").glob("*/venv/bin/python")
    assert python.resolve().is_relative_to(here.root / "runtime" / sha256[:12])
    here.do("start", "--quiet")


@pytest.mark.slow
def test_a_python_on_path_that_does_not_start_is_passed_over(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version managers leave such programs on PATH."""
    shim = tmp_path / "shims" / f"python{PYTHON}"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho command not found >&2; exit 127\n")
    shim.chmod(0o755)
    real = getattr(sys, "_base_executable", sys.executable)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "python3").symlink_to(real)
    monkeypatch.setattr(sys, "_base_executable", str(shim))
    monkeypatch.setenv("PATH", f"{shim.parent}:{tmp_path / 'real'}:{os.environ['PATH']}")
    here = site()
    here.up()
    monkeypatch.setenv("PATH", str(shim.parent))
    shutil.rmtree(here.root / "releases")
    said = here.do("install", "--quiet", code=18)
    assert f"no CPython {PYTHON} on this host" in said


def test_a_carried_file_of_the_wrong_digest_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "driver.run").write_bytes(b"x")
    wrong = {"path": str(tmp_path / "driver.run"), "sha256": "0" * 64, "role": "driver"}
    with pytest.raises(IntegrityError, match=r"driver\.run.*expected sha256 0000"):
        SmallBundle(tmp_path / "b", files=(wrong,)).build()


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("command", ["import", "install"])
def test_killed_at_any_moment_the_same_command_continues(
    site: Any, command: str, delay: float
) -> None:
    here = site(volume_size=70_000)
    words = {
        "import": ["import", str(here.small.out), "--key", str(here.small.public)],
        "install": ["install"],
    }[command]
    if command == "install":
        here.bring()
    process = subprocess.Popen(
        [sys.executable, "-c",
         "import sys; from bundler.cli.app import run; import bundler.deploy.install,"
         " bundler.deploy.importing; print('ready', flush=True); sys.exit(run(sys.argv[1:]))",
         *words, "--root", str(here.root), "--quiet"],
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    here.up()
    here.do("start", "--quiet")


def the_model(root: Path) -> tuple[str, Path]:
    """SHA-256 and stored path of the big model file, which has several blocks."""
    manifest = parse_manifest(next((root / "bundles").glob(f"*/{layout.MANIFEST}")).read_bytes())
    entry = next(e for e in manifest.entries if e.path == "models/toy/toy.gguf")
    return entry.sha256, Root(root).object(content_id(entry))


def test_an_import_killed_between_the_last_part_and_the_name_is_finished(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site()

    def killed(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bundler.deploy.storing.StoreSink._name", killed)
        here.bring(code=130)
    here.do("install", "--quiet", code=17)
    here.bring()
    here.do("install", "--quiet")


@pytest.mark.slow
def test_a_list_of_parts_does_not_outlive_its_file(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site()
    here.bring()
    sha, stored = the_model(here.root)
    stored.unlink()
    written = 0

    def cut_short(self: Any, placed: Any, at: int, chunk: bytes) -> None:
        nonlocal written
        written += 1
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bundler.deploy.storing.StoreSink.write", cut_short)
        here.bring(code=130)
    assert written >= 1
    here.bring()
    assert digest_file(stored).sha256 == sha
    here.do("install", "--quiet")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["import", "install", "start"])
def test_a_second_command_on_the_same_root_is_refused(site: Any, command: str) -> None:
    here = site()
    here.up()
    with Root(here.root).alone():
        if command == "import":
            assert "another airbundle command" in here.bring(code=17)
        else:
            assert "another airbundle command" in here.do(command, "--quiet", code=17)


@pytest.mark.slow
def test_an_interrupted_start_is_taken_up_by_the_same_command(site: Any) -> None:
    here = site("--slow-start")
    here.up()
    process = subprocess.Popen(
        [sys.executable, "-m", "bundler", "start", "--root", str(here.root), "--quiet"],
        start_new_session=True,
    )
    while not list((here.root / "run").glob("*.json")):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    first = here.json("status")["services"][0]
    assert first["state"] == "starting"
    here.do("accept", "--quiet", code=17)
    [state] = here.json("start", "--quiet")
    assert state["pid"] == first["pid"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_is_ended_leaves_no_engine(site: Any, number: signal.Signals) -> None:
    here = site("--never-healthy")
    here.up()
    process = subprocess.Popen(
        [sys.executable, "-m", "bundler", "start", "--root", str(here.root), "--quiet"],
        start_new_session=True, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not list((here.root / "run").glob("*.json")):
        time.sleep(0.05)
    time.sleep(0.3)
    pid = here.json("status")["services"][0]["pid"]
    os.kill(process.pid, number)
    process.communicate(timeout=30)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    assert gone(pid)
    assert here.json("status")["services"] == []


@pytest.mark.slow
def test_an_engine_whose_record_cannot_be_written_does_not_stay(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site()
    here.up()
    spawned = []
    real = Root.write

    def refuse(self: Root, path: Path, data: bytes) -> None:
        if path.parent.name == "run":
            spawned.append(json.loads(data)["pid"])
            raise FileAccessError(f"writing {path}: Input/output error")
        real(self, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Root, "write", refuse)
        here.do("start", "--quiet", code=20)
    assert len(spawned) == 1
    assert gone(spawned[0])


@pytest.mark.slow
def test_a_record_of_another_boot_names_no_process_of_this_one(site: Any) -> None:
    """After a reboot the number in the record belongs to a stranger, who must not be killed."""
    here = site()
    here.up()
    here.do("start", "--quiet")
    path = here.root / "run" / "toy.json"
    record = json.loads(path.read_text())
    here.do("stop")
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as stranger:
        path.write_text(json.dumps({**record, "pid": stranger.pid, "boot": "another"}))
        assert here.json("status")["services"][0]["state"] == "died"
        here.do("stop")
        assert stranger.poll() is None
        stranger.kill()
    here.do("start", "--quiet")


@pytest.mark.slow
def test_a_process_with_a_name_in_broken_utf_8_is_in_nobodys_way(site: Any, tmp_path: Path) -> None:
    """The kernel cuts names after 15 bytes, in the middle of a Korean letter."""
    program = tmp_path / "한국어프로그램"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "30"]) as other:
        here = site()
        here.up()
        here.do("start", "--quiet")
        here.do("stop")
        other.kill()


@pytest.mark.slow
def test_a_moved_root_says_so_and_is_repaired_by_install(site: Any, tmp_path: Path) -> None:
    here = site()
    here.up()
    here.root.rename(tmp_path / "moved")
    here.root = tmp_path / "moved"
    assert "was moved here" in here.do("start", "--quiet", code=17)
    here.do("install", "--quiet")
    here.do("start", "--quiet")
    here.do("stop")


def test_a_release_is_made_anew_when_its_uv_has_no_room(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site()
    here.bring()
    full = Completed(
        ("uv",), 2, "", "error: failed to write: No space left on device (os error 28)"
    )
    with monkeypatch.context() as patch:
        patch.setattr(
            "bundler.deploy.interpreter.find_python", lambda *a, **k: Path(sys.executable)
        )
        real = LocalProcesses.run
        patch.setattr(
            "bundler.adapters.process.LocalProcesses.run",
            lambda *a, **k: real(*a, **k) if "--version" in a[1] else full,
        )
        patch.setattr("bundler.deploy.install.find_python", lambda *a, **k: Path(sys.executable))
        here.do("install", "--quiet", code=6)
    here.do("install", "--quiet")


@pytest.mark.slow
def test_logs_of_a_hundred_megabytes_without_a_line_end_stay_short(site: Any) -> None:
    here = site()
    here.up()
    log = here.root / "logs" / "toy.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    assert len(here.do("logs", "-n", "3")) < 20_000
