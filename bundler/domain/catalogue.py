"""Every kind of finding that the proof before the trip can make, in one place.

docs/findings.md is generated from here, and `airbundle plan --explain CODE` prints from here.
"""

from __future__ import annotations

from bundler.domain.findings import Finding, Kind, Level

_E, _W, _N = Level.ERROR, Level.WARNING, Level.NOTE


def _kind(code: str, level: Level, title: str, meaning: str, remedy: str) -> Kind:
    return Kind(code=code, level=level, title=title, meaning=meaning, remedy=remedy)


MODEL_KINDS = (
    _kind("model-unread", _W, "The model's files could not be read before the fetch",
          "Architecture, exact weight bytes and weight safety were not judged.",
          "Run plan again when the source answers; build reads the fetched files."),
    _kind("model-faulty", _E, "A model file is broken",
          "A header contradicts itself or the file's size: the engine dies while it loads.",
          "Fetch the named file again, or choose another revision."),
    _kind("shards-missing", _E, "Weight files that the index names are not carried",
          "model.safetensors.index.json (or a split GGUF) names files that the bundle would not hold;"
          " the engine dies while it loads.",
          "Correct `include`/`exclude` of the model, or complete the folder."),
    _kind("weights-unused", _W, "Weight files are carried that the engine does not load",
          "The same weights a second time, or a GGUF of another size: the engine takes what is named.",
          "Leave them out with `include` or `exclude`; if another one is wanted, leave it alone in."),
    _kind("no-weights", _E, "The model has no weights that the engine reads",
          "No safetensors (vLLM) or GGUF (llama.cpp, Ollama) file is left after the filters.",
          "Correct `include`/`exclude`, or choose another repository."),
    _kind("no-config", _E, "The model has no config.json",
          "vLLM cannot tell what the weights are.", "Include config.json."),
    _kind("no-tokenizer", _E, "The model has no tokenizer",
          "Nothing can be looked up behind the gap; the engine does not start.",
          "Include the tokenizer's files, or carry a tokenizer repository and name it with --tokenizer."),
    _kind("no-chat-template", _W, "The model has no chat template",
          "Chat completions answer with an error; plain completions work.",
          "Carry a template and name it with --chat-template, or use a chat-tuned model."),
    _kind("pickle-refused", _E, "A pickle file would be carried",
          "Unpickling runs any code that the file holds. Security reviews refuse it.",
          "Exclude it, use a safetensors revision, or allow it by name with `allow_pickle`."),
    _kind("pickle-allowed", _W, "A pickle file is carried, allowed by name",
          "It runs code when it is loaded; the reviewer is told.", "Scan it; prefer safetensors."),
    _kind("code-in-weights", _W, "A file of a format that can hold code is carried",
          "Keras and TensorFlow files may have Lambda layers or graphs that touch files; most have none."
          " vLLM and llama.cpp do not load them.", "Exclude it; the engine reads safetensors or GGUF."),
    _kind("remote-code", _W, "The model brings Python code of its own",
          "config.json names it in `auto_map`; with --trust-remote-code the engine runs it.",
          "Review the named files; leave trust_remote_code off where the engine knows the model."),
    _kind("adapter-without-base", _W, "An adapter's base model is not in the bundle",
          "adapter_config.json names a base model that no other `models` entry carries.",
          "Carry the base model as well."),
)  # fmt: skip

