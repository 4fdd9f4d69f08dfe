"""The documentation as a site: every link and anchor leads somewhere, nothing is loaded, bytes are the same again."""

from __future__ import annotations

import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bundler.build.toolwheel import write_tool_wheel
from bundler.cli.app import run
from bundler.review.handbook.render import render, target
from bundler.review.handbook.site import WHOLE, site
from bundler.review.handbook.sources import Page, page_file, read_pages

ROOT = Path(__file__).parents[3]
MAX_BYTES = 1_000_000
GROUP = ("가", "a")


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name == "href":
                self.links.append(value or "")
            assert not name.startswith("on"), (tag, name)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return site(read_pages())


@pytest.fixture(scope="module")
def read(files: dict[str, bytes]) -> dict[str, Links]:
    return {name: Links(data.decode()) for name, data in files.items()}


def test_every_link_and_anchor_of_the_site_leads_somewhere(read: dict[str, Links]) -> None:
    lost = []
    for name, page in read.items():
        for link in page.links:
            if re.match(r"https?:|mailto:", link):
                continue
            path, _, fragment = link.partition("#")
            place = read.get(path or name)
            if place is None or (fragment and fragment not in place.ids):
                lost.append(f"{name}: {link}")
    assert not lost


def test_every_link_of_the_markdown_leads_to_a_file() -> None:
    """Also on the forge, where pictures, manifests and the licence are."""
    for page in read_pages():
        for href in re.findall(
            r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", page.text, flags=re.DOTALL)
        ):
            if not re.match(r"https?:|mailto:", href):
                path, _ = target(page, href)
                assert (ROOT / path).exists(), f"{page.path}: {href}"


def test_no_anchor_is_there_twice_and_nothing_is_loaded(read: dict[str, Links]) -> None:
    for name, page in read.items():
        assert len(page.ids) == len(set(page.ids)), name
        assert not page.tags & {"script", "img", "link", "iframe", "object", "base", "form"}, name


def test_it_is_small_whole_and_the_same_again(files: dict[str, bytes]) -> None:
    assert site(read_pages()) == files
    assert sum(map(len, files.values())) < MAX_BYTES
    assert {"index.html", "trust.html", "findings.html", "adr-0008-trust.html"} <= files.keys()
    assert "<h2" in files[WHOLE].decode()


def test_strangers_html_stays_text_and_lost_links_become_words() -> None:
    page = Page(
        "docs/x.md",
        "# A\n\n<script>x</script> [b](gone.md) ![c](p.png) [d](https://e.org)\n\n## A\n",
        GROUP,
    )
    made = render(page, lambda _, __: None)
    assert "<script>" not in made.body
    assert "gone.md" not in made.body
    assert "[c]" in made.body
    assert 'href="https://e.org"' in made.body
    assert made.headings == (("a-1", "A"),)


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["docs", "--out", str(tmp_path / "site")]) == 0
    assert "index.html" in capsys.readouterr().out
    assert (tmp_path / "site" / page_file("docs/trust.md")).is_file()


def test_the_pages_cross_the_gap_with_the_tool(tmp_path: Path) -> None:
    with zipfile.ZipFile(write_tool_wheel(tmp_path)) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("bundler/manual/")}
    assert names == {f"bundler/manual/{page.path}" for page in read_pages()}
