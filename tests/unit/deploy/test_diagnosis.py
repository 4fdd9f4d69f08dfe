"""A failed engine's log names its cause by the table of known failures."""

import time

import pytest

from bundler.deploy.diagnosis import LONGEST_LINE, SIGNATURES, diagnose
from tests.unit.deploy.enginelogs import API, CORE, SAMPLES

AFTERMATH = [
    "Traceback (most recent call last):",
    API
    + "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
]
HEALTHY = [
    "(APIServer pid=1) INFO 12-02 10:00:00 [utils.py:233] non-default args: {'max_model_len': 4096}",
    "(APIServer pid=1) WARNING 12-02 10:00:00 [system_utils.py:255] Found ulimit of 20000 and failed to"
    " automatically increase with error current limit exceeds maximum limit. This can cause fd limit errors like"
    " `OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n",
    "(EngineCore pid=92) INFO 12-02 10:00:09 [cuda.py:405] Using FLASH_ATTN attention backend out of potential"
    " backends: ['FLASH_ATTN', 'FLASHINFER', 'TRITON_ATTN', 'FLEX_ATTENTION'].",
    "(EngineCore pid=92) WARNING 12-02 10:00:09 [fused_moe.py:886] Using default MoE config. Performance might be"
    " sub-optimal!",
    "(EngineCore pid=92) INFO 12-02 10:00:30 [gpu_worker.py:456] Available KV cache memory: 62.13 GiB",
    "INFO:     Application startup complete.",
    "llama_model_loader: - kv 0: general.architecture str = qwen3",
    "load_tensors:   CPU_Mapped model buffer size =   604.15 MiB",
    'time=2026-06-01T10:00:00.000+09:00 level=WARN source=server.go:1 msg="unsupported OLLAMA_KV_CACHE_TYPE" type=q8_0',
    'time=2026-06-01T10:00:00.000+09:00 level=INFO source=server.go:2 msg="waiting for llama runner to start responding"',
    "main: server is listening on http://127.0.0.1:8000 - starting the main loop",
    'INFO:     127.0.0.1:51234 - "GET /health HTTP/1.1" 200 OK',
]


@pytest.mark.parametrize(("name", "lines", "words"), SAMPLES)
def test_a_known_failure_is_named_with_its_numbers(name: str, lines: list[str], words: str) -> None:
    found = diagnose(HEALTHY + lines + AFTERMATH)
    assert found is not None
    assert found.name == name
    assert words in found.meaning
    assert found.fix


@pytest.mark.parametrize(("name", "lines", "words"), SAMPLES)
def test_a_sample_fits_without_its_log_around_it(name: str, lines: list[str], words: str) -> None:
    found = diagnose(lines)
    assert found is not None
    assert found.name == name


def test_a_healthy_log_and_an_empty_one_have_no_diagnosis() -> None:
    assert diagnose(HEALTHY) is None
    assert diagnose([]) is None


def test_an_unknown_failure_stays_unknown() -> None:
    assert diagnose([*HEALTHY, CORE + "RuntimeError: a thing nobody has seen", *AFTERMATH]) is None


def test_the_cause_is_told_not_what_follows_from_it() -> None:
    oom = CORE + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    core = CORE + "EngineCore failed to start."
    sampler = (
        CORE
        + "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."
    )
    told = diagnose([core, oom, *AFTERMATH])
    assert told is not None
    assert told.name == "gpu-oom"
    told = diagnose([core, oom, sampler, *AFTERMATH])
    assert told is not None
    assert told.name == "warmup-oom"


def test_a_dead_worker_of_many_does_not_hide_the_first_ones_cause() -> None:
    first = "(Worker_TP0 pid=3) ERROR RuntimeError: Could not find nvcc"
    others = [
        "(Worker_TP1 pid=4) ERROR RuntimeError: NCCL error: remote process exited or there was an error"
    ]
    told = diagnose([*others, first, *others])
    assert told is not None
    assert told.name == "nvcc-missing"


def test_a_warning_about_a_library_is_no_cause_when_an_error_names_one() -> None:
    warned = "WARNING 12-02 10:00:00 [x.py:1] ImportError('libnuma.so.1: cannot open shared object file')"
    oom = CORE + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    told = diagnose([warned, oom])
    assert told is not None
    assert told.name == "gpu-oom"


@pytest.mark.parametrize(
    "line",
    [
        "x" * 5_000_000,
        "max seq len (" + "1" * 100_000,
        "NCCL error" + ":" * 100_000,
        "error: argument -" + "-" * 100_000,
        ("Model architectures ['" + "A', '" * 50_000),
        "No valid attention backend found for cuda with " * 5_000,
        "(" * 100_000,
        "\x1b[31m\x00" * 100_000,
    ],
)
def test_a_hostile_line_costs_little(line: str) -> None:
    began = time.process_time()
    diagnose([line] * 1000 + [line + "!"])
    assert time.process_time() - began < 1


def test_a_log_of_128_kib_is_read_in_no_time() -> None:
    lines = [
        f'{CORE}  File "/x/{n}.py", line {n}, in forward error: unable to' for n in range(1500)
    ]
    began = time.process_time()
    assert diagnose(lines) is None
    assert time.process_time() - began < 3


def test_what_is_shown_moves_no_cursor_and_is_short() -> None:
    told = diagnose(["unknown model architecture: '\x1b[2J\x07" + "a" * 60 + "'" + "b" * 1000])
    assert told is not None
    assert told.meaning.isprintable()
    assert told.line.isprintable()
    assert len(told.line) <= LONGEST_LINE


def test_braces_of_a_log_are_no_placeholders() -> None:
    told = diagnose(["error: invalid argument: {0}{name}"])
    assert told is not None
    assert "{0}{name}" in told.meaning


def test_every_meaning_takes_the_groups_of_its_pattern() -> None:
    for row in SIGNATURES:
        assert row.meaning.format(*["x"] * row.pattern.groups)
