"""Find every message that a person may read, and keep its Korean: `python -m scripts.gen_messages`.

Without arguments it prints what bundler/cli/korean/texts.json lacks, as JSON with empty values: fill them in
and give the file to `python -m scripts.gen_messages FILE`, which adds them, drops what no code says any more, and
sorts. An entry of `null` says that the text is no language (a flag, a format, another program's words).
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bundler.cli.korean import CATALOGUE
from bundler.cli.korean.helping import paragraphs

PACKAGE = Path(__file__).parent.parent / "bundler"

# Pages, prompts, records and data: they have languages of their own, or nobody reads them on a terminal.
SILENT = (
    "adapters/report_", "bootstrap/", "manifests/", "demo/cpu_shim", "demo/hub", "demo/tiny_", "demo/tokenizer",
    "demo/weights", "cli/korean/", "domain/gpus",
    "accept/correctness/background", "adapters/engine_vllm/runlog",
    "format/llamalog", "deploy/playbook/",  "deploy/leaderworker",
    "review/korean", "review/licencenames", "review/licencetexts", "review/checksections", "review/sections",
    "review/form", "review/page", "review/flawsection", "review/templates", "review/tables", "review/document",
    "review/markdown", "review/sbom_", "review/style", "build/readme", "accept/prompts",
    "review/redlinepage", "review/redlinewords", "review/malwaresection", "review/filechecks",
    "review/handbook/site", "review/handbook/style", "cli/manpage", "cli/examples",
    # Answers to an owner's questions are made in both languages.
    "deploy/answers", "deploy/evidence", "deploy/sentences",
    "accept/correctness/texts", "accept/correctness/tasks",
)  # fmt: skip
# Calls whose words go nowhere a person looks.
_MUTE_CALLS = {"compile", "debug", "info", "exception", "Literal", "encode", "getLogger", "cast", "TypeVar",
               "startswith", "popen", "endswith", "strptime", "strftime", "search", "match", "fullmatch", "finditer", "findall",
               "sub", "split", "get", "Field"}  # fmt: skip
_MUTE_KEYWORDS = {
    "upstream",
    "description",
    "pattern",
    "metavar",
    "style",
    "alias",
    "rich_markup_mode",
    "encoding",
    "envvar",
}
# Where a single word is a message too, and which argument of the call it is.
_WORD_CALLS = {"table", "task"}
_TELLING_CALLS = {"say", "line", "note"}
_TELLING_KEYWORDS = {"hint", "help", "fix", "remedy", "meaning", "title"}
_GAP = re.compile(r"\{[0-9a-z_]*(?:![rs])?(?::[^{}]*)?\}")
_LETTERS = re.compile(r"[A-Za-z]{2,}")
# Flags, formats, expressions and other code in quotes.
_CODE = re.compile(
    r"^--?[a-z][\w-]*( \S+)*$|^(<|[A-Z_]+=)|\(\?|\[\^|\\[wdsb]|\.\*|^[#@]|%[A-Z]:|^[a-z]+ -{1,2}[a-z][^:]*$"
)


def pieces(node: ast.expr) -> list[str | None] | None:
    """A string expression as its fixed parts, None for each gap; None when it is no such expression."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = pieces(node.left), pieces(node.right)
        if left is None and right is None:
            return None
        return [*(left or [None]), *(right or [None])]
    return None


def template(parts: list[str | None]) -> str:
    """The parts as the catalogue writes them: gaps numbered, no white space around."""
    text = ""
    for part in parts:
        text += "\0" if part is None else _GAP.sub("\0", part)
    text = re.sub("\0+", "\0", text).strip()
    for number in range(text.count("\0")):
        text = text.replace("\0", f"{{{number}}}", 1)
    return text


def _prose(text: str) -> bool:
    bare = re.sub(r"\{\d+\}", "", text)
    return " " in text and len(_LETTERS.findall(bare)) >= 2 and not _CODE.search(text)


