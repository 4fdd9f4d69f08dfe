"""What an acceptance run is called and how it is shown, as `accept` and `upgrade` do it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundler.cli.console import say, table
from bundler.domain.verdict import Verdict
from bundler.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_OK

if TYPE_CHECKING:
    from bundler.domain.facts import AcceptanceRecord

RECORD = "record.json"
# Names the newest run; folders are named by time, and clocks can be set back.
LAST = "last"
EXIT = {
    Verdict.PASS: EXIT_OK,
    Verdict.FAIL: EXIT_FAIL,
    Verdict.INCONCLUSIVE: EXIT_INCONCLUSIVE,
    Verdict.NOT_COMPARABLE: EXIT_INCONCLUSIVE,
}
STYLE = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.NOT_COMPARABLE: "bold yellow",
}


def as_json(record: AcceptanceRecord, path: Path) -> dict[str, Any]:
    """The judgement for machines."""
    return {
        "record": str(path),
        "verdict": record.verdict.value,
        "gates": [gate.model_dump(mode="json") for gate in record.gates],
        "checks": [check.model_dump(mode="json") for check in record.checks],
        "comparisons": [found.model_dump(mode="json") for found in record.comparisons],
        "warnings": list(record.warnings),
    }


def show(record: AcceptanceRecord, path: Path) -> None:
    """The judgement for people."""
    table(
        "measured",
        ["service", "#users", "#ok", "#TTFT p50/p95/p99 ms", "#first wave/after p95 ms",
         "#TPOT p50/p95 ms", "#E2E p95 ms", "#output tok/s"],
        [
            [
                level.service,
                str(level.concurrency),
                f"{level.succeeded}/{level.requests}",
                "/".join(map(_ms, (level.ttft.p50, level.ttft.p95, level.ttft.p99))),
                "/".join(_ms(part.ttft.p95 if part else None) for part in (level.burst, level.steady)),
                "/".join(map(_ms, (level.tpot.p50, level.tpot.p95))),
                _ms(level.e2e.p95),
                f"{level.output_tokens_per_s:.1f}",
            ]
            for level in record.levels
        ],
    )  # fmt: skip
    table(
        "judged",
        ["verdict", "service", "#users", "what", "measured", "reason"],
        [
            [c.verdict.value, c.service, str(c.concurrency or "-"), c.what, c.measured, c.reason]
            for c in record.checks
        ],
    )
    flawed = [gate for gate in record.gates if gate.state == "failed"]
    if flawed:
        table(
            "why it is not comparable (docs/acceptance.md says what to do)",
            ["gate", "service", "#users", "measured", "limit", "reason"],
            [
                [g.name, g.service, str(g.concurrency), g.measured, g.limit, g.reason]
                for g in flawed
            ],
        )
    if record.comparisons:
        table(
            "beside known figures",
            ["service", "#users", "figure", "#measured", "known", "outcome", "profile"],
            [
                [c.service, str(c.concurrency), c.metric, f"{c.measured:.4g}",
                 f"{c.worst:.4g} to {c.best:.4g}", c.outcome, f"{c.profile} ({c.kind})"]
                for c in record.comparisons
            ],
        )  # fmt: skip
    elif record.fingerprints:
        say("no known figures of this set-up; `airbundle baseline record` keeps these", "dim")
    for warning in record.warnings:
        say(f"warning: {warning}", "yellow")
    say(record.verdict.value, STYLE[record.verdict])
    say(f"record: {path}")


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
