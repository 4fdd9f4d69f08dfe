"""The composition root: which adapter serves which port.

Each is imported where it is made, so that a closed-side command never loads a connected-side library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bundler.errors import HostError

if TYPE_CHECKING:
    from bundler.build.tools import BuildTools
    from bundler.deploy.install import Installer
    from bundler.deploy.launch import Launcher
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import Gate
    from bundler.domain.hostindex import HostIndex
    from bundler.domain.shelf import Shelf
    from bundler.domain.sources import EngineRef
    from bundler.domain.target import Target
    from bundler.ports import (
        ChatClient,
        Clock,
        CommandRunner,
        DeviceProbe,
        EngineAdapter,
        HostProbe,
        MediumProbe,
        ModelSource,
        Progress,
        ReportWriter,
        Signer,
        SystemProbe,
        Verifier,
        VolumeFormat,
        WheelReader,
        WheelResolver,
    )

T = TypeVar("T")


def clock() -> Clock:
    """The system's clock."""
    from bundler.adapters.clock_system import SystemClock

    return SystemClock()


def runner() -> CommandRunner:
    """Starts programs here."""
    from bundler.adapters.process import LocalProcesses

    return LocalProcesses()


def volume_format() -> VolumeFormat:
    """Stored ZIP."""
    from bundler.adapters.volumes_zip import ZipVolumes

    return ZipVolumes()


def signer(path: Path) -> Signer:
    """Signs with a private key file."""
    from bundler.adapters.signer_ed25519 import Ed25519Signer

    return Ed25519Signer(path)


def verifier(path: Path) -> Verifier:
    """Checks with a public key file."""
    from bundler.adapters.signer_ed25519 import Ed25519Verifier

    return Ed25519Verifier.from_file(path)


def verifier_of(pem: bytes, what: str = "the key") -> Verifier:
    """Checks with a public key in memory."""
    from bundler.adapters.signer_ed25519 import Ed25519Verifier

    return Ed25519Verifier(pem, what)


def verifiers(paths: Sequence[Path]) -> tuple[Verifier, ...]:
    """One for each key file."""
    return tuple(map(verifier, paths))


def wall_time() -> str:
    """UTC by this host's clock: what expires does so by no variable of a build."""
    from bundler.adapters.clock_system import wall_time

    return wall_time()


def gate() -> Gate:
    """Decides which bundles a site takes."""
    from bundler.deploy.trustroot import Gate

    return Gate(make=verifier_of, now=wall_time())


def generate_keys(private: Path, public: Path) -> str:
    """Write a new pair; gives its key id."""
    from bundler.adapters.signer_ed25519 import generate

    return generate(private, public)


def chat(root: Root) -> ChatClient:
    """OpenAI-style over loopback, with the keys that a root's services ask for."""
    from bundler.adapters.chat_openai import OpenAIChat
    from bundler.deploy.apikeys import key_for

    return OpenAIChat(lambda url: key_for(root, url))


def host() -> HostProbe:
    """This machine's facts."""
    from bundler.adapters.probe_host import HostFacts

    return HostFacts()


def system_probe() -> SystemProbe:
    """Looks at this machine."""
    from bundler.adapters.probe_system.system import LinuxSystem

    return LinuxSystem(runner(), clock())


def device_probe() -> DeviceProbe:
    """Looks at its GPUs."""
    from bundler.adapters.probe_nvml import NvmlDevices

    return NvmlDevices()


def medium_probe() -> MediumProbe:
    """Reads which stick is mounted where."""
    from bundler.adapters.probe_medium import LinuxMedia

    return LinuxMedia()


def _vllm() -> EngineAdapter:
    from bundler.adapters.engine_vllm.adapter import VllmEngine

    return VllmEngine()


def _llamacpp() -> EngineAdapter:
    from bundler.adapters.engine_llamacpp.adapter import LlamaCppEngine

    return LlamaCppEngine()


def _hub() -> ModelSource:
    with _connected_half():
        from bundler.adapters.source_hub.adapter import HubSource

        return HubSource()


def _local() -> ModelSource:
    from bundler.adapters.source_local import LocalSource

    return LocalSource()


def _gguf() -> ModelSource:
    from bundler.adapters.source_local import GgufSource

    return GgufSource()


def _json() -> ReportWriter:
    from bundler.adapters.report_json import JsonReport

    return JsonReport()


def _html() -> ReportWriter:
    from bundler.adapters.report_html.page import HtmlReport

    return HtmlReport()


def _uv(index: Callable[[], HostIndex]) -> WheelResolver:
    with _connected_half():
        from bundler.adapters.wheels_uv.resolver import UvResolver
        from bundler.build.tags import best_wheel

    return UvResolver(
        runner=runner(),
        uv=uv_program(),
        python=sys.executable,
        index=index(),
        choose=best_wheel,
        host=_this_host(),
    )


