"""The flags of the API server and their choices, from the source that registers them.

vLLM registers flags in two ways (engine/arg_utils.py, entrypoints/.../cli_args.py): by
`add_argument("--name", **kwargs["field"])`, where type and choices come from a field of a config
dataclass, and for the front end one flag for each field of its `*Args` dataclasses. A field that is a
bool gives `--no-name` as well; a `Literal` gives choices.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bundler.adapters.engine_vllm.source import assignments, choices_of, classes, text_of, types_of


@dataclass
class _Namespace:
    """Names and classes of every file that flags are declared in."""

    names: dict[str, ast.expr] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)

    def hint(self, owner: str, name: str) -> ast.expr | None:
        """Annotation of a dataclass field, base classes included."""
        seen: set[str] = set()
        todo = [owner]
        while todo:
            current = todo.pop(0)
            definition = self.classes.get(current)
            if definition is None or current in seen:
                continue
            seen.add(current)
            for item in definition.body:
                if isinstance(item, ast.AnnAssign) and getattr(item.target, "id", None) == name:
                    return item.annotation
            todo += [base.id for base in definition.bases if isinstance(base, ast.Name)]
        return None


def server_flags(trees: Iterable[ast.Module]) -> dict[str, tuple[str, ...]]:
    """Flag -> its choices, sorted; no choices: free, or not readable here.

    Args:
        trees: the files that register flags, and those that declare the config classes.
    """
    space = _Namespace()
    parsed = list(trees)
    for tree in parsed:
        for name, value in assignments(tree.body).items():
            space.names.setdefault(name, value)
        for name, definition in classes(tree.body).items():
            space.classes.setdefault(name, definition)
    flags: dict[str, tuple[str, ...]] = {}
    for tree in parsed:
        flags |= _registered(tree, space)
    for name, definition in space.classes.items():
        if name.endswith("FrontendArgs"):
            flags |= _front_end(definition, space)
    return flags


def _registered(tree: ast.Module, space: _Namespace) -> dict[str, tuple[str, ...]]:
    flags: dict[str, tuple[str, ...]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            aliases = _aliases_of(function)
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and _called(call) == "add_argument":
                    flags |= _flags_of(call, aliases, space)
    return flags


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _aliases_of(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Local names: `model_kwargs = get_kwargs(ModelConfig)`, `moe = kernel_kwargs["moe_backend"]`."""
    found: dict[str, ast.expr] = {}
    for item in ast.walk(function):
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            found.setdefault(item.targets[0].id, item.value)
    return found


def _flags_of(
    call: ast.Call, aliases: Mapping[str, ast.expr], space: _Namespace
) -> dict[str, tuple[str, ...]]:
    names = [text for text in map(text_of, call.args) if text and text.startswith("-")]
    hint: ast.expr | None = None
    choices: tuple[str, ...] = ()
    negated = False
    for keyword in call.keywords:
        if keyword.arg is None:
            hint = _spread_hint(keyword.value, aliases, space)
        elif keyword.arg == "choices":
            choices = _listed(keyword.value)
        elif keyword.arg == "action":
            negated = "BooleanOptionalAction" in ast.dump(keyword.value)
    return dict(_with_negation(names, hint, choices, negated, space))


def _spread_hint(
    node: ast.expr, aliases: Mapping[str, ast.expr], space: _Namespace, depth: int = 0
) -> ast.expr | None:
    """The type hint behind `**model_kwargs["field"]`, or behind a dict made from it."""
    if depth > 10:
        return None
    if isinstance(node, ast.Name) and node.id in aliases:
        return _spread_hint(aliases[node.id], aliases, space, depth + 1)
    if isinstance(node, ast.Dict):
        spread = [v for k, v in zip(node.keys, node.values, strict=True) if k is None]
        return _spread_hint(spread[0], aliases, space, depth + 1) if spread else None
    if not isinstance(node, ast.Subscript):
        return None
    source, name = node.value, text_of(node.slice)
    if isinstance(source, ast.Name):
        source = aliases.get(source.id, source)
    if not (name and isinstance(source, ast.Call) and source.args):
        return None
    if getattr(source.func, "id", "") != "get_kwargs":
        return None
    return space.hint(getattr(source.args[0], "id", ""), name)


def _listed(node: ast.expr) -> tuple[str, ...]:
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return ()
    texts = [item.value for item in node.elts if isinstance(item, ast.Constant)]
    return tuple(sorted(map(str, texts))) if len(texts) == len(node.elts) else ()


def _with_negation(
    names: list[str],
    hint: ast.expr | None,
    choices: tuple[str, ...],
    negated: bool,
    space: _Namespace,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    types = types_of(hint, space.names)
    # As vLLM's own get_kwargs does: next to `str` a Literal is advice, in a list its values combine.
    free = bool(types & {"str", "list", "List", "tuple", "set"})
    switch = negated or ("bool" in types and not free)
    if hint is not None and not switch and not choices and not free:
        admitted = choices_of(hint, space.names)
        optional = admitted and "None" in types
        choices = tuple(sorted(admitted | ({"None"} if optional else set())))
    for name in names:
        yield name, () if switch else choices
        if switch and name.startswith("--"):
            yield f"--no-{name[2:]}", ()


def _front_end(definition: ast.ClassDef, space: _Namespace) -> dict[str, tuple[str, ...]]:
    flags: dict[str, tuple[str, ...]] = {}
    for item in definition.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            name = f"--{item.target.id.replace('_', '-')}"
            flags |= dict(_with_negation([name], item.annotation, (), False, space))
    return flags
