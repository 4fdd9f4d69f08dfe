"""EngineFacts from sources in the forms that vLLM's files have: written here, put into real wheels."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from importlib.resources import files

import pytest

from bundler.adapters.engine_llamacpp.adapter import LlamaCppEngine
from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.adapter import VllmEngine
from bundler.domain.engine_facts import EngineFacts
from bundler.errors import IntegrityError

REGISTRY = """
_TEXT_GENERATION_MODELS = {
    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
    "OddForCausalLM": compute(),
}
_MULTIMODAL_MODELS: dict[str, tuple[str, str]] = {
    "SeeForConditionalGeneration": ("vllm.models.see", "See"),
}
_TRANSFORMERS_BACKEND_MODELS = {
    "TransformersForCausalLM": ("transformers", "TransformersForCausalLM"),
}
_PREVIOUSLY_SUPPORTED_MODELS = {"OldForCausalLM": "0.10.2"}
_VLLM_MODELS = {**_TEXT_GENERATION_MODELS, **_MULTIMODAL_MODELS}
OTHER = {"NotForCausalLM": ("x", "y")}
"""
ENVS = """
import os
if TYPE_CHECKING:
    VLLM_USE_X: bool = True
environment_variables: dict = {
    "VLLM_USE_X": lambda: bool(int(os.getenv("VLLM_USE_X", "1"))),
    "VLLM_PORT": get_vllm_port,
    "VLLM_HOST_IP": lambda: os.getenv("VLLM_HOST_IP", ""),
    "VLLM_LEVEL": env_with_choices("VLLM_LEVEL", "high", ["high", "low"]),
    "VLLM_NONE": lambda: os.environ.get("VLLM_NONE", None),
    "VLLM_OLD": deprecated_env("VLLM_OLD", lambda: 1, "use --new"),
    "CUDA_HOME": lambda: os.environ.get("CUDA_HOME"),
}
"""
CONFIG = """
CacheDType = Literal["auto", "fp8"]
MoEBackend = Literal["auto", "triton", "deep_gemm"]
Extended = MoEBackend | Literal["marlin"]
@config
class Base:
    inherited: Literal["a", "b"] = "a"
@config
class CacheConfig(Base):
    cache_dtype: CacheDType = "auto"
    moe: Extended = "auto"
    enable: bool | None = None
    size: int = 0
    unknown: Elsewhere = None
    maybe: Literal["x"] | None = None
    quoted: "Literal['q']" = "q"
    advised: Mode | str = "a"
    optional: Optional[Literal["o"]] = None
    several: list[Literal["model", "worker"]] | None = None
    token: bool | str | None = None
    wrapped: Annotated[Literal["stream"], 1] = "stream"
"""
ARGS = """
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        cache_kwargs = get_kwargs(CacheConfig)
        group = parser.add_argument_group(title="x")
        group.add_argument("--kv-cache-dtype", **cache_kwargs["cache_dtype"])
        moe_kwargs = cache_kwargs["moe"]
        moe_kwargs["type"] = lambda s: s.lower()
        group.add_argument("--moe-backend", "-mb", **moe_kwargs)
        group.add_argument("--enable-thing", **{**cache_kwargs["enable"], "default": None})
        group.add_argument("--size", **cache_kwargs["size"])
        group.add_argument("--elsewhere", **cache_kwargs["unknown"])
        group.add_argument("--maybe", **get_kwargs(CacheConfig)["maybe"])
        group.add_argument("--inherited", **cache_kwargs["inherited"])
        group.add_argument("--quoted", **cache_kwargs["quoted"])
        group.add_argument("--advised", **cache_kwargs["advised"])
        group.add_argument("--optional", **cache_kwargs["optional"])
        group.add_argument("--several", **cache_kwargs["several"])
        group.add_argument("--token", **cache_kwargs["token"])
        group.add_argument("--wrapped", **cache_kwargs["wrapped"])
        group.add_argument("--literal", choices=["one", "two"], type=str)
        group.add_argument("--computed", choices=list(WHATEVER))
        group.add_argument("--switch", action=argparse.BooleanOptionalAction)
        group.add_argument("positional")
"""
CLI = """
class BaseFrontendArgs:
    chat_template: str | None = None
    level: Literal["debug", "info"] = "info"
class FrontendArgs(BaseFrontendArgs):
    port: int = 8000
    enable_docs: bool = False
class Unrelated:
    secret: str = ""
def make(parser):
    parser.add_argument("--headless", action="store_true")
