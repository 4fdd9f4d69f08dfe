"""Every command of README and docs/ is run, in the order of its page, on a tiny bundle and a toy engine.

What cannot be run here stands in SKIPPED with its reason; such lines are still parsed by
tests/unit/cli/test_documented_commands.py.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.cli.app import run
from bundler.cli.build_cmds import write_review
from tests.fakes.documented import ROOT, Line, every_line, lines, pages
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow

HUB = "resolves from the package index and downloads a real model from the Hub"
HOST = "changes this host or others: systemd, ssh, a cluster"
SKIPPED = {
    r"install-completion|^eval ": "changes this shell: tests/scenario/test_completion.py",
    r"^airbundle init( |$)(?!--model)": "asks, or names a model of the Hub: tests/unit/cli/test_init.py",
    r"^airbundle doctor$": "asks the index and the Hub",
    r"--compare old/report.json": "a run of another machine: tests/unit/cli/test_report.py",
    r"^clamscan": "an antivirus that is not on every host: tests/scenario/test_review.py",
    r"--antivirus clamav.log": "needs that log",
    r"^sh scripts/(demo|check)": "is the gate itself, and the journeys that it runs",
    r"^airbundle (plan|lock|build) (manifests/|spec|next|SPEC)": HUB,
    r"airbundle-bootstrap.py install": "makes an environment of every wheel: tests/scenario/test_bootstrap.py",
    r"accept --find-max": "searches for minutes: tests/scenario/test_find_max.py",
    r"accept --ab (env|kernel|services|release)": "starts engines eight times: tests/scenario/test_ab.py",
    r"^(sudo|scp|kubectl|vi|ansible-playbook|sh large/)|&& ansible-playbook": HOST,
    r"^(HF_ENDPOINT=\S+ hf|pip|curl)": "a client on another host: tests/scenario/test_serve.py",
    r"airbundle serve": "serves until it is ended: tests/scenario/test_serve.py",
    r"export --format (multinode|k8s|ansible|ray)": "of services over several hosts: test_multinode, test_k8s, test_ansible",
    r"^cd rollout": HOST,
    r"airbundle review (DIR|next) .*--osv": "needs a data base of advisories: tests/unit/review/test_vulnerabilities.py",
    r"airbundle review delta": "needs a delta: tests/scenario/test_review.py",
    r"airbundle repair bundle": "needs a bundle with parity: tests/scenario/test_parity.py",
    r"golden ": "needs log-probabilities: tests/scenario/test_golden.py",
    r"-sign -rawin -inkey hsm-key.pem": "an HSM's own command: tests/scenario/test_trust.py",
    r"airbundle attach": "needs that signature: tests/scenario/test_trust.py",
    r"airbundle sign bundle --digest-only": "needs an unsigned bundle: tests/scenario/test_trust.py",
}  # fmt: skip
# Exit codes other than 0 that a page means, or that this host gives.
CODES = {
    r"airbundle preflight": (0, 10),
    r"airbundle review (bundle|next)": (0, 10),
    r"airbundle doctor": (0, 10),
    # The same page has handed the key over further up: what it signed comes in no more.
    r"trust.md: airbundle import /media": (8,),
}
STEPS = {
    "import": "airbundle import bundle --key supplier.pub.pem --root /srv/llm",
    "install": "airbundle install --root /srv/llm",
    "start": "airbundle start --root /srv/llm",
    "accept": "airbundle accept --root /srv/llm",
    "stop": "airbundle stop --root /srv/llm",
    "next": "airbundle import next --key supplier.pub.pem --root /srv/llm",
    "approve": "airbundle approve bundle --by x --sign-with security.key.pem --key supplier.pub.pem",
    "rotate": "airbundle trust rotate --old supplier.key.pem --new later.pub.pem --out bundle",
    "policy": "airbundle trust use policy.yaml --root /srv/llm",
    "seal": "airbundle keygen --volumes --out site",
    "stick": "airbundle copy bundle --key supplier.pub.pem --to /media/stick1",
    "review": "airbundle review bundle --key supplier.pub.pem --out review",
}
UP = ("import", "install")
# What a page takes as done before its first line, and before a line of it.
BEFORE = {
    "docs/acceptance.md": UP,
    "docs/audit.md": (*UP, "start", "accept"),
    "docs/baselines.md": (*UP, "start", "accept"),
    "docs/launch.md": UP,
    "docs/verdicts.md": UP,
    "docs/howto.md": UP,
    "docs/first-hour.md": UP,
    "docs/reports.md": (*UP, "start", "accept", "accept"),
}
BEFORE_LINE: dict[str, tuple[str, ...]] = {
    r"README.*airbundle upgrade": ("next",),
    r"trust.md.*trust use": ("import",),
    r"launch.md.*airbundle start": ("stop",),
    r"first-hour.md.*airbundle upgrade": ("next",),
    r"first-hour.md.*airbundle import": ("stick",),
}


@dataclass
class World:
    """One page's desk, media and root. Names of the page are mapped to what they stand for."""

    folder: Path
    here: Path = field(init=False)

    def __post_init__(self) -> None:
        self.here = self.desk
        for name in ("media/stick1", "media/stick2", "srv", "tmp"):
            (self.folder / name).mkdir(parents=True)

    @property
    def desk(self) -> Path:
        return self.folder / "desk"

    @property
    def root(self) -> Path:
        return self.folder / "srv" / "llm"

    def mapped(self, text: str) -> str:
        text = text.replace("/srv/llm/bin/airbundle", "airbundle")
        places = {"/srv/llm": self.root, "/media/": f"{self.folder}/media/", "/tmp/": f"{self.folder}/tmp/",
                  "ROOT": self.root}  # fmt: skip
        text = re.sub(
            r"(?<![\w/.])(/srv/llm|/media/|/tmp/|ROOT\b)", lambda one: str(places[one[1]]), text
        )
        text = (
            text.replace("NAME.vol", "small.vol")
            .replace("DIR", "bundle")
            .replace("KEY.pem", "supplier.pub.pem")
        )
        # Folders stand for sticks here, and two folders are on one medium.
        text = re.sub(r"( --to \S+) --to \S+", r"\1", text)
        if " BUNDLE" in text:
            text = text.replace(" BUNDLE", f" {self.idle_release()}")
        runs = sorted(map(str, self.root.glob("acceptance/*Z")))
        if runs:
            text = text.replace("RUN_A", runs[0]).replace("RUN_B", runs[-1])
        for kind in ("approval", "rotation"):
            for path in self.desk.glob(f"bundle/{kind}-*.json"):
                text = re.sub(rf"{kind}-0123456789abcdef", path.stem, text)
        return text

    def idle_release(self) -> str:
        used = (self.root / "current").readlink().name
        return next(
            path.name for path in (self.root / "releases").glob("small-*") if path.name != used
        )

    def do(
        self, text: str, capsys: pytest.CaptureFixture[str], codes: tuple[int, ...] = (0,)
    ) -> None:
        for words in Line("", 0, self.mapped(text)).commands():
            if words[0] == "cd":
                self.here = self.here / words[1]
                continue
            os.chdir(self.here)
            words = [
                found
                for word in words
                for found in (sorted(glob.glob(word)) if "*" in word else [word])
            ]
            if words[0] == "airbundle":
                code = run(words[1:])
                said = "".join(capsys.readouterr())
            else:
                words[0] = sys.executable if words[0] == "python3" else words[0]
                ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
                code, said = ended.returncode, ended.stdout + ended.stderr
            assert code in codes, f"{text}\n{' '.join(words)}\nexit code {code}\n{said[-3000:]}"


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Lays bundle, the one after it, and the keys on a desk."""
    folder = tmp_path_factory.mktemp("documented")
    plan = {
        "concurrency": [1],
        "requests": 10,
        "output_tokens": 4,
        "slo": {"ttft_ms": 20000, "attainment": 0.5},
    }
    port = unused_port()
    first = SmallBundle(folder / "a", port=port, acceptance=plan).build()
    shutil.copytree(folder / "a" / "keys", folder / "b" / "keys")
    second = SmallBundle(folder / "b", port=port, acceptance=plan, args=("--slot", "new")).build()
    write_review(first.out, wiring.signer(first.private), first.tools())
    for name in ("security", "site", "later"):
        assert run(["keygen", "--out", str(folder / name)]) == 0

    def lay(desk: Path) -> None:
        shutil.copytree(first.out, desk / "bundle")
        shutil.copytree(second.out, desk / "next")
        for name in ("security", "site", "later"):
            for kind in ("key", "pub"):
                shutil.copy(folder / f"{name}.{kind}.pem", desk)
        shutil.copy(first.private, desk / "supplier.key.pem")
        shutil.copy(first.public, desk / "supplier.pub.pem")
        for page, name in (("trust", "policy.yaml"), ("review", "licences.yaml")):
            (desk / name).write_text(example(f"docs/{page}.md", name), encoding="utf-8")

    return lay


def example(page: str, name: str) -> str:
    """A file as its page shows it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return next(
        one for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if f"# {name}" in one
    )


