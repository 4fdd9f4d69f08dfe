"""The policy in force in a root: canonical JSON with the keys inside, so that no key file has to stay."""

from __future__ import annotations

import os

from bundler.deploy.root import Root
from bundler.domain.trust import Policy
from bundler.errors import PolicyError, StateError, disk_errors
from bundler.format.codec import from_bytes, to_bytes


def kept_policy(root: Root) -> Policy | None:
    """The policy that is in force in a root, None when there is none."""
    path = root.policy
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise PolicyError(f"{path}: is no regular file, so nothing is trusted here")
    with disk_errors("reading", path):
        return from_bytes(Policy, path.read_bytes(), str(path))


def keep_policy(root: Root, policy: Policy, *, replace: bool = False) -> None:
    """Put a policy in force.

    Raises:
        StateError: another one is, and `replace` is not given.
    """
    with root.alone():
        before = kept_policy(root)
        if before is not None and before != policy and not replace:
            raise StateError(
                f"{root.path}: another policy is in force",
                hint="`airbundle trust show` shows it; --replace puts the new one in its place.",
            )
        root.write(root.policy, to_bytes(policy))
