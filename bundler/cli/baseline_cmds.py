"""Known figures: `baseline record`, `compare` and `list`."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from bundler.cli.console import say, show_json, table
from bundler.cli.options import JsonOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.cli.reporting import read_run
from bundler.errors import StateError, disk_errors

if TYPE_CHECKING:
    from bundler.accept.baseline import Side
    from bundler.domain.profile import Figure, Profile

app = typer.Typer(
    name="baseline", help="Known figures to compare acceptance runs with.", no_args_is_help=True
)


@app.command()
@rehearsable
def record(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="record.json of runs, or their folders.", show_default=False, readable=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="Profile to write, e.g. ROOT/profiles/mine.yaml.", readable=False
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the profile; made up when left out.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a profile of acceptance runs of one set-up; ten or more give a tolerance interval."""
    from pydantic import ValidationError

    from bundler.accept.baseline import profiles_from
    from bundler.accept.tolerance import ENOUGH_RUNS
    from bundler.format.atomic import write_atomically
    from bundler.format.profiles import profile_bytes

    if out.exists():
        raise StateError(f"{out}: is there already", hint="Name another file, or remove this one.")
    try:
        profiles, left_out = profiles_from([read_run(path) for path in runs], name)
    except ValidationError as cause:
        raise typer.BadParameter(f"--name {name!r}: one line of at most 200 characters") from cause
    with disk_errors("writing", out):
        write_atomically(out, profile_bytes(profiles))
    if json:
        show_json(
            {
                "file": str(out),
                "profiles": [profile.name for profile in profiles],
                "runs": len(runs),
                "left_out": list(left_out),
            }
        )
        return
    for line in left_out:
        say(f"left out: {line}", "yellow")
    if len(runs) < ENOUGH_RUNS:
        say(
            f"{len(runs)} of {ENOUGH_RUNS} runs that a tolerance interval needs:"
            " until then ±25 % for rates and ±30 % for times",
            "yellow",
        )
    say(f"{out}: {', '.join(profile.name for profile in profiles)}")


@app.command()
def compare(
    a: Annotated[
        Path,
        typer.Argument(
            help="Run (record.json, its folder) or profile.", show_default=False, readable=False
        ),
    ],
    b: Annotated[
        Path, typer.Argument(help="The one to judge by A.", show_default=False, readable=False)
    ],
    json: JsonOption = False,
) -> None:
    """Put two runs or profiles side by side: the ratio of every figure, and whether it is beyond the noise."""
    from bundler.accept.baseline import compare as side_by_side

    pairs = side_by_side(_side(a), _side(b))
    if json:
        show_json(
            [
                {
                    "a": pair.a,
                    "b": pair.b,
                    "differs": list(pair.differs),
                    "figures": [row.as_json() for row in pair.rows],
                }
                for pair in pairs
            ]
        )
        return
    for pair in pairs:
        title = pair.a if pair.a == pair.b else f"{pair.a} / {pair.b}"
        table(
            title,
            ["#users", "figure", "#A", "#B", "#B/A", "beyond the noise", "by"],
            [
                [
                    str(row.concurrency or "-"),
                    row.metric,
                    f"{row.a:.4g}",
                    f"{row.b:.4g}",
                    f"{row.ratio:.2f}",
                    {"within": "no", "worse": "worse", "better": "better"}[row.outcome],
                    row.basis,
                ]
                for row in pair.rows
            ],
        )
        for line in pair.differs:
            say(f"differs in {line}", "yellow")


@app.command("list")
def list_(
    root: RootOption = None,
    profile: Annotated[
        list[Path] | None, typer.Option("--profile", help="Further profiles.", readable=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the profiles that `accept` compares with: shipped, of the root, and those named."""
    from bundler.cli.measuring import known_profiles
    from bundler.deploy.root import Root

    profiles = known_profiles(Root(root_folder(root)), profile or ())
    if json:
        show_json([one.model_dump(mode="json", exclude_none=True) for one in profiles])
        return
    table(
        "profiles",
        ["profile", "kind", "of", "figures", "unknown"],
        [[p.name, p.kind, _of(p), _figures(p), ", ".join(p.unknown) or "-"] for p in profiles],
    )


def _of(profile: Profile) -> str:
    stated = profile.fingerprint.model_dump(exclude_none=True)
    stated.pop("digest", None)
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in stated.items()) or "-"


def _figures(profile: Profile) -> str:
    return ", ".join(
        f"{one.metric}{f' @{one.concurrency}' if one.concurrency else ''}: {_value(one)}"
        for one in profile.figures
    )


def _value(figure: Figure) -> str:
    """The range that the source gives, the one value, or the median of the runs."""
    if figure.low is not None and figure.high is not None:
        return f"{figure.low:.6g} to {figure.high:.6g}"
    middle = median(figure.runs)
    return f"{middle:.6g}" + (f" ({len(figure.runs)} runs)" if len(figure.runs) > 1 else "")


def _side(path: Path) -> Side:
    from bundler.accept.baseline import side_of_profiles, side_of_record
    from bundler.format.profiles import load_profiles

    if path.suffix.lower() in (".yaml", ".yml"):
        return side_of_profiles(load_profiles(path), str(path))
    return side_of_record(read_run(path), str(path))


def register(root: typer.Typer) -> None:
    """Add the group."""
    root.add_typer(app, rich_help_panel="Closed side")