ENGINE_KINDS = (
    _kind("engine-unread", _W, "The engine's wheel could not be read",
          "Settings and architecture were not compared with what this engine knows.",
          "Run plan again when the index answers; build reads the fetched wheel."),
    _kind("engine-version", _W, "The engine's archive may be another version than the spec says",
          "Reports and receipts would name the wrong one.", "State the version of the archive."),
    _kind("arch-unknown", _E, "The engine does not know the model's architecture",
          "It stops at start with 'not supported' or 'does not recognize this architecture'.",
          "Use the engine version that is named, or a newer one."),
    _kind("arch-removed", _E, "The engine no longer serves the model's architecture",
          "Support was removed in an earlier version.", "Use the last version that served it."),
    _kind("arch-fallback", _W, "The model runs on the generic Transformers backend only",
          "The engine has no implementation of its own; it is slower and may lack features.",
          "Prefer a version that knows the architecture."),
    _kind("format-mismatch", _E, "The engine does not read this weight format",
          "vLLM is given a GGUF, or llama.cpp or Ollama safetensors, or Ollama a GGUF in parts.", "Choose the other engine or model."),
    _kind("env-unknown", _E, "An environment variable that this engine version does not read",
          "It is ignored, at best with a warning: the setting that you count on is not in force.",
          "Correct the name, or leave it out."),
    _kind("env-replaced", _E, "An environment variable that this version no longer reads",
          "It did something in another version; here it is ignored.",
          "Use the replacement that is named."),
    _kind("env-deprecated", _W, "An environment variable that is announced to go",
          "It works in this version.", "Move to the replacement that is named."),
    _kind("env-forces-deepgemm", _E, "A variable that forces DeepGEMM when it is written out",
          "vLLM asks whether VLLM_USE_DEEP_GEMM is set, not only what it is: written out with its"
          " default it forces DeepGEMM, the cause of the 2-4x slower H200s.",
          "Leave it out, or set it to 0, or ask for kernel: deepgemm."),
    _kind("flag-unknown", _E, "A flag that this engine version does not know",
          "The server prints its usage and exits.", "Use the flag that is named, or leave it out."),
    _kind("flag-choice", _E, "A flag with a value that this version does not offer",
          "The server prints its usage and exits.", "Choose one of the values that are named."),
    _kind("flag-clash", _W, "A flag that airbundle sets as well",
          "The later one wins: what the spec's own key says is not in force.",
          "Use the spec's key instead."),
    _kind("kernel-no-switch", _E, "This version has no switch for that kernel",
          "The kernel was chosen by the engine alone.", "Use the version that is named, or kernel auto."),
    _kind("kernel-absent", _E, "The kernel is not in what would be carried",
          "DeepGEMM is not in vLLM's wheels before 0.20.0, and no wheel brings it.",
          "Use another kernel or a newer version, or carry a deep_gemm wheel."),
    _kind("kernel-gpu", _E, "The kernel does not run on that GPU",
          "It needs another compute capability.", "Choose triton or auto."),
    _kind("kernel-format", _E, "The kernel does not take the model's number format",
          "The engine stops at start.", "Choose triton or auto."),
    _kind("kernel-variant", _N, "A variant of the kernel was chosen by GPU",
          "The engine has several under one name in the spec, and each runs on some GPUs only.",
          "Nothing to do; it is set."),
    _kind("kernel-idle", _W, "The kernel setting does nothing for this model",
          "It chooses the kernel of mixture-of-experts layers; this model has none.",
          "Leave kernel out."),
    _kind("kernel-default", _W, "By default this version takes DeepGEMM for the model on this GPU",
          "FP8 mixture-of-experts models ran 2-4x slower with it on H200 in the field.",
          "Set kernel: triton, and measure both with `accept`."),
    _kind("kernel-untuned", _N, "No tuned Triton table for the model's shape on this GPU",
          "The log says 'Using default MoE config. Performance might be sub-optimal!'.",
          "A newer version may have the table; VLLM_TUNED_CONFIG_FOLDER takes one of your own."),
    _kind("kv-dtype-unknown", _E, "A KV-cache type that this engine version does not know",
          "The server prints its usage and exits.", "Choose one of the types that are named."),
    _kind("kv-dtype-backend", _E, "No attention backend serves that KV-cache type on that GPU",
          "The engine stops at start, or falls back.", "Choose another type or backend."),
    _kind("attention-backend", _E, "That attention backend cannot be used here",
          "This version does not know it, or not on that GPU.", "Choose one of those that are named."),
    _kind("quantization-gpu", _W, "The GPU has no hardware for the model's number format",
          "FP8 needs compute capability 8.9, FP4 10.0; the weights are expanded or run through Marlin.",
          "Expect less speed, or choose another quantization."),
    _kind("setting-ignored", _W, "A setting that this engine has no use for",
          "It is not in force.", "Leave it out."),
    _kind("service-name", _E, "The engine takes no model of that name",
          "Clients send the service's name as `model`; the engine answers that there is none.",
          "Give the service another name."),
    _kind("no-api-key", _E, "The engine asks its clients for no key",
          "Ollama has no API key: whoever reaches the address may use it, load and remove its models.",
          "Let it listen on 127.0.0.1, and put a reverse proxy that asks for a key before it; or waive this"
          " where the network guards it."),
    _kind("context-default", _W, "The engine chooses the context length by itself",
          "Ollama takes 4096 tokens, in newer releases 4K, 32K or 256K by the GPU's memory, and cuts what is"
          " longer off the prompt.", "Set max_model_len."),
    _kind("tensor-parallel", _E, "The model cannot be cut like that",
          "Attention heads must be divisible by tensor_parallel, and as many GPUs must be there.",
          "Choose a tensor_parallel that fits."),
    _kind("gpu-unknown", _N, "The GPU is not in the built-in table",
          "Memory and compute capability are unknown; kernel and memory were not judged.",
          "Name it as nvidia-smi does; see docs/findings.md for the table."),
    _kind("gpu-unstated", _N, "The target names no GPU",
          "Kernel, KV-cache type and memory were not judged.", "Add target.gpus."),
)  # fmt: skip

