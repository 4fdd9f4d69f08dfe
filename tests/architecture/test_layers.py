"""The import rules of docs/architecture.md, executed."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bundler

ROOT = Path(bundler.__file__).parent
CORE = {"domain", "errors"}
HALF = CORE | {"format", "ports", "instruments"}
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": set(),
    "errors": set(),
    "domain": set(),
    "ports": CORE,
    "instruments": CORE,
    "format": CORE | {"ports"},
    "build": HALF | {"__init__"},
    "deploy": HALF,
    "accept": HALF,
    "review": HALF,
    "adapters": HALF,
    "bootstrap": set(),
    "demo": HALF | {"__init__"},
    "wiring": HALF | {"build", "deploy", "accept", "review", "adapters"},
    "connecting": HALF | {"build", "wiring", "adapters"},
    "cli": HALF | {"build", "deploy", "accept", "review", "wiring", "connecting", "demo"},
    "__main__": {"cli"},
}


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "bundler")


def imported_parts(tree: ast.AST) -> Iterator[str]:
    for name in imported_modules(tree):
        yield [*name.split("."), "__init__"][1]


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def broken_rules(files: list[tuple[str, str]]) -> list[str]:
    broken = []
    for name, text in files:
        here = name.split("/")[0].removesuffix(".py")
        allowed = MAY_IMPORT[here] | {here}
        broken += [
            f"{name} imports {part}"
            for part in imported_parts(ast.parse(text))
            if part not in allowed
        ]
    return broken


def test_every_import_points_inward() -> None:
    files = [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in sources()]
    assert not broken_rules(files)


def test_the_rule_catches_a_planted_violation() -> None:
    planted = [
        ("build/x.py", "from bundler.deploy.root import Root"),
        ("domain/y.py", "import bundler.ports"),
    ]
    assert broken_rules(planted) == ["build/x.py imports deploy", "domain/y.py imports ports"]


def test_adapters_do_not_know_each_other() -> None:
    for path in (ROOT / "adapters").rglob("*.py"):
        own = path.relative_to(ROOT / "adapters").parts[0].removesuffix(".py")
        for name in imported_modules(ast.parse(path.read_text())):
            parts = name.split(".")
            if len(parts) > 2 and parts[1] == "adapters":
                assert parts[2] == own, f"{path.name} imports {name}"


def test_no_hashlib_outside_the_bootstrap() -> None:
    for path in sources():
        if path.name == "airbundle_bootstrap.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "hashlib" not in [alias.name for alias in node.names], path
            if isinstance(node, ast.ImportFrom):
                assert node.module != "hashlib", path


def test_no_module_is_a_drawer_for_leftovers() -> None:
    banned = {"utils", "util", "helpers", "common", "misc", "manager"}
    assert not [path for path in sources() if path.stem in banned]


def test_modules_stay_readable() -> None:
    long = {p.name: n for p in sources() if (n := len(p.read_text().splitlines())) > 400}
    assert not {k: v for k, v in long.items() if k != "airbundle_bootstrap.py"}, long


HEAVY = ("huggingface_hub", "aiohttp", "pynvml", "requests", "piptools", "uv")


@pytest.mark.parametrize("command", [["--help"], ["verify", "--help"], ["plan", "--help"]])
def test_help_loads_no_heavy_library(command: list[str]) -> None:
    code = (
        "import sys; from bundler.cli.app import run; run(sys.argv[1:]);"
        f"print('LOADED', *sorted({set(HEAVY)!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines()[-1] == "LOADED"


def test_architecture_page_names_only_what_exists() -> None:
    text = (ROOT.parent / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`(bundler/[\w/.]+)`", text))
    assert named
    assert not [name for name in named if not (ROOT.parent / name).exists()]
