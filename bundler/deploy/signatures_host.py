"""Known engine failures of the host: what is missing there, too old, or taken."""

from __future__ import annotations

from bundler.deploy.signature import CAUSE, CONSEQUENCE, Signature, row

COMPILERS: tuple[Signature, ...] = (
    row("nvcc-missing", r"Could not find nvcc|CUDA_HOME environment variable is not set"
        r"|No such file or directory: '(?:[^']{0,120}/)?nvcc'|(?:^|[ /])nvcc: (?:command )?not found"
        r"|assert cuda_home is not None",
        "the engine wants to compile a CUDA kernel here, and there is no nvcc",
        "`airbundle plan` finds it before the trip and adds what spares it; else set settings.kernel: triton,"
        " --gdn-prefill-backend triton in settings.args, VLLM_USE_FLASHINFER_SAMPLER: 0 in settings.env.",
        "flashinfer/jit/cpp_ext.py, torch/utils/cpp_extension.py, deep_gemm/__init__.py, vllm#49497", rank=CAUSE),
    row("ninja-missing", r"Ninja is required to load C\+\+ extensions|No such file or directory: 'ninja'",
        "the engine wants to compile a kernel here, and there is no ninja",
        "Add ninja to engine.requirements in the spec, or switch off what compiles (see `airbundle plan`).",
        "torch/utils/cpp_extension.py, flashinfer/jit/cpp_ext.py", rank=CAUSE),
    row("compiler-missing", r"Failed to find C compiler|No such file or directory: '(?:gcc|cc|g\+\+|c\+\+)'"
        r"|InvalidCxxCompiler: No working C\+\+ compiler found",
        "Triton or torch.compile wants a C compiler, and the host has none",
        "Install gcc and g++ on the host (`airbundle preflight` checks it), or add --enforce-eager to"
        " settings.args where only torch.compile needs it.",
        "triton/runtime/build.py, torch/_inductor/exc.py", rank=CAUSE),
    row("python-headers", r"fatal error: Python\.h: No such file or directory",
        "Triton compiles a launcher against Python.h, and the host's Python has no headers",
        "Install the headers of that Python (python3-dev, python3-devel), or carry a Python of airbundle's own"
        " (it has them).",
        "vllm#27890", rank=CAUSE),
)  # fmt: skip

LIBRARIES: tuple[Signature, ...] = (
    row("cudart-missing", r"(libcudart\.so\.[\d.]{1,12}): cannot open shared object file",
        "the engine was built for another CUDA than the one in the bundle: {0} is missing",
        "Build the bundle with an engine and torch of one CUDA version; `airbundle plan` names"
        " libraries that no wheel brings.",
        "vllm#31018, vllm#52300", rank=CAUSE, warned=True),
    row("library-missing", r"([\w.+-]{1,80}\.so[\d.]{0,16}): cannot open shared object file",
        "the library {0} is missing on the host",
        "Install the system package that has it; `airbundle preflight` names what the bundle needs.",
        "glibc elf/dl-load.c", engine="both", rank=CAUSE, warned=True),
    row("glibc-old", r"version `(GLIBC_[\d.]{1,12})' not found",
        "the host's C library is too old: {0} is wanted",
        "Build for this target (target.glibc in the spec chooses older wheels), or use a newer system;"
        " `airbundle preflight` compares them.",
        "glibc elf/dl-version.c, vllm#39609", engine="both", rank=CAUSE, warned=True),
    row("libstdcxx-old", r"version `((?:GLIBCXX|CXXABI)_[\d.]{1,12})' not found",
        "the host's libstdc++ is too old: {0} is wanted",
        "Install a newer libstdc++6 on the host, or carry wheels for an older one; `airbundle preflight`"
        " compares them.",
        "glibc elf/dl-version.c", engine="both", rank=CAUSE, warned=True),
    row("noexec", r"failed to map segment from shared object",
        "the folder of the release, or of its temporary files, is mounted noexec",
        "Put the root on a file system without noexec, or remount it; `TMPDIR` counts too.",
        "glibc elf/dl-load.c", engine="both", rank=CAUSE, warned=True),
    row("illegal-instruction", r"Illegal instruction",
        "the engine uses processor instructions that this CPU lacks",
        "Build the bundle with an engine for this CPU (without AVX2 or AVX-512).",
        "llama.cpp#8734", engine="both", rank=CAUSE),
)  # fmt: skip

