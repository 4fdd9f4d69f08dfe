"""ReportWriter: the record itself as JSON, for programs."""

from __future__ import annotations

from bundler.domain.beside import NOTHING, Beside
from bundler.domain.facts import AcceptanceRecord
from bundler.format.codec import to_bytes


class JsonReport:
    """The record, indented and with sorted keys; `AcceptanceRecord` reads it back."""

    filename = "report.json"

    def render(self, record: AcceptanceRecord, beside: Beside = NOTHING) -> str:
        """The whole document."""
        return to_bytes(record).decode()
