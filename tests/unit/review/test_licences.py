"""Licences from what packages and models state; unknown is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.domain.inventory import Component, LicenceFacts, LicenceText
from bundler.errors import SpecError
from bundler.review.licencepolicy import LicencePolicy, read_policy
from bundler.review.licences import model_licence, wheel_licence
from bundler.review.wheelcontents import parse_metadata
from tests.fakes.planted import GPL, MIT


def of(metadata: str, *texts: bytes) -> LicenceFacts:
    files = tuple(LicenceText(path=f"LICENSE{n}", text=t.decode()) for n, t in enumerate(texts))
    return wheel_licence(parse_metadata(metadata), files)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("License-Expression: mit or apache-2.0\n", "MIT OR Apache-2.0"),
        ("License-Expression: GPL-2.0+\n", "GPL-2.0-or-later"),
        ("License: Apache 2.0\n", "Apache-2.0"),
        ("License: The MIT License (MIT)\n", "MIT"),
        ("License: BSD\nClassifier: License :: OSI Approved :: BSD License\n", ""),
        ("License: UNKNOWN\n", ""),
        ("License: Some terms of our own\n", ""),
        ("License: LicenseRef-Ours\n", "LicenseRef-Ours"),
        ("Classifier: License :: OSI Approved :: Apache Software License\n", "Apache-2.0"),
        ("Classifier: License :: OSI Approved :: MIT License\n"
         "Classifier: License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)\n", "MIT AND MPL-2.0"),
        ("Classifier: License :: OSI Approved\n", ""),
        ("License: NVIDIA Proprietary Software\n", "LicenseRef-NVIDIA-Proprietary"),
    ],
)  # fmt: skip
def test_what_metadata_states(metadata: str, expected: str) -> None:
    assert of(metadata).expression == expected


def test_a_text_is_recognised_where_nothing_is_stated() -> None:
    found = of("License: BSD\n", MIT)
    assert found.expression == "MIT"
    assert [row.source for row in found.evidence] == ["licence-field", "licence-file"]
    assert of("", b"All rights reserved. Ask us.\n").expression == ""
    assert of("", GPL).expression == "GPL-3.0-only"


def test_places_that_disagree_are_shown_as_such() -> None:
    assert of("License-Expression: MIT\n", GPL).conflict
    assert of(
        "License: MIT\nClassifier: License :: OSI Approved :: Apache Software License\n"
    ).conflict
    assert not of("License-Expression: GPL-3.0-or-later\n", GPL).conflict
    # A package that bundles others' code carries their texts too.
    assert not of("License-Expression: MIT\n", MIT, GPL).conflict


def test_cards() -> None:
    other = {
        "license": "other",
        "license_name": "tongyi-qianwen",
        "license_link": "https://x/LICENSE",
    }
    assert model_licence(other, (), None).expression == "LicenseRef-tongyi-qianwen"
    assert model_licence({"license": "apache-2.0"}, (), None).expression == "Apache-2.0"
    assert model_licence({"license": "llama3.1"}, (), None).expression == "LicenseRef-Llama-3.1"
    assert model_licence({"license": "other"}, (), None).expression == ""
    assert model_licence({}, (), "mit").expression == "MIT"
    assert model_licence({"license": {"a": [1]}}, (), None).expression == ""


POLICY = LicencePolicy(
    allow=("MIT", "BSD-*", "GPL-2.0-only WITH GCC-*"), deny=("GPL-*",), review=("MPL-2.0",)
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", "allow"), ("BSD-3-Clause", "allow"), ("GPL-3.0-only", "deny"), ("Zlib", "review"),
        ("GPL-3.0-only OR MIT", "allow"), ("GPL-3.0-only AND MIT", "deny"), ("MIT AND Zlib", "review"),
        ("MPL-2.0 AND (GPL-2.0-only OR BSD-2-Clause)", "review"), ("", "review"),
        ("GPL-2.0-only WITH GCC-exception-3.1", "allow"),
    ],
)  # fmt: skip
def test_a_policy_weighs_choices_and_sums(expression: str, expected: str) -> None:
    one = Component(
        kind="wheel", name="x", size=0, files=(), licence=LicenceFacts(expression=expression)
    )
    assert POLICY.judge(one) == expected


def test_a_policy_file_that_is_wrong_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("allow: [MIT]\ndeny: ['GPL-*']\n")
    assert read_policy(path).deny == ("GPL-*",)
    for text, said in (
        ("allowed: [MIT]", "allowed"),
        ("allow: {", "YAML"),
        ("otherwise: maybe", "otherwise"),
    ):
        path.write_text(text)
        with pytest.raises(SpecError, match=said):
            read_policy(path)
