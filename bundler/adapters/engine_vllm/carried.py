"""What the bundle must carry beside engine and model, or the host would have to download it."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.adapters.engine_vllm.case import Case
from bundler.domain.findings import Finding


def judge(case: Case) -> Iterator[Finding]:
    """Packages and files that are not carried, or not in the version that the others want."""
    yield from _companions(case)
    yield from _vocabulary(case)
    yield from _ray(case)


def _companions(case: Case) -> Iterator[Finding]:
    packages = case.situation.packages
    wanted = packages.get("flashinfer-python")
    for name in ("flashinfer-cubin", "flashinfer-jit-cache"):
        # A build's local part (`+cu129`) is no other version.
        found = packages.get(name, "").partition("+")[0]
        if wanted and found and found != wanted.partition("+")[0]:
            yield case.finding(
                "companion-mismatch",
                f"{name} {packages[name]} beside flashinfer-python {wanted}",
                fix=f"Pin {name} to {wanted.partition('+')[0]}.",
            )


def _vocabulary(case: Case) -> Iterator[Finding]:
    """https://github.com/vllm-project/vllm/issues/22525 ."""
    gpt_oss = case.model is not None and "GptOssForCausalLM" in case.model.architectures
    if gpt_oss and "TIKTOKEN_ENCODINGS_BASE" not in case.settings.env:
        yield case.finding(
            "vocabulary-missing",
            f"{case.situation.service.model} reads o200k_base.tiktoken by openai_harmony, and"
            " settings.env.TIKTOKEN_ENCODINGS_BASE is not set",
        )


def _ray(case: Case) -> Iterator[Finding]:
    wanted = [
        flag
        for flag in ("--distributed-executor-backend", "--data-parallel-backend")
        if case.given.get(flag) == "ray"
    ]
    if wanted and case.situation.packages and not case.carries("ray"):
        yield case.finding("needs-ray", f"{wanted[0]} ray: ray is not in the closure")
