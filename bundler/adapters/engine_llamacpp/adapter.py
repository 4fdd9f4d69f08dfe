"""EngineAdapter: llama.cpp's llama-server.

Flags: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md . `-c` is the context
of all slots together, so the spec's context length for one request is multiplied by the slots. A
quantized KV cache needs flash attention. The default port has changed over time: it is always given.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from zipfile import ZipFile

from bundler.adapters.engine_llamacpp.program import TRACE, VERBOSITY, knows, read_flags
from bundler.domain.catalogue import finding
from bundler.domain.engine_facts import EngineFacts
from bundler.domain.findings import Finding, Level
from bundler.domain.model_facts import ModelFacts
from bundler.domain.running import Running
from bundler.domain.spec import Service, Settings
from bundler.errors import SpecError
from bundler.format.llamalog import read_log
from bundler.ports import Advice, Install, LaunchPlan, Situation

_KV_TYPES = ("auto", "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
_UNQUANTIZED = ("auto", "f32", "f16", "bf16")
# vLLM's name of a KV-cache type -> llama.cpp's.
_VLLM_NAMES = {"bfloat16": "bf16", "float16": "f16", "nvfp4": "q4_0"}
# Flag that airbundle renders -> key of the spec.
_OWN = {
    "-m": "services[].model", "--model": "services[].model", "--host": "services[].host",
    "--port": "services[].port", "-a": "services[].name", "--alias": "services[].name",
    "-np": "settings.max_num_seqs", "--parallel": "settings.max_num_seqs",
    "-c": "settings.max_model_len", "--ctx-size": "settings.max_model_len",
    "-ctk": "settings.kv_cache_dtype", "--cache-type-k": "settings.kv_cache_dtype",
    "-ctv": "settings.kv_cache_dtype", "--cache-type-v": "settings.kv_cache_dtype",
    "-ngl": "settings.gpu_layers", "--gpu-layers": "settings.gpu_layers",
    "--n-gpu-layers": "settings.gpu_layers",
    "-ncmoe": "settings.cpu_moe_layers", "--n-cpu-moe": "settings.cpu_moe_layers",
    "-fit": "settings.fit", "--fit": "settings.fit",
}  # fmt: skip
# Keys whose flags are rendered only when they are set: by hand they are as good.
_OPTIONAL = ("settings.gpu_layers", "settings.cpu_moe_layers", "settings.fit")
_LOOKS_LIKE_A_FLAG = re.compile(r"--?[a-zA-Z]")
_IDENTITY = ("-m", "--model", "--host", "--port", "-a", "--alias")
_VERBOSITY_NAMES = ("-lv", "--log-verbosity", "-v", "--verbose", "--log-verbose", "--log-disable")
_CACHES = {"HOME": "home", "XDG_CACHE_HOME": "xdg", "LLAMA_CACHE": "llama"}


class LlamaCppEngine:
    """Command line and environment of llama-server."""

    def plan(self, install: Install, service: Service) -> LaunchPlan:
        """Start the OpenAI-compatible server."""
        self.check(service, install.engine_version)
        settings = service.settings or Settings()
        slots = settings.max_num_seqs or 1
        argv = [
            _server(install),
            "-m", _model(install, service),
            "--host", service.host, "--port", str(service.port),
            "--alias", service.name,
            "-np", str(slots),
        ]  # fmt: skip
        if settings.max_model_len:
            argv += ["-c", str(settings.max_model_len * slots)]
        if settings.kv_cache_dtype != "auto":
            argv += ["-ctk", settings.kv_cache_dtype, "-ctv", settings.kv_cache_dtype]
        if settings.kv_cache_dtype not in _UNQUANTIZED:
            argv += ["-fa", "on"]
        argv += [word for flag, value in _placement(settings).items() for word in (flag, value)]
        env = {
            **{name: str(install.cache_dir / folder) for name, folder in _CACHES.items()},
            **settings.env,
        }
        return LaunchPlan(argv=(*argv, *settings.args), env=env, key_variable="LLAMA_API_KEY")

    def check(self, service: Service, version: str) -> None:
        """Refuse settings that llama.cpp does not know."""
        for fault in _faults(service, version):
            raise SpecError(fault.what, hint=fault.fix)

    def facts(self, wheel: ZipFile, version: str) -> EngineFacts:
        """The KV-cache types, and the flags that the program's own texts name."""
        return EngineFacts(
            engine="llama.cpp",
            version=version,
            kv_cache_dtypes=_KV_TYPES,
            flags=read_flags(wheel),
        )

    def review(self, situation: Situation) -> Advice:
        """Judge a service: its settings, its arguments and the model's format."""
        service, model = situation.service, situation.model
        found = [
            *_faults(service, situation.version),
            *_arguments(service),
            *_unknown(situation),
            *_ignored(service, model),
        ]
        if model is not None and model.format in ("safetensors", "pickle"):
            what = f"{model.format} weights; llama.cpp reads GGUF"
            found.append(finding("format-mismatch", service.model, what))
        return Advice(findings=tuple(found), args=_telling(situation))

    def running(self, log: Iterable[str], metrics: str) -> Running:
        """What the log says; /metrics is off by default, and tells nothing of it."""
        return read_log(log)


def _placement(settings: Settings) -> dict[str, str]:
    """The flags that say what lies on the GPU and what in RAM; none for what is left to llama-server."""
    fit = None if settings.fit is None else "on" if settings.fit else "off"
    flags = {
        "--n-gpu-layers": settings.gpu_layers,
        "--n-cpu-moe": settings.cpu_moe_layers,
        "--fit": fit,
    }
    return {flag: str(value) for flag, value in flags.items() if value is not None}


