"""Python source read as data: nothing of it is imported or run.

Whatever is not a literal there is not known here; a file that cannot be parsed says nothing at all.
"""

from __future__ import annotations

import ast
import warnings
import zipfile
from collections.abc import Iterator, Mapping

from bundler.format.wheelzip import DAMAGE

# The longest source of vLLM 0.33 has 400 kB.
MAX_SOURCE = 4 * 2**20


def read_source(archive: zipfile.ZipFile, name: str) -> ast.Module | None:
    """A member of the wheel as a syntax tree; None when it is absent, huge or no Python."""
    try:
        info = archive.getinfo(name)
        if info.file_size > MAX_SOURCE:
            return None
        data = archive.read(info)
        with warnings.catch_warnings():
            # A stranger's invalid escape is nothing to warn our user of.
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (KeyError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    except DAMAGE:
        return None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Top-level statements, those under `if` and `try` included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from statements([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            yield from statements([*statement.body, *statement.orelse, *statement.finalbody])


def assignments(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Name -> value, of plain and annotated assignments and of `type X = ...`; the first one counts."""
    found: dict[str, ast.expr] = {}
    for statement in statements(body):
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.expr):
            continue
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        if type(statement).__name__ == "TypeAlias":  # Python 3.12 grammar
            targets = [statement.name]  # type: ignore[attr-defined]
        for target in targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, value)
    return found


def classes(body: list[ast.stmt]) -> dict[str, ast.ClassDef]:
    """Name -> class definition."""
    return {item.name: item for item in statements(body) if isinstance(item, ast.ClassDef)}


def text_of(node: ast.AST | None) -> str | None:
    """A string literal; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def choices_of(node: ast.expr | None, names: Mapping[str, ast.expr], depth: int = 0) -> set[str]:
    """All texts that a type hint admits as `Literal`, aliases followed.

    Empty when there is none, or when one of them is nothing that can be read here.
    """
    if node is None or depth > 20:
        return set()
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _quoted(node.value, names, depth)
    if isinstance(node, ast.Name):
        return choices_of(names.get(node.id), names, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = (choices_of(side, names, depth + 1) for side in (node.left, node.right))
        return set().union(*sides)
    if not isinstance(node, ast.Subscript):
        return set()
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if _last_name(node.value) == "Literal":
        return _literals(inner, names, depth)
    return set().union(*(choices_of(item, names, depth + 1) for item in inner))


def _quoted(text: str, names: Mapping[str, ast.expr], depth: int) -> set[str]:
    try:
        return choices_of(ast.parse(text, mode="eval").body, names, depth + 1)
    except (SyntaxError, ValueError, RecursionError):
        return set()


def _literals(items: list[ast.expr], names: Mapping[str, ast.expr], depth: int) -> set[str]:
    found: set[str] = set()
    for item in items:
        if isinstance(item, ast.Constant):
            found.add(str(item.value))
        else:
            nested = choices_of(item, names, depth + 1)
            if not nested:
                return set()
            found |= nested
    return found


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def types_of(
    node: ast.expr | None, names: Mapping[str, ast.expr], depth: int = 0
) -> frozenset[str]:
    """Names of the types that a hint unites, aliases followed: `bool | Literal["x"]` -> bool, Literal."""
    if node is None or depth > 20:
        return frozenset()
    if isinstance(node, ast.Constant) and node.value is None:
        return frozenset({"None"})
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return types_of(ast.parse(node.value, mode="eval").body, names, depth + 1)
        except (SyntaxError, ValueError, RecursionError):
            return frozenset()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return types_of(node.left, names, depth + 1) | types_of(node.right, names, depth + 1)
    if isinstance(node, ast.Subscript):
        outer = _last_name(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if outer in {"Optional", "Union"}:
            united = (types_of(item, names, depth + 1) for item in inner)
            return frozenset({"None"} if outer == "Optional" else ()).union(*united)
        if outer == "Annotated":
            return types_of(inner[0], names, depth + 1)
        return frozenset({outer})
    name = _last_name(node)
    return types_of(names[name], names, depth + 1) if name in names else frozenset({name})
