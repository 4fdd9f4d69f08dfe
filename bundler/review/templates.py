"""Chat templates that reach for more than a conversation: read as a syntax tree, never run.

A chat template is a Jinja program that the engine runs for every request. In a sandbox it is harmless
as long as the sandbox has no hole; what walks from a text to Python's classes looks for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from bundler.format.untrusted import shown

MAX_TEMPLATE = 2**20
# Where a text object leads to code: https://jinja.palletsprojects.com/en/stable/sandbox/
_WALKS = {
    "mro", "func_globals", "func_code", "gi_frame", "gi_code", "cr_frame", "cr_code", "ag_frame", "f_globals",
    "f_locals", "f_builtins", "tb_frame", "co_code", "popen", "system", "eval", "exec", "subprocess",
}  # fmt: skip
_FORMATS = {"format", "format_map"}
_DUNDER = re.compile(r"__[a-z0-9]+__")
# For texts that are no Jinja which parses: the words alone.
_WORDS = re.compile(r"__[a-z0-9]+__|\|\s*attr\b|\.\s*mro\b|\bpopen\b|\bimport_module\b")


class _Generation(Extension):
    """The tag that transformers adds around what the assistant says."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own way to declare it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Read on to its end."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def suspicious(template: str) -> tuple[tuple[str, ...], str]:
    """What in a template reaches beyond its conversation, and why it was not read as Jinja if it was not."""
    if len(template) > MAX_TEMPLATE:
        return _words(template[:MAX_TEMPLATE]), f"is over {MAX_TEMPLATE} letters"
    # Nothing is rendered here: the environment only parses.
    environment = Environment(  # noqa: S701
        extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", _Generation],
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    try:
        tree = environment.parse(template)
        return tuple(dict.fromkeys(_walk(tree))), ""
    except (TemplateSyntaxError, RecursionError, ValueError, OverflowError) as cause:
        return _words(template), f"does not parse: {shown(str(cause))}"


def _walk(tree: nodes.Node) -> Iterator[str]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield from _of(node)
        waiting.extend(node.iter_child_nodes())


def _of(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.Getattr):
        if node.attr.startswith("_") or node.attr in _WALKS:
            yield f"walks to .{shown(node.attr)} (line {node.lineno})"
        elif node.attr in _FORMATS:
            yield f"calls .{node.attr}(), whose text can walk attributes (line {node.lineno})"
    elif isinstance(node, nodes.Getitem):
        yield from _of_item(node)
    elif isinstance(node, nodes.Filter) and node.name == "attr":
        # `map(attribute=...)` and the like are seen as texts, below.
        yield f"reads an attribute by |attr (line {node.lineno})"
    elif isinstance(node, nodes.Const):
        if isinstance(node.value, str) and _DUNDER.search(node.value):
            yield f"holds the text {shown(node.value, 40)!r} (line {node.lineno})"
    elif isinstance(node, nodes.Include | nodes.Import | nodes.FromImport | nodes.Extends):
        yield f"loads another template (line {node.lineno})"


def _of_item(node: nodes.Getitem) -> Iterator[str]:
    argument = node.arg
    if isinstance(argument, nodes.Const):
        if isinstance(argument.value, str) and argument.value in _WALKS:
            yield f"walks to [{argument.value!r}] (line {node.lineno})"
    elif isinstance(argument, nodes.Concat) or (
        isinstance(argument, nodes.Add) and _has_text(argument)
    ):
        yield f"puts the name of what it reads together (line {node.lineno})"


def _has_text(node: nodes.Node) -> bool:
    return any(isinstance(one.value, str) for one in node.find_all(nodes.Const))


def _words(template: str) -> tuple[str, ...]:
    found = dict.fromkeys(match.group() for match in _WORDS.finditer(template))
    return tuple(f"holds {shown(word, 40)!r}" for word in found)[:20]
