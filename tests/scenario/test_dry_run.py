"""`--dry-run` of every command that takes it: it says something, ends as the real one, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from bundler import connecting, wiring
from bundler.cli.app import make_app, run
from bundler.cli.manpage import commands
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow


def digest(folder: Path) -> dict[str, str]:
    """Every file, folder and link below, with content and mode."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        data = os.readlink(path) if path.is_symlink() else ""
        if path.is_file() and not path.is_symlink():
            data = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = f"{status.st_mode:o} {data}"
    return found


@dataclass
class Place:
    """A site in use: one release that serves, a newer bundle that came in, keys, sticks, records."""

    folder: Path
    old: SmallBundle
    new: SmallBundle

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def words(self, command: str) -> list[str]:
        root = ["--root", str(self.root)]
        key = ["--key", str(self.new.public)]
        bundle, folder = str(self.new.out), self.folder
        own = str(self.new.private)
        reviewer, reviewer_public = str(folder / "r.key.pem"), str(folder / "r.pub.pem")
        spec = str(self.new.folder / "spec.yaml")
        ids = sorted(path.name for path in (self.root / "bundles").iterdir())
        [serving] = [path.name for path in (self.root / "releases").iterdir() if path.is_dir()]
        other = next(one for one in ids if one != serving)
        golden = str(folder / "golden.json")
        records = sorted(map(str, (self.root / "acceptance").glob("*/record.json")))
        table: dict[str, list[str]] = {
            "init": ["fresh.yaml", "--model", "a/b", "--gpu", "NVIDIA H200"],
            "lock": [spec],
            "build": [spec, "--out", str(folder / "built"), "--key", own],
            "keygen": ["--out", str(folder / "fresh")],
            "copy": [bundle, *key, "--to", str(folder / "stick")],
            "import": [str(self.new.out), "--root", str(folder / "other-root"), *key],
            "install": [other, *root],
            "start": root,
            "stop": root,
            "upgrade": [other, *root],
            "rollback": [*root],
            "uninstall": [other, "--purge", *root],
            "gc": root,
            "repair": [str(folder / "damaged"), "--out", str(folder / "mended"), *key],
            "report": [*root, "--out", str(folder / "report")],
            "sign": [str(folder / "unsigned"), "--key", own],
            "attach": [bundle, str(folder / "sig"), *key],
            "approve": [bundle, "--by", "me", "--sign-with", reviewer, *key],
            "reject": [bundle, "--by", "me", "--sign-with", reviewer, *key],
            "trust use": [str(folder / "policy.yaml"), "--root", str(folder / "other-root")],
            "trust add": [str(next((folder / "said").glob("revocations-*.json"))), *root,
                          "--key", str(folder / "k" / "k.pub.pem")],
            "trust rotate": ["--old", own, "--new", reviewer_public, "--out", str(folder / "said2")],
            "trust revoke": ["0123456789abcdef", "--sign-with", own, "--reason", "lost",
                             "--out", str(folder / "said3")],
            "receipt make": ["--out", str(folder / "receipt.json"), "--sign-with", own, *root],
            "golden record": [*root, "--out", str(folder / "golden")],
            "golden add": [golden, *root],
            "baseline record": [*records, "--out", str(folder / "mine.yaml")],
            "review": [bundle, *key, "--out", str(folder / "pack")],
            "export": ["--format", "systemd", "--out", str(folder / "units"), *root],
            "man": ["--out", str(folder / "man")],
            "docs": ["--out", str(folder / "site")],
        }  # fmt: skip
        return [*command.split(), *table[command], "--dry-run"]


