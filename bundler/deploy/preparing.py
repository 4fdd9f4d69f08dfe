"""A service of a release -> what to run, with which environment, and everything that must be there before."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from bundler.deploy.apikeys import make_key
from bundler.deploy.root import Root
from bundler.domain.facts import ReleaseRecord
from bundler.domain.manifest import Entry
from bundler.domain.spec import Service
from bundler.errors import StateError, disk_errors
from bundler.format import layout
from bundler.format.codec import parse_manifest
from bundler.ports import EngineAdapter, Install, LaunchPlan

# What an engine may inherit. Proxies, pip, uv, Python and Hub settings of the operator's shell stay
# out: they make a service work here today and fail at the next boot.
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME")
_INHERITED_PREFIXES = ("CUDA_", "NVIDIA_", "NCCL_", "LD_LIBRARY_PATH", "OMP_", "VK_", "OPENBLAS_")


@dataclass(frozen=True)
class Start:
    """One service, ready to be run."""

    service: Service
    plan: LaunchPlan
    """What is recorded: its environment is what airbundle adds, without the API key."""
    env: dict[str, str]
    """The whole environment."""
    log: Path


def prepare(
    root: Root,
    folder: Path,
    record: ReleaseRecord,
    service: Service,
    engine: EngineAdapter,
    *,
    any_gpu: bool = False,
) -> Start:
    """Plan it, and make its folders, an empty log and, where it needs one, its API key.

    Args:
        root: where the release is installed.
        folder: the release.
        record: the release's record.
        service: one of its services.
        engine: the adapter of its engine.
        any_gpu: take the GPUs that this process is given rather than those that the spec names.

    Raises:
        SpecError: the engine cannot run it so.
        StateError, FormatError: the bundle's manifest is not what the release was made from.
        SpaceError, FileAccessError: of the disk.
    """
    plan = _plan(root, folder, record, service, engine)
    if service.gpus and not any_gpu:
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, service.gpus))}
        plan = replace(plan, env={**visible, **plan.env})
    log = root.log(service.name)
    root.make(log.parent)
    with disk_errors("writing", log):
        log.write_bytes(b"")
    for name in ("home", "xdg", "config"):
        root.make(folder / "cache" / service.name / name)
    _place(root, plan)
    root.make(root.state(service.name).parent)
    # For the engine's environment alone: what is recorded ends in receipts.
    asks = service.guarded and plan.key_variable
    key = {plan.key_variable: make_key(root, service)} if asks else {}
    return Start(service, plan, {**inherited(), **plan.env, **key}, log)


def _place(root: Root, plan: LaunchPlan) -> None:
    """Write the files and links that an engine starts from; those that are right already stay."""
    for path, content in plan.files.items():
        root.make(path.parent)
        if isinstance(content, bytes):
            root.write(path, content)
            continue
        # Relative: a release that is made anew elsewhere and then moved keeps its links.
        target = os.path.relpath(content, path.parent)
        with disk_errors("writing", path):
            if not (path.is_symlink() and str(path.readlink()) == target):
                path.unlink(missing_ok=True)
                path.symlink_to(target)


def _shipped(root: Root, record: ReleaseRecord, service: Service) -> Callable[[str], Entry]:
    """What the bundle's manifest says of the service's model files. It is read when it is asked for."""

    @cache
    def entries() -> dict[str, Entry]:
        path = root.bundle(record.bundle_id) / layout.MANIFEST
        with disk_errors("reading", path):
            manifest = parse_manifest(path.read_bytes())
        return {entry.path: entry for entry in manifest.payload}

    def of(name: str) -> Entry:
        path = layout.model_path(service.model, name)
        if path not in entries():
            raise StateError(
                f"{record.bundle_id}: {path} is not of this bundle",
                hint="Make the release anew: airbundle install --again.",
            )
        return entries()[path]

    return of


def _plan(
    root: Root, folder: Path, record: ReleaseRecord, service: Service, engine: EngineAdapter
) -> LaunchPlan:
    model = folder / "models" / service.model
    install = Install(
        python=folder / record.python,
        programs=tuple(sorted((folder / record.python).parent.iterdir())),
        model=model,
        model_files=tuple(
            sorted(p.relative_to(model).as_posix() for p in model.rglob("*") if p.is_file())
        ),
        cache_dir=folder / "cache" / service.name,
        engine_version=record.engine_version,
        distribution=record.engine_name,
        shipped=_shipped(root, record, service),
    )
    return engine.plan(install, service)


def inherited() -> dict[str, str]:
    """What an engine takes over from the operator's shell, or a unit's environment file."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
