"""`airbundle demo`: the whole road on this machine, with the very commands that a user types.

Connected half: a tiny model made on the spot, served by a loopback Hub, built into a signed bundle.
Closed half: in a network namespace without network (where the system permits one), from the bundle's
own bootstrap: nothing of this installation is used there except a Python.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import yaml

import bundler
from bundler.demo.cpu_shim import write_cpu_shim_wheel
from bundler.demo.hub import LoopbackHub
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe
from bundler.errors import HostError, StateError, ToolError, disk_errors

_SPECS = {"llama.cpp": "demo.yaml", "vllm": "demo-vllm.yaml"}
_REPOS = {"llama.cpp": "airbundle/tiny-gguf", "vllm": "airbundle/tiny-qwen35-moe"}
_ISOLATION = (("unshare", "--net"), ("unshare", "--net", "--map-root-user"))


class Road:
    """One walk. `say` prints a line."""

    def __init__(self, *, engine: str, folder: Path, say: Callable[..., None]) -> None:
        self._engine = engine
        self._folder = folder
        self._say = say

    def walk(self) -> int:
        """Walk it; gives the exit code of the verdict."""
        if (self._folder / "bundle").exists():
            raise StateError(f"{self._folder}: holds a demo already", hint="Give another --keep.")
        with disk_errors("creating", self._folder):
            (self._folder / "hub").mkdir(parents=True, exist_ok=True)
        self._say(f"demo in {self._folder}", "bold")
        self._connected()
        return self._closed()

    def _connected(self) -> None:
        self._head("CONNECTED SIDE  spec -> plan -> lock -> fetch -> volumes -> signature")
        self._make_model()
        spec = self._write_spec()
        key = self._folder / "supplier"
        with LoopbackHub(self._folder / "hub") as endpoint:
            # A proxy of this shell must not be asked for the loopback Hub.
            local = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
            env = {"HF_ENDPOINT": endpoint, **local}
            self._airbundle("keygen", "--out", str(key))
            self._airbundle("plan", str(spec), env=env)
            self._airbundle(
                "build", str(spec), "--out", str(self._folder / "bundle"),
                "--key", f"{key}.key.pem", env=env,
            )  # fmt: skip
        self._airbundle("inspect", str(self._folder / "bundle"))

    def _closed(self) -> int:
        isolation = next((list(way) for way in _ISOLATION if _permitted(way)), [])
        self._head(
            "CLOSED SIDE  bootstrap -> verify -> import -> install -> start -> accept -> report"
        )
        if isolation:
            self._say(f"in a network namespace without network ({' '.join(isolation)})")
        else:
            self._say("this system permits no network namespace: the closed half runs beside the"
                      " network, although it does not use it", "yellow")  # fmt: skip
        script = Path(__file__).with_name("closed.sh")
        argv = [
            *isolation, "sh", str(script), _bare_python(), str(self._folder / "bundle"),
            str(self._folder / "supplier.pub.pem"), str(self._folder / "root"),
            "isolated" if isolation else "open",
        ]  # fmt: skip
        env = {name: value for name, value in os.environ.items() if not _connected_only(name)}
        code = subprocess.run(argv, env=env, check=False).returncode
        reports = sorted((self._folder / "root" / "acceptance").glob("*/report.html"))
        if reports:
            self._say(f"report: {reports[-1]}", "bold")
        return code

    def _make_model(self) -> None:
        repo = self._folder / "hub" / _REPOS[self._engine]
        repo.mkdir(parents=True)
        if self._engine == "vllm":
            write_tiny_qwen35_moe(repo)
            write_cpu_shim_wheel(self._folder)
        else:
            write_tiny_gguf(repo / "tiny.gguf")
            (repo / "README.md").write_text("---\nlicense: apache-2.0\n---\nA random model.\n")

    def _write_spec(self) -> Path:
        """The shipped demo spec, with this very host as its target."""
        data = yaml.safe_load(shipped_spec(_SPECS[self._engine]).read_text(encoding="utf-8"))
        libc, version = platform.libc_ver()
        if libc != "glibc":
            raise HostError(
                f"this system's C library is {libc or 'unknown'}, not glibc",
                hint="Run the demo on a glibc Linux, such as Ubuntu, Debian or RHEL.",
            )
        data["target"] |= {
            "arch": platform.machine(),
            "python": f"{sys.version_info.major}.{sys.version_info.minor}",
            "glibc": version,
        }
        path = self._folder / "spec.yaml"
        path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")
        return path

    def _airbundle(self, *words: str, env: dict[str, str] | None = None) -> None:
        self._say(f"$ airbundle {' '.join(words)}", "cyan")
        argv = [sys.executable, "-m", "bundler", *words]
        done = subprocess.run(argv, env={**os.environ, **(env or {})}, check=False)
        if done.returncode != 0:
            raise ToolError(
                f"airbundle {words[0]} ended with {done.returncode}; it said why above",
                hint=f"The demo's files are in {self._folder}.",
            )

    def _head(self, line: str) -> None:
        self._say("")
        self._say(line, "bold")


def shipped_spec(name: str) -> Path:
    """A spec of manifests/: inside an installed package, beside it in a checkout."""
    package = Path(bundler.__file__).parent
    places = [package / "manifests" / name, package.parent / "manifests" / name]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise HostError(f"{places[0]}: not there", hint="Install airbundle again.")
    return found


def _permitted(way: tuple[str, ...]) -> bool:
    if shutil.which(way[0]) is None:
        return False
    return subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0


def _connected_only(name: str) -> bool:
    """Variables that a closed host would not have."""
    return name.startswith(("HF_", "UV_", "PIP_", "VIRTUAL_ENV")) or name.lower().endswith("_proxy")


def _bare_python() -> str:
    """The interpreter behind this environment: the closed half sees none of its packages."""
    return str(getattr(sys, "_base_executable", None) or sys.executable)
