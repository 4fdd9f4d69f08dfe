"""The composition root: which adapter serves which port.

Each is imported where it is made, so that a closed-side command never loads a connected-side library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bundler.errors import HostError

if TYPE_CHECKING:
    from bundler.accept.telemetry import Watch
    from bundler.adapters.report_html.questions import QuestionPage
    from bundler.deploy.audit import AuditLog
    from bundler.deploy.install import Installer
    from bundler.deploy.launch import Launcher
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import Gate
    from bundler.domain.shelf import Shelf
    from bundler.instruments import ApiClient, ComparisonWriter, MetricNames
    from bundler.ports import (
        ChatClient,
        Clock,
        CommandRunner,
        DeviceProbe,
        EngineAdapter,
        HostProbe,
        MediumProbe,
        Progress,
        ReportWriter,
        Signer,
        SystemProbe,
        Verifier,
        VolumeFormat,
        WorkplaceProbe,
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


def api(root: Root) -> ApiClient:
    """JSON over loopback, with the keys that a root's services ask for."""
    from bundler.adapters.api_http import HttpApi
    from bundler.deploy.apikeys import key_for

    return HttpApi(lambda url: key_for(root, url))


def host() -> HostProbe:
    """This machine's facts."""
    from bundler.adapters.probe_host import HostFacts

    return HostFacts()


def system_probe() -> SystemProbe:
    """Looks at this machine."""
    from bundler.adapters.probe_system.system import LinuxSystem

    return LinuxSystem(runner(), clock())


def workplace_probe() -> WorkplaceProbe:
    """Looks at what airbundle itself stands on."""
    from bundler.adapters.probe_workplace import ThisWorkplace

    try:
        uv: str | None = uv_program()
    except (HostError, ModuleNotFoundError):
        uv = None
    return ThisWorkplace(runner(), uv)


def device_probe() -> DeviceProbe:
    """Looks at its GPUs."""
    from bundler.adapters.probe_nvml import NvmlDevices

    return NvmlDevices()


def watch(engine: str, chat: ChatClient) -> Watch:
    """Looks at GPUs, processes and an engine's metrics beside a load."""
    from bundler.accept.telemetry import Watch
    from bundler.adapters.meter_proc import ProcMeter
    from bundler.adapters.probe_nvml import NvmlSampler

    return Watch(NvmlSampler(), ProcMeter(), chat, _metric_names(engine))


def _metric_names(engine: str) -> MetricNames | None:
    if engine == "vllm":
        from bundler.adapters.engine_vllm.metrics import METRIC_NAMES

        return METRIC_NAMES
    if engine == "llama.cpp":
        from bundler.adapters.engine_llamacpp.program import METRIC_NAMES as OURS

        return OURS
    return None


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


def _ollama() -> EngineAdapter:
    from bundler.adapters.engine_ollama.adapter import OllamaEngine

    return OllamaEngine()


def _json() -> ReportWriter:
    from bundler.adapters.report_json import JsonReport

    return JsonReport()


def _html() -> ReportWriter:
    from bundler.adapters.report_html.page import HtmlReport

    return HtmlReport()


def _markdown() -> ReportWriter:
    from bundler.adapters.report_markdown import MarkdownReport

    return MarkdownReport()


def _junit() -> ReportWriter:
    from bundler.adapters.report_junit import JunitReport

    return JunitReport()


def _csv() -> ReportWriter:
    from bundler.adapters.report_csv import CsvReport

    return CsvReport()


def _html_comparison() -> ComparisonWriter:
    from bundler.adapters.report_html.compared import HtmlComparison

    return HtmlComparison()


def _markdown_comparison() -> ComparisonWriter:
    from bundler.adapters.report_markdown import MarkdownComparison

    return MarkdownComparison()


ENGINES: dict[str, Callable[[], EngineAdapter]] = {
    "vllm": _vllm,
    "llama.cpp": _llamacpp,
    "ollama": _ollama,
}
REPORTS: dict[str, Callable[[], ReportWriter]] = {
    "json": _json,
    "html": _html,
    "markdown": _markdown,
    "junit": _junit,
    "csv": _csv,
}
COMPARISONS: dict[str, Callable[[], ComparisonWriter]] = {
    "html": _html_comparison,
    "markdown": _markdown_comparison,
}


def question_page() -> QuestionPage:
    """Writes the owner's five questions as a page."""
    from bundler.adapters.report_html.questions import QuestionPage

    return QuestionPage()


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


def serve_shelf(shelf: Shelf, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve a root's wheels and models over HTTP until the process is ended."""
    from bundler.adapters.serve_http import serve_shelf as serve

    serve(shelf, host, port, say)


def audit_log(root: Root) -> AuditLog:
    """Who did what to a root."""
    from bundler.deploy.audit import AuditLog

    return AuditLog(root, clock())


def installer(root: Root, progress: Progress) -> Installer:
    """Makes releases below a root."""
    from bundler.deploy.install import Installer

    try:
        uv: str | None = uv_program()
    except HostError:
        # pip installs as well, only slower.
        uv = None
    return Installer(root=root, uv=uv, runner=runner(), clock=clock(), progress=progress)


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


@contextmanager
def with_extra(who: str, hint: str) -> Iterator[None]:
    """Turn a missing library of an extra into one line and the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("bundler"):
            raise
        raise HostError(
            f"{who} needs {error.name}, which is not installed here", hint=hint
        ) from error


def review_half() -> AbstractContextManager[None]:
    """For what makes the reviewer's pack."""
    return with_extra(
        "the reviewer's pack",
        "Read DIR/review, which `build` wrote and `verify` checks, or, where the package index is"
        " reached: pip install 'airbundle[review]'",
    )
