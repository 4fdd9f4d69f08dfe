"""Both bills of materials: valid by the official schemas, the same for the same bundle, and complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from bundler.review.sbom_cyclonedx import cyclonedx
from bundler.review.sbom_spdx import spdx
from bundler.review.subject import Subject
from tests.fakes.planted import PlantedBundle
from tests.unit.review.test_inventory import subject_of


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return subject_of(PlantedBundle(tmp_path_factory.mktemp("planted")).build())


def test_cyclonedx_is_valid_and_knows_what_is_in(subject: Subject) -> None:
    data = cyclonedx(subject)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(data.decode()) is None
    document = json.loads(data)
    by_name: dict[str, Any] = {one["name"]: one for one in document["components"]}
    engine = by_name["toy-engine"]
    assert engine["purl"] == "pkg:pypi/toy-engine@1.0"
    assert engine["licenses"][0]["expression"] == "Apache-2.0"
    assert engine["hashes"][0]["alg"] == "SHA-256"
    assert "licenses" not in by_name["toy-odd"]
    model = by_name["toy"]
    assert model["type"] == "machine-learning-model"
    assert model["modelCard"]["modelParameters"]["modelArchitecture"] == "ToyForCausalLM"
    assert {"name": "airbundle:quantization", "value": "fp8"} in model["modelCard"]["properties"]
    assert len(model["components"]) == len(subject.verified.manifest.entries) - 6 - 4
    needs = {row["ref"]: row.get("dependsOn", []) for row in document["dependencies"]}
    assert needs["wheel:toy-engine@1.0"] == ["wheel:toy-dependency@2.0", "wheel:toy-gpl@1.0"]
    assert document["metadata"]["timestamp"]
    assert document["metadata"]["lifecycles"] == [{"phase": "post-build"}]


def test_spdx_is_valid_and_names_what_is_unknown(subject: Subject, tmp_path: Path) -> None:
    path = tmp_path / "sbom.spdx.json"
    path.write_bytes(spdx(subject))
    document = parse_file(str(path))
    assert validate_full_spdx_document(document) == []
    licences = {one.name: str(one.license_declared) for one in document.packages}
    assert licences["toy-gpl"] == "GPL-3.0-only"
    assert licences["toy-odd"] == "NOASSERTION"
    assert licences["toy"] == "LicenseRef-toy-licence"


def test_the_same_bundle_gives_the_same_bytes(subject: Subject) -> None:
    assert cyclonedx(subject) == cyclonedx(subject)
    assert spdx(subject) == spdx(subject)
