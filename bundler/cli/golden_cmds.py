"""`airbundle golden`: what a model says where it is known to be right, to be compared with elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.console import say, show_json
from bundler.cli.options import JsonOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.cli.streams import ERR
from bundler.errors import EngineError, StateError

if TYPE_CHECKING:
    from bundler.accept.correctness.run import Probing
    from bundler.domain.correctness import Golden
    from bundler.domain.manifest import Manifest
    from bundler.domain.spec import Service

app = typer.Typer(
    help="Known right answers of a model, for `accept`.", no_args_is_help=True, name="golden"
)


@app.command()
@rehearsable
def record(
    root: RootOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for copies that travel; none when left out."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Keep what the running services' models say now. Do it where they are known to be right.

    From then on `accept` compares with it in this root; `golden add` takes the copies to others.
    """
    from bundler.cli.measuring import probing_of, running_states
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported
    from bundler.format.codec import to_bytes

    place = Root(root_folder(root))
    _, release = current_release(place)
    verified = open_imported(place, release.bundle_id, wiring.gate())
    states = {state.service: state for state in running_states(place, release)}
    probing = probing_of(place, verified.manifest)
    made: dict[str, Golden] = {}
    for service in verified.manifest.services:
        golden = _recorded(probing, states[service.name].url, service, verified.manifest)
        made.setdefault(golden.model_digest, golden)
    for digest, golden in made.items():
        place.write(place.golden(digest), to_bytes(golden))
        if out is not None:
            place.write(out.absolute() / f"{digest}.json", to_bytes(golden))
    if json:
        show_json({"golden": [str(place.golden(digest)) for digest in made]})
        return
    for digest, golden in made.items():
        say(
            f"{golden.model}: {len(golden.greedy)} answers, {len(golden.nll)} texts:"
            f" {place.golden(digest)}",
            "bold green",
        )


def _recorded(probing: Probing, url: str, service: Service, manifest: Manifest) -> Golden:
    from bundler.accept.correctness.asking import NotOffered, WrongAnswer
    from bundler.accept.correctness.garbage import fault
    from bundler.accept.correctness.run import record_service
    from bundler.domain.correctness import Golden
    from bundler.format.golden import model_digest

    clock = wiring.clock()
    salt = f"{clock.now()}/{clock.monotonic()}"
    try:
        answers = record_service(probing, url, service, manifest.acceptance.request_timeout_s, salt)
    except NotOffered as cause:
        raise StateError(
            f"{service.name}: nothing to record: {cause}",
            hint="A golden record needs log-probabilities; vLLM and llama.cpp give them.",
        ) from cause
    except WrongAnswer as cause:
        raise EngineError(f"{service.name}: {cause}") from cause
    broken = [why for text in answers.texts if (why := fault(text))]
    if broken:
        ERR.line(
            f"warning: {service.name}: {len(broken)} of {len(answers.texts)} answers look broken"
            f" ({broken[0]}): is this a set-up that is known to be right?",
            style="yellow",
        )
    return Golden(
        model_digest=model_digest(manifest, service.model),
        model=service.model,
        engine=f"{manifest.engine.name} {manifest.engine.version}",
        recorded=clock.now(),
        greedy=tuple(answers.greedy),
        nll=tuple(answers.nll),
    )


@app.command()
@rehearsable
def add(
    file: Annotated[
        Path, typer.Argument(help="Golden record (JSON).", show_default=False, readable=False)
    ],
    root: RootOption = None,
    json: JsonOption = False,
) -> None:
    """Take in a golden record that was made on another host. It is not signed: mind where it is from."""
    from bundler.deploy.root import Root
    from bundler.format.codec import to_bytes
    from bundler.format.golden import read_golden

    golden = read_golden(file)
    place = Root(root_folder(root))
    path = place.golden(golden.model_digest)
    place.write(path, to_bytes(golden))
    if json:
        show_json({"golden": str(path), "model": golden.model, "recorded": golden.recorded})
        return
    say(f"{path}: {golden.model} by {golden.engine}, recorded {golden.recorded}", "bold green")


def register(root: typer.Typer) -> None:
    """Add the group."""
    root.add_typer(app, rich_help_panel="Closed side")
