"""Lines of failed engines in upstream's form: the row each one belongs to, and what its meaning says."""

CORE = "(EngineCore pid=92) ERROR 12-02 10:00:01 [core.py:866] "
API = "(APIServer pid=1) "

# Row, lines, words of the meaning.
SAMPLES: list[tuple[str, list[str], str]] = [
    ("gpu-busy", [CORE + "ValueError: Free memory on device cuda:0 (7.34/15.49 GiB) on startup is less than desired GPU"
                  " memory utilization (0.9, 13.94 GiB). Decrease GPU memory utilization or reduce GPU memory used by"
                  " other processes."], "only 7.34 of 15.49 GiB"),
    ("gpu-busy", ["ValueError: Free memory on device (3.27/15.98 GiB) on startup is less than desired GPU memory"
                  " utilization (0.9, 14.39 GiB)."], "asks for 14.39 GiB"),
    ("kv-no-room", [CORE + "ValueError: No available memory for the cache blocks. Try increasing"
                    " `gpu_memory_utilization` when initializing the engine."], "leave no GPU memory"),
    ("kv-too-small", [CORE + "ValueError: To serve at least one request with the models's max seq len (262144), (16.0"
                      " GiB KV cache is needed, which is larger than the available KV cache memory (9.6 GiB). Based on"
                      " the available memory, the estimated maximum model length is 157216. Try increasing"
                      " `gpu_memory_utilization` or decreasing `max_model_len`"], "at most 157216"),
    ("kv-too-small", ["ValueError: To serve at least one request with the model's max seq len (2048), 0.28 GiB KV cache"
                      " is needed, which is larger than the available KV cache memory (0.17 GiB). Try"], "2048 tokens"),
    ("mamba-blocks", ["ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (854). Each decode"],
     "854 fit"),
    ("warmup-oom", ["RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please"
                    " try lowering `max_num_seqs` or `gpu_memory_utilization`"], "256 requests"),
    ("gpu-oom", [CORE + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total"
                 " capacity of 23.43 GiB of which 512.00 MiB is free."], "1.16 GiB"),
    ("gpu-oom", ["CUDA error: out of memory"], "ran out"),
    ("llama-gpu-oom", ["ggml_backend_cuda_buffer_type_alloc_buffer: allocating 12306.50 MiB on device 0: cudaMalloc"
                       " failed: out of memory",
                       "alloc_tensor_range: failed to allocate CUDA0 buffer of size 12904300544",
                       "llama_model_load: error loading model: unable to allocate CUDA0 buffer"], "12306.50 MiB"),
    ("llama-buffer", ["ggml_gallocr_reserve_n: failed to allocate CPU buffer of size 12306496768"], "CPU buffer"),
    ("llama-buffer", ["llama_model_load: error loading model: unable to allocate Vulkan0 buffer"], "Vulkan0"),
    ("arch-transformers", [API + "  Value error, The checkpoint you are trying to load has model type `gemma4` but"
                           " Transformers does not recognize this architecture. This could be because"], "gemma4"),
    ("arch-vllm", ["ValueError: Model architectures ['DbrxForCausalLM'] are not supported for now. Supported"
                   " architectures: dict_keys(['AquilaModel'])"], "DbrxForCausalLM"),
    ("arch-vllm", ["ValueError: Model architecture MotifForCausalLM was supported in vLLM until v0.10.2, and is not"
                   " supported anymore."], "MotifForCausalLM"),
    ("port-in-use", ["Error: listen tcp 127.0.0.1:11434: bind: address already in use"], "port"),
    ("ollama-memory", ['time=2026-06-01T10:00:01.000+09:00 level=INFO source=sched.go:500 msg="Load failed"'
                       ' model=/r/blobs/sha256-ab error="model requires more system memory (8.4 GiB) than is available'
                       ' (7.7 GiB)"',
                       'time=2026-06-01T10:00:01.000+09:00 level=ERROR source=routes.go:1 msg="model requires more'
                       ' system memory (8.4 GiB) than is available (7.7 GiB)"'], "8.4 GiB"),
    ("ollama-incompatible", ['time=2026-06-01T10:00:01.000+09:00 level=ERROR source=sched.go:388 msg="error loading llama'
                             ' server" error="failed to load model: this model may be incompatible with your version of'
                             ' Ollama. If you previously pulled this model, try updating it"'], "cannot load"),
    ("ollama-runner", ['time=2026-06-01T10:00:01.000+09:00 level=ERROR source=sched.go:388 msg="error loading llama'
                       ' server" error="llama-server binary not found (checked: /r/lib/ollama/llama-server). Run"'],
     "/r/lib/ollama"),
    ("ollama-runner-died", ['time=2026-06-01T10:00:01.000+09:00 level=ERROR source=sched.go:388 msg="error loading llama'
                            ' server" error="llama runner process has terminated: exit status 2"'], "exit status 2"),
    ("arch-llama", ["llama_model_load: error loading model: error loading model architecture: unknown model"
                    " architecture: 'qwen35'"], "qwen35"),
    ("max-len-over", [API + "  Value error, User-specified max_model_len (65536) is greater than the derived"
                      " max_model_len (max_position_embeddings=32768.0 or model_max_length=None in model's config.json)."
                      " To allow overriding this maximum"], "65536"),
    ("no-weights", ["RuntimeError: Cannot find any model weights with `/srv/ai/releases/x/models/y`"], "/srv/ai"),
    ("safetensors-broken", ["safetensors_rust.SafetensorError: Error while deserializing header:"
                            " MetadataIncompleteBuffer"], "MetadataIncompleteBuffer"),
    ("safetensors-broken", [CORE + "safetensors_rust.SafetensorError: Error while deserializing header:"
                            " InvalidHeaderDeserialization"], "InvalidHeaderDeserialization"),
    ("gguf-broken", ["gguf_init_from_file_impl: invalid magic characters: 'vers', expected 'GGUF'",
                     "llama_model_load: error loading model: llama_model_loader: failed to load model from m.gguf"],
     "invalid magic"),
    ("gguf-broken", ["gguf_init_from_file_impl: failed to read key-value pairs"], "key-value pairs"),
    ("gguf-unreadable", ["0.00.008.400 E gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or"
                         " directory)"], "/m.gguf cannot be opened: No such file"),
    ("gguf-truncated", ["llama_model_load: error loading model: tensor 'blk.54.ffn_down_exps.weight' data is not within"
                        " the file bounds, model is corrupted or incomplete"], "blk.54"),
    ("gguf-tensor", ["llama_model_load: error loading model: missing tensor 'blk.64.attn_norm.weight'"], "blk.64"),
    ("gguf-tensor", ["llama_model_load: error loading model: check_tensor_dims: tensor 'token_embd.weight' not found"],
     "token_embd"),
    ("remote-code", ["ValueError: The repository /m contains custom code which must be executed to correctly load the"
                     " model. You can inspect the repository content at https://hf.co//m"], "Python code"),
    ("hub-offline", ["huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache"
                     " and outgoing traffic has been disabled."], "no network"),
    ("hub-offline", ["OSError: We couldn't connect to 'https://huggingface.co' to load the files"], "huggingface.co"),
    ("args-vllm", ["vllm serve: error: unrecognized arguments: --num-scheduler-steps=8"], "--num-scheduler-steps=8"),
    ("args-vllm", ["vllm serve: error: argument --kv-cache-dtype: invalid choice: 'int8' (choose from 'auto')"], "int8"),
    ("args-llama", ["error: invalid argument: --no-mmap"], "--no-mmap"),
    ("args-llama", ['error while handling argument "-fa": error: unknown value for --flash-attn: \'--host\''], "-fa"),
    ("tp-heads", [API + "  Value error, Total number of attention heads (32) must be divisible by tensor parallel size"
                  " (3)."], "among 3 GPUs"),
    ("tp-size", [CORE + "AssertionError: 151936 is not divisible by 3"], "evenly"),
    ("tp-size", ["ValueError: Weight output_partition_size = 64 is not divisible by weight quantization block_n = 128."],
     "evenly"),
    ("head-size", ["ValueError: Head size 288 is not supported by FlashAttention. Supported head sizes are: [32]"], "288"),
    ("head-size", ["RuntimeError: FlashAttention only supports head dimension at most 256"], "256"),
    ("head-size", [CORE + "RuntimeError: Unexpected head dim size, 32"], "32"),
    ("head-size", ["RuntimeError: Unsupported CPU attention configuration: head_dim=512 isa=1"], "512"),
    ("head-size", [CORE + "RuntimeError: Worker failed with error 'This flash attention build does not support headdim"
                   " not being a multiple of 32.'"], "32"),
    ("attention-none", ["ValueError: No valid attention backend found for cuda with AttentionSelectorConfig("
                        "head_size=192, dtype=torch.bfloat16, kv_cache_dtype=fp8, block_size=None, use_mla=True)"], "fp8"),
    ("deepgemm-absent", [CORE + "RuntimeError: DeepGEMM backend is not available or outdated. Please install or update"
                         " the `deep_gemm` to a newer version to enable FP8 kernels."], "DeepGEMM"),
    ("v-cache-flash", ["llama_init_from_model: V cache quantization requires flash_attn"], "Flash Attention"),
    ("v-cache-flash", ["llama_init_from_model: failed to initialize the context: quantized V cache was requested, but"
                       " this requires Flash Attention"], "Flash Attention"),
    ("nvcc-missing", [CORE + "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"],
     "no nvcc"),
    ("nvcc-missing", ["OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root."],
     "no nvcc"),
    ("nvcc-missing", ["/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found"], "no nvcc"),
    ("nvcc-missing", ["    assert cuda_home is not None", "AssertionError"], "no nvcc"),
    ("ninja-missing", ["RuntimeError: Ninja is required to load C++ extensions"], "no ninja"),
    ("ninja-missing", ["FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"], "no ninja"),
    ("compiler-missing", ["RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set"
                          " triton.knobs.build.impl."], "C compiler"),
    ("python-headers", ["/tmp/tmpx/cuda_utils.c:5:10: fatal error: Python.h: No such file or directory"], "Python.h"),
    ("cudart-missing", ["ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"],
     "libcudart.so.12"),
    ("cudart-missing", ["WARNING 12-02 10:00:00 [cuda.py:22] Failed to import from vllm._C with ImportError('libcudart"
                        ".so.13: cannot open shared object file: No such file or directory')"], "libcudart.so.13"),
    ("library-missing", ["llama-server: error while loading shared libraries: libgomp.so.1: cannot open shared object"
                         " file: No such file or directory"], "libgomp.so.1"),
    ("glibc-old", ["ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by x.so)"],
     "GLIBC_2.34"),
    ("libstdcxx-old", ["ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.30' not found"], "GLIBCXX_3.4.30"),
    ("libstdcxx-old", ["ImportError: /lib64/libstdc++.so.6: version `CXXABI_1.3.15' not found"], "CXXABI_1.3.15"),
    ("noexec", ["ImportError: /srv/x/_C.abi3.so: failed to map segment from shared object"], "noexec"),
    ("illegal-instruction", ["Illegal instruction (core dumped)"], "processor"),
    ("driver-old", ["/x/torch/cuda/__init__.py:180: UserWarning: CUDA initialization: The NVIDIA driver on your system is"
                    " too old (found version 12080). Please update your GPU driver",
                    "RuntimeError: Failed to infer device type, please set the environment variable"], "12080"),
    ("driver-old", ["ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime"
                    " version"], "driver"),
    ("driver-old", ["torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported toolchain."],
     "driver"),
    ("driver-mismatch", ["Failed to initialize NVML: Driver/library version mismatch"], "kernel module"),
    ("no-kernel-image", ["RuntimeError: CUDA error: no kernel image is available for execution on the device"],
     "compute capability"),
    ("no-gpu", ["RuntimeError: No CUDA GPUs are available"], "no GPU"),
    ("no-gpu", ["RuntimeError: Failed to infer device type"], "no GPU"),
    ("nccl-shm", ["host:168:168 [0] misc/shmutils.cc:113 NCCL WARN Error while creating shared memory segment"
                  " /dev/shm/nccl-UbzKZ9 (size 9637888), error: No space left on device (28)",
                  CORE + "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"],
     "/dev/shm/nccl-UbzKZ9"),
    ("nccl", [CORE + "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"],
     "unhandled system error"),
    ("port-in-use", ["OSError: [Errno 98] Address already in use"], "listens"),
    ("port-in-use", ["ERROR: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in"
                     " use"], "listens"),
    ("port-in-use", ["srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080"], "listens"),
    ("open-files", ["zmq.error.ZMQError: Too many open files"], "files"),
    ("disk-full", ["OSError: [Errno 28] No space left on device: '/srv/x/cache'"], "disk is full"),
]  # fmt: skip