def make(folder: Path, port: int) -> Place:
    """Build two bundles, take the first into use, bring the second in, and measure."""
    quick = {"concurrency": [2], "requests": 60, "output_tokens": 4}
    old = SmallBundle(
        folder / "old", args=("--logprobs", "--slot", "old"), port=port, acceptance=quick
    ).build()
    new = SmallBundle(folder / "new", args=("--slot", "new"), port=port, parity=1)
    shutil.copytree(folder / "old" / "keys", folder / "new" / "keys")
    new.build()
    place = Place(folder, old, new)
    root = ["--root", str(place.root)]
    key = ["--key", str(old.public), "--quiet"]
    for words in (["import", str(old.out), *root, *key], ["install", *root, "--quiet"],
                  ["start", *root, "--quiet"], ["accept", *root, "--quiet"],
                  ["golden", "record", *root, "--out", str(folder / "g")],
                  ["import", str(new.out), *root, *key]):  # fmt: skip
        assert run(words) in (0, 10, 11), words
    shutil.copy(next((folder / "g").glob("*.json")), folder / "golden.json")
    (folder / "stick").mkdir()
    wiring.generate_keys(folder / "r.key.pem", folder / "r.pub.pem")
    shutil.copytree(new.out, folder / "damaged")
    next((folder / "damaged").glob("*vol001*")).unlink()
    shutil.copytree(new.out, folder / "unsigned")
    (folder / "unsigned" / "manifest.json.sig").unlink()
    shutil.copy(new.out / "manifest.json.sig", folder / "sig")
    (folder / "policy.yaml").write_text(
        yaml.safe_dump(
            {"require": ["builder"], "keys": [{"role": "builder", "file": str(new.public)}]}
        )
    )
    shutil.copytree(folder / "old" / "keys", folder / "k")
    said = ["trust", "revoke", "00" * 8, "--sign-with", str(new.private), "--reason", "r",
            "--out", str(folder / "said")]  # fmt: skip
    assert run(said) == 0
    spec = new.spec().model_dump(mode="json", exclude_none=True)
    (new.folder / "spec.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True))
    # Garbage, and a release to go back to.
    (place.root / "store" / "ab").mkdir(exist_ok=True)
    (place.root / "store" / "ab" / ("ab" * 32)).write_bytes(b"stale")
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    folder = tmp_path_factory.mktemp("site")
    made = make(folder, port)
    yield made
    run(["stop", "--root", str(made.root)])


TREE: dict[str, Any] = dict(commands(get_command(make_app([]))))
REHEARSED = [
    words
    for words, command in TREE.items()
    if any("--dry-run" in one.opts for one in command.params)
]
# What the real command refuses in this state is refused in the rehearsal too.
REFUSED = {
    "start": 17,  # the services run already
    "rollback": 17,  # there is no release to go back to
}


@pytest.mark.parametrize("command", REHEARSED)
def test_nothing_is_changed_and_what_would_be_is_said(
    command: str, place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.folder)
    monkeypatch.setattr(connecting, "build_tools", lambda *_: place.new.tools())
    state = next((place.root / "run").glob("*.json"))
    process = json.loads(state.read_bytes())["pid"]
    before = digest(place.folder)
    capsys.readouterr()
    code = run(
        [*place.words(command), "--json"] if command not in ("man",) else place.words(command)
    )
    out = capsys.readouterr().out
    after = digest(place.folder)
    assert after == before, {k for k in {*before, *after} if before.get(k) != after.get(k)}
    assert Path(f"/proc/{process}").exists()
    assert code == REFUSED.get(command, 0), out
    if command in ("init", "lock", "man") or code:
        return
    said = json.loads(out)
    assert said["dry_run"] is True
    assert [one for one in said["changes"] if one["act"] != "append to"], command


def test_what_was_foreseen_is_what_then_happens(
    session_bundle: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    words = ["import", str(session_bundle.out), "--root", str(root), "--key", str(session_bundle.public),
             "--json"]  # fmt: skip
    assert run([*words, "--dry-run"]) == 0
    foreseen = json.loads(capsys.readouterr().out)["changes"]
    assert not root.exists()
    assert run(words) == 0
    for one in foreseen:
        assert Path(one["what"]).exists(), one
    stored = sum(path.stat().st_size for path in (root / "store").glob("??/*"))
    said = sum(one["bytes"] for one in foreseen if one["what"] == str(root / "store"))
    assert stored <= said <= 1.1 * stored + 4096
    capsys.readouterr()
    assert run(["uninstall", "small", "--purge", "--root", str(root), "--json", "--dry-run"]) == 0
    gone = [
        one["what"]
        for one in json.loads(capsys.readouterr().out)["changes"]
        if one["act"] == "remove"
    ]
    assert gone
    assert all(Path(one).exists() for one in gone)
    assert run(["uninstall", "small", "--purge", "--root", str(root)]) == 0
    assert not any(Path(one).exists() for one in gone)
