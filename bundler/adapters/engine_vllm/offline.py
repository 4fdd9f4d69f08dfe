"""What breaks on a host without network and compiler, and what avoids it.

Where each part is compiled or looked up was read in the wheels of 0.11 to 0.32. FlashInfer compiles
its kernels with nvcc, ninja and g++ at first use, unless flashinfer-jit-cache brings them; DeepGEMM
compiles with nvcc always. Settings are added only where this version knows them and the spec does
not speak of the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bundler.adapters.engine_vllm import attention
from bundler.adapters.engine_vllm.case import Case
from bundler.adapters.engine_vllm.kernel_checks import deep_gemm
from bundler.domain.findings import Finding
from bundler.domain.needs import Tool

_NVCC_TOOLS = ("nvcc", "ninja", "g++")
_STATE = "State nvcc, ninja and g++ in target.tools if the host has them"
# Models whose attention itself runs on DeepGEMM, so that it cannot be switched off.
_SPARSE = ("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM")
_FUSION = "--compilation-config.pass_config.fuse_allreduce_rms"


@dataclass
class Measures:
    """What was found, and what was added because of it."""

    findings: list[Finding] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    args: list[str] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)

    def switch_off(self, case: Case, what: str, name: str, value: str) -> None:
        """Add a variable or a flag that avoids a compilation, or say that none can be added."""
        setting = f"{name} {value}" if name.startswith("--") else f"{name}={value}"
        if name.startswith("--"):
            possible = case.takes_flag(name.partition(".")[0])
            self.args += [name, value] if possible else []
        else:
            possible = case.reads_env(name)
            self.env.update({name: value} if possible else {})
        if possible:
            self.findings.append(
                case.finding("jit-avoided", f"{what}; {setting} avoids it", applied=setting)
            )
        else:
            self.compiles(case, what, f"{_STATE}, or use a version that knows {setting}.")

    def compiles(self, case: Case, what: str, fix: str = "") -> None:
        """Something is compiled there for sure."""
        self.findings.append(case.finding("jit-nvcc", what, fix=fix))

    def keeps(self, case: Case, why: str) -> None:
        """The host compiles it, and needs the tools for it."""
        self.tools += [Tool(name=name, why=why) for name in _NVCC_TOOLS]


def measures(case: Case) -> Measures:
    """All of it, for the chosen model on the chosen GPU."""
    found = Measures()
    _host_compiler(case, found)
    if case.capability is not None:
        for part in (
            _gated_delta_net,
            _attention,
            _kernel,
            _deepgemm,
            _block_gemm,
            _sampler,
            _all_reduce,
        ):
            part(case, found)
    return found


def _host_compiler(case: Case, found: Measures) -> None:
    """Triton builds a launcher with the C compiler, torch's inductor kernels for processors with C++.

    --enforce-eager spares the model, but the sampler was compiled all the same up to 0.31
    (`compiled_random_sample` in v1/sample/ops/topk_topp_sampler.py: in 0.29, not called in 0.32).
    """
    needed: tuple[str, ...]
    eager = "--enforce-eager" in case.given
    if case.on_cpu and eager and case.release >= (0, 32, 0):
        return
    if case.on_cpu:
        part = "the sampler" if eager else "the model"
        needed, why = ("g++",), f"torch.compile builds {part} for the processor"
    elif case.situation.target.gpus:
        needed, why = ("gcc", "python-headers"), "Triton builds its launcher at the first kernel"
    else:
        return
    found.tools += [Tool(name=name, why=why) for name in needed]
    missing = [name for name in needed if name not in case.situation.target.tools]
    if missing:
        found.findings.append(
            case.finding(
                "jit-host-compiler",
                f"{why}: it needs {' and '.join(missing)}, which target.tools does not state",
                fix="Install it there and state it in target.tools."
                if case.on_cpu
                else "Install gcc and Python's headers there and state them in target.tools.",
            )
        )


def _gated_delta_net(case: Case, found: Measures) -> None:
    """Qwen3.5 and Qwen3-Next on compute capability 9.0; from 0.18 a flag takes Triton's kernels.

    models/qwen3_next.py of 0.17, later layers/mamba/gdn.
    """
    names = case.model.architectures if case.model else ()
    qwen = any(name.startswith(("Qwen3_5", "Qwen3Next")) for name in names)
    if not (qwen and case.hopper and case.release >= (0, 17, 0)):
        return
    what = f"the gated delta net's prefill is compiled with nvcc by FlashInfer ({case.engine})"
    chosen = case.given.get("--gdn-prefill-backend")
    if chosen not in (None, "flashinfer", "auto") or not _uncompiled(case, found, what):
        return
    if chosen == "flashinfer":
        found.compiles(case, what, f"{_STATE}, or choose --gdn-prefill-backend triton.")
    elif case.release < (0, 18, 0):
        found.compiles(
            case,
            f"{what}, whatever is set",
            f"Use vLLM 0.18.0 or newer, where --gdn-prefill-backend triton avoids it, or: {_STATE}.",
        )
    else:
        found.switch_off(case, what, "--gdn-prefill-backend", "triton")


def _attention(case: Case, found: Measures) -> None:
    named = attention.named_backend(case)
    takes = attention.backends(case)
    chosen = named or (takes[0] if takes else "")
    if chosen != "FLASHINFER":
        return
    dtype = attention.kv_type(case)
    what = f"attention backend FLASHINFER (kv_cache_dtype {dtype}) is compiled with nvcc"
    if case.blackwell and not case.carries("flashinfer-cubin"):
        found.findings.append(
            case.finding("cubins-missing", f"{what.partition(' is ')[0]}: no flashinfer-cubin")
        )
    if not _uncompiled(case, found, what):
        return
    others = [name for name in takes if name not in ("FLASHINFER", "FLEX_ATTENTION")]
    if named is None and others:
        name = attention.FLAG if case.release >= (0, 13, 0) else attention.VARIABLE
        found.switch_off(case, what, name, others[0])
    elif named is None and dtype != "auto":
        text = f"kv_cache_dtype {dtype}: only FLASHINFER takes it on {case.gpu_names[0]}, and it is"
        fix = f"{_STATE}, or choose kv_cache_dtype auto."
        found.findings.append(
            case.finding("kv-dtype-backend", f"{text} compiled with nvcc", fix=fix)
        )
    else:
        instead = f"choose --attention-backend {others[0]}" if others else "kv_cache_dtype auto"
        found.compiles(case, what, f"{_STATE}, or {instead}.")


def _kernel(case: Case, found: Measures) -> None:
    """FlashInfer's MoE kernels: asked for, or first choice where has_flashinfer() holds without nvcc."""
    if case.dense or case.model is None:
        return
    asked = case.kernel == "flashinfer"
    first_choice = case.blackwell or (case.hopper and not case.block_fp8)
    by_default = (
        case.kernel == "auto"
        and case.fp8
        and first_choice
        and case.release >= (0, 17, 0)
        and case.carries("flashinfer-cubin")
    )
    if not (asked or by_default):
        return
    what = f"FlashInfer's MoE kernels (kernel {case.kernel}) are compiled with nvcc"
    if _uncompiled(case, found, what):
        found.compiles(case, what, f"{_STATE}, or choose kernel triton.")


