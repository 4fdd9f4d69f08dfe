"""Wanted: the bundle's specification, as a person writes it in YAML."""

import difflib
import ipaddress
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from bundler.domain import names
from bundler.domain.acceptance import Acceptance as Acceptance
from bundler.domain.acceptance import Expected as Expected
from bundler.domain.acceptance import Language as Language
from bundler.domain.acceptance import Slo as Slo
from bundler.domain.catalogue import KINDS
from bundler.domain.record import Name, Record
from bundler.domain.sizes import MEDIA, MEDIUM_PATTERN, human, medium_limit, parse_size
from bundler.domain.sources import EngineRef, FileRef, ModelRef
from bundler.domain.target import WantedTarget

Medium = Annotated[
    str, StringConstraints(pattern=MEDIUM_PATTERN), Field(examples=[*MEDIA, "16GB-usb"])
]
MIN_VOLUME_BYTES = 64 * 1024


class Settings(Record):
    """How the engine runs. `None` leaves the engine's own default."""

    kernel: Literal["auto", "triton", "deepgemm", "cutlass", "flashinfer"] = Field(
        "auto", description="MoE kernel."
    )
    kv_cache_dtype: str = Field(
        "auto", pattern=r"^[a-z0-9_]+$", description="KV-cache type: auto, fp8, f16, q8_0 ..."
    )
    max_model_len: int | None = Field(None, ge=1, description="Context length, tokens.")
    max_num_seqs: int | None = Field(
        None,
        ge=1,
        description="Requests that run at once (vLLM sequences, llama.cpp slots, Ollama's parallel requests).",
    )
    tensor_parallel: int = Field(1, ge=1, description="GPUs that share one model.")
    pipeline_parallel: int = Field(
        1,
        ge=1,
        le=1024,
        description="Stages that the model's layers are spread over, each on `tensor_parallel` GPUs (vLLM).",
    )
    gpu_memory_utilization: float | None = Field(
        None, gt=0, le=1, description="Share of GPU memory that vLLM takes."
    )
    gpu_layers: int | None = Field(
        None, ge=0, le=10_000, description="Layers that llama.cpp puts on GPUs (`-ngl`)."
    )
    cpu_moe_layers: int | None = Field(
        None,
        ge=0,
        le=10_000,
        description="Layers whose routed experts llama.cpp keeps in RAM (`--n-cpu-moe`).",
    )
    fit: bool | None = Field(
        None,
        description="Whether llama.cpp moves layers to RAM when GPU memory is short (`--fit`).",
    )
    env: dict[str, str] = Field(
        {},
        max_length=1000,
        description="Environment variables for the engine.",
        json_schema_extra={"additionalProperties": {"type": ["string", "number"]}},
    )
    args: tuple[str, ...] = Field(
        (), max_length=1000, description="Further arguments for the engine, verbatim."
    )

    @field_validator("env", mode="before")
    @classmethod
    def _numbers_are_text(cls, value: object) -> object:
        if isinstance(value, dict):
            return {
                key: str(item) if isinstance(item, (int, float)) and not isinstance(item, bool)
                else item
                for key, item in value.items()
            }  # fmt: skip
        return value

    @field_validator("env")
    @classmethod
    def _env_can_be_set(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not names.is_variable(name):
                raise ValueError(f"{name!r} is no variable name: letters, digits and _ only")
        names.check_passable({name: f"{name}={value}" for name, value in env.items()})
        return env

    @field_validator("args")
    @classmethod
    def _argscan_be_passed(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        names.check_passable({f"argument {at}": text for at, text in enumerate(args, 1)})
        return args


class Service(Record):
    """One server: one model on its own port and GPUs."""

    name: Name = Field(description="Name of the service; also the model name that clients send.")
    model: Name = Field(description="Name of the model in `models` that it serves.")
    port: int = Field(8000, ge=1, le=65535, description="TCP port.")
    host: str = Field(
        "127.0.0.1",
        description="IP address to listen on. Of one that is not loopback, such as 0.0.0.0, the first"
        " start makes an API key.",
    )
    gpus: tuple[Annotated[int, Field(ge=0, le=1023)], ...] = Field(
        (), max_length=64, description="GPU indexes it may use; all when empty."
    )
    nodes: int = Field(
        1,
        ge=1,
        le=1024,
        description="Hosts that serve it together (vLLM); each has tensor_parallel x pipeline_parallel"
        " / nodes GPUs for it. More than one is started by what `airbundle export` writes.",
    )
    settings: Settings | None = Field(None, description="In place of the common `settings`.")

    @property
    def spread(self) -> int:
        """GPUs that hold one copy of the model, on all nodes together."""
        settings = self.settings or Settings()
        return settings.tensor_parallel * settings.pipeline_parallel

    @property
    def gpus_per_node(self) -> int:
        """GPUs that hold a part of the model on each host."""
        return max(self.spread // self.nodes, 1)

    @field_validator("host")
    @classmethod
    def _address(cls, value: str) -> str:
        try:
            return str(ipaddress.ip_address(value))
        except ValueError as cause:
            raise ValueError(f"{value!r} is no IP address; write 127.0.0.1 or 0.0.0.0") from cause

    @property
    def guarded(self) -> bool:
        """Whether others than this host's processes reach it, so that it asks for a key."""
        return not ipaddress.ip_address(self.host).is_loopback

    @property
    def url(self) -> str:
        """Its address as this host reaches it."""
        address = ipaddress.ip_address(self.host)
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        shown = f"[{address}]" if address.version == 6 else str(address)
        return f"http://{shown}:{self.port}"


class Volumes(Record):
    """How the bundle is cut for its medium."""

    size: int | None = Field(
        None,
        ge=MIN_VOLUME_BYTES,
        description="Largest volume, bytes or e.g. `3.9GiB`.",
        json_schema_extra={
            "anyOf": [
                {"minimum": MIN_VOLUME_BYTES, "type": "integer"},
                {"type": "string"},
                {"type": "null"},
            ]
        },
    )
    medium: Medium = Field("fat32", description="Medium that gives the size when `size` is absent.")

    parity: int = Field(
        0,
        ge=0,
        le=16,
        description="Parity volumes: as many lost or damaged volumes can be rebuilt from the others.",
    )

    sealable: bool = Field(
        False,
        description="Leaves room for encryption (`copy --seal`), and keeps what a bare host starts the"
        " tool from in volumes of its own, which stay open.",
    )

    @field_validator("size", mode="before")
    @classmethod
    def _size(cls, value: object) -> object:
        """Text and whole floats (YAML's `1.0e+9`) are sizes too; say how small one may be."""
        if isinstance(value, str):
            value = parse_size(value)
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and value < MIN_VOLUME_BYTES:
            raise ValueError(
                f"the smallest volume is {human(MIN_VOLUME_BYTES)} ({MIN_VOLUME_BYTES} bytes)"
            )
        return value

    @model_validator(mode="after")
    def _fits_the_medium(self) -> "Volumes":
        if self.size is not None and self.size > medium_limit(self.medium):
            raise ValueError(
                f"size {self.size} is over what {self.medium} holds in one file"
                f" ({medium_limit(self.medium)} bytes)"
            )
        return self

    @property
    def limit(self) -> int:
        """Most bytes in one volume."""
        return self.size if self.size is not None else medium_limit(self.medium)


class Waiver(Record):
    """A finding that was looked at and is accepted; it is shown as a warning from then on."""

    code: str = Field(max_length=100, description="Code of the finding.")
    subject: str | None = Field(None, description="Only for this subject; any when absent.")
    reason: str = Field(min_length=1, max_length=1000, description="Why it is no obstacle here.")

    @field_validator("code")
    @classmethod
    def _known(cls, value: str) -> str:
        """A misspelt code would excuse nothing, and nobody would notice."""
        if value not in KINDS:
            near = difflib.get_close_matches(value, KINDS, 1)
            nearest = f"; the nearest is {near[0]}" if near else ""
            raise ValueError(f"no finding has this code{nearest} (docs/findings.md lists them)")
        return value


class BundleSpec(Record):
    """One LLM service to carry across the gap."""

    name: Name = Field(description="Name of the bundle and of its volumes.")
    description: str = Field("", description="One line for people.")
    sequence: int | None = Field(
        None,
        ge=1,
        lt=2**62,
        description="Of two bundles of one name the higher one is newer, and a closed side that has it"
        " refuses the other. The lock's date and time when left out.",
    )
    target: WantedTarget
    models: tuple[ModelRef, ...] = Field(
        min_length=1, max_length=100, description="Models to carry."
    )
    files: tuple[FileRef, ...] = Field((), max_length=1000, description="Other files to carry.")
    engine: EngineRef
    settings: Settings = Field(Settings(), description="Engine settings common to all services.")
    services: tuple[Service, ...] = Field(
        (),
        max_length=100,
        description="Servers to start; one for the first model when empty.",
    )
    waivers: tuple[Waiver, ...] = Field(
        (), max_length=100, description="Errors of `plan` that are no obstacle here, with reasons."
    )
    volumes: Volumes = Volumes()
    acceptance: Acceptance = Acceptance()

    @model_validator(mode="after")
    def _names_fit(self) -> "BundleSpec":
        labels = [model.label for model in self.models]
        names.refuse_twins("models", labels)
        names.refuse_twins("files", [file.filename for file in self.files])
        names.refuse_twins("services", [service.name for service in self.services])
        names.refuse_twins("services[].port", [str(service.port) for service in self.services])
        for service in self.services:
            if service.model not in labels:
                raise ValueError(
                    f"services: {service.name} serves {service.model}, which is not a model here"
                    f" ({', '.join(labels)})"
                )
        return self

    @model_validator(mode="after")
    def _nodes_share_evenly(self) -> "BundleSpec":
        """As `vllm serve --nnodes` asks for (vllm/engine/arg_utils.py)."""
        for service in self.resolved_services():
            if service.nodes == 1:
                continue
            if self.engine.name != "vllm":
                raise ValueError(
                    f"services: {service.name} has nodes {service.nodes}, and {self.engine.name} runs on"
                    " one host; only vllm spreads a model over several"
                )
            if service.spread % service.nodes:
                raise ValueError(
                    f"services: {service.name} has nodes {service.nodes}, which does not divide"
                    f" tensor_parallel x pipeline_parallel = {service.spread}; set them to GPUs of a"
                    " node and number of nodes"
                )
            if service.gpus and len(service.gpus) != service.gpus_per_node:
                raise ValueError(
                    f"services: {service.name} names {len(service.gpus)} gpus, and"
                    f" {service.gpus_per_node} on each of its {service.nodes} nodes hold the model"
                )
        return self

    def resolved_services(self) -> tuple[Service, ...]:
        """The services with their settings filled in; one for the first model when none is named."""
        services = self.services or (
            Service(name=self.models[0].label, model=self.models[0].label),
        )
        return tuple(
            service.model_copy(update={"settings": service.settings or self.settings})
            for service in services
        )
