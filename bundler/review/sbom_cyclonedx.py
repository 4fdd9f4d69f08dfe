"""The bill of materials as CycloneDX 1.6 JSON, with model cards (ML-BOM)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component as BomComponent
from cyclonedx.model.component import ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import LicenseAcknowledgement, LicenseExpression
from cyclonedx.model.lifecycle import LifecyclePhase, PredefinedLifecycle
from cyclonedx.output.json import JsonV1Dot6

from bundler.domain.inventory import CarriedFile, Component, ModelCard
from bundler.review.purls import purl
from bundler.review.subject import Subject

_TYPES = {
    "wheel": ComponentType.LIBRARY,
    "model": ComponentType.MACHINE_LEARNING_MODEL,
    "file": ComponentType.FILE,
    "tool": ComponentType.FILE,
    "spec": ComponentType.FILE,
}


def cyclonedx(subject: Subject) -> bytes:
    """The document; the same bundle gives the same bytes."""
    manifest = subject.verified.manifest
    root = BomComponent(
        name=manifest.name, version=str(manifest.sequence), type=ComponentType.APPLICATION,
        bom_ref=f"bundle:{subject.verified.digest}", description=manifest.description or None,
        properties=[
            Property(name="airbundle:manifest_sha256", value=subject.verified.digest),
            Property(name="airbundle:signed_by", value=subject.verified.key_id or "unsigned"),
        ],
    )  # fmt: skip
    tool = BomComponent(
        name="airbundle", version=manifest.tool.version, type=ComponentType.APPLICATION,
        bom_ref="tool:airbundle",
    )  # fmt: skip
    bom = Bom(
        serial_number=subject.document_id("cyclonedx"),
        metadata=BomMetaData(
            timestamp=subject.created,
            component=root,
            lifecycles=[PredefinedLifecycle(phase=LifecyclePhase.POST_BUILD)],
        ),
    )
    bom.metadata.tools.components.add(tool)
    components = subject.inventory.components
    made = {reference(one): _component(one) for one in components}
    for one in components:
        bom.components.add(made[reference(one)])
        needed = [made[reference(other)] for other in subject.inventory.needed(one)]
        bom.register_dependency(made[reference(one)], needed)
    bom.register_dependency(root, made.values())
    document: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    _add_cards(document, subject)
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def reference(component: Component) -> str:
    """Its name within the document."""
    return f"{component.kind}:{component.name}@{component.version}"


def _component(one: Component) -> BomComponent:
    expression = one.licence.expression
    declared = LicenseAcknowledgement.DECLARED
    return BomComponent(
        name=one.name,
        version=one.version or None,
        type=_TYPES[one.kind],
        bom_ref=reference(one),
        supplier=OrganizationalEntity(name=one.supplier) if one.supplier else None,
        description=one.summary or None,
        hashes=[_hash(one.sha256)] if one.sha256 else None,
        licenses=[LicenseExpression(expression, acknowledgement=declared)] if expression else None,
        purl=purl(one),
        external_references=tuple(_references(one)),
        properties=tuple(_properties(one)),
        components=[_file(one, file) for file in one.files] if len(one.files) > 1 else None,
    )


def _references(one: Component) -> Iterator[ExternalReference]:
    if one.origin.startswith(("https://", "http://")):
        yield ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(one.origin))


def _properties(one: Component) -> Iterator[Property]:
    yield Property(name="airbundle:size", value=str(one.size))
    if one.origin:
        yield Property(name="airbundle:origin", value=one.origin)
    if one.revision:
        yield Property(name="airbundle:revision", value=one.revision)
    if not one.licence.known:
        yield Property(name="airbundle:licence", value="unknown")
    if one.licence.conflict:
        yield Property(name="airbundle:licence", value="conflicting statements")
    for found in one.executes:
        text = f"{found.rank}: {found.kind}: {found.where}: {found.what}"
        yield Property(name="airbundle:executes", value=text)


def _file(one: Component, file: CarriedFile) -> BomComponent:
    return BomComponent(
        name=file.path, type=ComponentType.FILE, bom_ref=f"file:{file.path}",
        hashes=[_hash(file.sha256)],
        properties=[Property(name="airbundle:size", value=str(file.size))],
    )  # fmt: skip


def _hash(sha256: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=sha256)


def _add_cards(document: dict[str, Any], subject: Subject) -> None:
    """`modelCard` of the models: the library has no type for it yet, the schema has."""
    cards = {reference(one): one.card for one in subject.inventory.of("model") if one.card}
    for component in document["components"]:
        card = cards.get(component["bom-ref"])
        if card is not None:
            component["modelCard"] = _card(card)


def _card(card: ModelCard) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if card.task:
        parameters["task"] = card.task
    if card.model_type:
        parameters["architectureFamily"] = card.model_type
    if card.architecture:
        parameters["modelArchitecture"] = card.architecture
    if card.datasets:
        parameters["datasets"] = [{"type": "dataset", "name": name} for name in card.datasets]
    stated = {
        "quantization": card.quantization,
        "dtype": card.dtype,
        "base_model": ", ".join(card.base_models),
        "language": ", ".join(card.languages),
        "tags": ", ".join(card.tags),
    }
    properties = [
        {"name": f"airbundle:{name}", "value": value} for name, value in stated.items() if value
    ]
    return {
        **({"modelParameters": parameters} if parameters else {}),
        **({"properties": properties} if properties else {}),
    }
