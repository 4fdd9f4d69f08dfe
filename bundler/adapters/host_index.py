"""What pip and uv are configured with on this host, so that a build works wherever pip works.

uv does not read pip's configuration (https://docs.astral.sh/uv/pip/compatibility/), so it is read
here, through pip's own `config list`, which knows every file and variable and their precedence, and
handed on. uv's own files and variables stay in force, since uv reads them itself; they are read here
for what the downloads need as well: credentials, untrusted hosts, and whether uv has a default index.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import tomli

from bundler.errors import ToolError, as_error
from bundler.ports import CommandRunner, HostIndex

# Later wins, as in pip: a section for the command over [global], the environment over both.
_SECTIONS = ("global", "install", "download", ":env:")


def read_host_index(
    runner: CommandRunner, environ: Mapping[str, str] | None = None, python: str = sys.executable
) -> HostIndex:
    """Read both tools' configuration.

    Raises:
        ToolError: one of the tools' configuration files cannot be read.
    """
    environ = os.environ if environ is None else environ
    pip = _pip_options(runner, python)
    uv = list(_uv_indexes(environ))
    default = pip.get("index-url")
    extra = tuple(_words(pip.get("extra-index-url", "")))
    if default is not None and any(is_default for _, is_default in uv):
        extra = (default, *extra)
        default = None
    cert = pip.get("cert") or environ.get("SSL_CERT_FILE") or environ.get("REQUESTS_CA_BUNDLE")
    trusted = [pip.get("trusted-host", ""), environ.get("UV_INSECURE_HOST", "")]
    return HostIndex(
        default_index=default,
        extra_indexes=extra,
        uv_indexes=tuple(url for url, _ in uv),
        find_links=tuple(_words(pip.get("find-links", ""))),
        cert=Path(cert) if cert else None,
        trusted_hosts=tuple(word for text in trusted for word in _words(text)),
        no_index=pip.get("no-index", "").lower() in ("1", "true", "yes", "on"),
    )


def _pip_options(runner: CommandRunner, python: str) -> dict[str, str]:
    done = runner.run([python, "-m", "pip", "config", "list"])
    if done.returncode != 0:
        if "No module named pip" in done.stderr:
            return {}
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ToolError(
            f"pip config list: {last}",
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


def _uv_indexes(environ: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Addresses that uv asks by itself, with their credentials, and whether each is its default."""
    for name, default in (("UV_DEFAULT_INDEX", True), ("UV_INDEX_URL", True),
                          ("UV_INDEX", False), ("UV_EXTRA_INDEX_URL", False)):  # fmt: skip
        for word in _words(environ.get(name, "")):
            label, _, url = word.rpartition("=") if "=" in word.split("://")[0] else ("", "", word)
            yield _with_credentials(url, label, environ), default
    for table in _uv_tables(environ):
        for index in table.get("index", []):
            url = _with_credentials(str(index.get("url", "")), str(index.get("name", "")), environ)
            yield url, bool(index.get("default"))
        if table.get("index-url"):
            yield str(table["index-url"]), True
        for url in table.get("extra-index-url", []):
            yield str(url), False


def _with_credentials(url: str, name: str, environ: Mapping[str, str]) -> str:
    """Uv takes a named index's credentials from UV_INDEX_<NAME>_USERNAME and _PASSWORD."""
    key = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
    user = environ.get(f"UV_INDEX_{key}_USERNAME") if name else None
    if not user:
        return url
    secret = environ.get(f"UV_INDEX_{key}_PASSWORD", "")
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{quote(user, '')}:{quote(secret, '')}@{host}").geturl()


def _uv_tables(environ: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """uv.toml's top level and its [pip] table, of each file that uv would read for a user."""
    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    named = environ.get("UV_CONFIG_FILE")
    files = [Path(named)] if named else [home / "uv/uv.toml", Path("/etc/uv/uv.toml")]
    for path in filter(Path.is_file, files):
        with as_error(ToolError, f"reading {path}"):
            data = tomli.loads(path.read_text(encoding="utf-8"))
        yield data
        yield data.get("pip", {})
