"""`inventory.json`: the inventory for other programs, and for the redline of a later bundle."""

from __future__ import annotations

from bundler.domain.inventory import Component
from bundler.domain.record import Record, Sha256
from bundler.review.difference import settings
from bundler.review.subject import Subject

INVENTORY = "inventory.json"


class PackedInventory(Record):
    """What a bundle is made of; licence texts lie beside it."""

    bundle_id: str
    manifest_sha256: Sha256
    sequence: int | None = None
    key_id: str | None
    components: tuple[Component, ...]
    settings: dict[str, dict[str, str]] | None = None


def packed_inventory(subject: Subject) -> PackedInventory:
    """Of a bundle under review."""
    verified = subject.verified
    bare = tuple(
        one.model_copy(update={"licence": one.licence.model_copy(update={"texts": ()})})
        for one in subject.inventory.components
    )
    return PackedInventory(
        bundle_id=verified.bundle_id,
        manifest_sha256=verified.digest,
        sequence=verified.manifest.sequence,
        key_id=verified.key_id,
        components=bare,
        settings=settings(verified.manifest),
    )
