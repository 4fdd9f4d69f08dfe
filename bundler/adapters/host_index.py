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
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import tomli

from bundler.domain.hostindex import HostIndex
from bundler.errors import ToolError, as_error
from bundler.ports import CommandRunner

# Later wins, as in pip: a section for the command over [global], the environment over both.
_SECTIONS = ("global", "install", "download", ":env:")
# What `pip config list` does, without the rest of pip's command line, which takes longer to load than
# this to answer. It is pip's own inside: where it has changed, the command itself is asked.
_QUICK = """
from pip._internal.configuration import Configuration
configuration = Configuration(isolated=False)
configuration.load()
for name, value in sorted(configuration.items()):
    if not isinstance(value, str):
        raise SystemExit(1)
    print(f"{name}={value!r}")
"""
T = TypeVar("T")


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
    done = runner.run([python, "-c", _QUICK])
    if done.returncode != 0:
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
            with as_error(ToolError, f"pip config list: {name}"):
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
            with as_error(ToolError, name):
                found = _with_credentials(url, label, environ)
            yield found, default
    for path in _uv_files(environ):
        yield from _file_indexes(path, environ)


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


def _uv_files(environ: Mapping[str, str]) -> list[Path]:
    """Each uv.toml that uv would read for a user."""
    named = environ.get("UV_CONFIG_FILE")
    if named:
        return [Path(named)]
    return [*_user_config(environ), Path("/etc/uv/uv.toml")]


def _user_config(environ: Mapping[str, str]) -> list[Path]:
    """None for a user without a home, as in a container run under a number that has no name."""
    folder = environ.get("XDG_CONFIG_HOME")
    try:
        home = Path(folder) if folder else Path.home() / ".config"
    except RuntimeError:
        return []
    return [home / "uv" / "uv.toml"]


def _file_indexes(path: Path, environ: Mapping[str, str]) -> list[tuple[str, bool]]:
    """Indexes of a uv.toml: of its top level and of its [pip] table."""
    with as_error(ToolError, f"reading {path}"):
        if not path.is_file():
            return []
        data = tomli.loads(path.read_text(encoding="utf-8"))
        tables = [data, _typed(data, "pip", dict)]
        return [found for table in tables for found in _table_indexes(table, environ)]


def _table_indexes(table: dict[str, Any], environ: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    for index in _typed(table, "index", list):
        if not isinstance(index, dict):
            raise TypeError("index is not a list of tables")
        url, name = _typed(index, "url", str), _typed(index, "name", str)
        yield _with_credentials(url, name, environ), bool(index.get("default"))
    if table.get("index-url"):
        yield _typed(table, "index-url", str), True
    for url in _typed(table, "extra-index-url", list):
        yield str(url), False


def _typed(table: Mapping[str, Any], key: str, kind: type[T]) -> T:
    """A value of the type that uv gives it, empty when absent."""
    value = table.get(key, kind())
    if not isinstance(value, kind):
        raise TypeError(f"{key} is not a {kind.__name__}")
    return value
