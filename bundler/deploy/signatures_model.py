"""Known engine failures of memory, model and settings: what the bundle asks for does not work.

Patterns hold upstream's words; a group that is absent shows as `?`. No pattern repeats a wildcard inside a
repetition, so that a hostile line costs no more than its length.
"""

from __future__ import annotations

from bundler.deploy.signature import CAUSE, CONSEQUENCE, Signature, row

MEMORY: tuple[Signature, ...] = (
    row("gpu-busy", r"Free memory on device (?:\S+ )?\(([\d.]+)/([\d.]+) GiB\) on startup is less than"
        r" desired GPU memory utilization \(([\d.]+), ([\d.]+) GiB\)",
        "only {0} of {1} GiB are free on the GPU, and gpu_memory_utilization {2} asks for {3} GiB",
        "`airbundle preflight` names who holds the memory: end that process. Else lower"
        " settings.gpu_memory_utilization.",
        "vllm/v1/worker/utils.py", rank=CAUSE),
    row("kv-no-room", r"No available memory for the cache blocks",
        "the weights leave no GPU memory for the KV cache",
        "Raise settings.gpu_memory_utilization or settings.tensor_parallel, or take a smaller or more"
        " quantized model.",
        "vllm/v1/core/kv_cache_utils.py", rank=CAUSE),
    row("kv-too-small", r"max seq len \((\d+)\), \(?([\d.]+) Gi?B KV cache is needed, which is larger than the"
        r" available KV cache memory \(([\d.]+) Gi?B\)(?:.{0,80}estimated maximum model length is (\d+))?",
        "a context of {0} tokens needs {1} GiB of KV cache, and {2} GiB are left (at most {3} tokens fit)",
        "Lower settings.max_model_len, or halve the cache with settings.kv_cache_dtype: fp8; raising"
        " settings.gpu_memory_utilization or settings.tensor_parallel makes room.",
        "vllm/v1/core/kv_cache_utils.py", rank=CAUSE),
    row("mamba-blocks", r"max_num_seqs \((\d+)\) exceeds available Mamba cache blocks \((\d+)\)",
        "the model keeps a state for each sequence: {0} were asked for, and {1} fit",
        "Set settings.max_num_seqs to the second number or less.",
        "vllm/config/compilation.py", rank=CAUSE),
    row("warmup-oom", r"CUDA out of memory occurred when warming up (?:sampler|pooler)(?: \S{1,40})? with (\d+)"
        r" dummy requests",
        "the GPU's memory ran out while warming up with {0} requests at once",
        "Lower settings.max_num_seqs or settings.gpu_memory_utilization.",
        "vllm/v1/worker/gpu_model_runner.py", rank=CAUSE),
    row("gpu-oom", r"CUDA out of memory\.?(?: Tried to allocate ([\d.]+ [KMG]iB))?|CUDA error: out of memory"
        r"|torch\.(?:cuda\.)?OutOfMemoryError(?!: CUDA out)",
        "the GPU's memory ran out (wanted: {0})",
        "Lower settings.max_num_seqs, settings.max_model_len or settings.gpu_memory_utilization, or raise"
        " settings.tensor_parallel; `airbundle preflight` names what else holds memory there.",
        "torch c10/cuda/CUDACachingAllocator.cpp", engine="both"),
    row("llama-gpu-oom", r"allocating ([\d.]+ MiB) on device (\d+): cudaMalloc failed: out of memory",
        "the memory of GPU {1} ran out: {0} were wanted at once",
        "Lower settings.max_model_len or settings.max_num_seqs, set settings.kv_cache_dtype: q8_0, or take a"
        " smaller quantization; `airbundle preflight` names what else holds memory there.",
        "ggml/src/ggml-cuda/ggml-cuda.cu", engine="llama.cpp", rank=CAUSE),
    row("ollama-memory", r"model requires more system memory \(([\d.]+ \w{1,5})\) than is available"
        r" \(([\d.]+ \w{1,5})\)",
        "the model wants {0} of memory beside what fits on the GPUs, and {1} are free",
        "Lower settings.max_model_len or settings.max_num_seqs, set settings.kv_cache_dtype: q8_0, or take a"
        " smaller quantization; `airbundle preflight` names what else holds memory.",
        "ollama llm/server.go", engine="Ollama", rank=CAUSE),
    row("llama-buffer", r"(?:failed|unable) to allocate (\S{1,60}) buffer",
        "llama.cpp could not have the memory for its {0} buffer",
        "Lower settings.max_model_len or settings.max_num_seqs, set settings.kv_cache_dtype: q8_0, or take a"
        " smaller quantization.",
        "ggml/src/ggml-alloc.c, src/llama-model.cpp", engine="llama.cpp"),
)  # fmt: skip

