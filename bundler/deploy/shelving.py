"""Imported bundles -> what other hosts may have of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from bundler.deploy.root import Root
from bundler.domain.manifest import Entry, ShippedModel, VerifiedManifest
from bundler.domain.shelf import Shelf, ShelfFile, ShelfModel, project_of
from bundler.format.blocks import content_id


def make_shelf(root: Root, bundles: Iterable[VerifiedManifest]) -> Shelf:
    """The wheels and models of bundles that are trusted and complete, as they lie in the store.

    A model from the Hub is served under its own name and revision. One from a folder is `local/NAME`, and its
    revision is made from the bundle's digest.

    Args:
        root: where they were imported.
        bundles: oldest first; of two revisions of a model the later one is `main`.
    """
    wheels: dict[str, dict[str, ShelfFile]] = {}
    models: dict[str, list[ShelfModel]] = {}
    for verified in bundles:
        manifest = verified.manifest
        for entry in manifest.payload:
            name = PurePosixPath(entry.path).name
            if entry.path.startswith("wheels/") and name.endswith(".whl"):
                wheels.setdefault(project_of(name), {})[name] = _file(root, entry)
        for model in manifest.models:
            folder = f"models/{model.name}/"
            files = {
                entry.path.removeprefix(folder): _file(root, entry)
                for entry in manifest.payload
                if entry.path.startswith(folder)
            }
            found = ShelfModel(model.revision or verified.digest[:40], files)
            revisions = models.setdefault(_repository(model), [])
            revisions[:] = [found, *(one for one in revisions if one.commit != found.commit)]
    return Shelf(wheels, {name: tuple(revisions) for name, revisions in models.items()})


def _repository(model: ShippedModel) -> str:
    return model.origin if model.source == "hub" else f"local/{model.name}"


def _file(root: Root, entry: Entry) -> ShelfFile:
    return ShelfFile(root.object(content_id(entry)), entry.size, entry.sha256)