class Finder(ast.NodeVisitor):
    """Collects a module's messages and words."""

    def __init__(self) -> None:
        self.messages: set[str] = set()
        self.words: set[str] = set()
        self.units: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        """Everything but prose for readers of the code."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Compare | ast.arg | ast.Subscript | ast.AnnAssign | ast.Dict):
            for value in self._telling_parts(node):
                self.visit(value)
            return
        if isinstance(node, ast.Call):
            self._call(node)
            return
        if isinstance(node, ast.expr) and pieces(node) is not None:
            self._text(node, surely=False)
            return
        if isinstance(node, ast.FunctionDef):
            self._command(node)
        self.generic_visit(node)

    def _telling_parts(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Subscript):
            yield node.value
            # `Annotated[Path, typer.Option(help="...")]` alone holds messages.
            yield from (n for n in ast.walk(node.slice) if isinstance(n, ast.Call))
        elif isinstance(node, ast.AnnAssign):
            yield from [node.annotation, *([node.value] if node.value else [])]
        elif isinstance(node, ast.arg):
            yield from [node.annotation] if node.annotation else []
        elif isinstance(node, ast.Dict):
            yield from node.values

    def _call(self, node: ast.Call) -> None:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _MUTE_CALLS:
            return
        self.visit(function)
        if (
            name == "row" and len(node.args) > 3
        ):  # deploy/signature.py: name, pattern, meaning, fix, upstream
            for argument in node.args[2:4]:
                self._given(argument, surely=True)
            return
        if name in _WORD_CALLS:
            self._words(node, name)
        surely = name in _TELLING_CALLS or name.endswith("Error") or name == "BadParameter"
        if name == "Row":
            self._row(node)
        for place, argument in enumerate(node.args):
            self._given(argument, surely=surely and place == 0)
        for keyword in node.keywords:
            if keyword.arg == "rich_help_panel" and isinstance(keyword.value, ast.Constant):
                self.words.add(str(keyword.value.value))
            elif keyword.arg not in _MUTE_KEYWORDS:
                self._given(keyword.value, surely=keyword.arg in _TELLING_KEYWORDS)

    def _row(self, node: ast.Call) -> None:
        """A row of preflight: short texts around a value, such as `disk {0}`, are messages too."""
        for keyword in node.keywords:
            for part in ast.walk(keyword.value):
                if isinstance(part, ast.JoinedStr):
                    text = template(pieces(part) or [])
                    if "{" in text and _LETTERS.search(re.sub(r"\{\d+\}", "", text)):
                        self.messages.add(text)

    def _given(self, node: ast.expr, *, surely: bool) -> None:
        if surely and isinstance(node, ast.IfExp | ast.BoolOp):
            inner = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            for branch in inner:
                self._given(branch, surely=True)
            return
        if pieces(node) is not None:
            self._text(node, surely=surely)
        else:
            self.visit(node)

    def _words(self, node: ast.Call, name: str) -> None:
        if name == "task":
            self._one_word(node.args[:1], self.words)
            units = [k.value for k in node.keywords if k.arg == "unit"]
            self._one_word([*node.args[2:3], *units], self.units)
            return
        for argument in node.args[:2]:
            parts = argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]
            self._one_word(parts, self.words)

    def _one_word(self, given: Sequence[ast.expr], into: set[str]) -> None:
        for text in given:
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                bare = text.value.lstrip("#")
                if _LETTERS.search(bare):
                    into.add(bare)

    def _text(self, node: ast.expr, *, surely: bool) -> None:
        parts = pieces(node)
        assert parts is not None
        text = template(parts)
        bare = re.sub(r"\{\d+\}", "", text)
        if _prose(text) or (surely and _LETTERS.search(bare) and not _CODE.search(text)):
            self.messages.add(" ".join(text.split()) if "\n" in text else text)
        self._inside(node)

    def _inside(self, node: ast.expr) -> None:
        """Messages in the gaps."""
        if isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                if pieces(side) is None:
                    self.visit(side)
                else:
                    self._inside(side)
        elif isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    self.visit(part.value)

    def _command(self, node: ast.FunctionDef) -> None:
        """A command's help is its docstring."""
        text = ast.get_docstring(node)
        if text and not node.name.startswith("_") and self.commands:
            self.messages.update(part for part in paragraphs(text) if node.name in self.commands)

    commands: frozenset[str] = frozenset()


def _commands() -> dict[str, set[str]]:
    """Help of every command, by the command line itself."""
    import typer

    from bundler.cli.app import make_app

    found: set[str] = set()

    def walk(command: object) -> None:
        text = getattr(command, "help", None)
        if text:
            found.update(paragraphs(inspect.cleandoc(text)))
        for below in getattr(command, "commands", {}).values():
            walk(below)

    walk(typer.main.get_command(make_app([])))
    return {"messages": found}


def found() -> dict[str, set[str]]:
    """All messages and words of the code, besides what stands in LIBRARY."""
    finder = Finder()
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(SILENT):
            finder.visit(ast.parse(path.read_text()))
    messages = finder.messages | _commands()["messages"] | LIBRARY
    return {"messages": messages, "words": finder.words | WORDS, "units": finder.units}


