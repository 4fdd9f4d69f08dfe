"""The host's own Chromium, driven by Playwright: what a page asked for, complained of, and shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host")


class Look:
    """One page, opened from a file without network.

    `requests` are addresses beside the page's own; `complaints` are errors and console messages.
    """

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda one: self._asked(one.url, address))
        page.on("console", lambda one: self.complaints.append(one.text))
        page.on("pageerror", lambda one: self.complaints.append(str(one)))
        page.goto(address)

    def _asked(self, url: str, own: str) -> None:
        if url.split("#")[0] != own and not url.startswith("data:"):
            self.requests.append(url)

    def axe(self) -> list[str]:
        """What axe finds wrong now (in this language, theme and width): one line for each place."""
        found: dict[str, Any] = Axe().run(self.page).response
        return [
            f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
            for one in found["violations"]
            for node in one["nodes"]
        ]

    def fits(self, width: int = 390) -> bool:
        """No sideways scrolling on a telephone's width (CSS pixels)."""
        self.page.set_viewport_size({"width": width, "height": 844})
        return int(self.page.evaluate("document.documentElement.scrollWidth")) <= width

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return self.page.pdf(format="A4", print_background=True)


@contextmanager
def opened(path: Path, *, dark: bool = False, width: int = 1300) -> Iterator[Look]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            context = browser.new_context(
                viewport={"width": width, "height": 1000},
                color_scheme="dark" if dark else "light",
                offline=True,
            )
            yield Look(context.new_page(), path.as_uri())
        finally:
            browser.close()
