"""The spec as a YAML file: read it, and say of every fault where it is and what would be right."""

from __future__ import annotations

import difflib
import types
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from yaml.constructor import ConstructorError, SafeConstructor

from bundler.domain.spec import BundleSpec
from bundler.errors import SpecError, disk_errors

MAX_SPEC_BYTES = 2**20
# The largest spec that the other limits allow has some 10,000 nodes.
MAX_NODES = 50_000
MAX_TOLD = 10
_Loc = tuple[int | str, ...]


class _Loader(yaml.SafeLoader):
    """Stops at a document that is too large to be a spec, before all of it is read."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ConstructorError(None, None, f"over {MAX_NODES} values", self.line_mark())
        return super().compose_node(parent, index)

    def line_mark(self) -> yaml.Mark:
        """Where the reader is."""
        return self.get_mark()


class _Constructor(SafeConstructor):
    """YAML's own types, where a value that its type cannot hold is a fault with a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        # PyYAML's converters trust the text: a date, a number or a truth value that is none
        # ends in whatever Python happens to raise.
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as cause:
            kind = node.tag.rpartition(":")[2]
            problem = f"{_plain(node.value)} is no {kind}; put text in quotes"
            raise ConstructorError(None, None, problem, node.start_mark) from cause
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ConstructorError(None, None, "a number over 64 bits", node.start_mark)
        return value


def load_spec(path: Path) -> BundleSpec:
    """Read and check a spec.

    Raises:
        SpecError: not readable, not YAML, or not a spec; the message gives file, line and key, and
            for a wrong key or value the allowed ones.
    """
    with disk_errors("reading", path):
        if not path.is_file():
            raise SpecError(
                f"{path}: no such file", hint="Name a spec file, for example one of manifests/."
            )
        with path.open("rb") as file:
            data = file.read(MAX_SPEC_BYTES + 1)
    if len(data) > MAX_SPEC_BYTES:
        raise SpecError(f"{path}: over {MAX_SPEC_BYTES} bytes; not a spec")
    return parse_spec(data, str(path))


def parse_spec(data: bytes, name: str) -> BundleSpec:
    """Check a spec's text; `name` is what errors call it.

    Raises:
        SpecError: not YAML, or not a spec.
    """
    tree, value = _read_yaml(data, name)
    if not isinstance(value, dict):
        raise SpecError(f"{name}: line 1: a spec is a mapping of keys")
    try:
        return BundleSpec.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        lines = [_explain(fault, tree) for fault in faults[:MAX_TOLD]]
        if len(faults) > MAX_TOLD:
            lines.append(f"and {len(faults) - MAX_TOLD} more")
        raise SpecError(f"{name}: " + "; ".join(lines)) from error


def _read_yaml(data: bytes, name: str) -> tuple[yaml.Node | None, Any]:
    """The document as nodes, which know their lines, and as values."""
    try:
        tree = yaml.compose(data.decode("utf-8"), Loader=_Loader)
        if tree is None:
            return None, None
        if _size(tree, {}) > MAX_NODES:
            raise SpecError(f"{name}: over {MAX_NODES} values once its aliases are followed")
        for node in _nodes(tree):
            _refuse_unprintable(node, name)
            _refuse_wrong_keys(node, name)
        return tree, _Constructor().construct_document(tree)
    except UnicodeDecodeError as cause:
        raise SpecError(f"{name}: not UTF-8 at byte {cause.start}") from cause
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(cause, "problem", None) or str(cause)
        raise SpecError(f"{name}:{line} not YAML: {_plain(problem, 300)}") from cause
    except RecursionError as cause:
        raise SpecError(f"{name}: nested too deep, or an alias that holds itself") from cause


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values the node is once aliases are followed: few lines can stand for billions."""
    if id(node) not in known:
        known[id(node)] = 1 + sum(_size(child, known) for child in _children(node))
    return known[id(node)]


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Every node once, in the order of the document."""
    seen: set[int] = set()
    rest = [root]
    while rest:
        node = rest.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            rest.extend(reversed(list(_children(node))))


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _refuse_unprintable(node: yaml.Node, name: str) -> None:
    """What only an escape puts in: file names, terminals or UTF-8 cannot take it."""
    if not isinstance(node, yaml.ScalarNode):
        return
    for letter in node.value:
        if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\t\n\r":
            kind = "half a surrogate pair" if letter >= "\ud800" else "a control character"
            line = node.start_mark.line + 1
            raise SpecError(f"{name}: line {line}: U+{ord(letter):04X} in the text, {kind}")


def _refuse_wrong_keys(node: yaml.Node, name: str) -> None:
    """YAML takes a list for a key, and lets a later key replace an earlier; a spec must not."""
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise SpecError(f"{name}: line {line}: a key is a word, not a list or a mapping")
        if key.value in seen:
            shown = _plain(key.value)
            raise SpecError(
                f"{name}: line {line}: key {shown} stands on line {seen[key.value]} already",
                hint="Keep one of the two.",
            )
        seen[key.value] = line


def _plain(text: object, most: int = 80) -> str:
    """Text as one short line that a terminal can show."""
    shown = str(text)[: most + 1]
    shown = "".join(c if c.isprintable() else " " if c.isspace() else ascii(c)[1:-1] for c in shown)
    return shown if len(shown) <= most else f"{shown[:most]}..."


def _explain(fault: Any, tree: yaml.Node | None) -> str:
    loc: _Loc = fault["loc"]
    line = _line(tree, loc)
    key = _plain(".".join(str(part) for part in loc) or "spec")
    message = _plain(str(fault["msg"]).removeprefix("Value error, "), 400)
    if fault["type"] == "extra_forbidden":
        allowed = sorted(_model_at(loc[:-1]).model_fields)
        near = difflib.get_close_matches(str(loc[-1])[:80], allowed, 1)
        guess = f"; did you mean {near[0]}?" if near else ""
        return f"line {line}: unknown key {key}{guess} (allowed: {', '.join(allowed)})"
    if fault["type"] == "missing":
        return f"line {line}: {key} is missing"
    given = fault.get("input")
    shown = f" (given: {_plain(repr(given))})" if isinstance(given, (str, int, float)) else ""
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
