"""`airbundle plan`: the verdict before the trip."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bundler import connecting
from bundler.cli.completing import findings
from bundler.cli.console import progress, show_json
from bundler.cli.options import CacheOption, JsonOption, QuietOption, SpecArgument, cache_folder
from bundler.errors import EXIT_FAIL, EXIT_OK

# Every command is registered at each start: what one of them alone needs is imported in it.
if TYPE_CHECKING:
    from bundler.domain.lock import Lock, LockedWheel
    from bundler.domain.proof import Proof


def _explain(code: str | None) -> None:
    if code is None:
        return
    from bundler.cli.proof_view import show_kind
    from bundler.domain.catalogue import KINDS

    kind = KINDS.get(code)
    if kind is None:
        raise typer.BadParameter(f"{code!r} is none of {', '.join(sorted(KINDS))}")
    show_kind(kind)
    raise typer.Exit


def plan(
    spec: SpecArgument,
    engine_only: Annotated[
        bool, typer.Option("--engine-only", help="Leave models and files out.")
    ] = False,
    lock: Annotated[
        Path | None,
        typer.Option("--lock", help="Write the lock to this file as well.", readable=False),
    ] = None,
    cache: CacheOption = None,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="CODE",
            autocompletion=findings,
            help="Explain a finding by its code, and exit.",
            callback=_explain,
            is_eager=True,
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Say whether a bundle can work on its target, before anything is downloaded or carried.

    Exit code 10 when it cannot.
    """
    host = connecting.reading_host()
    from bundler.build.lockfile import write_lock
    from bundler.build.pipeline import make_lock, make_proof, planned_volumes
    from bundler.build.specfile import load_spec
    from bundler.build.toolwheel import write_tool_wheel
    from bundler.cli.proof_view import show_proof, show_sizes
    from bundler.domain.findings import errors

    wanted = load_spec(spec)
    shown = progress(quiet=quiet or json)
    tools = connecting.build_tools(wanted.engine, shown, cache_folder(cache), host)
    with tempfile.TemporaryDirectory(prefix="airbundle-tool-") as folder:
        wheel = write_tool_wheel(Path(folder))
        resolved = make_lock(wanted, spec.parent, wheel, tools, engine_only=engine_only)
    proof = make_proof(wanted, resolved, spec.parent, tools)
    if lock is not None:
        write_lock(lock, resolved)
    volumes = planned_volumes(wanted, resolved, tools.form)
    summary = _summary(resolved, proof, volumes, wanted.volumes.limit)
    if json:
        show_json(summary)
    else:
        show_proof(wanted.name, resolved.target, proof)
        show_sizes(resolved, summary)
    return EXIT_FAIL if errors(proof.findings) else EXIT_OK


def _wheels(wheels: tuple[LockedWheel, ...]) -> dict[str, Any]:
    return {
        "count": len(wheels),
        "bytes": sum(wheel.size or 0 for wheel in wheels),
        "unknown_sizes": sum(wheel.size is None for wheel in wheels),
        "sdists": sum(wheel.built for wheel in wheels),
        "wheels": [
            {"name": w.name, "version": w.version, "filename": w.filename, "bytes": w.size}
            for w in wheels
        ],
    }


def _summary(lock: Lock, proof: Proof, volumes: list[int], limit: int) -> dict[str, Any]:
    return {
        "answer": proof.answer.value,
        "findings": [item.model_dump(mode="json") for item in proof.findings],
        "memory": [item.model_dump(mode="json") | {"fits": item.fits} for item in proof.fits],
        "needs": proof.needs.model_dump(mode="json"),
        "services": [item.model_dump(mode="json") for item in proof.services],
        "model_facts": [item.model_dump(mode="json") for item in proof.models],
        "target": lock.target.model_dump(mode="json"),
        "engine": {"name": lock.engine_name, "version": lock.engine_version}
        | _wheels(lock.engine_wheels),
        "tool": {"version": lock.airbundle_version} | _wheels(lock.tool_wheels),
        "models": [
            {
                "name": model.name,
                "origin": model.origin,
                "revision": model.revision,
                "files": len(model.files),
                "bytes": model.size,
                "licence": model.licence,
            }
            for model in lock.models
        ],
        "files": [extra.model_dump(mode="json") for extra in lock.extras],
        "volumes": {"count": len(volumes), "bytes": sum(volumes), "limit": limit},
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Connected side")(plan)
