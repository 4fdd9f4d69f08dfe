"""`airbundle review`: the pack of a planted bundle, its checks, and what a page must not do."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from bundler import wiring
from bundler.cli.app import run
from bundler.cli.build_cmds import write_review
from bundler.errors import SourceError
from bundler.format import reviewpack
from tests.fakes.planted import PlantedBundle
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedBundle:
    return PlantedBundle(tmp_path_factory.mktemp("planted")).build()


@pytest.fixture(scope="module")
def pack(planted: PlantedBundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pack") / "review"
    assert (
        run(["review", str(planted.out), "--key", str(planted.public), "--out", str(out), "-q"])
        == 0
    )
    return out


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run([*map(str, words), "--json", "--quiet"])
    return code, json.loads(capsys.readouterr().out)


def test_both_texts_name_every_plant(pack: Path) -> None:
    for name in ("review.html", "review.ko.md", "review.en.md"):
        text = (pack / name).read_text(encoding="utf-8").replace("\\", "")
        for plant in ("evil.bin", "modeling_toy.py", "toy_dependency.pth", "tokenizer_config.json",
                      "toy_engine/libfast.so", "GPL-3.0-only", "toy-odd"):  # fmt: skip
            assert plant in text, (name, plant)
    korean, english = ((pack / f"review.{one}.md").read_text("utf-8") for one in ("ko", "en"))
    assert "미점검" in korean
    assert "불러올 때 posix.system 호출" in korean
    assert "Not checked" in english
    assert "needed by toy-engine" in english
    assert "toy-engine의 의존성" in korean
    assert not any("가" <= letter <= "힣" for line in english.splitlines() for letter in line
                   if "작은 시험 번들" not in line and "설명서" not in line)  # fmt: skip


def test_the_page_loads_nothing(pack: Path) -> None:
    page = (pack / "review.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    for word in (
        "<script",
        "<img",
        "<link",
        "<iframe",
        "src=",
        "url(",
        "@import",
        'http-equiv="refresh',
    ):
        assert word not in page, word


def test_tables_open_and_compute_nothing(pack: Path) -> None:
    book = load_workbook(pack / "transfer-form.xlsx")
    assert book.sheetnames == ["반입 신청서", "파일 목록", "구성 요소", "실행 항목"]
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell.coordinate for cell in cells if cell.data_type == "f"]
    labels = " ".join(str(row[0].value) for row in book["반입 신청서"].iter_rows())
    for label in ("신청자", "승인자", "반입 목적", "반입 경로", "매체 일련번호", "라이선스", "백신", "취약점",
                  "예외 사유", "SBOM", "파기"):  # fmt: skip
        assert label in labels
    rows = list(csv.reader(io.StringIO((pack / "components.csv").read_bytes().decode("utf-8-sig"))))
    assert {row[1] for row in rows} >= {"toy-engine", "toy", "toy-odd"}
    assert all(len(row[9]) == 64 for row in rows[1:])


def test_the_same_bundle_gives_the_same_pack(
    planted: PlantedBundle, pack: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    assert (
        run(["review", str(planted.out), "--key", str(planted.public), "--out", str(out), "-q"])
        == 0
    )
    again = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    first = {
        path.relative_to(pack): path.read_bytes() for path in pack.rglob("*") if path.is_file()
    }
    assert again == first
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=out, check=True)


def test_a_policy_denies_and_says_so(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("allow: [MIT, Apache-2.0]\ndeny: ['GPL-*']\n")
    code, found = answer(capsys, "review", planted.out, "--key", planted.public, "--policy", policy,
                         "--out", tmp_path / "r")  # fmt: skip
    assert code == 10
    assert found["licence_denied"] == ["toy-gpl"]
    assert found["licence_unknown"] == ["toy-odd", "uv"]
    assert "금지" in (tmp_path / "r" / "review.html").read_text(encoding="utf-8")


def test_verify_checks_the_pack_and_names_what_was_changed(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = planted.copy(tmp_path)
    review, key = bundle.out / "review", ("--key", bundle.public)
    words = ("review", bundle.out, *key, "--sign-with", bundle.private)
    assert answer(capsys, *words)[0] == 0
    assert answer(capsys, "verify", bundle.out, *key)[1]["review_pack"] == "signed"
    # The signed one is not overwritten by one that nobody signed.
    assert answer(capsys, "review", bundle.out, *key)[0] == 17
    page = review / "review.html"
    page.write_bytes(page.read_bytes().replace("위험".encode(), "안전".encode()))
    code, found = answer(capsys, "verify", bundle.out, *key)
    assert code
    assert "review/review.html: changed" in found["error"]
    # With sums to match, the signature is wrong.
    files = {path.relative_to(review).as_posix(): path.read_bytes() for path in review.rglob("*")
             if path.is_file() and path.name not in (reviewpack.SUMS, reviewpack.SIGNATURE)}  # fmt: skip
    (review / reviewpack.SUMS).write_bytes(reviewpack.sums(files))
    assert (
        "not what the bundle's key signed" in answer(capsys, "verify", bundle.out, *key)[1]["error"]
    )
    # And without one it is said to be nobody's.
    (review / reviewpack.SIGNATURE).unlink()
    assert answer(capsys, "verify", bundle.out, *key)[1]["review_pack"] == "unsigned"
    (review / "extra.html").write_text("x")
    assert "extra.html" in answer(capsys, "verify", bundle.out, *key)[1]["error"]


def test_another_bundles_pack_is_not_taken(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = SmallBundle(tmp_path / "other")
    other.prepare()
    shutil.copytree(planted.folder / "keys", other.folder / "keys", dirs_exist_ok=True)
    other.build_only()
    made = answer(capsys, "review", planted.out, "--key", planted.public, "--sign-with", planted.private,
                  "--out", tmp_path / "r")  # fmt: skip
    assert made[0] == 0
    shutil.copytree(tmp_path / "r", other.out / "review")
    code, found = answer(capsys, "verify", other.out, "--key", other.public)
    assert code
    assert "pack of another bundle" in found["error"]


def test_it_wants_a_signature_and_sound_bytes(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(capsys, "review", planted.out, "--out", tmp_path / "r")[0] not in (0, 10)
    bundle = planted.copy(tmp_path)
    for volume in bundle.volumes():
        data = bytearray(volume.read_bytes())
        data[len(data) // 2] ^= 1
        volume.write_bytes(data)
    code, found = answer(capsys, "review", bundle.out, "--key", bundle.public)
    assert code
    assert "not what the manifest promises" in found["error"]
    assert not (bundle.out / "review").exists()
    place = tmp_path / "mine"
    place.mkdir()
    assert answer(capsys, "review", planted.out, "--key", planted.public, "--out", place)[0] == 17


def test_a_pack_is_made_again_from_inside_its_own_folder(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    words = ("review", planted.out, "--key", planted.public, "--out")
    assert answer(capsys, *words, tmp_path / "pack")[0] == 0
    monkeypatch.chdir(tmp_path / "pack")
    assert answer(capsys, *words, ".")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["pack"]
    assert (tmp_path / "pack" / "review.html").is_file()


def test_copy_carries_the_pack(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = planted.copy(tmp_path)
    key = ("--key", bundle.public)
    assert answer(capsys, "review", bundle.out, *key, "--sign-with", bundle.private)[0] == 0
    stick = tmp_path / "stick"
    stick.mkdir()
    assert answer(capsys, "copy", bundle.out, "--to", stick, *key)[0] == 0
    assert answer(capsys, "verify", stick, *key)[1]["review_pack"] == "signed"


def test_build_writes_and_signs_the_pack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = PlantedBundle(tmp_path).build()
    assert (
        write_review(bundle.out, wiring.signer(bundle.private), bundle.tools())
        == bundle.out / "review"
    )
    key = ("--key", bundle.public)
    assert answer(capsys, "verify", bundle.out, *key)[1]["review_pack"] == "signed"
    # As a reviewer makes it again on the far side.
    assert answer(capsys, "review", bundle.out, *key, "--out", tmp_path / "again")[0] == 0
    signed = (bundle.out / "review" / "SHA256SUMS").read_bytes()
    assert (tmp_path / "again" / "SHA256SUMS").read_bytes() == signed
    subprocess.run(["sha256sum", "--quiet", "-c", "review/BUNDLE"], cwd=bundle.out, check=True)


def test_a_delta_is_reviewed_with_the_root_that_holds_the_rest(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = PlantedBundle(tmp_path / "later")
    later.prepare()
    shutil.copytree(planted.folder / "keys", later.folder / "keys", dirs_exist_ok=True)
    later.build_only(base=planted.out)
    key, root = ("--key", planted.public), ("--root", tmp_path / "root")
    alone = answer(capsys, "review", later.out, *key, "--out", tmp_path / "a")[1]
    assert alone["findings"]["alarm"] == 0
    assert "검사하지 못함" in (tmp_path / "a" / "review.ko.md").read_text(encoding="utf-8")
    assert answer(capsys, "import", planted.out, *key, *root)[0] == 0
    both = answer(capsys, "review", later.out, *key, *root, "--out", tmp_path / "b")[1]
    assert both["findings"]["alarm"] == 3


def test_sealed_media_do_not_carry_it_in_the_open(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = planted.copy(tmp_path)
    key, secret = ("--key", bundle.public), tmp_path / "site.volumes.key"
    assert answer(capsys, "review", bundle.out, *key, "--sign-with", bundle.private)[0] == 0
    assert run(["keygen", "--volumes", "--out", str(tmp_path / "site")]) == 0
    (tmp_path / "stick").mkdir()
    words = ("copy", bundle.out, "--to", tmp_path / "stick", *key, "--seal", secret)
    assert answer(capsys, *words)[0] == 0
    assert not (tmp_path / "stick" / "review").exists()
    opened = ("--volume-key", secret, "--out", tmp_path / "r")
    assert answer(capsys, "review", tmp_path / "stick", *key, *opened)[1]["findings"]["alarm"] == 3


@pytest.mark.parametrize("missing", ["cyclonedx", "jinja2"])
def test_without_the_extra_it_says_what_to_do(
    planted: PlantedBundle, missing: str, tmp_path: Path
) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from bundler.cli.app import run; sys.exit(run(sys.argv[1:]))"
    )
    words = ("review", planted.out, "--key", planted.public, "--out", tmp_path / "r")
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 18
    assert f"needs {missing}" in done.stderr
    assert "airbundle[review]" in done.stderr


def osv_export(folder: Path) -> Path:
    record = {
        "id": "GHSA-toy", "aliases": ["CVE-2026-77"], "modified": "2026-11-30T00:00:00Z",
        "summary": "toy-dependency runs what a stranger sends",
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
        "affected": [{
            "package": {"ecosystem": "PyPI", "name": "toy-dependency"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}],
        }],
    }  # fmt: skip
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("GHSA-toy.json", json.dumps(record))
    return path


def test_a_planted_vulnerability_is_found_excepted_and_expires(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export, out = osv_export(tmp_path), tmp_path / "review"
    words = ["review", planted.out, "--key", planted.public, "--out", out, "--osv", export]
    code, told = answer(capsys, *words, "--fail-on", "high")
    assert code == 10
    [found] = told["vulnerabilities"]["found"]
    assert (found["package"], found["advisory"]["id"]) == ("toy-dependency", "CVE-2026-77")
    korean = (out / "review.ko.md").read_text(encoding="utf-8")
    assert "CVE\\-2026\\-77" in korean or "CVE-2026-77" in korean
    assert "2026-11-30" in korean
    assert "심각 9.8" in korean
    form = (out / "transfer-form.csv").read_text(encoding="utf-8-sig")
    assert "1건, 미점검 0개 패키지" in form
    vex = tmp_path / "vex.yaml"
    vex.write_text(
        "exceptions:\n- {id: CVE-2026-77, status: accepted, reason: 내부망 전용, by: 김보안,"
        " expires: 2999-12-31}\n",
        encoding="utf-8",
    )
    assert answer(capsys, *words, "--exceptions", vex, "--fail-on", "low")[0] == 0
    assert "내부망 전용 (김보안, 2999-12-31" in (out / "transfer-form.csv").read_text("utf-8-sig")
    vex.write_text(vex.read_text(encoding="utf-8").replace("2999", "2020"), encoding="utf-8")
    assert answer(capsys, *words, "--exceptions", vex, "--fail-on", "low")[0] == 10
    assert "만료됨" in (out / "review.ko.md").read_text(encoding="utf-8")


def test_an_earlier_look_up_makes_the_same_pack(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["review", planted.out, "--key", planted.public]
    export = osv_export(tmp_path)
    assert answer(capsys, *words, "--out", tmp_path / "one", "--osv", export)[0] == 0
    known = tmp_path / "one" / "vulnerabilities.json"
    assert answer(capsys, *words, "--out", tmp_path / "two", "--known", known)[0] == 0
    subprocess.run(["diff", "-r", tmp_path / "one", tmp_path / "two"], check=True)
    assert "--known review/vulnerabilities.json" in (tmp_path / "one/review.en.md").read_text(
        encoding="utf-8"
    )


def test_all_six_plants_at_once_are_found_and_ranked(
    planted: PlantedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pickle with os.system, `.pth` files, auto_map, a GPL package, a CVE, a template that walks attributes."""
    policy, out = tmp_path / "policy.yaml", tmp_path / "review"
    policy.write_text("allow: [MIT, Apache-2.0]\ndeny: ['GPL-*']\n")
    words = ["review", planted.out, "--key", planted.public, "--out", out, "--policy", policy,
             "--osv", osv_export(tmp_path), "--fail-on", "high"]  # fmt: skip
    code, told = answer(capsys, *words)
    assert code == 10
    assert told["licence_denied"] == ["toy-gpl"]
    [flaw] = told["vulnerabilities"]["found"]
    assert (flaw["package"], flaw["advisory"]["severity"]) == ("toy-dependency", "critical")
    alarms = {(one["component"], one["kind"], one["where"]) for one in told["alarms"]}
    assert alarms == {
        ("toy-dependency", "path-file", "toy_dependency.pth"),
        ("toy", "pickle", "evil.bin"),
        ("toy", "template", "tokenizer_config.json"),
    }
    text = (out / "review.en.md").read_text(encoding="utf-8").replace("\\", "")
    table = text.split("## What could execute")[1].split("\n## ")[0]
    rows = [
        [cell.strip(" *`") for cell in line.strip("|").split(" | ")]
        for line in table.splitlines()
        if line.startswith(("| alarm", "| **alarm", "| attention", "| **attention"))
    ]
    ranks = [row[0] for row in rows]
    assert ranks == sorted(ranks)  # alarms stand before what wants attention
    places = {row[3]: row[0] for row in rows}
    for file in ("evil.bin", "toy_dependency.pth", "tokenizer_config.json"):
        assert places[file] == "alarm", places
    for file in ("quiet.pth", "modeling_toy.py"):
        assert places[file] == "attention"
    # At the head of the page: what was found, by weight.
    head = text.split("## ")[0]
    for figure in (
        "Alarm: **3**",
        "Attention: **3**",
        "Licence denied: **1**",
        "Vulnerabilities: **1**",
    ):
        assert figure in head, head


class _Silent:
    source = "an index without advisories"

    def of(self, name: str, version: str) -> tuple[Any, ...]:
        raise SourceError("HTTP 404")


def test_what_the_build_could_not_ask_is_not_checked(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    small.build_only()
    pack = write_review(small.out, wiring.signer(small.private), small.tools(), _Silent())
    assert pack is not None
    text = (pack / "review.en.md").read_text(encoding="utf-8")
    assert "could not be looked up" in text
    assert "HTTP 404" in text
    assert "names no vulnerability" not in text
