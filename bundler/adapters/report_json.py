"""ReportWriter: the record itself as JSON, for programs."""

from __future__ import annotations

from bundler.domain.beside import NOTHING, Beside
from bundler.domain.facts import AcceptanceRecord
from bundler.format.codec import bytes_read


class JsonReport:
    """The very bytes of `record.json`, canonical (see `format.codec`), so that a signature over one is over both."""

    filename = "report.json"

    def render(self, record: AcceptanceRecord, beside: Beside = NOTHING) -> str:
        """The whole document."""
        return bytes_read(record).decode()