def _telling(situation: Situation) -> tuple[str, ...]:
    """Has the log say what runs, where that is another level than the default; prompts are in none of it."""
    given = (situation.service.settings or Settings()).args
    known = situation.engine.flags.get(VERBOSITY, ()) if situation.engine else ()
    if TRACE not in known or set(given) & {VERBOSITY, *_VERBOSITY_NAMES}:
        return ()
    return (VERBOSITY, TRACE)


def _faults(service: Service, version: str) -> Iterator[Finding]:
    """What `check` refuses and `review` reports."""
    settings, name = service.settings or Settings(), service.name
    if settings.kernel != "auto":
        yield finding(
            "kernel-no-switch",
            name,
            f"settings.kernel {settings.kernel}: llama.cpp {version} has no such choice",
            fix="Leave kernel out; it chooses by hardware.",
        )
    dtype = settings.kv_cache_dtype
    if dtype not in _KV_TYPES:
        ours = "q8_0" if dtype.startswith("fp8") else _VLLM_NAMES.get(dtype)
        yield finding(
            "kv-dtype-unknown",
            name,
            f"settings.kv_cache_dtype {dtype}: llama.cpp knows {', '.join(_KV_TYPES)}",
            fix=f"Write {ours}; {dtype} is vLLM's name." if ours else "",
        )
    if settings.tensor_parallel > 1:
        yield finding(
            "tensor-parallel",
            name,
            "settings.tensor_parallel: llama.cpp splits by --split-mode and --tensor-split",
            fix="Leave tensor_parallel out and give those in settings.args.",
        )


def _arguments(service: Service) -> Iterator[Finding]:
    """Arguments that overrule what airbundle renders."""
    settings = service.settings or Settings()
    words = [word.partition("=")[0] for word in settings.args]
    for word in words:
        key = _OWN.get(word)
        if key and (key not in _OPTIONAL or getattr(settings, key.partition(".")[2]) is not None):
            yield finding(
                "flag-clash",
                service.name,
                f"settings.args {word}: airbundle sets it as well, and this one wins",
                fix=f"Use {key} instead.",
                level=Level.ERROR if word in _IDENTITY else None,
            )
    attention = [
        value
        for word, value in zip(settings.args, settings.args[1:], strict=False)
        if word in ("-fa", "--flash-attn")
    ]
    if settings.kv_cache_dtype not in _UNQUANTIZED and attention[-1:] in (["off"], ["0"]):
        yield finding(
            "kv-dtype-backend",
            service.name,
            f"settings.kv_cache_dtype {settings.kv_cache_dtype} needs flash attention, which"
            " settings.args switches off",
            fix="Leave -fa out, or choose f16.",
        )


def _unknown(situation: Situation) -> Iterator[Finding]:
    """Flags that the carried program does not know: it would print its usage and exit."""
    flags = situation.engine.flags if situation.engine else {}
    settings = situation.service.settings or Settings()
    for flag in _placement(settings) if flags else ():
        if not knows(flags, flag):
            yield finding(
                "flag-unknown",
                situation.service.name,
                f"{_OWN[flag]}: llama.cpp {situation.version} does not know {flag}",
                fix="Leave it out, or take a newer llama.cpp.",
            )
    for word in settings.args if flags else ():
        flag, equals, value = word.partition("=")
        if not _LOOKS_LIKE_A_FLAG.match(word):
            continue
        near = difflib.get_close_matches(flag, flags, 1)
        if not knows(flags, flag):
            what = f"llama.cpp {situation.version} does not know it"
            hint = f"; the nearest is {near[0]}" if near else ""
            fix = f"Write {near[0]}." if near else "Leave it out."
        elif equals:
            what, hint = "llama-server takes a flag and its value as two words", ""
            fix = f"Write two arguments: {flag} and {value}."
        else:
            continue
        yield finding(
            "flag-unknown", situation.service.name, f"settings.args {word}: {what}{hint}", fix=fix
        )


def _ignored(service: Service, model: ModelFacts | None) -> Iterator[Finding]:
    settings = service.settings or Settings()
    if settings.gpu_memory_utilization is not None:
        yield finding(
            "setting-ignored",
            service.name,
            "settings.gpu_memory_utilization: llama.cpp takes the memory that it needs",
        )
    if settings.cpu_moe_layers and model is not None and model.groups and not model.experts:
        yield finding(
            "setting-ignored",
            service.name,
            f"settings.cpu_moe_layers: {model.name} is a dense model, which has no experts to move",
            fix="Use settings.gpu_layers, which moves whole layers.",
        )


def _server(install: Install) -> str:
    """llama-server as its wheel installs it; packagers add suffixes (`llama-server-vulkan`)."""
    names = sorted(path for path in install.programs if path.name.startswith("llama-server"))
    if not names:
        raise SpecError(
            f"engine.package {install.distribution}: it installs no llama-server program",
            hint="Name the distribution that holds llama-server.",
        )
    return str(names[0])


def _model(install: Install, service: Service) -> str:
    """The GGUF file; of a split one the first, which names the others."""
    files = sorted(name for name in install.model_files if name.endswith(".gguf"))
    whole = [name for name in files if "mmproj" not in name]
    if not whole:
        raise SpecError(f"model {service.model}: has no .gguf file")
    return str(install.model / whole[0])
