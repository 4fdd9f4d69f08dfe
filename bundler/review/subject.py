"""What a reviewer's pack is about: the bundle, who vouches for it, and what is in it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timezone

from bundler.domain.antivirus import AntivirusResult
from bundler.domain.inventory import Inventory
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.vulnerability import VulnerabilityCheck
from bundler.review.licencepolicy import LicencePolicy

# The look-up, for other programs and for making the same pack again.
VULNERABILITIES = "vulnerabilities.json"
ANTIVIRUS = "antivirus.json"
# Names documents of bundles: derived, so that the same bundle gives the same documents.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://github.com/airbundle/airbundle/review")


@dataclass(frozen=True)
class Subject:
    """A bundle under review.

    `policy` is the site's; `checked` what a database of vulnerabilities says; `scanned` what an antivirus says.
    Each is None when there is none.
    """

    verified: VerifiedManifest
    inventory: Inventory
    policy: LicencePolicy | None = None
    checked: VulnerabilityCheck | None = None
    scanned: AntivirusResult | None = None

    @property
    def packages(self) -> dict[str, str]:
        """Name -> version of every package that came from a package index."""
        return {one.name: one.version for one in self.inventory.of("wheel", "tool") if one.version}

    @property
    def created(self) -> datetime:
        """The bundle's only date: when it was resolved, UTC."""
        text = self.verified.manifest.created.replace("Z", "+00:00")
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            return datetime(1980, 1, 1, tzinfo=timezone.utc)
        if found.tzinfo is None:
            return found.replace(tzinfo=timezone.utc)
        return found.astimezone(timezone.utc).replace(microsecond=0)

    def document_id(self, kind: str) -> uuid.UUID:
        """The id of a document about this bundle."""
        return uuid.uuid5(_NAMESPACE, f"{kind} {self.verified.digest}")