OFFLINE_KINDS = (
    _kind("offline-lookups", _N, "Hub look-ups and telemetry are off",
          "Without a network they cost minutes of time-outs.", "Nothing to do; it is set."),
    _kind("jit-nvcc", _E, "Something is compiled with nvcc at run time",
          "On a host without the CUDA toolkit the engine dies at the first request or at start.",
          "Use the setting or version that is named, or state the tools in target.tools."),
    _kind("jit-avoided", _N, "A kernel that needs nvcc at run time was switched off",
          "Another one, which needs no compiler, is used.", "State target.tools to keep the first."),
    _kind("jit-host-compiler", _W, "Triton needs gcc and Python.h on the host",
          "Its launcher is compiled at the first kernel; without them the engine dies at start.",
          "Install gcc and the python3-dev package there, then state them in target.tools."),
    _kind("cubins-missing", _W, "FlashInfer's compiled kernels are not carried",
          "It would download cubins, which is impossible behind the gap.",
          "Carry flashinfer-cubin of the same version, or avoid FlashInfer's kernels."),
    _kind("companion-mismatch", _E, "Packages that must have the same version do not",
          "flashinfer-cubin and flashinfer-jit-cache must equal flashinfer-python; it stops otherwise.",
          "Pin them to the version that is named."),
    _kind("vocabulary-missing", _E, "A vocabulary would be downloaded at run time",
          "gpt-oss needs o200k_base.tiktoken, which no wheel brings.",
          "Carry the file under `files`, and set TIKTOKEN_ENCODINGS_BASE to its folder."),
    _kind("needs-ray", _W, "Several hosts or Ray are asked for, and ray is not carried",
          "From vLLM 0.18 on ray is no dependency any more.", "Add ray[cgraph] to engine.requirements."),
)  # fmt: skip

