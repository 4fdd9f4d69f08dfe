"""Which line of an engine's log names the cause."""

from bundler.deploy.enginelog import telling_line

# In the forms that vLLM 0.32 on CPU writes when a worker dies on the first request.
VLLM = [
    "(APIServer pid=1) WARNING 12-01 06:30:42 [system_utils.py:255] Found ulimit of 20000, error"
    " was: OSError: not permitted",
    "(APIServer pid=1) INFO 12-01 06:31:00 [api_server.py:1] Application startup complete.",
    "(Worker pid=3) ERROR 12-01 06:31:03 [multiproc_executor.py:1063] RuntimeError: Unexpected head"
    " dim size, 32",
    "(EngineCore pid=2) ERROR 12-01 06:31:03 [core.py:1512] RuntimeError: Worker failed with error",
    "(APIServer pid=1) ERROR 12-01 06:31:03 [async_llm.py:906] EngineDeadError: EngineCore"
    " encountered an issue.",
    "INFO:     Application shutdown complete.",
    "resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 2 leaked objects",
]


def test_the_first_exception_is_the_cause_not_its_echoes_nor_a_warning() -> None:
    assert telling_line(VLLM) == VLLM[2]


def test_without_an_exception_the_last_line_about_an_error() -> None:
    said = ["load_model: loading", "error loading model: unknown architecture: 'x'", "exiting"]
    assert telling_line(said) == said[1]


def test_without_any_error_the_last_line_and_silence_is_empty() -> None:
    assert telling_line(["a", "b "]) == "b"
    assert telling_line([]) == ""


def test_an_error_that_speaks_of_a_log_level_is_an_error() -> None:
    said = [
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
    ]
    assert telling_line([*said, "resource_tracker: UserWarning: 2 leaked objects"]) == said[0]