MODEL: tuple[Signature, ...] = (
    row("arch-transformers", r"has model type `([^`]{1,80})` but Transformers does not recognize this"
        r" architecture",
        "the Transformers library in the bundle does not know the model type {0}",
        "Build the bundle with a newer engine version; `airbundle plan` says which one knows it.",
        "transformers/models/auto/configuration_auto.py", rank=CAUSE),
    row("arch-vllm", r"Model architectures \[?'?([\w', ]{1,120}?)'?\]? (?:are|is) not supported"
        r"|Model architecture (\w{1,80}) was supported in vLLM until",
        "this vLLM version does not serve the model's architecture {0}",
        "Build the bundle with the engine version that `airbundle plan` names.",
        "vllm/model_executor/models/registry.py", rank=CAUSE),
    row("arch-llama", r"unknown model architecture: '([^']{1,80})'",
        "this llama.cpp does not know the model's architecture {0}",
        "Build the bundle with a newer engine version.",
        "llama.cpp src/llama-model.cpp", engine="llama.cpp", rank=CAUSE),
    row("ollama-incompatible", r"this model may be incompatible with your version of Ollama",
        "this Ollama cannot load the model",
        "Build the bundle with a newer engine version, or take another conversion of the model.",
        "ollama server/sched.go", engine="Ollama"),
    row("ollama-runner", r"llama-server binary not found \(checked: (.{1,160}?)\)",
        "Ollama does not find its own runner ({0})",
        "`airbundle verify --installed` compares the release with its bundle; `airbundle install --again` makes"
        " it anew.",
        "ollama llm/llama_server.go", engine="Ollama", rank=CAUSE),
    row("ollama-runner-died", r"llama runner process has terminated: ([^\"]{1,160})",
        "the process that runs the model ended: {0}",
        "The lines before say why; `airbundle logs` shows them.",
        "ollama llm/server.go", engine="Ollama", rank=CONSEQUENCE),
    row("max-len-over", r"User-specified max_model_len \((\d+)\) is greater than the derived max_model_len"
        r" \(([^)]{1,120})\)?",
        "settings.max_model_len {0} is more than the model was made for ({1})",
        "Lower settings.max_model_len to that number; a longer context needs the model's own RoPE scaling.",
        "vllm/config/model.py", rank=CAUSE),
    row("no-weights", r"Cannot find any model weights with `([^`]{1,200})`",
        "there are no weights that vLLM reads in {0}",
        "Correct `include`/`exclude` of the model in the spec and build again.",
        "vllm/model_executor/model_loader/default_loader.py", rank=CAUSE),
    row("safetensors-broken", r"deserializing header: ((?:MetadataIncompleteBuffer|InvalidHeader|HeaderTooLarge"
        r"|HeaderTooSmall)\w{0,40})",
        "a safetensors file is cut short or is none ({0})",
        "Run `airbundle verify --quick` here; when the files are as they were built, fetch the model again.",
        "safetensors/src/tensor.rs", rank=CAUSE),
    row("gguf-broken", r"gguf_init_from_\w{1,20}: (invalid magic [^,]{1,60}|failed to read [\w -]{1,40})",
        "the model file is no whole GGUF: {0}",
        "Run `airbundle verify --quick` here; when the file is as it was built, fetch the model again.",
        "ggml/src/gguf.cpp", engine="llama.cpp", rank=CAUSE),
    row("gguf-unreadable", r"failed to open GGUF file '([^']{1,200})' \(([\w ]{1,60})\)",
        "the model file {0} cannot be opened: {1}",
        "Run `airbundle verify --quick` here; `airbundle install` repairs a release that was moved or changed.",
        "ggml/src/gguf.cpp", engine="llama.cpp", rank=CAUSE),
    row("gguf-truncated", r"tensor '([^']{1,120})' data is not within the file bounds",
        "the GGUF file is cut short: tensor {0} lies past its end",
        "Run `airbundle verify --quick` here; when the file is as it was built, fetch the model again.",
        "llama.cpp src/llama-model-loader.h", engine="llama.cpp", rank=CAUSE),
    row("gguf-tensor", r"error loading model: (?:missing tensor '([^']{1,120})'|(?:\w{1,40}: )?tensor '([^']{1,120})'"
        r" not found)",
        "the GGUF lacks tensor {0}: it was made for another llama.cpp version, or a part is missing",
        "Build the bundle with a newer engine version, or take another conversion of the model.",
        "llama.cpp src/llama-model-loader.cpp", engine="llama.cpp", rank=CAUSE),
    row("remote-code", r"contains custom code which must be executed|requires you to execute the (?:configuration|model)"
        r" file|pass the argument `trust_remote_code=True`",
        "the model brings Python code of its own, and the engine may not run it",
        "Review that code (`airbundle plan` names the files), then add --trust-remote-code to settings.args.",
        "transformers/dynamic_module_utils.py", rank=CAUSE),
    row("hub-offline", r"outgoing traffic has been disabled|LocalEntryNotFoundError"
        r"|We couldn't connect to '(https?://[^']{1,80})'|Failed to resolve '([\w.-]{1,80})'"
        r"|OfflineModeIsEnabled",
        "the engine looked for a file on the Hub, and there is no network ({0})",
        "The lines before name the file: carry it (`models`, `include`) and name it by its folder in"
        " settings.args; `airbundle plan` finds the known look-ups before the trip.",
        "huggingface_hub/file_download.py, transformers/utils/hub.py"),
)  # fmt: skip