NATIVE_KINDS = (
    _kind("glibc-floor", _N, "The target's glibc was not stated",
          "The oldest one that the wheels admit was taken.", "State target.glibc (`ldd --version`)."),
    _kind("glibc-too-old", _E, "A shared object needs a newer glibc than the target has",
          "It was read in the object itself; a wheel's tag may promise less. Loading it fails with"
          " 'version GLIBC_2.xx not found'.", "Choose another version, or a newer target system."),
    _kind("library-missing", _W, "A shared library that no wheel brings",
          "The host must have it, or the import fails with 'cannot open shared object file'.",
          "Install the package that is named on the target, or exclude what needs it."),
    _kind("cuda-too-old", _E, "The target's driver is too old for the CUDA runtime carried",
          "The engine stops with 'CUDA driver version is insufficient'.",
          "Update the driver (it can be carried under `files`), or choose a build for an older CUDA."),
    _kind("driver-needed", _N, "The CUDA runtime carried needs an NVIDIA driver",
          "Preflight checks it on the target.", "State target.cuda or target.driver to check it now."),
    _kind("cuda-minor", _N, "The CUDA runtime is newer than the driver's, of the same major release",
          "It runs: NVIDIA calls it minor version compatibility. What is carried as PTX alone does not:"
          " the driver cannot compile the newer form (CUDA_ERROR_UNSUPPORTED_PTX_VERSION).",
          "Update the driver if a kernel fails to load; else nothing."),
    _kind("object-foreign", _E, "A shared object for another processor",
          "The wheel's tag promises the target's; loading it fails with 'wrong ELF class' or the like.",
          "Choose another version of the package, or tell its maintainers."),
    _kind("object-unreadable", _W, "A shared object that could not be read",
          "Its needs are not known.", "See whether the package works on a machine like the target."),
    _kind("native-unread", _N, "Shared objects are read when their wheels are here",
          "plan reads those in the cache; build reads all of them.", "Run build."),
)  # fmt: skip

FIT_KINDS = (
    _kind("fit-no", _E, "It does not fit into the GPU's memory",
          "Weights and overhead leave no room for the KV cache of one request.",
          "Use more or larger GPUs, a smaller quantization, or offload."),
    _kind("fit-context", _E, "The context does not fit",
          "The KV cache of one request of max_model_len does not fit; vLLM stops at start and says so.",
          "Lower max_model_len to what is named, or choose a smaller kv_cache_dtype."),
    _kind("fit-tight", _W, "It fits, but barely",
          "Fewer than two requests of full length fit at once.", "Lower max_model_len or add memory."),
    _kind("fit-users", _W, "Fewer requests fit at once than acceptance will send",
          "The rest waits in the queue; the time to first token grows.",
          "Lower the concurrency, the lengths, or the KV-cache type."),
    _kind("fit-states", _E, "More sequences than recurrent states that fit",
          "Models with linear layers keep a state for each sequence. vLLM from 0.20 on stops at start:"
          " 'max_num_seqs exceeds available Mamba cache blocks', also with its own default. Before 0.18"
          " it stops with 'assert num_cache_lines >= batch' while it captures CUDA graphs.",
          "Lower max_num_seqs to what is named."),
    _kind("fit-shared", _E, "Services on the same GPU ask for more than it has",
          "The one that starts last finds too little memory free and stops.",
          "Lower gpu_memory_utilization, or give the services GPUs of their own."),
    _kind("acceptance-too-long", _W, "Acceptance sends more tokens than the context holds",
          "The engine refuses such requests, so acceptance fails.",
          "Lower acceptance.input_tokens or output_tokens, or raise max_model_len."),
    _kind("fit-unknown", _N, "Memory could not be calculated",
          "GPU or model shape is not known.", "See the reason."),
    _kind("context-over-model", _E, "max_model_len is more than the model was made for",
          "vLLM refuses it at start.", "Lower it, or set rope scaling as the model card says."),
)  # fmt: skip

SPEC_KINDS = (
    _kind("waiver-unused", _N, "A waiver concerns no error of this plan",
          "What it excused is gone, or its subject is another.",
          "Remove it, so that it excuses nothing new one day."),
)  # fmt: skip

KINDS: dict[str, Kind] = {
    kind.code: kind
    for kind in (
        *MODEL_KINDS,
        *ENGINE_KINDS,
        *OFFLINE_KINDS,
        *NATIVE_KINDS,
        *FIT_KINDS,
        *SPEC_KINDS,
    )
}


def finding(
    code: str,
    subject: str,
    what: str,
    *,
    fix: str = "",
    applied: str = "",
    level: Level | None = None,
) -> Finding:
    """A finding of a known kind; its fix is the kind's remedy when none is given."""
    kind = KINDS[code]
    return Finding(
        code=code,
        level=level or kind.level,
        subject=subject,
        what=what,
        fix=fix or kind.remedy,
        applied=applied,
    )
