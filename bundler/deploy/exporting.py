"""A release in the forms of other tools: which files go where, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.kubernetes import kubernetes_files
from bundler.deploy.multinode import ENV_FILE, node_files
from bundler.deploy.playbook import playbook_files
from bundler.deploy.preparing import planned
from bundler.deploy.root import Root
from bundler.deploy.units import unit_files
from bundler.domain.facts import ReleaseRecord
from bundler.domain.seat import Seat, Way
from bundler.domain.spec import Service
from bundler.errors import StateError
from bundler.ports import EngineAdapter, LaunchPlan


@dataclass(frozen=True)
class Export:
    """Files to write, and one line that says what comes then."""

    files: Mapping[Path, str]
    then: str


def systemd(root: Root, record: ReleaseRecord, out: Path, *, user: str, own: bool) -> Export:
    """Units; `own`: for the user's own manager. The environment files lie in the root.

    Raises:
        StateError: see `unit_files`; or a service spans several nodes.
    """
    _refuse_nodes(record, "systemd")
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
    """The rollout to many hosts.

    Raises:
        StateError: a service spans several of them.
    """
    _refuse_nodes(record, "ansible")
    made = playbook_files(root.path, record.bundle_id)
    files = {out / name: text for name, text in made.items()}
    alone = (
        f" It installs {record.bundle_id} as it was signed: the settings of {record.release_id} are of this"
        " host, where they were measured."
    )
    return Export(
        _but_what_is_filled_in(files, lambda path: path.name != "airbundle.yml"),
        f"Fill in airbundle.vars.yml and inventory.ini in {out}, then there:"
        " ansible-playbook -i inventory.ini airbundle.yml" + (alone if record.variant else ""),
    )


def multinode(
    root: Root, record: ReleaseRecord, out: Path, engine: EngineAdapter, way: Way
) -> Export:
    """Scripts for the nodes of services that span several.

    Raises:
        StateError: no service does.
        SpecError: the release cannot serve so.
    """
    spanning = [service for service in record.services if service.nodes > 1]
    if not spanning:
        raise StateError(
            f"{record.bundle_id}: no service of it spans several nodes",
            hint="Build it with services[].nodes in its spec.",
        )
    folder = root.release(record.bundle_id)

    def plan(service: Service, seat: Seat) -> LaunchPlan:
        return planned(root, folder, record, service, engine, seat)

    made = node_files(root.path, spanning, way, _ray(root, record), plan)
    files = {out / name: text for name, text in made.items()}
    return Export(
        _but_what_is_filled_in(files, lambda path: path.name == ENV_FILE),
        f"Fill in {ENV_FILE}, copy {out} to each node, then: sh SERVICE/head.sh on the first and"
        " sh SERVICE/worker.sh NUMBER on the others",
    )


def k8s(
    root: Root, record: ReleaseRecord, out: Path, *, image: str, namespace: str, way: Way = "native"
) -> Export:
    """Objects for a cluster.

    Raises:
        StateError: see `kubernetes_files`.
    """
    ray = _ray(root, record)
    if (
        way == "ray"
        and not (root.release(record.bundle_id) / record.python).with_name("ray").exists()
    ):
        raise StateError(
            f"{record.bundle_id}: this release holds no Ray",
            hint="Build it with engine.requirements: ['ray[cgraph]'], or take --over native.",
        )
    made = kubernetes_files(
        root.path,
        record.services,
        image=image,
        namespace=namespace,
        way=way,
        ray=ray,
        engine=record.engine_name,
    )
    return Export(
        {out / name: text for name, text in made.items()},
        f"Label the nodes that have it installed, then: kubectl apply -f {out}",
    )


def _ray(root: Root, record: ReleaseRecord) -> Path:
    """Ray's program of whatever release is in use."""
    return (root.current / record.python).with_name("ray")


def _refuse_nodes(record: ReleaseRecord, form: str) -> None:
    for service in record.services:
        if service.nodes > 1:
            raise StateError(
                f"{service.name}: spans {service.nodes} nodes, and --format {form} starts each host for itself",
                hint="Take --format multinode, ray or k8s.",
            )


def _but_what_is_filled_in(
    files: Mapping[Path, str], operators: Callable[[Path], bool]
) -> dict[Path, str]:
    """What an operator has filled in is not overwritten."""
    return {path: text for path, text in files.items() if not (operators(path) and path.exists())}