def _piptools(index: Callable[[], HostIndex]) -> WheelResolver:
    with _connected_half():
        from bundler.adapters.wheels_piptools import PipToolsResolver

    return PipToolsResolver(
        runner=runner(), python=sys.executable, host=_this_host(), other=_uv(index)
    )


def _this_host() -> Target | None:
    """This host as a target, None when it could be none: not Linux, no glibc, another Python."""
    import platform

    from pydantic import ValidationError

    from bundler.domain.target import Target

    try:
        return Target.model_validate(
            {
                "os": platform.system().lower(),
                "arch": platform.machine(),
                "python": ".".join(platform.python_version_tuple()[:2]),
                "glibc": platform.libc_ver()[1],
            }
        )
    except ValidationError:
        return None


ENGINES: dict[str, Callable[[], EngineAdapter]] = {"vllm": _vllm, "llama.cpp": _llamacpp}
SOURCES: dict[str, Callable[[], ModelSource]] = {"hub": _hub, "local": _local, "gguf": _gguf}
RESOLVERS: dict[str, Callable[[Callable[[], HostIndex]], WheelResolver]] = {
    "uv": _uv,
    "pip-tools": _piptools,
}
REPORTS: dict[str, Callable[[], ReportWriter]] = {"json": _json, "html": _html}


def uv_program() -> str:
    """Path of the uv that came with this environment.

    Raises:
        HostError: there is none.
    """
    import uv

    try:
        return str(uv.find_uv_bin())
    except FileNotFoundError as cause:
        raise HostError(f"uv is not in this environment: {cause}", hint="pip install uv") from cause


def reading_host() -> Callable[[], HostIndex]:
    """Begin to read what pip and uv are configured with; what is given waits for the answer.

    pip takes a third of a second to say it. A command asks first, and loads the rest meanwhile.

    Raises:
        HostError: the connected half's libraries are not installed.
    """
    with _connected_half():
        from bundler.adapters.host_index import read_host_index

    pool = ThreadPoolExecutor(1)
    reading = pool.submit(read_host_index, runner())
    pool.shutdown(wait=False)
    return reading.result


def build_tools(
    engine: EngineRef,
    progress: Progress,
    cache: Path,
    host: Callable[[], HostIndex] | None = None,
) -> BuildTools:
    """What the connected half uses.

    Args:
        engine: says which adapters.
        progress: told of long work.
        cache: folder of the store.
        host: what `reading_host` gave, where it was asked before.

    Raises:
        HostError: the connected half's libraries are not installed.
        ToolError: the host's configuration cannot be read.
    """
    reading = host or reading_host()
    with _connected_half():
        from bundler.adapters.fetch_http.download import HttpDownloader
        from bundler.build.store import ContentStore
        from bundler.build.tools import BuildTools
    chosen = RESOLVERS[engine.resolver](reading)
    index = reading()
    if index.cert:
        # The Hub's client reads this variable, and pip's configuration not at all.
        os.environ.setdefault("SSL_CERT_FILE", str(index.cert))
    store = ContentStore(cache)
    return BuildTools(
        sources=SOURCES,
        resolver=chosen,
        downloader=HttpDownloader(index),
        form=volume_format(),
        engine=ENGINES[engine.name](),
        wheels=wheel_reader(index, store.file),
        store=store,
        clock=clock(),
        progress=progress,
    )


def wheel_reader(index: HostIndex, stored: Callable[[str], Path | None]) -> WheelReader:
    """Looks into wheels: in the store, else on the index."""
    from bundler.adapters.fetch_http.wheels import WheelArchives

    return WheelArchives(index, stored)


def serve_shelf(shelf: Shelf, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve a root's wheels and models over HTTP until the process is ended."""
    from bundler.adapters.serve_http import serve_shelf as serve

    serve(shelf, host, port, say)


def installer(root: Root, progress: Progress) -> Installer:
    """Makes releases below a root."""
    from bundler.deploy.install import Installer

    return Installer(root=root, uv=uv_program(), runner=runner(), clock=clock(), progress=progress)


def launcher(root: Root, progress: Progress) -> Launcher:
    """Starts and stops engines below a root."""
    from bundler.deploy.launch import Launcher

    return Launcher(
        root=root,
        engines=ENGINES,
        runner=runner(),
        chat=chat(root),
        clock=clock(),
        progress=progress,
    )


class _connected_half:  # noqa: N801 - reads as a statement: `with _connected_half():`
    """Turns a missing connected-side library into the command that installs it."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("bundler"):
            raise HostError(
                f"the connected half needs {error.name}, which is not installed here",
                hint="pip install 'airbundle[connected]'",
            ) from error


class review_half:  # noqa: N801 - reads as a statement, as above
    """Turns a missing library of the reviewer's pack into the command that installs it."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("bundler"):
            raise HostError(
                f"the reviewer's pack needs {error.name}, which is not installed here",
                hint="Read DIR/review, which `build` wrote and `verify` checks, or, where the package index"
                " is reached: pip install 'airbundle[review]'",
            ) from error