@pytest.fixture
def world(tmp_path: Path, bundles: Callable[[Path], None]) -> Iterator[World]:
    before = Path.cwd()
    made = World(tmp_path)
    bundles(made.desk)
    try:
        yield made
    finally:
        os.chdir(before)
        run(["stop", "--root", str(made.root)])


@pytest.mark.parametrize("page", [page for page in pages() if any(lines(page))])
def test_it_runs(page: str, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for step in BEFORE.get(page, ()):
        world.do(STEPS[step], capsys)
    block = 0
    for line in lines(page):
        if line.block != block:
            block, world.here = line.block, world.desk
        if reason(line):
            continue
        for step in first(BEFORE_LINE, f"{page}: {line.text}", ()):
            world.do(STEPS[step], capsys)
        place = world.here
        keys = re.search(r"keygen --out (\S+)", line.text)
        if keys and (world.desk / f"{keys[1]}.key.pem").exists():
            world.here = world.folder / "tmp"  # they vouch for what lies on the desk already
        world.do(line.text, capsys, first(CODES, f"{page}: {line.text}", (0,)))
        if keys:
            world.here = place


def first(rules: dict[str, Any], text: str, otherwise: Any) -> Any:
    """What the first rule that fits says."""
    return next((found for pattern, found in rules.items() if re.search(pattern, text)), otherwise)


def reason(line: Line) -> str:
    return str(first(SKIPPED, line.text, ""))


def test_no_exception_outlives_its_line() -> None:
    there = every_line()
    for pattern in SKIPPED:
        assert any(re.search(pattern, line.text) for line in there), pattern


def test_most_lines_run() -> None:
    there = every_line()
    assert sum(not reason(line) for line in there) > len(there) / 2
