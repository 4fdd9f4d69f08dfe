"""Completion in the shells themselves, with the scripts that `--show-completion` gives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAM = Path(sys.executable).with_name("airbundle")
# What is typed, up to the tab -> what is offered among others, and what is not.
TYPED = [
    (["ins"], {"install"}, {"plan"}),
    (["plan", "--explain", "jit"], {"jit-nvcc"}, {"arch-unknown"}),
    (["install", "q"], {"qwen-123"}, {"other-9"}),
    (["uninstall", "o"], {"other-9"}, {"qwen-123"}),
    (["trust", "ro"], {"rotate"}, {"revoke"}),
    (["init", "--gpu", "H2"], {"H200"}, {"H100", "A100"}),
    (["init", "--medium", "dvd"], {"dvd", "dvd-dl"}, {"fat32"}),
]
BASH = """
eval "$(_AIRBUNDLE_COMPLETE=source_bash airbundle)"
COMP_WORDS=(airbundle "$@"); COMP_CWORD=$#; _airbundle_completion airbundle
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
autoload -U compinit; compinit -u -D
compadd() { while [[ "$1" == -* && "$1" != -- ]]; do shift; done; print -l -- "$@" }
_describe() { print -l -- "${(@P)${@[-1]}}" }
_arguments() { local spec="${@[-1]}"; print -r -- "$spec" }
eval "$(_AIRBUNDLE_COMPLETE=source_zsh airbundle)" 2>/dev/null
words=(airbundle "$@"); CURRENT=$#words; _airbundle_completion
"""
FISH = """
_AIRBUNDLE_COMPLETE=source_fish airbundle | source
complete -C "airbundle $argv"
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    root = tmp_path / "root"
    for folder in ("bundles/qwen-123", "bundles/other-9", "releases/other-9"):
        (root / folder).mkdir(parents=True)
    return {
        "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AIRBUNDLE_ROOT": str(root),
        "LANG": "C.UTF-8",
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_offers_what_fits(shell: str, env: dict[str, str]) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not on this host")
    script = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell]
    # What is offered is the same code in each shell; the scripts that ask for it are not.
    for words, offered, left_out in TYPED if shell == "bash" else TYPED[1:3]:
        named = [shell, *words] if shell != "fish" else words
        done = subprocess.run(
            [program, "-c", script, *named], env=env, capture_output=True, text=True
        )
        found = done.stdout.replace('"', " ").replace("\\n", " ").replace(":", " ").split()
        assert offered <= set(found), (words, done.stdout, done.stderr)
        assert not left_out & set(found), (words, done.stdout)
