"""The redline between two builds shows exactly the planted changes, and of what it cannot know it says so."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from bundler.domain.inventory import CarriedFile, Component
from bundler.domain.redline import Redline, RedlineSide
from bundler.domain.spec import BundleSpec
from bundler.format.codec import from_bytes
from bundler.review.redline import Side, redline
from tests.fakes.planted import MIT, Command, PlantedBundle, torch_archive
from tests.fakes.wheels import make_wheel


class Later(PlantedBundle):
    """The same bundle with a difference of every kind."""

    def spec(self) -> BundleSpec:
        plain = super().spec().model_dump(mode="json")
        plain["models"][0]["allow_pickle"] = ["evil.bin", "plain.pkl", "worse.bin"]
        return BundleSpec.model_validate(plain)

    def prepare(self) -> None:
        super().prepare()
        wheels = self.folder / "wheels"
        next(wheels.glob("toy_odd-*.whl")).unlink()
        next(wheels.glob("toy_dependency-*.whl")).unlink()
        make_wheel(
            wheels, "toy-dependency", "2.1",
            {"toy_dependency.py": b"X = 2\n", "toy_dependency-2.1.dist-info/licenses/LICENSE": MIT},
            metadata="Classifier: License :: OSI Approved :: MIT License\n",
        )  # fmt: skip
        # The same version under other terms.
        make_wheel(wheels, "toy-gpl", "1.0", {"toy_gpl.py": b"", "quiet.pth": b"import toy_gpl\n"},
                   metadata="License-Expression: AGPL-3.0-only\n")  # fmt: skip
        make_wheel(wheels, "toy-new", "1.0", {"toy_new.py": b"", "toy_new.pth": b"import toy_new\n"},
                   metadata="License-Expression: MIT\n")  # fmt: skip
        model = self.folder / "model"
        (model / "worse.bin").write_bytes(torch_archive({"weights": Command()}))
        (model / "plain.pkl").write_bytes(pickle.dumps({"a": [1, 2.0, "c"]}))
        (model / "modeling_toy.py").unlink()


def osv(folder: Path) -> Path:
    """toy-dependency is mended in 2.1, toy-new has a flaw, toy-gpl has one in both bundles."""
    flaws = {"toy-dependency": "2.1", "toy-new": "9", "toy-gpl": "9"}
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for at, (name, fixed) in enumerate(flaws.items(), 1):
            record = {
                "id": f"CVE-2026-{at}", "modified": "2026-11-30T00:00:00Z", "summary": "a flaw",
                "severity": [
                    {"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}
                ],
                "affected": [{
                    "package": {"ecosystem": "PyPI", "name": name},
                    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}],
                }],
            }  # fmt: skip
            archive.writestr(f"{at}.json", json.dumps(record))
    return path


class Two:
    """An approved bundle and the one after it, of another signer, from the same folder."""

    def __init__(self, folder: Path) -> None:
        first = PlantedBundle(folder)
        first.prepare()
        first.build_only()
        self.old = first.out.rename(folder / "approved")
        self.old_key = first.public.rename(folder / "old.pub.pem")
        first.private.unlink()
        later = replace(Later(folder), port=19000, settings={"max_num_seqs": 16})
        later.prepare()
        later.build_only()
        self.new, self.key = later.out, later.public
        self.osv = osv(folder)
        self.policy = folder / "policy.yaml"
        self.policy.write_text("allow: [MIT, Apache-2.0, 'GPL-*']\ndeny: ['AGPL-*']\n")

    def redline(self, against: Path, out: Path, *more: object, of: Path | None = None) -> Redline:
        words = ["review", of or self.new, "--key", self.key, "--key", self.old_key, "--against",
                 against, "--out", out, "-q", *more]  # fmt: skip
        assert run([str(word) for word in words]) in (0, 10)
        return from_bytes(Redline, (out / "redline.json").read_bytes(), "redline.json")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    return Two(tmp_path_factory.mktemp("two"))


COMPONENTS = {
    ("component", "added", "toy-new", ""),
    ("component", "removed", "toy-odd", ""),
    *(("component", "changed", "toy-dependency", field) for field in ("version", "size", "digest")),
    *(("component", "changed", "toy-gpl", field) for field in ("licence", "size", "digest")),
    ("component", "changed", "toy", "size"),
}
FILES = {
    ("file", "added", "toy", "worse.bin"),
    ("file", "changed", "toy", "plain.pkl"),
    ("file", "removed", "toy", "modeling_toy.py"),
}
EXECUTIONS = {
    ("execution", "added", "toy", "pickle: worse.bin"),
    ("execution", "added", "toy-new", "path-file: toy_new.pth"),
    ("execution", "changed", "toy", "pickle: plain.pkl"),
    ("execution", "changed", "toy", "remote-code: modeling_toy.py"),
    ("execution", "removed", "toy-dependency", "path-file: toy_dependency.pth"),
}
SETTINGS = {
    ("setting", "changed", "service", "toy.port"),
    ("setting", "changed", "service", "toy.settings.max_num_seqs"),
}
RECORDS = {
    ("record", "changed", "", name)
    for name in ("spec.json", "lock.json", "requirements/engine.txt")
}
EXPECTED = {
    ("trust", "changed", "", "key"),
    *COMPONENTS,
    *FILES,
    *EXECUTIONS,
    ("vulnerability", "added", "toy-new", "CVE-2026-2"),
    ("vulnerability", "removed", "toy-dependency", "CVE-2026-1"),
    ("policy", "added", "toy-gpl", ""),
    ("policy", "removed", "toy-odd", ""),
    *SETTINGS,
    *RECORDS,
}


def named(found: Redline) -> set[tuple[str, str, str, str]]:
    rows = [(one.area, one.what, one.component, one.name) for one in found.changes]
    assert len(rows) == len(set(rows))
    return set(rows)


def test_exactly_the_planted_changes(two: Two, tmp_path: Path) -> None:
    found = two.redline(two.old, tmp_path / "r", "--osv", two.osv, "--policy", two.policy)
    assert named(found) == EXPECTED
    assert found.uncompared == ()


def test_both_languages_name_each_change(two: Two, tmp_path: Path) -> None:
    out = tmp_path / "r"
    found = two.redline(two.old, out, "--osv", two.osv, "--policy", two.policy)
    for name in ("redline.html", "redline.ko.md", "redline.en.md"):
        text = (out / name).read_text(encoding="utf-8").replace("\\", "")
        for one in found.changes:
            assert one.component in text, (name, one)
            assert one.area in ("component", "trust") or one.name.rpartition(": ")[2] in text, (
                name,
                one,
            )
    korean, english = ((out / f"redline.{one}.md").read_text("utf-8") for one in ("ko", "en"))
    assert "불러올 때 posix.system 호출" in korean
    assert "라이선스" in korean
    assert not any("가" <= letter <= "힣" for letter in english)
    assert "<script" not in (out / "redline.html").read_text(encoding="utf-8")


def test_the_same_bundle_gives_an_empty_redline(two: Two, tmp_path: Path) -> None:
    sources = ("--osv", two.osv, "--policy", two.policy)
    found = two.redline(two.new, tmp_path / "r", *sources)
    assert (found.changes, found.uncompared) == ((), ())
    text = (tmp_path / "r" / "redline.en.md").read_text(encoding="utf-8")
    assert "Both are the same bundle" in text
    assert "Nothing that could execute is new, gone or changed" in text.replace("\\", "")


def test_a_build_of_another_day_is_no_change(two: Two, tmp_path: Path) -> None:
    again = replace(Later(two.new.parent), port=19000, settings={"max_num_seqs": 16})
    lock = again.lock()
    later = lock.model_copy(update={"created": "2027-05-06T07:08:09Z"})
    again.build_only(out=tmp_path / "again", lock=later)
    found = two.redline(two.new, tmp_path / "r", "--policy", two.policy, of=tmp_path / "again")
    assert found.old.manifest_sha256 != found.new.manifest_sha256
    assert {one.area for one in found.changes} <= {"record"}
    assert "nobody looked for any" in found.uncompared[0].why


def test_a_manifest_alone_says_what_it_can(two: Two, tmp_path: Path) -> None:
    alone = tmp_path / "approved.json"
    shutil.copyfile(two.old / "manifest.json", alone)
    found = two.redline(alone, tmp_path / "r", "--policy", two.policy)
    inside = {
        row for row in EXPECTED if row[0] in ("trust", "execution", "vulnerability", "policy")
    }
    licence = ("component", "changed", "toy-gpl", "licence")
    assert named(found) == EXPECTED - inside - {licence}
    areas = {one.area for one in found.uncompared}
    assert areas == {"trust", "execution", "policy", "vulnerability"}
    assert not found.old.verified
    # In its bundle's folder its signature is checked, also when the volumes are gone.
    (tmp_path / "old").mkdir()
    for name in ("manifest.json", "manifest.json.sig"):
        shutil.copyfile(two.old / name, tmp_path / "old" / name)
    for old in (tmp_path / "old", tmp_path / "old" / "manifest.json"):
        signed = two.redline(old, tmp_path / "r", "--osv", two.osv)
        assert signed.old.verified
        assert {row[0] for row in named(signed)} >= {"trust", "vulnerability"}


def test_an_inventory_says_all_but_who_signed_it(two: Two, tmp_path: Path) -> None:
    words = (
        "review",
        two.old,
        "--key",
        two.old_key,
        "--osv",
        two.osv,
        "--out",
        tmp_path / "pack",
        "-q",
    )
    assert run([str(word) for word in words]) == 0
    inventory = tmp_path / "pack" / "inventory.json"
    found = two.redline(inventory, tmp_path / "r", "--osv", two.osv, "--policy", two.policy)
    assert named(found) == EXPECTED
    assert (found.old.source, found.old.verified) == ("inventory", False)


def test_what_could_not_be_looked_up_is_not_gone(two: Two, tmp_path: Path) -> None:
    for side, folder in (("old", two.old), ("new", two.new)):
        words = ("review", folder, "--key", two.key, "--key", two.old_key, "--osv", two.osv, "--out",
                 tmp_path / side, "-q")  # fmt: skip
        assert run([str(word) for word in words]) == 0
    known: dict[str, Any] = json.loads((tmp_path / "new" / "vulnerabilities.json").read_text())
    known["unchecked"] = [{"package": "toy-dependency", "version": "2.1", "why": "HTTP 404"}]
    (tmp_path / "known.json").write_text(json.dumps(known))
    found = two.redline(
        tmp_path / "old" / "inventory.json", tmp_path / "r", "--known", tmp_path / "known.json"
    )
    flaws = {row for row in named(found) if row[0] == "vulnerability"}
    assert flaws == {("vulnerability", "added", "toy-new", "CVE-2026-2")}
    assert any("toy-dependency" in one.why for one in found.uncompared)


def test_it_lies_beside_the_bundle_and_takes_no_packs_place(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(two.new, tmp_path / "bundle")
    monkeypatch.chdir(tmp_path / "bundle")
    keys = ["--key", str(two.key), "--key", str(two.old_key), "-q"]
    against = ["--against", str(two.old / "manifest.json")]
    assert run(["review", ".", *keys, *against]) == 0
    assert (tmp_path / "bundle.redline" / "redline.json").is_file()
    assert run(["review", ".", *keys, "--out", "../bundle.redline"]) == 17
    assert run(["review", ".", *keys]) == 0
    assert run(["review", ".", *keys, *against, "--out", "review"]) == 17
    assert (tmp_path / "bundle" / "review" / "review.html").is_file()


def side(**update: Any) -> Side:
    file = CarriedFile(path="models/m/a.safetensors", size=1, sha256="a" * 64)
    model = Component(
        kind="model", name="m", revision="1" * 40, origin="hub: a/m", size=1, files=(file,)
    )
    about = RedlineSide(bundle_id="b-1", manifest_sha256="0" * 64, sequence=2, key_id="1" * 16,
                        source="bundle", verified=True)  # fmt: skip
    about = about.model_copy(
        update={k: v for k, v in update.items() if k in RedlineSide.model_fields}
    )
    rest = {k: v for k, v in update.items() if k in Component.model_fields}
    return Side(about, (model.model_copy(update=rest),), looked_into=True, settings={})


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({}, set()),
        ({"revision": "2" * 40}, {("component", "changed", "m", "revision")}),
        ({"origin": "hub: b/m"}, {("component", "changed", "m", "origin")}),
        ({"sequence": 1}, {("trust", "changed", "", "sequence")}),
        ({"sequence": 3}, set()),
        ({"key_id": None}, {("trust", "changed", "", "key")}),
        ({"name": "n\x1b[2J"}, {("component", "removed", "m", ""),
                               ("component", "added", "n\N{REPLACEMENT CHARACTER}[2J", "")}),
    ],
)  # fmt: skip
def test_each_change_by_itself(update: dict[str, Any], expected: set[tuple[str, ...]]) -> None:
    assert named(redline(side(), side(**update))) == expected


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff\xfe", b'{"bundle_id": 1}', b"[" * 100_000])
def test_what_is_no_inventory_is_refused(two: Two, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "inventory.json").write_bytes(data)
    words = ("review", two.new, "--key", two.key, "--against", tmp_path / "inventory.json", "-q",
             "--out", tmp_path / "r")  # fmt: skip
    assert run([str(word) for word in words]) == 9
    assert not (tmp_path / "r").exists()