def _deepgemm(case: Case, found: Measures) -> None:
    state = deep_gemm(case)
    if not (case.hopper or case.blackwell) or state in ("absent", "unknown"):
        return
    stated = case.settings.env.get("VLLM_USE_DEEP_GEMM")
    if state == "other-python" and stated is None and case.kernel != "deepgemm":
        tags = ", ".join(case.facts.deep_gemm)
        what = f"{case.engine} vendors a DeepGEMM for {tags} only, which warm-up would import"
        found.switch_off(case, what, "VLLM_USE_DEEP_GEMM", "0")
        return
    sparse = case.model is not None and any(n in _SPARSE for n in case.model.architectures)
    used = sparse or case.block_fp8 or case.kernel == "deepgemm"
    if not used or (stated == "0" and not sparse):
        return
    what = "DeepGEMM compiles its kernels with nvcc"
    if case.has("nvcc"):
        found.tools.append(Tool(name="nvcc", why=what))
    elif sparse or case.kernel == "deepgemm":
        need = "the model's sparse attention needs it" if sparse else "kernel deepgemm asks for it"
        found.compiles(case, f"{what}; {need}", "State nvcc in target.tools if the host has it.")
    elif stated is None:
        found.switch_off(case, what, "VLLM_USE_DEEP_GEMM", "0")


