"""What `review` is given beside a bundle: databases and exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bundler import wiring

if TYPE_CHECKING:
    from bundler.domain.antivirus import AntivirusResult
    from bundler.domain.manifest import Manifest
    from bundler.domain.vulnerability import VulnerabilityCheck


@dataclass(frozen=True)
class Asked:
    """Where known vulnerabilities come from: an OSV export with exceptions, or an earlier look-up; and an antivirus's log."""

    osv: Path | None
    exceptions: Path | None
    known: Path | None
    antivirus: Path | None = None

    def check(self, fail_on: str | None) -> None:
        """Refuse what does not go together."""
        if self.osv and self.known:
            raise typer.BadParameter("--osv looks up, --known takes an earlier look-up; give one")
        if self.exceptions and not self.osv:
            raise typer.BadParameter("--exceptions belong to --osv")
        if fail_on and not (self.osv or self.known or self.antivirus):
            raise typer.BadParameter("--fail-on needs --osv, --known or --antivirus")

    def scanned(self, manifest: Manifest) -> AntivirusResult | None:
        """What the antivirus's log says of a bundle's files; None without one."""
        if self.antivirus is None:
            return None
        with wiring.review_half():
            from bundler.review.antivirus import read_antivirus_log
        return read_antivirus_log(self.antivirus, manifest)

    def about(self, packages: Mapping[str, str]) -> VulnerabilityCheck | None:
        """What is known of packages (name -> version); None when nobody is to be asked."""
        with wiring.review_half():
            from bundler.review.redlineside import known_flaws
            from bundler.review.vulnerabilities import check_by_osv, read_exceptions
        if self.known is not None:
            return known_flaws(self.known)
        if self.osv is None:
            return None
        excepted = read_exceptions(self.exceptions) if self.exceptions else ()
        return check_by_osv(packages, self.osv, excepted, wiring.clock().now()[:10])
