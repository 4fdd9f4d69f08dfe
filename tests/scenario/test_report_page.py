"""The acceptance report in a real Chromium: no error, no request, both languages, light, dark, phone, keyboard, paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.accept.sidebyside import runs_compared
from bundler.adapters.report_html.compared import HtmlComparison
from bundler.adapters.report_html.page import HtmlReport
from tests.fakes.acceptance import BESIDE, FINGERPRINT, HOSTILE, acceptance
from tests.fakes.browser import Look, needs_chromium, opened

pytestmark = [pytest.mark.slow, needs_chromium]

VISIBLE = "[...document.querySelectorAll('h2 .{0}')].filter(e => e.offsetParent !== null).length"
FOCUS = """() => { const e = document.activeElement, s = getComputedStyle(e);
  return {id: e.id, described: e.getAttribute('aria-describedby'), outline: s.outlineStyle + s.outlineWidth}; }"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of runs of every verdict, with hostile words, long names and forty levels."""
    folder = tmp_path_factory.mktemp("reports")
    records = {
        "pass": acceptance(levels=(1, 10), slo_ms=5000),
        "fail": acceptance(slo_ms=900, lost=3, key_id=None),
        "undecided": acceptance(levels=(1, 4), requests=20),
        "unsound": acceptance(levels=(1, 4), flaw="prefix cache"),
        "many": acceptance(levels=tuple(range(1, 41)), name="q" * 120),
        "services": acceptance(levels=(1, 4), services=tuple(f"service-{n}-{'n' * 50}" for n in range(6))),
    }  # fmt: skip
    for name, record in records.items():
        path = folder / f"{name}.html"
        path.write_text(HtmlReport().render(record, BESIDE), encoding="utf-8")
    slow = acceptance(
        levels=(1, 10, 25),
        slow=1.8,
        fingerprint=FINGERPRINT.model_copy(update={"kernel": HOSTILE[:90]}),
    )
    compared = runs_compared(acceptance(levels=(1, 10)), slow, ("2026-01-01T000000Z", "r" * 120))
    (folder / "compare.html").write_text(HtmlComparison().render(compared), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in (*records, "compare")}


def test_every_page_opens_offline_and_fits_a_phone(pages: dict[str, Path]) -> None:
    for path in pages.values():
        with opened(path) as look:
            korean = look.page.evaluate(VISIBLE.format("ko"))
            look.page.locator("nav [for=en]").click()
            assert look.page.evaluate(VISIBLE.format("en")) == korean > 2
            assert look.page.evaluate(VISIBLE.format("ko")) == 0
            assert look.fits(), path
            if (
                path.stem == "compare"
            ):  # a column that is squeezed to letters makes rows as tall as the screen
                tallest = (
                    "Math.max(...[...document.querySelectorAll('tr')].map(e => e.offsetHeight))"
                )
                assert look.page.evaluate(tallest) < 400
            assert (look.requests, look.complaints) == ([], []), path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("language", ["ko", "en"])
def test_axe_finds_nothing(pages: dict[str, Path], *, dark: bool, language: str) -> None:
    with opened(pages["fail"], dark=dark) as look:
        look.page.locator(f"nav [for={language}]").click()
        assert look.axe() == []


def test_axe_finds_nothing_in_large_and_in_short_runs(pages: dict[str, Path]) -> None:
    for name, width in (("unsound", 390), ("services", 1300), ("compare", 1300)):
        with opened(pages[name], width=width) as look:
            assert look.axe() == [], name


def test_the_keyboard_reaches_the_switch_and_every_tooltip(pages: dict[str, Path]) -> None:
    with opened(pages["unsound"]) as look:
        look.page.keyboard.press("Tab")
        assert look.page.evaluate(FOCUS)["id"] == "ko"
        outline = "getComputedStyle(document.querySelector('nav [for=ko]')).outlineStyle"
        assert look.page.evaluate(outline) == "solid"
        look.page.keyboard.press("ArrowRight")
        assert look.page.evaluate(VISIBLE.format("ko")) == 0
        reached = _tabbed_through(look)
        terms = look.page.evaluate("document.querySelectorAll('.term').length")
        assert len(reached) == terms > 10


def _tabbed_through(look: Look) -> set[str]:
    """Every term that Tab reaches; each one's tooltip must show, inside the window, and its focus too."""
    reached: set[str] = set()
    width = look.page.viewport_size["width"] if look.page.viewport_size else 0
    for _ in range(200):
        look.page.keyboard.press("Tab")
        now = look.page.evaluate(FOCUS)
        if now["described"] is None:
            if not now["id"] and look.page.evaluate("document.activeElement === document.body"):
                break
            continue
        assert now["outline"].startswith("solid"), now
        box = look.page.locator(f"#{now['described']}").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["height"] > 20
        reached.add(now["described"])
    return reached


def test_a_touched_term_shows_its_tooltip_on_a_phone(pages: dict[str, Path]) -> None:
    with opened(pages["pass"], width=390) as look:
        look.page.locator(".terms .term").first.click()
        box = look.page.locator(".terms .tip").first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert look.fits()


def test_paper_holds_everything_and_the_glossary_as_a_list(pages: dict[str, Path]) -> None:
    with opened(pages["many"]) as look:
        assert look.printed().startswith(b"%PDF-")
        look.page.emulate_media(media="print")
        shown = (
            "[...document.querySelectorAll('{0}')].filter(e => e.getClientRects().length).length"
        )
        assert look.page.evaluate(shown.format("nav, .tip, .terms")) == 0
        assert look.page.evaluate(shown.format(".glossary dt")) >= 18
        # A table that is wider than the sheet would lose its columns.
        look.page.set_viewport_size({"width": 690, "height": 1000})
        wide = "[...document.querySelectorAll('table')].filter(e => e.scrollWidth > 700).length"
        assert look.page.evaluate(wide) == 0