"""
BACKENDS = """
class AttentionBackendEnum(Enum):
    FLASH_ATTN = "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"
    TRITON_ATTN = "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"
    GONE = "vllm.v1.attention.backends.gone.Gone"
    CUSTOM = None
    def get_class(self): pass
"""
FILES = {
    "vllm/model_executor/models/registry.py": REGISTRY,
    "vllm/envs.py": ENVS,
    "vllm/config/cache.py": CONFIG,
    "vllm/engine/arg_utils.py": ARGS,
    "vllm/entrypoints/openai/cli_args.py": CLI,
    "vllm/v1/attention/backends/registry.py": BACKENDS,
    "vllm/v1/attention/backends/flash_attn.py": """
class FlashAttentionBackend:
    supported_kv_cache_dtypes: ClassVar[list] = ["auto", "bfloat16"]
""",
    "vllm/v1/attention/backends/triton_attn.py": """
class TritonAttentionBackend:
    supported_kv_cache_dtypes = [*BASE, "fp8"]
""",
    "vllm/third_party/deep_gemm/_C.cpython-312-x86_64-linux-gnu.so": "",
    "vllm/model_executor/layers/fused_moe/configs/E=8,N=64,device_name=NVIDIA_H200.json": "{}",
}


def read(changes: dict[str, str | bytes | None]) -> EngineFacts:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in (FILES | changes).items():
            if text is not None:
                archive.writestr(name, text)
    with zipfile.ZipFile(buffer) as archive:
        return VllmEngine().facts(archive, "9.9.9")


FACTS = read({})


def test_architectures_of_every_table() -> None:
    assert FACTS.architectures == {
        "LlamaForCausalLM": "llama:LlamaForCausalLM",
        "SeeForConditionalGeneration": "vllm.models.see:See",
        "TransformersForCausalLM": "transformers:TransformersForCausalLM",
    }
    assert FACTS.removed == {"OldForCausalLM": "0.10.2"}


def test_variables_and_their_defaults() -> None:
    assert FACTS.env == {
        "VLLM_USE_X": "1", "VLLM_PORT": None, "VLLM_HOST_IP": "", "VLLM_LEVEL": "high",
        "VLLM_NONE": None, "VLLM_OLD": None, "CUDA_HOME": None,
    }  # fmt: skip
    assert FACTS.deprecated_env == {"VLLM_OLD": "use --new"}


@pytest.mark.parametrize(
    ("flag", "choices"),
    [
        ("--kv-cache-dtype", ("auto", "fp8")),
        ("--moe-backend", ("auto", "deep_gemm", "marlin", "triton")),
        ("-mb", ("auto", "deep_gemm", "marlin", "triton")),
        ("--enable-thing", ()),
        ("--no-enable-thing", ()),
        ("--size", ()),
        ("--elsewhere", ()),
        ("--maybe", ("None", "x")),
        ("--inherited", ("a", "b")),
        ("--quoted", ("q",)),
        ("--advised", ()),
        ("--optional", ("None", "o")),
        ("--several", ()),
        ("--token", ()),
        ("--wrapped", ("stream",)),
        ("--literal", ("one", "two")),
        ("--computed", ()),
        ("--switch", ()),
        ("--no-switch", ()),
        ("--chat-template", ()),
        ("--level", ("debug", "info")),
        ("--port", ()),
        ("--no-enable-docs", ()),
        ("--headless", ()),
    ],
)
def test_flags_and_their_choices(flag: str, choices: tuple[str, ...]) -> None:
    assert FACTS.flags[flag] == choices


def test_kv_cache_types_are_choices_where_the_hint_admits_any_text() -> None:
    config = CONFIG.replace("cache_dtype: CacheDType", "cache_dtype: CacheDType | str")
    assert config != CONFIG
    assert read({"vllm/config/cache.py": config}).flags["--kv-cache-dtype"] == ("auto", "fp8")


def test_nothing_else_is_taken_for_a_flag() -> None:
    assert not {"--secret", "positional", "--positional"} & set(FACTS.flags)


def test_the_rest() -> None:
    assert FACTS.kv_cache_dtypes == ("auto", "fp8")
    assert set(FACTS.attention_backends) == {"FLASH_ATTN", "TRITON_ATTN", "GONE", "CUSTOM"}
    assert FACTS.attention_backends["FLASH_ATTN"].kv_cache_dtypes == ("auto", "bfloat16")
    # A list that is put together elsewhere is not known, rather than half known.
    assert FACTS.attention_backends["TRITON_ATTN"].kv_cache_dtypes == ()
    assert FACTS.deep_gemm == ("cp312",)
    assert FACTS.moe_configs == ("E=8,N=64,device_name=NVIDIA_H200.json",)


def test_older_places_of_the_attention_backends() -> None:
    found = read({
        "vllm/v1/attention/backends/registry.py": None,
        "vllm/platforms/interface.py": "class _Backend(enum.Enum):\n    XFORMERS = enum.auto()\n",
    })  # fmt: skip
    assert set(found.attention_backends) == {"XFORMERS"}


@pytest.mark.parametrize(
    "source",
    ["def (", "x = " + "(" * 5000, "\0", b"\xff\xfe\xff", "x" * (5 * 2**20), "a = '\\d'\n"],
    ids=["syntax", "deep", "nul", "bytes", "huge", "escape"],
)
def test_a_source_that_cannot_be_parsed_says_nothing(source: str | bytes) -> None:
    found = read({"vllm/envs.py": source, "vllm/engine/arg_utils.py": source})
    assert found.env == {}
    assert found.architectures == FACTS.architectures
    with pytest.raises(IntegrityError, match="it is not vLLM"):
        read({"vllm/model_executor/models/registry.py": "def ("})


def test_a_wheel_of_something_else_is_refused() -> None:
    with pytest.raises(IntegrityError, match="it is not vLLM"):
        read({"vllm/model_executor/models/registry.py": None})


def test_nothing_of_the_engine_is_run() -> None:
    evil = "import sys\nsys.modules['ran'] = 1\n" + REGISTRY
    read({"vllm/model_executor/models/registry.py": evil})
    assert "ran" not in sys.modules


def test_llama_cpp_states_its_cache_types_alone() -> None:
    found = LlamaCppEngine().facts(zipfile.ZipFile(io.BytesIO(), "w"), "1.0")
    assert "q8_0" in found.kv_cache_dtypes
    assert found.flags == {}


@pytest.mark.parametrize(
    ("kind", "name", "first", "last"),
    [
        ("architecture", "Qwen3_5MoeForConditionalGeneration", "0.17.0", None),
        ("architecture", "LlamaForCausalLM", "0.11.0", None),
        ("env", "VLLM_ATTENTION_BACKEND", "0.11.0", "0.14.1"),
        ("env", "VLLM_MOE_USE_DEEP_GEMM", "0.11.1", None),
        ("env", "VLLM_USE_FLASHINFER_MOE_FP8", "0.11.0", "0.23.0"),
        ("flag", "--moe-backend", "0.17.0", None),
        ("flag", "--attention-backend", "0.13.0", None),
        ("flag", "--gdn-prefill-backend", "0.18.0", None),
        ("flag", "--linear-backend", "0.22.0", None),
        ("flag", "--kernel-config", "0.16.0", None),
        ("choice", "--kv-cache-dtype=nvfp4", "0.20.0", None),
        ("choice", "--attention-backend=TREE_ATTN", "0.11.0", "0.20.2"),
        ("env", "VLLM_NO_SUCH_THING", None, None),
    ],
)
def test_history(kind: str, name: str, first: str | None, last: str | None) -> None:
    assert history.first_version(kind, name) == first
    assert history.last_version(kind, name) == last


def test_the_nearest_name() -> None:
    assert history.nearest("VLLM_USE_DEEP_GEM", ["VLLM_USE_DEEP_GEMM", "X"]) == "VLLM_USE_DEEP_GEMM"
    assert history.nearest("QQQ", ["VLLM_USE_DEEP_GEMM"]) is None


def test_every_minor_version_was_read() -> None:
    minors = {int(version.split(".")[1]) for version in history.known_versions()}
    assert minors >= set(range(11, 34))
    table = files("bundler.adapters.engine_vllm").joinpath("history.json").read_text("utf-8")
    assert set(json.loads(table)) == {"versions", "architecture", "env", "flag", "choice"}


def test_the_table_crosses_the_gap_in_the_tool_s_own_wheel(tmp_path: object) -> None:
    code = (
        "import sys, pathlib, zipfile; from bundler.build.toolwheel import write_tool_wheel;"
        "print(*zipfile.ZipFile(write_tool_wheel(pathlib.Path(sys.argv[1]))).namelist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "bundler/adapters/engine_vllm/history.json" in done.stdout.split()
