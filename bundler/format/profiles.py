"""Profiles as YAML: read them with care, write them so that a person can read and change them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from bundler.domain.profile import Profile, ProfileFile
from bundler.errors import FormatError, disk_errors

MAX_BYTES = 4 * 2**20
MAX_FILES = 1000
HINT = "docs/baselines.md describes profiles; `airbundle baseline record` makes one."


class _Texts(yaml.BaseLoader):
    """Every value as it is written: version 0.10 stays a text. No aliases, no key twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"line {self.get_mark().line + 1}: an alias; write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                what = f"{key.value!r} is there twice" if isinstance(key, yaml.ScalarNode) else "a key is a word"  # fmt: skip
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: {what}")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def shipped_folder() -> Path:
    """Where the profiles lie that come with airbundle: in an installed package, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "manifests" / "profiles"
    return inside if inside.is_dir() else package.parent / "manifests" / "profiles"


def profiles_in(folder: Path) -> tuple[Profile, ...]:
    """Every profile of a folder's *.yaml; none when there is no such folder.

    Raises:
        FormatError: a file is no file of profiles.
        FileAccessError: one cannot be read.
    """
    with disk_errors("reading", folder):
        paths = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    if len(paths) > MAX_FILES:
        raise FormatError(f"{folder}: over {MAX_FILES} files", hint=HINT)
    return tuple(profile for path in paths for profile in load_profiles(path))


def load_profiles(path: Path) -> tuple[Profile, ...]:
    """Read a file of profiles.

    Raises:
        FormatError: not readable as one; the message says which key.
        FileAccessError: it cannot be read.
    """
    if not path.is_file():
        raise FormatError(f"{path}: no such profile file", hint=HINT)
    with disk_errors("reading", path), path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return parse_profiles(data, str(path))


def parse_profiles(data: bytes, name: str) -> tuple[Profile, ...]:
    """The profiles in a file's bytes; `name` is what errors call it.

    Raises:
        FormatError: as `load_profiles`.
    """
    if len(data) > MAX_BYTES:
        raise FormatError(f"{name}: over {MAX_BYTES} bytes; no file of profiles", hint=HINT)
    try:
        document = yaml.load(data.decode(), Loader=_Texts)  # noqa: S506 - makes texts only
    except (yaml.YAMLError, ValueError, RecursionError) as cause:
        raise FormatError(f"{name}: not YAML: {_plain(cause)}", hint=HINT) from cause
    if not isinstance(document, dict):
        raise FormatError(f"{name}: no file of profiles: it has no key `profiles`", hint=HINT)
    try:
        return ProfileFile.model_validate(document).profiles
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise FormatError(f"{name}: {_plain(where)}: {_plain(first['msg'])}", hint=HINT) from error


def profile_bytes(profiles: Sequence[Profile]) -> bytes:
    """A file of profiles, what nobody said left out."""
    document = ProfileFile(profiles=tuple(profiles)).model_dump(
        mode="json", exclude_none=True, exclude_defaults=True
    )
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100).encode()


def _plain(text: object) -> str:
    shown = " ".join(str(text).split())
    return "".join(c if c.isprintable() else "?" for c in shown)[:400]
