"""The spec as a YAML file: read it, and say of every fault where it is and what would be right."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from bundler.domain.spec import BundleSpec
from bundler.errors import SpecError, disk_errors

MAX_SPEC_BYTES = 2**20
_Loc = tuple[int | str, ...]


def load_spec(path: Path) -> BundleSpec:
    """Read and check a spec.

    Raises:
        SpecError: not readable, not YAML, or not a spec; the message gives file, line and key, and
            for a wrong key or value the allowed ones.
    """
    if not path.is_file():
        raise SpecError(
            f"{path}: no such file", hint="Name a spec file, for example one of manifests/."
        )
    with disk_errors("reading", path):
        data = path.read_bytes()
    if len(data) > MAX_SPEC_BYTES:
        raise SpecError(f"{path}: over {MAX_SPEC_BYTES} bytes; not a spec")
    return parse_spec(data, str(path))


def parse_spec(data: bytes, name: str) -> BundleSpec:
    """Check a spec's text; `name` is what errors call it."""
    try:
        tree = yaml.compose(data.decode("utf-8"), Loader=yaml.SafeLoader)
        _refuse_twin_keys(tree, name)
        value = yaml.safe_load(data)
    except UnicodeDecodeError as cause:
        raise SpecError(f"{name}: not UTF-8 at byte {cause.start}") from cause
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(cause, "problem", None) or str(cause)
        raise SpecError(f"{name}:{line} not YAML: {problem}") from cause
    except RecursionError as cause:
        raise SpecError(f"{name}: nested too deep") from cause
    if not isinstance(value, dict):
        raise SpecError(f"{name}: line 1: a spec is a mapping of keys")
    try:
        return BundleSpec.model_validate(value)
    except ValidationError as error:
        lines = [_explain(fault, tree) for fault in error.errors(include_url=False)]
        raise SpecError(f"{name}: " + "; ".join(lines)) from error


def _refuse_twin_keys(node: yaml.Node | None, name: str) -> None:
    """YAML lets a later key replace an earlier one in silence; a spec must not."""
    for mapping in _mappings(node):
        seen: dict[str, int] = {}
        for key, _ in mapping.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                raise SpecError(
                    f"{name}: line {line}: key {key.value} stands on line {seen[key.value]} already",
                    hint="Keep one of the two.",
                )
            seen[key.value] = line


def _mappings(node: yaml.Node | None) -> Iterator[yaml.MappingNode]:
    if isinstance(node, yaml.MappingNode):
        yield node
        for _, value in node.value:
            yield from _mappings(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _mappings(value)


def _explain(fault: Any, tree: yaml.Node | None) -> str:
    loc: _Loc = fault["loc"]
    line = _line(tree, loc)
    key = ".".join(str(part) for part in loc) or "spec"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        allowed = sorted(_model_at(loc[:-1]).model_fields)
        near = difflib.get_close_matches(str(loc[-1]), allowed, 1)
        guess = f"; did you mean {near[0]}?" if near else ""
        return f"line {line}: unknown key {key}{guess} (allowed: {', '.join(allowed)})"
    if fault["type"] == "missing":
        return f"line {line}: {key} is missing"
    given = fault.get("input")
    shown = f" (given: {given!r})" if isinstance(given, (str, int, float, bool)) else ""
    return f"line {line}: {key}: {message}{shown}"


def _line(tree: yaml.Node | None, loc: _Loc) -> int:
    """Line of the deepest node on the way to `loc` that exists."""
    line = 1
    node = tree
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next((p for p in node.value if p[0].value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def _model_at(loc: _Loc) -> type[BaseModel]:
    """The record type that the keys at `loc` belong to."""
    here: type[BaseModel] = BundleSpec
    for part in loc:
        if isinstance(part, str) and part in here.model_fields:
            here = _record_in(here.model_fields[part].annotation) or here
    return here


def _record_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (tuple, list, Union, types.UnionType, Annotated):
        return next(filter(None, map(_record_in, get_args(annotation))), None)
    return None
