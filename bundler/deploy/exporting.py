"""A release in the forms of other tools: which files go where, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.kubernetes import kubernetes_files
from bundler.deploy.playbook import playbook_files
from bundler.deploy.root import Root
from bundler.deploy.units import unit_files
from bundler.domain.facts import ReleaseRecord


@dataclass(frozen=True)
class Export:
    """Files to write, and one line that says what comes then."""

    files: Mapping[Path, str]
    then: str


def systemd(root: Root, record: ReleaseRecord, out: Path, *, user: str, own: bool) -> Export:
    """Units; `own`: for the user's own manager. The environment files lie in the root.

    Raises:
        StateError: see `unit_files`.
    """
    units = unit_files(root.path, record.services, user=user, for_user_manager=own)
    files = {
        (root.path if name.startswith("etc/") else out) / name: text for name, text in units.items()
    }
    flag, where = (" --user", "~/.config/systemd/user") if own else ("", "/etc/systemd/system")
    names = " ".join(path.stem for path in files if path.suffix == ".service")
    return Export(
        _but_what_is_filled_in(files, lambda path: path.suffix == ".env"),
        f"Copy the units to {where}, then: systemctl{flag} daemon-reload && systemctl{flag} enable --now {names}",
    )


def ansible(root: Root, record: ReleaseRecord, out: Path) -> Export:
    """The rollout to many hosts."""
    made = playbook_files(root.path, record.bundle_id)
    files = {out / name: text for name, text in made.items()}
    return Export(
        _but_what_is_filled_in(files, lambda path: path.name != "airbundle.yml"),
        f"Fill in airbundle.vars.yml and inventory.ini in {out}, then there:"
        " ansible-playbook -i inventory.ini airbundle.yml",
    )


def k8s(root: Root, record: ReleaseRecord, out: Path, *, image: str, namespace: str) -> Export:
    """Objects for a cluster.

    Raises:
        StateError: see `kubernetes_files`.
    """
    made = kubernetes_files(
        root.path, record.services, image=image, namespace=namespace, engine=record.engine_name
    )
    return Export(
        {out / name: text for name, text in made.items()},
        f"Label the nodes that have it installed, then: kubectl apply -f {out}",
    )


def _but_what_is_filled_in(
    files: Mapping[Path, str], operators: Callable[[Path], bool]
) -> dict[Path, str]:
    """What an operator has filled in is not overwritten."""
    return {path: text for path, text in files.items() if not (operators(path) and path.exists())}
