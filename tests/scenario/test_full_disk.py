"""A full disk: one line, exit code 6, nothing half-written, and a rerun continues."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.small_bundle import SmallBundle

# Runs in a mount namespace of its own, with a file system of 1 MiB at `small`.
SCRIPT = """
set -e
mount -t tmpfs -o size=$1 none "$2"
shift 2
set +e
"$@"
code=$?
echo "LEFT: $(ls "$OUT" | tr '\\n' ' ')"
mount -o remount,size=64m "$MOUNT"
"$@"
echo "CODES: $code $?"
"""


def can_mount() -> bool:
    done = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True
    )
    return done.returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_mount(), reason="needs a mount namespace"),
]


def in_a_small_disk(size: str, mount: Path, argv: list[str], out: Path) -> str:
    mount.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", size, str(mount), *argv],
        env={**os.environ, "OUT": str(out), "MOUNT": str(mount)}, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("size", ["200k", "600k"])
def test_import_into_a_full_disk_names_it_and_continues_when_there_is_room(
    small: SmallBundle, tmp_path: Path, size: str
) -> None:
    mount = tmp_path / "disk"
    argv = [sys.executable, "-m", "bundler", "import", str(small.out), "--key", str(small.public),
            "--root", str(mount / "root"), "--quiet"]  # fmt: skip
    said = in_a_small_disk(size, mount, argv, mount)
    assert "CODES: 6 0" in said, said
    assert "error: " in said
    assert "Traceback" not in said


def test_a_file_system_that_cannot_hold_so_large_a_file_is_named(
    small: SmallBundle, tmp_path: Path
) -> None:
    argv = [sys.executable, "-m", "bundler", "import", str(small.out), "--key", str(small.public),
            "--root", str(tmp_path / "root"), "--quiet"]  # fmt: skip
    # The shell's file size limit, in units of 512 bytes: 100 kB, as FAT32 has one of 4 GiB.
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 200; "$@"', "sh", *argv], capture_output=True, text=True
    )
    assert done.returncode == 6, done.stderr
    assert "File too large" in done.stderr
    assert subprocess.run(argv, capture_output=True).returncode == 0


@pytest.mark.parametrize("size", ["300k", "700k"])
def test_build_into_a_full_disk_leaves_no_bundle_and_continues(tmp_path: Path, size: str) -> None:
    small = SmallBundle(tmp_path / "b")
    small.prepare()
    mount = tmp_path / "disk"
    script = (
        "import sys; from pathlib import Path; from tests.fakes.small_bundle import SmallBundle;"
        "from bundler.errors import BundlerError\n"
        "small = SmallBundle(Path(sys.argv[1]))\n"
        "try: small.build_only(out=Path(sys.argv[2]))\n"
        "except BundlerError as e: print('error:', e, file=sys.stderr); sys.exit(e.exit_code)"
    )
    argv = [
        "env",
        "PYTHONPATH=.",
        sys.executable,
        "-c",
        script,
        str(small.folder),
        str(mount / "bundle"),
    ]
    said = in_a_small_disk(size, mount, argv, mount)
    assert "CODES: 6 0" in said, said
    assert "bundle " not in said.split("LEFT: ")[1].split("\n")[0].replace("bundle.partial ", "")
