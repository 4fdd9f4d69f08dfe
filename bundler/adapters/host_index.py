"""What pip and uv are configured with on this host, so that a build works wherever pip works.

uv does not read pip's configuration (https://docs.astral.sh/uv/pip/compatibility/), so it is read
here, through pip's own `config list`, which knows every file and variable and their precedence, and
handed on. uv's own files and variables stay in force, since uv reads them itself; only its
certificates and whether it has a default index of its own are read here.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import tomli

from bundler.errors import ToolError
from bundler.ports import CommandRunner, HostIndex

# Later wins, as in pip: a section for the command over [global], the environment over both.
_SECTIONS = ("global", "install", "download", ":env:")


def read_host_index(
    runner: CommandRunner, environ: Mapping[str, str] | None = None, python: str = sys.executable
) -> HostIndex:
    """Read both tools' configuration.

    Raises:
        ToolError: pip is there but cannot read its own configuration.
    """
    environ = os.environ if environ is None else environ
    pip = _pip_options(runner, python)
    index = pip.get("index-url")
    extra = tuple(_words(pip.get("extra-index-url", "")))
    if index is not None and _uv_has_default(environ):
        extra = (index, *extra)
        index = None
    cert = pip.get("cert") or environ.get("SSL_CERT_FILE") or environ.get("REQUESTS_CA_BUNDLE")
    return HostIndex(
        default_index=index,
        extra_indexes=extra,
        find_links=tuple(_words(pip.get("find-links", ""))),
        cert=Path(cert) if cert else None,
        trusted_hosts=tuple(_words(pip.get("trusted-host", ""))),
        no_index=pip.get("no-index", "").lower() in ("1", "true", "yes", "on"),
    )


def _pip_options(runner: CommandRunner, python: str) -> dict[str, str]:
    done = runner.run([python, "-m", "pip", "config", "list"])
    if done.returncode != 0:
        if "No module named pip" in done.stderr:
            return {}
        raise ToolError(
            f"pip config list: {done.stderr.strip().splitlines()[-1:]}",
            hint="Repair pip's configuration; `pip config debug` shows the files.",
        )
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in found:
            found[section][option] = str(ast.literal_eval(value))
    merged: dict[str, str] = {}
    for section in _SECTIONS:
        merged.update(found[section])
    return merged


def _words(text: str) -> Iterator[str]:
    yield from text.split()


def _uv_has_default(environ: Mapping[str, str]) -> bool:
    if any(environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")):
        return True
    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    named = environ.get("UV_CONFIG_FILE")
    files = [Path(named)] if named else [home / "uv/uv.toml", Path("/etc/uv/uv.toml")]
    return any(_names_a_default(path) for path in files if path.is_file())


def _names_a_default(path: Path) -> bool:
    data = tomli.loads(path.read_text(encoding="utf-8"))
    pip = data.get("pip", {})
    indexes = [*data.get("index", []), *pip.get("index", [])]
    return bool(
        data.get("index-url")
        or pip.get("index-url")
        or any(index.get("default") for index in indexes)
    )
