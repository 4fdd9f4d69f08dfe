"""How judged rows are shown: by `preflight` and `doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bundler.cli.console import say, table
from bundler.cli.streams import OUT

if TYPE_CHECKING:
    from bundler.domain.host import Row

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "unknown": "cyan"}
_WORDS = {"ok": "ok", "warn": "warn", "fail": "FAIL", "unknown": "could not check"}


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows are in each state."""
    return {state: sum(row.state == state for row in rows) for state in _STYLES}


def show_rows(title: str, rows: Sequence[Row]) -> None:
    """The table, what to do about each row that is not right, and the sum."""
    table(
        title,
        ["what", "state", "found", "wanted"],
        [[row.name, _WORDS[row.state], row.found, row.wanted] for row in rows],
    )
    for row in rows:
        if row.state in ("fail", "warn") and row.fix:
            say(f"{OUT.word(row.name)}: {row.fix}", _STYLES[row.state])
    count = counts(rows)
    say(
        f"{count['ok']} ok, {count['warn']} to look at, {count['fail']} in the way,"
        f" {count['unknown']} could not be checked",
        "bold red" if count["fail"] else "bold green",
    )
