"""The bill of materials as SPDX 2.3 JSON."""

from __future__ import annotations

import io
import re
from typing import Any

from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    Checksum,
    ChecksumAlgorithm,
    CreationInfo,
    Document,
    ExternalPackageRef,
    ExternalPackageRefCategory,
    ExtractedLicensingInfo,
    Package,
    PackagePurpose,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)
from spdx_tools.spdx.writer.json.json_writer import write_document_to_stream

from bundler.domain.inventory import CarriedFile, Component
from bundler.review.licences import identifiers, licensing
from bundler.review.purls import purl
from bundler.review.subject import Subject

_NOT_ID = re.compile(r"[^A-Za-z0-9.-]+")
_PURPOSES = {
    "wheel": PackagePurpose.LIBRARY,
    "model": PackagePurpose.OTHER,
    "file": PackagePurpose.FILE,
    "tool": PackagePurpose.APPLICATION,
    "spec": PackagePurpose.FILE,
}
_DOCUMENT = "SPDXRef-DOCUMENT"
_BUNDLE = "SPDXRef-Bundle"


def spdx_document(subject: Subject) -> Document:
    """The document as the library has it."""
    manifest = subject.verified.manifest
    document = Document(
        CreationInfo(
            spdx_version="SPDX-2.3", spdx_id=_DOCUMENT, name=manifest.name,
            document_namespace=subject.document_id("spdx").urn,
            creators=[Actor(ActorType.TOOL, f"airbundle-{manifest.tool.version}")],
            created=subject.created.replace(tzinfo=None), data_license="CC0-1.0",
        )
    )  # fmt: skip
    document.packages = [
        Package(
            _BUNDLE, manifest.name, SpdxNoAssertion(), version=str(manifest.sequence),
            files_analyzed=False, supplier=SpdxNoAssertion(), description=manifest.description or None,
            license_declared=SpdxNoAssertion(), license_concluded=SpdxNoAssertion(),
            comment=f"manifest.json sha256 {subject.verified.digest}",
            primary_package_purpose=PackagePurpose.APPLICATION,
        )
    ]  # fmt: skip
    document.relationships = [Relationship(_DOCUMENT, RelationshipType.DESCRIBES, _BUNDLE)]
    ids = _ids(subject.inventory.components)
    named: dict[str, str] = {}
    by_files = {one.files: ids[number] for number, one in enumerate(subject.inventory.components)}
    for number, one in enumerate(subject.inventory.components):
        document.packages.append(_package(one, ids[number]))
        document.relationships.append(Relationship(_BUNDLE, RelationshipType.CONTAINS, ids[number]))
        document.relationships += [
            Relationship(ids[number], RelationshipType.DEPENDS_ON, by_files[other.files])
            for other in subject.inventory.needed(one)
        ]
        if len(one.files) > 1:
            for at, file in enumerate(one.files):
                document.packages.append(_file(file, f"{ids[number]}-{at}"))
                document.relationships.append(
                    Relationship(ids[number], RelationshipType.CONTAINS, f"{ids[number]}-{at}")
                )
        for name in identifiers(one.licence.expression):
            if name.startswith("LicenseRef-"):
                named.setdefault(name, _text_of(one, name))
    document.extracted_licensing_info = [
        ExtractedLicensingInfo(license_id=name, extracted_text=text, license_name=name)
        for name, text in sorted(named.items())
    ]
    return document


def spdx(subject: Subject) -> bytes:
    """The document as bytes; the same bundle gives the same ones."""
    stream = io.StringIO()
    # Checked in the tests against the whole standard; here it would take as long again.
    write_document_to_stream(spdx_document(subject), stream, validate=False)
    return f"{stream.getvalue().rstrip()}\n".encode()


def _ids(components: tuple[Component, ...]) -> list[str]:
    return [
        f"SPDXRef-{one.kind}-{number}-{_NOT_ID.sub('-', one.name)}"
        for number, one in enumerate(components)
    ]


def _package(one: Component, spdx_id: str) -> Package:
    url = purl(one)
    stated = one.origin.startswith(("https://", "http://"))
    declared: Any = SpdxNoAssertion()
    if one.licence.expression:
        declared = licensing().parse(one.licence.expression)
    return Package(
        spdx_id,
        one.name,
        one.origin if stated else SpdxNoAssertion(),
        version=one.version or None,
        file_name=one.files[0].path if len(one.files) == 1 else None,
        supplier=_supplier(one),
        files_analyzed=False,
        checksums=[_checksum(one.sha256)] if one.sha256 else [],
        source_info=one.origin or None,
        license_concluded=SpdxNoAssertion(),
        license_declared=declared,
        license_comment="statements conflict" if one.licence.conflict else None,
        copyright_text=SpdxNoAssertion(),
        summary=one.summary or None,
        external_references=[
            ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", url.to_string())
        ]
        if url
        else [],
        primary_package_purpose=_PURPOSES[one.kind],
    )


def _file(file: CarriedFile, spdx_id: str) -> Package:
    """SPDX 2.3 wants SHA-1 of a `File`; a package may have SHA-256 alone."""
    return Package(
        spdx_id, file.path, SpdxNoAssertion(), files_analyzed=False, supplier=SpdxNoAssertion(),
        checksums=[_checksum(file.sha256)], license_concluded=SpdxNoAssertion(),
        license_declared=SpdxNoAssertion(), copyright_text=SpdxNoAssertion(),
        primary_package_purpose=PackagePurpose.FILE,
    )  # fmt: skip


def _supplier(one: Component) -> Any:
    return Actor(ActorType.ORGANIZATION, one.supplier) if one.supplier else SpdxNoAssertion()


def _checksum(sha256: str) -> Checksum:
    return Checksum(ChecksumAlgorithm.SHA256, sha256)


def _text_of(one: Component, name: str) -> str:
    """The licence's text where the component carries one, else what it says of itself."""
    if one.licence.texts:
        return one.licence.texts[0].text.replace("\x00", "")
    said = next((row.said for row in one.licence.evidence if row.spdx == name), name)
    return f"As stated by {one.name}: {said}"
