"""EngineAdapter: llama.cpp's llama-server.

Flags: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md . `-c` is the context
of all slots together, so the spec's context length for one request is multiplied by the slots. A
quantized KV cache needs flash attention. The default port has changed over time: it is always given.
"""

from __future__ import annotations

from bundler.domain.spec import Service, Settings
from bundler.errors import SpecError
from bundler.ports import Install, LaunchPlan

_KV_TYPES = ("auto", "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
_UNQUANTIZED = ("auto", "f32", "f16", "bf16")
_CACHES = {"HOME": "home", "XDG_CACHE_HOME": "xdg", "LLAMA_CACHE": "llama"}


class LlamaCppEngine:
    """Command line and environment of llama-server."""

    def plan(self, install: Install, service: Service) -> LaunchPlan:
        """Start the OpenAI-compatible server on 127.0.0.1."""
        self.check(service, install.engine_version)
        settings = service.settings or Settings()
        slots = settings.max_num_seqs or 1
        argv = [
            _server(install),
            "-m", _model(install, service),
            "--host", "127.0.0.1", "--port", str(service.port),
            "--alias", service.name,
            "-np", str(slots),
        ]  # fmt: skip
        if settings.max_model_len:
            argv += ["-c", str(settings.max_model_len * slots)]
        if settings.kv_cache_dtype != "auto":
            argv += ["-ctk", settings.kv_cache_dtype, "-ctv", settings.kv_cache_dtype]
        if settings.kv_cache_dtype not in _UNQUANTIZED:
            argv += ["-fa", "on"]
        env = {
            **{name: str(install.cache_dir / folder) for name, folder in _CACHES.items()},
            **settings.env,
        }
        return LaunchPlan(argv=(*argv, *settings.args), env=env)

    def check(self, service: Service, version: str) -> None:
        """Refuse settings that llama.cpp does not know."""
        settings = service.settings or Settings()
        if settings.kernel != "auto":
            raise SpecError(
                f"settings.kernel {settings.kernel}: llama.cpp {version} has no such choice",
                hint="Leave kernel out; it chooses by hardware.",
            )
        if settings.kv_cache_dtype not in _KV_TYPES:
            raise SpecError(
                f"settings.kv_cache_dtype {settings.kv_cache_dtype}: llama.cpp knows"
                f" {', '.join(_KV_TYPES)}"
            )
        if settings.tensor_parallel > 1:
            raise SpecError(
                "settings.tensor_parallel: llama.cpp splits by --split-mode and --tensor-split",
                hint="Leave tensor_parallel out and give those in settings.args.",
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
