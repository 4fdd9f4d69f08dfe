"""An acceptance run and its receipt, as `accept` and `upgrade` do it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundler import wiring
from bundler.cli.console import progress, say, table
from bundler.domain.verdict import Verdict
from bundler.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_OK, StateError

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.facts import AcceptanceRecord, ReleaseRecord
    from bundler.domain.manifest import VerifiedManifest
    from bundler.ports import Progress

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


def measure(
    place: Root, release: ReleaseRecord, verified: VerifiedManifest, shown: Progress
) -> tuple[AcceptanceRecord, Path]:
    """Measure a release's running services, judge, and keep the receipt.

    Raises:
        StateError: there is nothing to measure, or a service does not run.
        SpaceError, FileAccessError: the receipt cannot be written.
    """
    from bundler.accept.pipeline import accept as run_acceptance
    from bundler.deploy.observing import observe
    from bundler.format.codec import to_bytes

    launcher = wiring.launcher(place, progress(quiet=True))
    running = {
        one.state.service: one.state
        for one in observe(launcher, release)
        if launcher.alive(one.state) and one.state.ready_after_s is not None
    }
    if not release.services:
        raise StateError(f"{release.bundle_id}: holds an engine and no model to measure")
    absent = [s.name for s in release.services if s.name not in running]
    if absent:
        raise StateError(
            f"{', '.join(absent)}: not running, or not ready yet",
            hint="Run: airbundle start --root ROOT",
        )
    # Before minutes of measuring, not after: can the receipt be written?
    place.write(place.acceptance / LAST, b"")
    record = run_acceptance(
        states=tuple(running[service.name] for service in release.services),
        verified=verified,
        chat=wiring.chat(place),
        clock=wiring.clock(),
        progress=shown,
        host=wiring.host().facts(),
    )
    folder = place.acceptance / record.began.replace(":", "")
    place.write(folder / RECORD, to_bytes(record))
    place.write(place.acceptance / LAST, folder.name.encode())
    return record, folder / RECORD


def as_json(record: AcceptanceRecord, path: Path) -> dict[str, Any]:
    """The judgement for machines."""
    return {
        "record": str(path),
        "verdict": record.verdict.value,
        "gates": [gate.model_dump(mode="json") for gate in record.gates],
        "checks": [check.model_dump(mode="json") for check in record.checks],
    }


def show(record: AcceptanceRecord, path: Path) -> None:
    """The judgement for people."""
    table(
        "measured",
        ["service", "#users", "#ok", "#TTFT p50/p95/p99 ms", "#TPOT p50/p95 ms", "#E2E p95 ms",
         "#output tok/s"],
        [
            [
                level.service,
                str(level.concurrency),
                f"{level.succeeded}/{level.requests}",
                "/".join(map(_ms, (level.ttft.p50, level.ttft.p95, level.ttft.p99))),
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
    for warning in record.warnings:
        say(f"warning: {warning}", "yellow")
    say(record.verdict.value, STYLE[record.verdict])
    say(f"record: {path}")


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