# Said by others in the middle of our sentences: click through Typer, pydantic, the operating system.
LIBRARY = {
    "No such option: {0}", "No such option: {0} Did you mean {1}?", "No such option {0}.",
    "No such option {0}. Did you mean {1}?", "No such option: {0} (Possible options: {1})",
    "No such command {0}.", "No such command {0}. Did you mean {1}?", "Missing option {0}.", "Missing argument {0}.", "Missing command.",
    "Missing parameter: {0}", "Invalid value for {0}: {1}", "Invalid value: {0}",
    "Got unexpected extra argument ({0})", "Got unexpected extra arguments ({0})",
    "Option {0} requires an argument.", "Option {0} does not take a value.", "{0} is not a valid integer.",
    "{0} is not a valid float.", "{0} is not one of {1}.", "{0} is not in the range {1}.", "Show this message and exit.",
    "Install completion for the current shell.",
    "Show completion for the current shell, to copy it or customize the installation.",
    "Input should be greater than or equal to {0}", "Input should be less than or equal to {0}", "Input should be greater than {0}", "Input should be less than {0}", "Input should be a valid integer", "Input should be a valid integer, unable to parse string as an integer", "Input should be a valid number", "Input should be a valid number, unable to parse string as a number", "Input should be a valid string", "Input should be a valid boolean", "Input should be a valid boolean, unable to interpret input", "Input should be a valid dictionary", "Input should be a valid list", "Input should be a valid tuple", "Input should be a valid dictionary or instance of {0}", "Input should be {0} or {1}", "Input should be {0}", "Field required", "Extra inputs are not permitted", "String should match pattern {0}", "String should have at least {0} character", "String should have at least {0} characters", "String should have at most {0} characters", "Value error, {0}",
    # `(given: ...)` of build/specfile.py, after any of these.
    "{0} and {1} more", "{0}: line {1} not YAML: {2}", "line {0} not YAML: {1}", "line {0}: unknown key {1}; did you mean {2}? (allowed: {3})", "{0}: line {1}: unknown key {2}; did you mean {3}? (allowed: {4})", "Tuple should have at least {0} item after validation, not {1}", "List should have at least {0} item after validation, not {1}", "reading {0}: {1}", "writing {0}: {1}", "creating {0}: {1}", "opening {0}: {1}", "removing {0}: {1}", "renaming {0}: {1}", "switching {0}: {1}", "unpacking to {0}: {1}",
"{0}, or choose --attention-backend {1}.", "running: none", "█ weights {0}", "# weights {0}", "{0} full layers", "{0} sliding layers", "({0} K + {1} V elements)", "{0} mla layers x ({1} + {2} elements) of {3}", "requires nothing", "extra {0}", "import {0}", "release {0}", "{0}: {1} files, {2}", "(given: {0})", "{0}, concurrency {1}",
    "No such file or directory", "Permission denied", "No space left on device", "Read-only file system",
    "Is a directory", "Not a directory", "Input/output error", "Disk quota exceeded", "File exists",
    "File too large", "Connection refused", "Operation not permitted", "Directory not empty",
    "Too many open files", "Connection reset by peer", "Stale file handle", "Device or resource busy",
}  # fmt: skip
# Names of states and of the rows of tables: single words that only their column tells from a name.
WORDS = {
    "ok", "warn", "FAIL", "unknown", "could not check", "free", "missing", "on", "off", "exclusive",
    "complete", "current", "previous", "installed", "ready", "starting", "died", "UNSIGNED", "done", "begun", "failed",
    "interrupted", "processor", "container", "memory", "libraries", "python", "clock", "proxies", "GPUs", "driver",
    "operating system", "huge pages", "shared memory", "none on PATH",
    "description", "created", "target", "tool", "base", "signature", "needs", "waived", "present", "absent",
    "error", "warning", "note", "weights", "added", "removed", "changed", "attention", "linear", "graphs",
    "model", "wheel", "lock", "requirements", "spec",
    # Rows and columns of `doctor`, `review --against` and `--dry-run`.
    "packages", "cache", "index", "imports", "policy", "text", "root", "garbage", "upgrade", "releases", "services",
    "whole", "there", "none", "not readable", "half installed",
    "write", "replace", "append to", "remove", "point", "make", "start", "stop",
    "trust", "component", "file", "execution", "vulnerability", "setting", "record",
    "answered", "partly", "open", "works", "running", "waiting",
}  # fmt: skip


def main(argv: list[str]) -> None:
    """Print what is missing, or add what was filled in."""
    held = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    wanted = found()
    held = {kind: held.get(kind, {}) for kind in wanted}
    if argv:
        for kind, texts in json.loads(Path(argv[0]).read_text(encoding="utf-8")).items():
            held[kind].update(
                {english: korean for english, korean in texts.items() if korean != ""}
            )
        kept = {
            kind: {text: held[kind][text] for text in sorted(texts) if text in held[kind]}
            for kind, texts in wanted.items()
        }
        CATALOGUE.write_text(
            json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
        held = kept
    missing = {
        kind: dict.fromkeys(sorted(texts - held[kind].keys()), "") for kind, texts in wanted.items()
    }
    print(json.dumps(missing, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
