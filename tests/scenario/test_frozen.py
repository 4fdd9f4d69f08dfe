"""A bundle of every format version is kept for ever, and every reader takes it: ours, and one made
from docs/bundle-format.md with the standard library alone."""

import hashlib
import json
import shutil
import subprocess
import zipfile
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from bundler.domain.manifest import FORMAT_VERSION
from bundler.format.codec import bytes_read, parse_manifest

ASSETS = Path(__file__).parent.parent / "assets"
FROZEN = sorted(ASSETS.glob("bundle-v*"))


def test_there_is_one_for_this_version() -> None:
    assert ASSETS / f"bundle-v{FORMAT_VERSION}" in FROZEN


@pytest.fixture(params=FROZEN, ids=lambda path: path.name)
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.param, tmp_path / "frozen"))


def do(*words: object, code: int = 0) -> None:
    assert run([str(word) for word in words]) == code


def test_it_is_verified_imported_and_completed_by_its_delta(frozen: Path, tmp_path: Path) -> None:
    key, root = frozen / "builder.pub.pem", tmp_path / "root"
    do("verify", frozen / "bundle", "--key", key, "--quiet")
    do("import", frozen / "delta", "--key", key, "--root", root, "--quiet", code=17)
    do("import", frozen / "bundle", "--key", key, "--root", root, "--quiet")
    do("import", frozen / "delta", "--key", key, "--root", root, "--quiet")
    do("import", frozen / "bundle", "--key", key, "--root", tmp_path / "other", "--quiet")
    do("verify", "--quick", "--root", root, "--quiet")


def test_its_approval_counts(frozen: Path, tmp_path: Path) -> None:
    policy = frozen / "policy.yaml"
    policy.write_text(
        "require: [builder, reviewer]\nkeys:\n- {role: builder, file: builder.pub.pem}\n"
        "- {role: reviewer, file: reviewer.pub.pem}\n"
    )
    do("verify", frozen / "bundle", "--policy", policy, "--root", tmp_path, "--quiet")
    do("verify", frozen / "delta", "--policy", policy, "--root", tmp_path, "--quiet", code=8)


def test_its_sealed_copy_opens_and_a_lost_volume_comes_back(frozen: Path, tmp_path: Path) -> None:
    key = frozen / "builder.pub.pem"
    words = ("--key", key, "--volume-key", frozen / "volumes.key", "--quiet")
    do("verify", frozen / "sealed", *words)
    lost = frozen / "sealed" / "frozen.vol003.zip.sealed"
    lost.unlink()
    do("repair", frozen / "sealed", "--out", tmp_path / "out", *words)
    whole = frozen / "bundle" / "frozen.vol003.zip"
    assert (tmp_path / "out" / whole.name).read_bytes() == whole.read_bytes()


def test_what_is_kept_is_what_was_read(frozen: Path) -> None:
    """Also when later versions know more keys than this bundle has."""
    for name in ("bundle", "delta"):
        data = (frozen / name / "manifest.json").read_bytes()
        assert bytes_read(parse_manifest(data)) == data


# ---- A second implementation, from the page alone. ----


def signed(folder: Path, name: str, key: Path) -> bool:
    """Section 2, with stock OpenSSL."""
    done = subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", key, "-sigfile",
         folder / f"{name}.sig", "-in", folder / name],
        capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode == 0


def read_entry(folder: Path, manifest: dict[str, Any], entry: dict[str, Any]) -> bytes:
    """Section 1.1: parts at their offsets, blocks by their digests."""
    data = b""
    for part in entry["parts"]:
        with (folder / part["volume"]).open("rb") as file:
            file.seek(part["offset"])
            data += file.read(part["size"])
        with zipfile.ZipFile(folder / part["volume"]) as archive:
            assert part["crc32"] == archive.getinfo(part["member"]).CRC
            assert archive.read(part["member"]) == data[len(data) - part["size"] :]
    step = manifest["block_size"]
    blocks = [data[at : at + step] for at in range(0, max(len(data), 1), step)]
    assert [hashlib.sha256(block).hexdigest() for block in blocks] == [
        block["sha256"] for block in entry["blocks"]
    ]
    assert hashlib.sha256(data).hexdigest() == entry["sha256"]
    assert len(data) == entry["size"]
    return data


def content_id(entry: dict[str, Any]) -> str:
    lines = ["airbundle content 1", str(entry["size"]), *(b["sha256"] for b in entry["blocks"])]
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def test_a_reader_made_from_the_page_reads_it(frozen: Path) -> None:
    folder = frozen / "bundle"
    assert signed(folder, "manifest.json", frozen / "builder.pub.pem")
    data = (folder / "manifest.json").read_bytes()
    manifest = json.loads(data)
    text = json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
    assert text.encode() == data
    files = {entry["path"]: read_entry(folder, manifest, entry) for entry in manifest["entries"]}
    assert files["models/toy/config.json"] == b'{"model_type": "toy"}\n'
    assert files["files/안내.txt"].decode() == "안내문\n"
    for item in (*manifest["volumes"], *manifest["loose"]):
        found = (folder / item["name"]).read_bytes()
        assert (len(found), hashlib.sha256(found).hexdigest()) == (item["size"], item["sha256"])
    # Section 4: the exclusive or of all volumes, filled up with zeros.
    [one] = manifest["parity"]
    assert one["code"] == "xor"
    volumes = [(folder / name).read_bytes() for name in one["volumes"]]
    longest = max(map(len, volumes))
    numbers = [int.from_bytes(volume.ljust(longest, b"\0"), "big") for volume in volumes]
    parity = reduce(lambda a, b: a ^ b, numbers).to_bytes(longest, "big")
    assert files[one["parity"][0]] == parity
    # Section 2.1.
    [approval] = folder.glob("approval-*.json")
    assert signed(folder, approval.name, frozen / "reviewer.pub.pem")
    said = json.loads(approval.read_bytes())
    assert said["manifest_sha256"] == hashlib.sha256(data).hexdigest()


def test_a_reader_made_from_the_page_completes_the_delta(frozen: Path) -> None:
    base = json.loads((frozen / "bundle" / "manifest.json").read_bytes())
    delta = json.loads((frozen / "delta" / "manifest.json").read_bytes())
    raw = (frozen / "bundle" / "manifest.json").read_bytes()
    assert delta["base"] == {"name": "frozen", "manifest_sha256": hashlib.sha256(raw).hexdigest()}
    assert delta["sequence"] > base["sequence"]
    store = {content_id(entry) for entry in base["entries"]}
    held = [entry for entry in delta["entries"] if not entry["parts"]]
    assert held
    assert all(content_id(entry) in store for entry in held)
    for entry in delta["entries"]:
        if entry["parts"]:
            read_entry(frozen / "delta", delta, entry)


def test_the_pages_example_of_a_content_id() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bundle-format.md").read_text()
    empty = {"size": 0, "blocks": [{"sha256": hashlib.sha256(b"").hexdigest()}]}
    assert content_id(empty) in page
