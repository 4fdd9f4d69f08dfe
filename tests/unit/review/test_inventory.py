"""From a built bundle's volumes: each planted thing is found and has its rank."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from bundler import wiring
from bundler.cli.console import SilentProgress
from bundler.domain.inventory import Inventory
from bundler.errors import IntegrityError, MissingVolumeError
from bundler.format.contents import Contents, InVolumes
from bundler.format.places import find_volumes
from bundler.format.trust import open_manifest
from bundler.review.inventory import take_inventory
from bundler.review.subject import Subject
from bundler.review.wheelcontents import read_wheel
from tests.fakes.planted import PlantedBundle
from tests.fakes.small_bundle import SmallBundle


def contents(bundle: SmallBundle) -> Contents:
    verified = open_manifest(bundle.out, wiring.verifiers([bundle.public]))
    places = find_volumes(verified.manifest, [bundle.out])
    return Contents(verified.manifest, (InVolumes(places),))


def subject_of(bundle: SmallBundle) -> Subject:
    verified = open_manifest(bundle.out, wiring.verifiers([bundle.public]))
    return Subject(verified, take_inventory(contents(bundle), SilentProgress()))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedBundle:
    return PlantedBundle(tmp_path_factory.mktemp("planted")).build()


@pytest.fixture(scope="module")
def inventory(planted: PlantedBundle) -> Inventory:
    return take_inventory(contents(planted), SilentProgress())


@pytest.mark.parametrize(
    ("owner", "kind", "rank", "where"),
    [
        ("toy", "pickle", "alarm", "evil.bin"),
        ("toy", "pickle", "usual", "plain.pkl"),
        ("toy", "template", "alarm", "tokenizer_config.json"),
        ("toy", "template", "usual", "chat_template.jinja"),
        ("toy", "template", "usual", "toy.gguf: tokenizer.chat_template"),
        ("toy", "remote-code", "attention", "modeling_toy.py"),
        ("toy", "remote-code", "attention", "other/repo--conf.py"),
        ("toy-dependency", "path-file", "alarm", "toy_dependency.pth"),
        ("toy-gpl", "path-file", "attention", "quiet.pth"),
        ("toy-engine", "native", "usual", "toy_engine/libfast.so"),
        ("airbundle-bootstrap.py", "install-script", "usual", "airbundle-bootstrap.py"),
    ],
)  # fmt: skip
def test_each_plant_is_found(
    inventory: Inventory, owner: str, kind: str, rank: str, where: str
) -> None:
    rows = [(one.name, f.kind, f.rank, f.where) for one, f in inventory.findings]
    assert (owner, kind, rank, where) in rows


def test_what_matters_most_comes_first(inventory: Inventory) -> None:
    ranks = [found.rank for _, found in inventory.findings]
    assert ranks == sorted(ranks, key=["alarm", "attention", "usual"].index)
    assert ranks[0] == "alarm"


def test_components_have_origin_licence_and_what_they_need(inventory: Inventory) -> None:
    by_name = {one.name: one for one in inventory.components}
    engine = by_name["toy-engine"]
    assert engine.requires == ("toy-dependency", "toy-gpl")
    assert (engine.licence.expression, engine.supplier) == ("Apache-2.0", "Toy Company")
    assert by_name["toy-odd"].licence.expression == ""
    assert by_name["toy-gpl"].licence.expression == "GPL-3.0-only"
    model = by_name["toy"]
    assert model.licence.expression == "LicenseRef-toy-licence"
    assert model.card is not None
    assert (model.card.quantization, model.card.datasets) == ("fp8", ("toy/data",))
    assert sum(found.count for found in engine.executes if found.kind == "native") == 2


def test_damaged_bytes_are_never_looked_into(planted: PlantedBundle, tmp_path: Path) -> None:
    other = planted.copy(tmp_path)
    for volume in other.volumes():
        data = volume.read_bytes()
        place = data.find(b"os.system")
        if place >= 0:
            volume.write_bytes(data[:place] + b"oz.system" + data[place + 9 :])
    with pytest.raises(IntegrityError, match="not what the manifest promises"):
        take_inventory(contents(other), SilentProgress())


def test_a_volume_that_is_not_here_is_said(planted: PlantedBundle, tmp_path: Path) -> None:
    other = planted.copy(tmp_path)
    for volume in other.volumes():
        if b"toy_dependency" in volume.read_bytes():
            volume.unlink()
    seen = take_inventory(contents(other), SilentProgress())
    unread = {one.name for one, found in seen.findings if "not looked into" in found.what}
    assert "toy-dependency" in unread
    whole = contents(other)
    entry = next(e for e in whole.manifest.entries if "toy_dependency" in e.path)
    with pytest.raises(MissingVolumeError, match="toy_dependency"):
        whole.read(entry, 0, 1)


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("import sys; exec('1')", "alarm"),
        ("import base64", "alarm"),
        ("import\tos; __import__('os').system('true')", "alarm"),
        # setuptools has this one, and so has nearly every bundle.
        ("import os; enabled and __import__('_distutils_hack')", "attention"),
        ("../lib", None),
    ],
)
def test_path_files_by_what_they_say(line: str, rank: str | None) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x-1.data/purelib/x.pth", line)
        archive.writestr("x/inner.pth", line)
        archive.writestr("x-1.dist-info/METADATA", "Name: x\nVersion: 1\n")
    buffer.seek(0)
    found = [one.rank for one in read_wheel(buffer).executes if one.kind == "path-file"]
    assert found == ([rank] if rank else [])


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18), b"no archive at all"])
def test_what_is_no_wheel_is_said(data: bytes) -> None:
    facts = read_wheel(io.BytesIO(data))
    assert not facts.licence.known
    assert not facts.name
    assert [one.kind for one in facts.executes] == ["unreadable"]
