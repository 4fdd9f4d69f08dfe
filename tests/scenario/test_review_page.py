"""The reviewer's page in a real Chromium: no error, no request, both languages, light, dark and paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.cli.app import run
from tests.fakes.browser import needs_chromium, opened
from tests.fakes.planted import PlantedBundle
from tests.unit.review.test_redline import Two

pytestmark = [pytest.mark.slow, needs_chromium]

VISIBLE = "[...document.querySelectorAll('h2 .{0}')].filter(e => e.offsetParent !== null).length"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = PlantedBundle(tmp_path_factory.mktemp("planted")).build()
    out = tmp_path_factory.mktemp("pack") / "review"
    assert (
        run(["review", str(bundle.out), "--key", str(bundle.public), "--out", str(out), "-q"]) == 0
    )
    return out / "review.html"


@pytest.fixture(scope="module")
def redline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    two, out = Two(tmp_path_factory.mktemp("two")), tmp_path_factory.mktemp("redline") / "r"
    two.redline(two.old, out, "--osv", two.osv, "--policy", two.policy)
    return out / "redline.html"


def test_the_redline_opens_in_both_languages(redline: Path, tmp_path: Path) -> None:
    with opened(redline) as look:
        look.page.screenshot(path=tmp_path / "ko.png", full_page=True)
        assert look.axe() == []
        look.page.locator("nav [for=en]").click()
        look.page.screenshot(path=tmp_path / "en.png", full_page=True)
        assert look.axe() == []
        assert look.fits()
        assert (look.requests, look.complaints) == ([], [])


def test_it_opens_offline_and_asks_for_nothing(page: Path, tmp_path: Path) -> None:
    with opened(page) as look:
        korean = look.page.evaluate(VISIBLE.format("ko"))
        look.page.screenshot(path=tmp_path / "ko.png", full_page=True)
        look.page.locator("nav [for=en]").click()
        assert look.page.evaluate(VISIBLE.format("en")) == korean > 8
        assert look.page.evaluate(VISIBLE.format("ko")) == 0
        look.page.screenshot(path=tmp_path / "en.png", full_page=True)
        assert look.fits()
        assert look.printed().startswith(b"%PDF-")
        assert (look.requests, look.complaints) == ([], [])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("language", ["ko", "en"])
def test_axe_finds_nothing(page: Path, *, dark: bool, language: str) -> None:
    with opened(page, dark=dark) as look:
        look.page.locator(f"nav [for={language}]").click()
        assert look.axe() == []