GPU: tuple[Signature, ...] = (
    row("driver-old", r"The NVIDIA driver on your system is too old \(found version (\d+)\)"
        r"|CUDA driver version is insufficient for CUDA runtime version"
        r"|provided PTX was compiled with an unsupported toolchain",
        "the NVIDIA driver is older than the engine's CUDA needs (found: {0})",
        "Install a newer driver, or build with an engine for an older CUDA; `airbundle preflight` says which"
        " driver the bundle needs.",
        "torch/csrc/cuda/Module.cpp, CUDA driver error strings", engine="both", rank=CAUSE, warned=True),
    row("driver-mismatch", r"Driver/library version mismatch",
        "the NVIDIA driver was updated and the old kernel module still runs",
        "Reboot the host, or reload the nvidia modules.",
        "NVML error strings", engine="both", rank=CAUSE, warned=True),
    row("no-kernel-image", r"no kernel image is available for execution on the device",
        "the engine holds no code for this GPU's compute capability",
        "Build the bundle with an engine version, or a package of it, that is made for this GPU.",
        "CUDA error strings, vllm#18835", engine="both", rank=CAUSE),
    row("no-gpu", r"No CUDA GPUs are available|Failed to infer device type|no CUDA-capable device is detected"
        r"|Found no NVIDIA driver on your system",
        "the engine sees no GPU",
        "Run `airbundle preflight`: driver, GPUs and MIG. Check `gpus` of the service and CUDA_VISIBLE_DEVICES.",
        "torch/csrc/cuda/Module.cpp, vllm/config/device.py", engine="both", rank=CONSEQUENCE),
    row("nccl-shm", r"Error while creating shared memory segment (/dev/shm/[\w.-]{1,40})"
        r"|failed to extend (/dev/shm/nccl[\w.-]{1,40})",
        "the GPUs talk through /dev/shm, and it is too small ({0})",
        "Enlarge /dev/shm (mount -o remount,size=16G /dev/shm), remove stale /dev/shm/nccl-* files, or set"
        " NCCL_SHM_DISABLE: 1 in settings.env.",
        "nccl src/misc/shmutils.cc, vllm#11054", rank=CAUSE, warned=True),
    row("nccl", r"NCCL error.{0,160}?(unhandled (?:system|cuda) error|internal error|remote process exited)",
        "the GPUs of one service cannot talk to each other: {0}",
        "Set NCCL_DEBUG: INFO in settings.env and look at the lines before; `airbundle preflight` shows the"
        " links. A settings.tensor_parallel of 1 needs none.",
        "nccl src/init.cc, vllm/distributed/device_communicators/pynccl_wrapper.py", rank=CONSEQUENCE),
)  # fmt: skip

LIMITS: tuple[Signature, ...] = (
    row("port-in-use", r"[Aa]ddress already in use"
        r"|couldn't bind HTTP server socket, hostname: \S{1,80}, port: (\d+)",
        "something else listens on the service's port",
        "Find it with `ss -ltnp`, end it, or give the service another `port`.",
        "Python's asyncio, llama.cpp tools/server/server-http.cpp", engine="both", rank=CAUSE),
    row("open-files", r"Too many open files",
        "the engine may not open more files",
        "Raise the limit: `ulimit -n 65536` before `airbundle start`, or LimitNOFILE= in its unit.",
        "errno 24, vllm#7920", engine="both", rank=CAUSE),
    row("disk-full", r"No space left on device",
        "a disk is full, or /dev/shm",
        "`df -h` shows which; the engine writes to the root's cache folder, to TMPDIR and to /dev/shm.",
        "errno 28", engine="both"),
)  # fmt: skip
