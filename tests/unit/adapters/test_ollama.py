"""Ollama: settings to environment, a GGUF to its layout, and what is refused.

By the documented variables, layout and log forms of ollama/ollama up to 0.33; its program is in no registry that tests
may ask. tests/scenario/test_ollama.py serves from the same layout.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.adapters.engine_ollama.adapter import OllamaEngine
from bundler.adapters.engine_ollama.layout import model_layout
from bundler.domain.engine_facts import EngineFacts
from bundler.domain.findings import Level
from bundler.domain.manifest import Block, Entry
from bundler.domain.model_facts import ModelFacts
from bundler.domain.running import mismatches
from bundler.domain.spec import Service, Settings
from bundler.domain.target import Target
from bundler.errors import SpecError
from bundler.format.digests import sha256_hex
from bundler.ports import Install, Situation
from tests.fakes.gguf import gguf_bytes

GGUF_SHA256 = sha256_hex(gguf_bytes(4096))


def shipped(folder: Path) -> Callable[[str], Entry]:
    def of(name: str) -> Entry:
        data = (folder / name).read_bytes()
        digest = sha256_hex(data)
        block = Block(sha256=digest, xxh3="0" * 32)
        return Entry(
            path=f"models/m/{name}",
            kind="model",
            size=len(data),
            sha256=digest,
            blocks=(block,),
            parts=(),
        )

    return of


def install(folder: Path, **files: bytes) -> Install:
    """A release with a model: `gguf` stands for m.gguf."""
    model = folder / "models" / "m"
    model.mkdir(parents=True)
    named = {"m.gguf": files.pop("gguf", gguf_bytes(4096)), **files}
    for name, data in named.items():
        (model / name).write_bytes(data)
    return Install(
        python=folder / "venv/bin/python",
        programs=(folder / "venv/bin/ollama", folder / "venv/bin/python"),
        model=model,
        model_files=tuple(sorted(named)),
        cache_dir=folder / "cache" / "s1",
        engine_version="0.33.0",
        distribution="ollama",
        shipped=shipped(model),
    )


def service(name: str = "s1", host: str = "127.0.0.1", **settings: object) -> Service:
    chosen = Settings.model_validate(settings)
    return Service(name=name, model="m", port=8000, host=host, settings=chosen)


def test_settings_become_ollamas_variables(tmp_path: Path) -> None:
    plan = OllamaEngine().plan(
        install(tmp_path),
        service(
            kv_cache_dtype="q8_0", max_model_len=32768, max_num_seqs=4, env={"OLLAMA_DEBUG": "1"}
        ),
    )
    cache = tmp_path / "cache" / "s1"
    assert plan.argv == (str(tmp_path / "venv/bin/ollama"), "serve")
    assert plan.env == {
        "HOME": str(cache / "home"),
        "XDG_CACHE_HOME": str(cache / "xdg"),
        "LLAMA_CACHE": str(cache / "llama"),
        "OLLAMA_HOST": "127.0.0.1:8000",
        "OLLAMA_MODELS": str(cache / "ollama"),
        "OLLAMA_NO_CLOUD": "1",
        "OLLAMA_NOPRUNE": "1",
        "OLLAMA_NOHISTORY": "1",
        "OLLAMA_MAX_LOADED_MODELS": "1",
        "OLLAMA_KEEP_ALIVE": "-1",
        "OLLAMA_MAX_QUEUE": "4096",
        "OLLAMA_LOAD_TIMEOUT": "0",
        "OLLAMA_NUM_PARALLEL": "4",
        "OLLAMA_CONTEXT_LENGTH": "32768",
        "OLLAMA_KV_CACHE_TYPE": "q8_0",
        "OLLAMA_FLASH_ATTENTION": "1",
        "OLLAMA_DEBUG": "1",
    }
    assert plan.health_path == "/api/version"
    assert plan.key_variable == ""
    # The other switch for offline.
    assert plan.files[cache / "home/.ollama/server.json"] == b'{"disable_ollama_cloud":true}\n'


@pytest.mark.parametrize(
    ("kv", "flash"), [("auto", None), ("f16", None), ("q8_0", "1"), ("q4_0", "1")]
)
def test_flash_attention_is_on_where_the_cache_is_quantized(
    tmp_path: Path, kv: str, flash: str | None
) -> None:
    env = OllamaEngine().plan(install(tmp_path), service(kv_cache_dtype=kv)).env
    assert env.get("OLLAMA_FLASH_ATTENTION") == flash
    assert env.get("OLLAMA_KV_CACHE_TYPE") == (None if kv == "auto" else kv)


def test_an_ipv6_address_has_its_brackets(tmp_path: Path) -> None:
    env = OllamaEngine().plan(install(tmp_path), service(host="::1")).env
    assert env["OLLAMA_HOST"] == "[::1]:8000"


def test_the_layout_is_ollamas_byte_for_byte(tmp_path: Path) -> None:
    found = model_layout(install(tmp_path), service(max_model_len=4096))
    root = tmp_path / "cache/s1/ollama"
    params = b'{"num_ctx":4096}\n'
    config = (
        '{"model_format":"gguf","model_family":"llama","model_families":["llama"],"model_type":"","file_type":"",'
        '"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":'
        f'["sha256:{GGUF_SHA256}","sha256:{sha256_hex(params)}"]}}}}\n'
    ).encode()
    manifest = (
        '{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":'
        '{"mediaType":"application/vnd.docker.container.image.v1+json",'
        f'"digest":"sha256:{sha256_hex(config)}","size":{len(config)}}},"layers":['
        f'{{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:{GGUF_SHA256}","size":4096}},'
        f'{{"mediaType":"application/vnd.ollama.image.params","digest":"sha256:{sha256_hex(params)}",'
        f'"size":{len(params)}}}]}}\n'
    ).encode()
    assert found == {
        root / "blobs" / f"sha256-{GGUF_SHA256}": tmp_path / "models/m/m.gguf",
        root / "blobs" / f"sha256-{sha256_hex(params)}": params,
        root / "blobs" / f"sha256-{sha256_hex(config)}": config,
        root / "manifests/registry.ollama.ai/library/s1/latest": manifest,
    }


def test_files_beside_the_gguf_become_layers_and_nothing_is_invented(tmp_path: Path) -> None:
    beside = {
        "template": b"{{ .Prompt }}", "system": b"Be brief.", "LICENSE.txt": b"MIT", "README.md": b"#",
        "params": b'{"stop": ["<|im_end|>"], "num_ctx": 9}', "mmproj-f16.gguf": b"GGUF picture",
    }  # fmt: skip
    found = model_layout(install(tmp_path, **beside), service(max_model_len=8192))
    [manifest] = [data for path, data in found.items() if path.name == "latest"]
    assert isinstance(manifest, bytes)
    layers = {
        layer["mediaType"].rpartition(".")[2]: layer["digest"][7:]
        for layer in json.loads(manifest)["layers"]
    }
    assert list(layers) == ["model", "projector", "license", "template", "system", "params"]
    blobs = {path.name[7:]: data for path, data in found.items() if path.parent.name == "blobs"}
    assert blobs[layers["template"]] == b"{{ .Prompt }}"
    assert blobs[layers["projector"]] == tmp_path / "models/m/mmproj-f16.gguf"
    # The spec's context wins over the file's.
    params = blobs[layers["params"]]
    assert isinstance(params, bytes)
    assert json.loads(params) == {"stop": ["<|im_end|>"], "num_ctx": 8192}
    # Without a context and a file there are no parameters.
    bare = model_layout(install(tmp_path / "bare"), service())
    [manifest] = [data for path, data in bare.items() if path.name == "latest"]
    assert isinstance(manifest, bytes)
    assert len(json.loads(manifest)["layers"]) == 1


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"gguf": b"no GGUF at all"}, "is no GGUF"),
        ({"params": b"stop = x"}, "no JSON object"),
        ({"params": b'{"temperature": NaN}'}, "no JSON object"),
        ({"params": b"[" * 100_000}, "no JSON object"),
        ({"template": b"x" * (2**20 + 1)}, "larger than 1 MiB"),
    ],
)
def test_broken_files_of_a_model_are_named(
    tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    with pytest.raises(SpecError, match=words):
        model_layout(install(tmp_path, **files), service())


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("model.safetensors",), r"no \.gguf"),
        (("m-00001-of-00002.gguf", "m-00002-of-00002.gguf"), "split GGUF"),
    ],
)
def test_a_model_without_one_gguf_is_refused(
    tmp_path: Path, names: tuple[str, ...], words: str
) -> None:
    here = install(tmp_path)
    bent = Install(**{**here.__dict__, "model_files": names})
    with pytest.raises(SpecError, match=words):
        OllamaEngine().plan(bent, service())


def reviewed(
    asked: Service, model: ModelFacts | None = None, engine: EngineFacts | None = None
) -> dict[str, tuple[Level, str]]:
    """Findings by code: level, what and fix; without the note that every service has."""
    advice = OllamaEngine().review(
        Situation(
            service=asked, version="0.33.0", target=Target(python="3.12", glibc="2.35"), packages={},
            engine=engine, model=model,
        )
    )  # fmt: skip
    found = {item.code: (item.level, f"{item.what} {item.fix}") for item in advice.findings}
    assert found.pop("offline-lookups")[0] is Level.NOTE
    return found


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"kernel": "triton"}, "kernel-no-switch", "kernel triton"),
        ({"kv_cache_dtype": "fp8_e4m3"}, "kv-dtype-unknown", "Write q8_0"),
        ({"kv_cache_dtype": "bf16"}, "kv-dtype-unknown", "Write f16"),
        ({"kv_cache_dtype": "q5_1"}, "kv-dtype-unknown", "Write q8_0"),
        ({"tensor_parallel": 2}, "tensor-parallel", "OLLAMA_SCHED_SPREAD"),
        ({"args": ["-ngl", "99"]}, "flag-unknown", "takes no arguments"),
        ({"gpu_memory_utilization": 0.9}, "setting-ignored", "OLLAMA_GPU_OVERHEAD"),
        ({"env": {"OLLAMA_HOST": "0.0.0.0"}}, "flag-clash", "services[].host"),
        ({"env": {"HOME": "/root"}}, "flag-clash", "lies in the release"),
        ({"env": {"OLLAMA_NUM_PARALLEL": "4"}}, "flag-clash", "settings.max_num_seqs"),
        (
            {"kv_cache_dtype": "q4_0", "env": {"OLLAMA_FLASH_ATTENTION": "0"}},
            "kv-dtype-backend",
            "flash attention",
        ),
        ({"kv_cache_dtype": "f16", "env": {"OLLAMA_FLASH_ATTENTION": "0"}}, None, ""),
        ({"env": {"OLLAMA_SCHED_SPREAD": "1", "CUDA_LAUNCH_BLOCKING": "1"}}, None, ""),
    ],
)
def test_settings_are_reviewed(settings: dict[str, object], code: str | None, words: str) -> None:
    found = reviewed(service(**{"max_model_len": 4096, **settings}))
    assert list(found) == ([code] if code else [])
    if code:
        assert words in found[code][1]


@pytest.mark.parametrize(
    "settings",
    [{"kernel": "triton"}, {"kv_cache_dtype": "fp8"}, {"tensor_parallel": 2}, {"args": ["x"]},
     {"env": {"OLLAMA_MODELS": "/m"}}],
)  # fmt: skip
def test_what_the_closed_side_refuses_is_an_error_before_the_trip(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    asked = service(**{"max_model_len": 4096, **settings})
    with pytest.raises(SpecError):
        OllamaEngine().plan(install(tmp_path), asked)
    assert [level for level, _ in reviewed(asked).values()] == [Level.ERROR]


def test_a_context_that_is_not_stated_is_told() -> None:
    assert reviewed(service())["context-default"][0] is Level.WARNING


def test_no_key_guards_it_so_that_it_may_listen_on_loopback_alone() -> None:
    level, words = reviewed(service(host="0.0.0.0", max_model_len=1))["no-api-key"]
    assert level is Level.ERROR
    assert "reverse proxy" in words


def test_a_name_that_older_releases_refuse_is_refused() -> None:
    assert reviewed(service(name="x", max_model_len=1))["service-name"][0] is Level.ERROR


def wheel(program: bytes, runner: bool = True) -> zipfile.ZipFile:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("ollama_runtime-1.data/data/bin/ollama", program)
        if runner:
            made.writestr("ollama_runtime-1.data/data/lib/ollama/llama-server", b"x")
    return zipfile.ZipFile(buffer)


# As Go keeps constants: one behind the other, without an end.
CONSTANTS = b"\0\1OLLAMA_HOSTOLLAMA_MODELSOLLAMA_KEEP_ALIVEPOSTOLLAMA_NUM_PARALLELOLLAMA_GPU_OVERHEADx\0v0.33.0\0"


def test_variables_are_checked_against_those_that_the_program_reads() -> None:
    facts = OllamaEngine().facts(wheel(CONSTANTS), "0.33.0")
    assert facts.programs == ("llama-server",)
    env = {"OLLAMA_GPU_OVERHEDA": "1", "OLLAMA_KEEP_ALIVE": "-1", "HSA_OVERRIDE_GFX_VERSION": "1"}
    found = reviewed(service(max_model_len=1, env=env), engine=facts)
    assert list(found) == ["env-unknown"]
    assert "OLLAMA_GPU_OVERHEDA" in found["env-unknown"][1]
    assert "Write OLLAMA_GPU_OVERHEAD" in found["env-unknown"][1]


def test_an_archive_of_another_version_than_stated_is_told() -> None:
    told = OllamaEngine().facts(wheel(CONSTANTS.replace(b"0.33.0", b"0.32.9")), "0.33.0")
    assert reviewed(service(max_model_len=1), engine=told)["engine-version"][0] is Level.WARNING


def test_a_program_whose_texts_are_not_those_of_ollama_is_not_judged() -> None:
    facts = OllamaEngine().facts(wheel(CONSTANTS.replace(b"OLLAMA_KEEP_ALIVE", b"")), "0.33.0")
    assert facts.env == {}
    assert not reviewed(service(max_model_len=1, env={"OLLAMA_X": "1"}), engine=facts)


def test_a_name_that_lies_across_two_pieces_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.adapters.engine_ollama.program._PIECE", 300)
    data = b"x" * 295 + CONSTANTS + b"y" * 700 + CONSTANTS
    assert OllamaEngine().facts(wheel(data), "0.33.0").env


def gguf(**more: object) -> ModelFacts:
    return ModelFacts.model_validate(
        {
            "name": "m",
            "format": "gguf",
            "has_chat_template": True,
            "weight_files": ("m.gguf",),
            **more,
        }
    )


@pytest.mark.parametrize(
    ("model", "runner", "code"),
    [
        (ModelFacts(name="m", format="safetensors"), True, "format-mismatch"),
        (
            gguf(weight_files=("a-00001-of-00002.gguf", "a-00002-of-00002.gguf")),
            True,
            "format-mismatch",
        ),
        (gguf(), True, None),
        (gguf(), False, "no-chat-template"),
        (gguf(companions=("template",)), False, None),
    ],
)
def test_the_models_form_is_judged(model: ModelFacts, runner: bool, code: str | None) -> None:
    facts = OllamaEngine().facts(wheel(CONSTANTS, runner), "0.33.0")
    assert list(reviewed(service(max_model_len=1), model, facts)) == ([code] if code else [])


AT = "time=2026-06-01T10:00:00.000+09:00 level=INFO source=x.go:1 "
OLLAMA_ENGINE = [
    AT + 'msg="server config" env="map[OLLAMA_KV_CACHE_TYPE:q8_0 OLLAMA_FLASH_ATTENTION:true]"',
    AT
    + 'msg=load request="{Operation:fit LoraPath:[] Parallel:1 BatchSize:512 FlashAttention:Disabled KvSize:9'
    ' KvCacheType: NumThreads:4 GPULayers:[]}"',
    AT
    + 'msg=load request="{Operation:commit LoraPath:[] Parallel:4 BatchSize:512 FlashAttention:Enabled KvSize:32768'
    ' KvCacheType:q8_0 NumThreads:8 GPULayers:49[ID:GPU-1 Layers:49(0..48)] MultiUserCache:false}"',
    AT + 'msg="offloaded 49/49 layers to GPU"',
    AT + 'msg="llama runner started in 12.50 seconds"',
]
LLAMA_SERVER = [
    AT
    + 'msg="starting llama-server" cmd="/r/lib/ollama/llama-server --model /b -c 8192 -np 2 --cache-type-k q8_0"',
    "load_tensors: offloaded 33/33 layers to GPU",
    "load_tensors:        CUDA0 model buffer size =  4155.99 MiB",
    "llama_context: Flash Attention was auto, set to enabled",
    "llama_kv_cache: size =  272.00 MiB (  4096 cells,  32 layers,  2/2 seqs), K (q8_0):  136.00 MiB, V (q8_0):"
    "  136.00 MiB",
]


def test_the_log_of_ollamas_own_engine_tells_what_runs() -> None:
    found = OllamaEngine().running(OLLAMA_ENGINE, "")
    assert (found.attention, found.kv_dtype, found.offloaded) == (("flash",), ("q8_0",), "49/49")
    assert (found.kv_tokens, found.max_concurrency, found.concurrency_tokens) == (32768, 4, 8192)
    assert found.phases == {"loading": 12.5}
    assert "Operation:commit" in found.evidence["kv_dtype"]


def test_the_log_of_its_llama_server_tells_what_runs() -> None:
    found = OllamaEngine().running(LLAMA_SERVER, "")
    assert (found.attention, found.kv_dtype, found.kv_tokens) == (("flash",), ("q8_0",), 8192)
    assert found.offloaded == "33/33 (CUDA0 4155.99 MiB)"


def test_a_cache_type_that_is_dropped_is_a_mismatch() -> None:
    dropped = AT.replace("INFO", "WARN") + 'msg="unsupported OLLAMA_KV_CACHE_TYPE" type=q8_0'
    found = OllamaEngine().running([dropped], "")
    assert [item.words() for item in mismatches(Settings(kv_cache_dtype="q8_0"), found)] == [
        "KV-cache type: asked q8_0, runs f16"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        OLLAMA_ENGINE[:2],
        ['msg=load request="{Operation:commit Parallel:\u0663 KvSize:x'],
        ["x" * 1_000_000],
    ],
)
def test_silence_is_unknown(lines: list[str]) -> None:
    assert OllamaEngine().running(lines, "").words() == "the log says nothing"
