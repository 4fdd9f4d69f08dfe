"""An imported log of ClamAV: what it covers, what it does not, and that a log cannot lie by its form."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bundler import wiring
from bundler.cli.app import run
from bundler.domain.antivirus import AntivirusResult
from bundler.domain.manifest import Manifest
from bundler.errors import FormatError
from bundler.format.trust import open_manifest
from bundler.review.antivirus import read_antivirus_log
from tests.fakes.planted import PlantedBundle

# As ClamAV 1.4.3 printed it here, but for the names.
SUMMARY = """
----------- SCAN SUMMARY -----------
Known viruses: 8710412
Engine version: 1.4.3
Scanned directories: 1
Scanned files: {files}
Infected files: {infected}
Data scanned: 4.86 MB
Data read: 0.60 MB (ratio 8.10:1)
Time: 10.006 sec (0 m 10 s)
Start Date: 2026:12:02 23:22:17
End Date:   2026:12:02 23:22:27
"""
VERSION = "ClamAV 1.4.3/27834/Tue Dec  1 09:26:03 2026\n"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedBundle:
    return PlantedBundle(tmp_path_factory.mktemp("planted")).build()


@pytest.fixture(scope="module")
def manifest(planted: PlantedBundle) -> Manifest:
    return open_manifest(planted.out, wiring.verifiers([planted.public])).manifest


def medium(manifest: Manifest) -> list[str]:
    return [one.name for one in manifest.loose] + [one.name for one in manifest.volumes]


def log(lines: list[str], *, infected: int = 0, version: str = VERSION) -> str:
    return version + "\n".join(lines) + "\n" + SUMMARY.format(files=len(lines), infected=infected)


def read(folder: Path, text: str | bytes, manifest: Manifest) -> AntivirusResult:
    path = folder / "clamav.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_antivirus_log(path, manifest)


@pytest.mark.parametrize("prefix", ["", "./", "/media/stick 1/", "D:\\stick\\"])
def test_a_scan_of_all_files_is_complete(tmp_path: Path, manifest: Manifest, prefix: str) -> None:
    found = read(tmp_path, log([f"{prefix}{name}: OK" for name in medium(manifest)]), manifest)
    assert found.complete
    assert (found.engine_version, found.pattern_version) == ("1.4.3", "27834")
    assert found.pattern_date == "Tue Dec  1 09:26:03 2026"
    assert (found.known_viruses, found.ended) == (8710412, "2026:12:02 23:22:27")
    assert found.covered == len(medium(manifest))


def test_volumes_that_were_unpacked_are_covered_by_their_files(
    tmp_path: Path, manifest: Manifest
) -> None:
    names = [one.name for one in manifest.loose] + [one.path for one in manifest.entries]
    lines = [f"/x/{name}: {'Empty file' if 'empty' in name else 'OK'}" for name in names]
    assert read(tmp_path, log(lines), manifest).complete
    some = [line for line in lines if "evil.bin" not in line]
    found = read(tmp_path, log(some), manifest)
    assert [one.path for one in found.uncovered if one.path.startswith("models/")] == [
        "models/toy/evil.bin"
    ]
    assert not found.complete


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Symbolic link", "the log says: Symbolic link"),
        ("Empty file", "the log says: Empty file"),
        ("Excluded", "the log says: Excluded"),
        ("lstat() failed: Permission denied. ERROR", "the log says"),
        ("Heuristics.Limits.Exceeded.MaxFileSize FOUND", "stopped at a limit"),
        (None, "does not name it"),
    ],
)
def test_what_was_not_scanned_is_named(
    tmp_path: Path, manifest: Manifest, said: str | None, why: str
) -> None:
    first, *rest = medium(manifest)
    lines = [f"{name}: OK" for name in rest] + ([f"{first}: {said}"] if said else [])
    found = read(tmp_path, log(lines, infected=int("Heur" in (said or ""))), manifest)
    [one] = found.uncovered
    assert one.path == first
    assert why in one.why
    assert not found.hits
    assert found.doubts == ()


def test_a_hit_is_a_hit_and_what_else_is_said_of_the_file(
    tmp_path: Path, manifest: Manifest
) -> None:
    names = medium(manifest)
    lines = [f"{name}: OK" for name in names]
    lines += [f"/s/{names[-1]}: Eicar-Test-Signature(44d88612fea8a8f36de82e1278abb02f:68) FOUND",
              "/s/other: odd.exe: Win.Test FOUND"]  # fmt: skip
    found = read(tmp_path, log(lines, infected=2), manifest)
    assert [(hit.name[:8], hit.in_bundle) for hit in found.hits] == [
        ("Eicar-Te", True),
        ("Win.Test", False),
    ]
    assert found.doubts == ()


def test_doubts(tmp_path: Path, manifest: Manifest) -> None:
    lines = [f"{name}: OK" for name in medium(manifest)]
    whole = log(lines)
    assert "no summary" in read(tmp_path, whole.split("---")[0], manifest).doubts[0]
    assert "names fewer" in read(tmp_path, log(lines, infected=3), manifest).doubts[0]
    assert "passes over" in read(tmp_path, whole.replace("4.86 MB", "0.00 MB"), manifest).doubts[0]
    assert (
        "two engines"
        in read(tmp_path, whole.replace("version: 1.4.3", "version: 0.9"), manifest).doubts[0]
    )
    # A volume that is larger than ClamAV looks at, of which it says OK.
    big = manifest.model_copy(
        update={
            "volumes": (
                manifest.volumes[0].model_copy(update={"size": 2**31 + 1}),
                *manifest.volumes[1:],
            )
        }
    )
    assert "over 2 GiB" in read(tmp_path, whole, big).uncovered[0].why


def test_other_forms(tmp_path: Path, manifest: Manifest) -> None:
    names = medium(manifest)
    stamped = "".join(f"Wed Dec  2 23:00:00 2026 -> /s/{name}: OK\r\n" for name in names)
    fresh = "daily.cld database is up-to-date (version: 27835, sigs: 2, f-level: 90, builder: x)\n"
    text = "ClamAV 1.5.1\n" + fresh + stamped + SUMMARY.replace("Engine version: 1.4.3\n", "")
    for data in (text.encode(), text.encode("utf-16"), text.encode("utf-8-sig")):
        found = read(tmp_path, data, manifest)
        assert found.complete
        assert (found.engine_version, found.pattern_version, found.pattern_date) == (
            "1.5.1",
            "27835",
            "",
        )


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 1000, b"no log at all\n", b"\xff\xfe", b"\xfe\xff\x00"]
)
def test_what_is_no_log_is_refused(tmp_path: Path, manifest: Manifest, data: bytes) -> None:
    with pytest.raises(FormatError, match="is no log"):
        read(tmp_path, data, manifest)


def test_hostile_lines_are_bounded_and_harmless(tmp_path: Path, manifest: Manifest) -> None:
    lines = [
        "\x1b[2J/x" + "/a" * 100_000 + ": \x1b[31mX FOUND",
        ": FOUND",
        "a: b: c: OK",
        "x" * 100_000,
    ]
    lines += [f"{at}: V FOUND" for at in range(3000)]
    found = read(tmp_path, log(lines), manifest)
    assert len(found.hits) <= 1000
    assert all("\x1b" not in hit.path + hit.name for hit in found.hits)


def review(bundle: PlantedBundle, out: Path, *more: object) -> int:
    words = ["review", bundle.out, "--key", bundle.public, "--out", out, "-q", *more]
    return run([str(word) for word in words])


def test_the_pack_says_what_was_scanned(
    planted: PlantedBundle, manifest: Manifest, tmp_path: Path
) -> None:
    names, path = medium(manifest), tmp_path / "clamav.log"
    given = ("--antivirus", path, "--fail-on", "low")
    path.write_text(log([f"{name}: OK" for name in names]))
    assert review(planted, tmp_path / "a", *given) == 0
    english, korean = (
        (tmp_path / "a" / f"review.{one}.md").read_text("utf-8") for one in ("en", "ko")
    )
    assert "27834" in english
    assert "nothing was found" in english
    assert "탐지 없음" in korean
    assert "27834" in (tmp_path / "a" / "transfer-form.csv").read_text("utf-8-sig")
    path.write_text(log([f"{name}: OK" for name in names[1:]]))
    assert review(planted, tmp_path / "b", *given) == 11
    korean = (tmp_path / "b" / "review.ko.md").read_text("utf-8")
    assert "일부만 검사" in korean
    assert "로그에 없음" in korean
    path.write_text(
        log([*(f"{name}: OK" for name in names[1:]), f"{names[0]}: X.Y FOUND"], infected=1)
    )
    assert review(planted, tmp_path / "c", *given) == 10
    assert review(planted, tmp_path / "c", *given[:2]) == 0
    assert "1건 탐지" in (tmp_path / "c" / "review.ko.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clamscan") is None, reason="no ClamAV on this host")
def test_a_real_clamscan(planted: PlantedBundle, manifest: Manifest, tmp_path: Path) -> None:
    import subprocess

    # A signature of one file of the bundle, by its size and MD5; ClamAV's own database is not needed.
    target = manifest.loose[0].name
    scanned = tmp_path / "scanned"
    shutil.copytree(planted.out, scanned)
    made = subprocess.run(
        ["sigtool", "--md5", scanned / target], capture_output=True, text=True, check=True
    )
    for signature, code in ((made.stdout, 10), ("0" * 32 + ":1:Never\n", 0)):
        (tmp_path / "my.hdb").write_text(signature)
        words = ["clamscan", f"--database={tmp_path / 'my.hdb'}", "--recursive", str(scanned)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        (tmp_path / "clamav.log").write_text(done.stdout)
        found = read_antivirus_log(tmp_path / "clamav.log", manifest)
        assert [hit.in_bundle for hit in found.hits] == [True] * bool(code)
        assert found.complete
        assert found.engine_version
        assert (
            review(
                planted, tmp_path / "r", "--antivirus", tmp_path / "clamav.log", "--fail-on", "low"
            )
            == code
        )