def _block_gemm(case: Case, found: Measures) -> None:
    """utils/flashinfer.py: fp8_blockscale_gemm_sm90, on by default from 0.17."""
    name = "VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER"
    on = case.settings.env.get(name, "1" if case.release >= (0, 17, 0) else "0") != "0"
    if not (on and case.block_fp8 and case.hopper and case.release >= (0, 14, 0)):
        return
    what = "FlashInfer's block-wise FP8 GEMM is compiled with nvcc"
    if _uncompiled(case, found, what) and name not in case.settings.env:
        found.switch_off(case, what, name, "0")


def _sampler(case: Case, found: Measures) -> None:
    """v1/sample/ops/topk_topp_sampler.py: on by default from 0.21, whether nvcc is there or not.

    https://github.com/vllm-project/vllm/issues/44985
    """
    name = "VLLM_USE_FLASHINFER_SAMPLER"
    on = case.settings.env.get(name, "1" if case.release >= (0, 21, 0) else "0") != "0"
    if not on or case.capability is None or case.capability < (7, 5):
        return
    what = "FlashInfer's sampler is compiled with nvcc"
    if not _uncompiled(case, found, what):
        return
    if name in case.settings.env:
        found.compiles(case, f"{what}; settings.env asks for it", f"{_STATE}, or set {name}=0.")
    else:
        found.switch_off(case, what, name, "0")


def _all_reduce(case: Case, found: Measures) -> None:
    """All-reduce of several GPUs: its own kernel from 0.29, fused with RMSNorm from 0.17.

    The fusion is asked for where has_flashinfer() holds, which flashinfer-cubin makes true without
    nvcc (config/vllm.py, utils/flashinfer.py).
    """
    if case.tensor_parallel < 2:
        return
    name = "VLLM_ALLREDUCE_USE_FLASHINFER"
    what = "FlashInfer's all-reduce is compiled with nvcc"
    on = case.release >= (0, 29, 0) and name not in case.settings.env
    fused = (
        case.release >= (0, 17, 0)
        and (case.hopper or case.blackwell)
        and case.carries("flashinfer-cubin")
        and not any("fuse_allreduce_rms" in word for word in case.settings.args)
    )
    if not (on or fused) or not _uncompiled(case, found, what):
        return
    if on:
        found.switch_off(case, what, name, "0")
    if fused:
        _unfuse(case, found)


def _unfuse(case: Case, found: Measures) -> None:
    """A second --compilation-config would replace the spec's own."""
    what = "FlashInfer's fused all-reduce is compiled with nvcc"
    if any(flag.startswith("--compilation-config") for flag in case.given):
        fix = f"{_STATE}, or put pass_config.fuse_allreduce_rms: false into --compilation-config."
        found.compiles(case, what, fix)
    else:
        found.switch_off(case, what, _FUSION, "false")


def _uncompiled(case: Case, found: Measures, what: str) -> bool:
    """Whether FlashInfer would need a compiler that is not stated; one that is becomes a need."""
    if not case.flashinfer_compiles:
        return False
    if case.nvcc:
        found.keeps(case, what)
        return False
    return True
