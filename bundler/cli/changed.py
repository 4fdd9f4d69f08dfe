"""A release whose settings are not its bundle's says so wherever it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bundler.cli.console import say

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.facts import ReleaseRecord
    from bundler.domain.variants import Changed


def changed_settings(place: Root, release: ReleaseRecord) -> Changed | None:
    """How it differs from its bundle, by the base release here; None when it does not."""
    from bundler.deploy.releases import read_release
    from bundler.deploy.variants import changed_of

    if release.variant is None:
        return None
    base = read_release(place.release(release.bundle_id))
    return changed_of(release, base.services if base else release.services)


def say_changed(place: Root, release: ReleaseRecord) -> None:
    """One line for people, and nothing where the settings are the bundle's."""
    if (changed := changed_settings(place, release)) is not None:
        say(f"{release.release_id}: {changed.words}", "yellow")


def changed_json(place: Root, release: ReleaseRecord | None) -> dict[str, Any] | None:
    """The same for machines."""
    changed = changed_settings(place, release) if release else None
    return changed.model_dump(mode="json") if changed else None
