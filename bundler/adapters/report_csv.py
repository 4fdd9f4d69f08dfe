"""ReportWriter: one line for each level, for spreadsheets."""

from __future__ import annotations

import csv
import io

from bundler.domain.beside import NOTHING, Beside
from bundler.domain.facts import AcceptanceRecord, LevelMetrics, Quantiles

_HEAD = (
    "bundle_id", "manifest_sha256", "engine", "began", "service", "concurrency", "requests", "succeeded",
    "duration_s", "output_tokens_per_s", "achieved_concurrency",
    *(f"{name}_ms_{share}" for name in ("ttft", "tpot", "itl", "e2e") for share in ("p50", "p95", "p99")),
    "gates_failed", "verdict",
)  # fmt: skip


class CsvReport:
    """Units stand in the column's name; an empty cell is a figure that is not there."""

    filename = "report.csv"

    def render(self, record: AcceptanceRecord, beside: Beside = NOTHING) -> str:
        """The whole document."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_HEAD)
        for level in record.levels:
            writer.writerow([_harmless(cell) for cell in _row(record, level)])
        return text.getvalue()


def _row(record: AcceptanceRecord, level: LevelMetrics) -> list[object]:
    where = (level.service, level.concurrency)
    verdicts = [c.verdict.value for c in record.checks if (c.service, c.concurrency) == where]
    failed = [
        g.name for g in record.gates if (g.service, g.concurrency) == where and g.state == "failed"
    ]
    worst = next(
        (v for v in ("FAIL", "NOT COMPARABLE", "INCONCLUSIVE", "PASS") if v in verdicts), ""
    )
    figures = [
        figure for q in (level.ttft, level.tpot, level.itl, level.e2e) for figure in _three(q)
    ]
    return [
        record.bundle_id, record.manifest_sha256, f"{record.engine_name} {record.engine_version}",
        record.began, level.service, level.concurrency, level.requests, level.succeeded,
        level.duration_s, level.output_tokens_per_s, level.achieved_concurrency,
        *figures, "; ".join(failed), worst,
    ]  # fmt: skip


def _three(quantiles: Quantiles) -> tuple[float | None, float | None, float | None]:
    return quantiles.p50, quantiles.p95, quantiles.p99


def _harmless(cell: object) -> object:
    """A text that a spreadsheet would take for a formula is quoted (OWASP, CSV injection)."""
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{cell}"
    return "" if cell is None else cell
