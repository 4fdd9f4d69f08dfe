"""Package URLs (https://github.com/package-url/purl-spec), by which scanners know components."""

from __future__ import annotations

from packageurl import PackageURL
from packaging.utils import canonicalize_name

from bundler.domain.inventory import Component


def purl(component: Component) -> PackageURL | None:
    """Of a wheel or a model of the Hub; None for what has no registry."""
    if component.kind == "wheel":
        return PackageURL("pypi", None, canonicalize_name(component.name), component.version)
    source, _, origin = component.origin.partition(": ")
    if component.kind == "model" and source == "hub" and origin.count("/") == 1:
        owner, _, name = origin.partition("/")
        return PackageURL("huggingface", owner, name, component.revision.lower() or None)
    return None
