"""All that lies outside this process, as Protocols. `wiring.py` chooses who serves them.

Each port promises one error type from `bundler.errors`; adapters translate what their libraries raise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from bundler.domain.launching import Advice as Advice
from bundler.domain.launching import Install as Install
from bundler.domain.launching import LaunchPlan as LaunchPlan
from bundler.domain.launching import Situation as Situation

# For annotations alone: who only asks this host something loads no model of a bundle.
if TYPE_CHECKING:
    from zipfile import ZipFile

    from bundler.domain.beside import Beside
    from bundler.domain.engine_facts import EngineFacts
    from bundler.domain.facts import AcceptanceRecord
    from bundler.domain.host import Devices, Host
    from bundler.domain.lock import LockedFile, LockedModel, LockedWheel
    from bundler.domain.running import Running
    from bundler.domain.seat import Seat
    from bundler.domain.shipping import Medium
    from bundler.domain.sources import IndexRef, ModelRef
    from bundler.domain.spec import Service
    from bundler.domain.target import Target
    from bundler.domain.vulnerability import Advisory
    from bundler.domain.workplace import Answer, Workplace


class Clock(Protocol):
    """Time. `now` is a UTC ISO-8601 string, `monotonic` seconds."""

    def now(self) -> str:
        """UTC time, seconds precision, ending in Z."""

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class Task(Protocol):
    """One piece of long work."""

    def advance(self, amount: int) -> None:
        """Count `amount` more units (bytes or requests)."""


class Progress(Protocol):
    """Shows long work. Thread-safe."""

    def task(self, label: str, total: int, unit: str = "bytes") -> AbstractContextManager[Task]:
        """Begin a piece of work of `total` units (`bytes` or `requests`)."""

    def note(self, line: str) -> None:
        """One line about a finished or begun step."""


@dataclass(frozen=True)
class Completed:
    """A finished command."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


class CommandRunner(Protocol):
    """Starts other programs. Raises `ToolError` when one is not there."""

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str | None] | None = None,
        timeout_s: float | None = None,
    ) -> Completed:  # fmt: skip
        """Run to the end and capture. `env` changes this process's environment; None removes."""

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path,
        record: Callable[[int], None],
    ) -> int:  # fmt: skip
        """Start detached in its own session, output appended to `log`, once `record(pid)` returned."""

    def start_ticks(self, pid: int) -> int | None:
        """Kernel start time of a live process; None when gone or a zombie."""

    def boot(self) -> str:
        """Identity of the running boot; pids of another boot mean nothing."""

    def session(self, leader: int, since_ticks: int) -> tuple[int, ...]:
        """Live processes of a session, no older than `since_ticks`."""

    def signal(self, pids: Sequence[int], *, kill: bool) -> None:
        """Ask processes to end, or kill them. Those that are gone already are fine."""

    def port_is_free(self, host: str, port: int) -> bool:
        """Whether nothing listens on `port` of an IP address of this host."""

    def address_towards(self, host: str) -> str:
        """This host's IP address on the way to another one; nothing is sent. Raises `ToolError`."""


class ModelSource(Protocol):
    """Somewhere model files come from.

    Raises only `SourceError`, and of the disk `SpaceError` or `FileAccessError`.
    """

    def pin(self, ref: ModelRef, base: Path) -> LockedModel:
        """Resolve to one immutable revision. Paths in `ref` are relative to `base`."""

    def fetch(
        self, model: LockedModel, file: LockedFile, into: Path, base: Path, task: Task
    ) -> Path:
        """Bring one file below the folder `into` (resuming), and give its path.

        `task` counts bytes as they arrive, those that lay there already included. A source whose
        files are read where they lie counts nothing.
        """

    def read(
        self, model: LockedModel, file: LockedFile, base: Path, start: int, length: int
    ) -> bytes:
        """Bytes `start` to `start + length` of one file, fewer at its end, without fetching it."""


@dataclass(frozen=True)
class WheelRequest:
    """What to resolve, for which target."""

    requirements: tuple[str, ...]
    target: Target
    exclude: tuple[str, ...] = ()
    index: str | None = None
    find_links: tuple[Path, ...] = ()
    indexes: tuple[IndexRef, ...] = ()
    constraints: tuple[str, ...] = ()
    exclude_newer: str | None = None
    build_sdists: bool = False
    only_links: bool = False
    """Ask no index, only `find_links`."""
    built_into: Path | None = None
    """Folder that keeps the wheels built from sdists; needed for `build_sdists`."""


class WheelResolver(Protocol):
    """Finds the closure. Raises only `ResolveError`."""

    floors: tuple[str, ...]
    """glibc versions to choose from, rising, for a target whose own is not stated."""

    def resolve(self, request: WheelRequest) -> tuple[LockedWheel, ...]:
        """Every wheel of the closure for the target, one for each package, sorted by name."""


class WheelReader(Protocol):
    """Looks into wheels without installing them. Raises only `SourceError` (or of the disk)."""

    def open(self, wheel: LockedWheel) -> AbstractContextManager[ZipFile]:
        """The wheel as an archive; of one that lies on an index, only what is read is brought."""


class Advisories(Protocol):
    """Asks a package index what it knows of vulnerabilities. `source` names it for people."""

    source: str

    def of(self, name: str, version: str) -> tuple[Advisory, ...]:
        """What it knows of a package. Raises `SourceError` when it cannot say, which is not "none"."""


class Downloader(Protocol):
    """Downloads by address. Raises only `SourceError` (or `SpaceError` for the disk)."""

    def download(self, url: str, into: Path, task: Task) -> None:
        """Append to `into` from where it ends; complete when it returns."""


