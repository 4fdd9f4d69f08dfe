"""The site's policy as a person writes it in YAML; `policyfile` is how a root keeps it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from bundler.domain.trust import Policy
from bundler.errors import KeyFileError, PolicyError, disk_errors
from bundler.ports import Verifier

MAX_POLICY_BYTES = 2**20


class _Texts(yaml.BaseLoader):
    """Every value as it is written: a date, or a key's id of digits only, stays a text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that is there twice: the second would silently win."""
        names = [key.value for key, _ in node.value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {twice!r} is there twice")
        return super().construct_mapping(node, deep)


def load_policy(path: Path, make_verifier: Callable[[Path], Verifier]) -> Policy:
    """Read a policy file; each key is a `file:` (relative to the policy) or a `pem:`.

    Raises:
        PolicyError: not a policy.
        KeyFileError: a key file is not there, or no public Ed25519 key.
    """
    if not path.is_file():
        raise PolicyError(f"{path}: no such policy file", hint="Give --policy POLICY.yaml.")
    with disk_errors("reading", path):
        if path.stat().st_size > MAX_POLICY_BYTES:
            raise PolicyError(f"{path}: over {MAX_POLICY_BYTES} bytes")
        data = path.read_bytes()
    try:
        document = yaml.load(data, Loader=_Texts)  # noqa: S506 - BaseLoader makes texts only
    except (yaml.YAMLError, ValueError, RecursionError) as cause:
        raise PolicyError(f"{path}: not YAML: {cause}") from cause
    if not isinstance(document, dict):
        raise PolicyError(f"{path}: not a policy: it has no keys such as `require`")
    keys = document.get("keys")
    if isinstance(keys, list):
        document["keys"] = [_with_pem(key, path, make_verifier) for key in keys]
    try:
        policy = Policy.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise PolicyError(f"{path}: {where + ': ' if where else ''}{first['msg']}") from error
    return policy


def _with_pem(key: Any, policy: Path, make_verifier: Callable[[Path], Verifier]) -> Any:
    """The key with its file's content in it; what has another form is left for the type to refuse."""
    if not isinstance(key, dict) or not isinstance(key.get("file"), str):
        return key
    if "pem" in key:
        raise PolicyError(f"{policy}: a key has `file` or `pem`, not both")
    place = policy.parent / key["file"]
    try:
        pem = make_verifier(place).pem.decode("ascii")
    except UnicodeDecodeError as cause:
        raise KeyFileError(f"{place}: not PEM: it has characters beyond ASCII") from cause
    return {name: value for name, value in key.items() if name != "file"} | {"pem": pem}
