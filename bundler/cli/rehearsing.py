"""`--dry-run` for a command: the command itself, with every change taken down and shown instead of done."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import wraps
from typing import Any, TypeVar, get_type_hints

import typer

from bundler.cli.console import say, show_json, table
from bundler.cli.options import DryRunOption
from bundler.errors import BundlerError

R = TypeVar("R")


def rehearsable(command: Callable[..., R]) -> Callable[..., R | None]:
    """The command with `--dry-run` as its last option.

    Its own result is not shown then, for nothing was done; errors and exit codes are those of the real run.
    """
    signature = inspect.signature(command)
    option = inspect.Parameter(
        "dry_run", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DryRunOption
    )

    @wraps(command)
    def run(*args: Any, dry_run: bool = False, **given: Any) -> R | None:
        if not dry_run:
            return command(*args, **given)
        from bundler.format.rehearsal import rehearsal

        with rehearsal() as changes:
            json = bool(given.get("json"))
            try:
                with redirect_stdout(io.StringIO()):
                    command(*args, **given)
            except BundlerError:
                # With --json the error is the one document.
                if not json:
                    _show(changes, json=False)
                raise
            except typer.Exit:
                _show(changes, json=json)
                raise
        _show(changes, json=json)
        return None

    # Spelled out: typer does not look up the names of a signature that is set.
    hints = get_type_hints(command, include_extras=True)
    known = [one.replace(annotation=hints[name]) for name, one in signature.parameters.items()]
    run.__signature__ = signature.replace(parameters=[*known, option])  # type: ignore[attr-defined]
    run.__annotations__ = {**hints, "dry_run": DryRunOption}
    return run


def _show(changes: Sequence[Any], *, json: bool) -> None:
    from bundler.domain.sizes import human

    size = sum(one.size or 0 for one in changes if one.act not in ("remove", "stop"))
    freed = sum(one.size or 0 for one in changes if one.act == "remove")
    if json:
        show_json(
            {
                "dry_run": True,
                "would_write_bytes": size,
                "would_free_bytes": freed,
                "changes": [
                    {"act": one.act, "what": one.what, "bytes": one.size, "why": one.why}
                    for one in changes
                ],
            }
        )
        return
    if changes:
        rows = [
            [one.act, one.what, human(one.size) if one.size is not None else "", one.why]
            for one in changes
        ]
        table("would", ["would", "what", "#size", "why"], rows)
    say(
        f"{len(changes)} change(s), {human(size)} to write, {human(freed)} freed: nothing was done (--dry-run)"
    )