@dataclass(frozen=True)
class Member:
    """A file to be stored in a volume."""

    name: str
    size: int
    crc32: int


@dataclass(frozen=True)
class Region:
    """A run of a volume's bytes: either these very bytes, or the data of one member."""

    offset: int
    size: int
    literal: bytes | None = None
    member: int | None = None
    label: str = ""


class VolumeFormat(Protocol):
    """How members lie in a volume. Pure: every byte that is not member data is predicted."""

    suffix: str

    def overhead(self, name: str) -> int:
        """Bytes that one more member of this name costs beside its data."""

    def base_overhead(self) -> int:
        """Bytes of an empty volume."""

    def layout(self, members: Sequence[Member]) -> tuple[Region, ...]:
        """The volume's regions in order, without gaps."""


class HostProbe(Protocol):
    """Reads what this machine is. Never raises: what cannot be read says so."""

    def facts(self) -> dict[str, str]:
        """Name -> value, for the receipt: kernel, processor, memory, glibc, GPUs and driver."""


class SystemProbe(Protocol):
    """Looks at this machine before an installation. Never raises: what is unknown says why."""

    def host(self, places: tuple[Path, ...], python: str) -> Host:
        """Everything but the GPUs; `places` are paths whose file systems matter."""


class WorkplaceProbe(Protocol):
    """Looks at what airbundle itself stands on. Writes nothing and never raises."""

    def look(self, folders: tuple[Path, ...], keys: tuple[Path, ...]) -> Workplace:
        """Python, libraries, programs; `folders` are written to, `keys` are private."""


class Reacher(Protocol):
    """Asks servers whether they are there. Never raises; ends within its time limit."""

    def indexes(self) -> tuple[Answer, ...]:
        """The package indexes that this host is configured with."""

    def ask(self, what: str, url: str, headers: dict[str, str] | None = None) -> Answer:
        """One address; what is sent in `headers` is in no answer."""


class DeviceProbe(Protocol):
    """Looks at this machine's GPUs. Never raises: a host without any says so."""

    def devices(self) -> Devices:
        """What the driver says of each."""


class MediumProbe(Protocol):
    """Reads what a mounted medium is. Never raises: what cannot be read is empty."""

    def medium(self, folder: Path) -> Medium:
        """The medium that holds a folder."""


class Signer(Protocol):
    """Signs. Raises only `KeyFileError`."""

    def sign(self, data: bytes) -> bytes:
        """64 raw bytes, Ed25519."""

    @property
    def key_id(self) -> str:
        """First 16 hex digits of the SHA-256 of the public key's DER form."""

    @property
    def pem(self) -> bytes:
        """The public key, PEM."""


class Verifier(Protocol):
    """Checks signatures against one public key."""

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Whether the signature is this key's, over exactly these bytes."""

    @property
    def key_id(self) -> str:
        """As for `Signer`."""

    @property
    def pem(self) -> bytes:
        """The public key, PEM."""


class EngineAdapter(Protocol):
    """Turns settings into a command line, and judges them. Pure. Raises only `SpecError`."""

    def plan(self, install: Install, service: Service, seat: Seat | None = None) -> LaunchPlan:
        """The command, the environment and the health address of a service, or of a host's part of it."""

    def check(self, service: Service, version: str) -> None:
        """Refuse settings that this engine version cannot honour."""

    def facts(self, wheel: ZipFile, version: str) -> EngineFacts:
        """What the engine's wheel says about itself."""

    def review(self, situation: Situation) -> Advice:
        """Judge a service on its target: what cannot work, what breaks offline, what avoids it."""

    def running(self, log: Iterable[str], metrics: str) -> Running:
        """Which kernels the engine says that it runs: from its log and /metrics (empty: there are none)."""


@dataclass(frozen=True)
class ChatRequest:
    """One completion. `ignore_eos` asks for exactly `max_tokens`, `api` completions for plain text."""

    model: str
    prompt: str
    max_tokens: int
    timeout_s: float
    temperature: float = 0.0
    ignore_eos: bool = True
    api: Literal["chat", "completions"] = "chat"


class Delta(NamedTuple):
    """One event of a streamed answer; `at` is monotonic seconds at its arrival, counts are so far."""

    at: float
    text: str = ""
    reasoning: bool = False
    finish_reason: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


class ChatSession(Protocol):
    """Any number of streams to one engine."""

    async def listen(self, request: ChatRequest, take: Callable[[Delta], None]) -> bool:
        """Stream one completion into `take` as it arrives; whether `[DONE]` came. Raises `EngineError`."""

    async def page(self, path: str) -> str:
        """What an address of the engine answers with 200; empty when it does not. Never raises."""

    def stream(self, request: ChatRequest) -> AsyncIterator[Delta]:
        """The same for `async for`. Raises `EngineError` on any failure or timeout."""


class ChatClient(Protocol):
    """Speaks to an engine. Raises only `EngineError`."""

    def healthy(self, url: str, path: str) -> bool:
        """Whether the health address answers 200."""

    def read(self, url: str, path: str) -> str:
        """What an address answers with 200, as text of at most 4 MiB; empty when it does not."""

    def complete(self, url: str, request: ChatRequest) -> str:
        """One whole completion, not streamed; an answer without text is an `EngineError`."""

    def session(self, url: str) -> AbstractAsyncContextManager[ChatSession]:
        """A session to measure with."""


class ReportWriter(Protocol):
    """Writes an acceptance record for a kind of reader."""

    filename: str

    def render(self, record: AcceptanceRecord, beside: Beside = ...) -> str:
        """The whole document; `beside` are other runs of the same bundle, where there is room for them."""