SETTINGS: tuple[Signature, ...] = (
    row("args-vllm", r"error: (unrecognized arguments: .{1,160}|argument -[^:]{1,80}: .{1,160})",
        "vLLM refuses its command line: {0}",
        "Correct settings.args in the spec; `airbundle plan` knows the flags of this engine version.",
        "Python's argparse, vllm/utils/argparse_utils.py", rank=CAUSE),
    row("args-llama", r"error: (invalid argument: .{1,160})|error while handling argument (\"[^\"]{1,80}\".{0,160})",
        "llama-server refuses its command line: {0}",
        "Correct settings.args (or settings.kv_cache_dtype) in the spec; `llama-server --help` lists what this"
        " version takes.",
        "llama.cpp common/arg.cpp", engine="llama.cpp", rank=CAUSE),
    row("tp-heads", r"[Tt]otal number of attention heads \((\d+)\) must be divisible by tensor parallel size"
        r" \((\d+)\)",
        "{0} attention heads cannot be shared among {1} GPUs",
        "Set settings.tensor_parallel to a divisor of the first number.",
        "vllm/config/model.py", rank=CAUSE),
    row("tp-size", r"AssertionError: (\d+) is not divisible by (\d+)"
        r"|is not divisible by weight quantization block_[nk] = (\d+)",
        "a dimension of the model cannot be shared evenly among the GPUs",
        "Lower settings.tensor_parallel (1, 2 or 4).",
        "vllm/distributed/utils.py, vllm/model_executor/layers/quantization/utils/fp8_utils.py", rank=CAUSE),
    row("head-size", r"[Hh]ead[ _]size (\d+) is not supported by (\w{1,40})"
        r"|FlashAttention only supports head dimension at most (\d+)"
        r"|Unexpected head dim(?:ension)?(?: size)?,? (\d+)|Unsupported CPU attention configuration: head_dim=(\d+)"
        r"|does not support headdim not being a multiple of (\d+)",
        "the attention kernel does not take the model's head size ({0})",
        "Choose another kernel: --attention-backend TRITON_ATTN (or FLEX_ATTENTION) in settings.args; on CPU"
        " take another model or engine version.",
        "vllm/v1/attention/backends/, flash-attention csrc/flash_attn/flash_api.cpp, vllm#39065", rank=CAUSE),
    row("attention-none", r"No valid attention backend found for (\w{1,40}) with .{0,300}?kv_cache_dtype=(\w{1,40})",
        "no attention backend serves this model with KV-cache type {1} on this GPU",
        "Set settings.kv_cache_dtype: auto, or drop --attention-backend from settings.args.",
        "vllm/platforms/cuda.py", rank=CAUSE),
    row("deepgemm-absent", r"DeepGEMM backend is not available or outdated",
        "DeepGEMM was asked for, and the bundle has none that works",
        "Set settings.kernel: triton, or VLLM_USE_DEEP_GEMM: 0 in settings.env; `airbundle plan` says whether"
        " the engine's wheel holds DeepGEMM.",
        "vllm/utils/deep_gemm.py", rank=CAUSE),
    row("v-cache-flash", r"V cache quantization requires flash_attn|quantized V cache (?:was requested, but this requires"
        r" Flash Attention|requires flash_attn to be enabled)",
        "a quantized KV cache needs Flash Attention, and it is off",
        "Drop `-fa off` from settings.args, or set settings.kv_cache_dtype: f16.",
        "llama.cpp src/llama-context.cpp", engine="llama.cpp", rank=CAUSE),
)  # fmt: skip
