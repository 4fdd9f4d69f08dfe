"""Make docs/images/*.png from a demo's real output: `python -m scripts.screenshots [FOLDER]`.

FOLDER is one that `airbundle demo --keep FOLDER` made; left out, the demo is walked first. Needs Chromium and the `test` extra.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
MAX_BYTES = 200_000
_SIZE = {"width": 1080, "height": 680}


def main() -> None:
    """Both pages, in both languages."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
    else:
        folder = Path(tempfile.mkdtemp(prefix="airbundle-pictures-"))
        subprocess.run([sys.executable, "-m", "bundler", "demo", "--keep", str(folder)], check=True)
    report = max((folder / "root" / "acceptance").glob("*/report.html"))
    pages = {"acceptance": report, "review": folder / "bundle" / "review" / "review.html"}
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        for language in ("en", "ko"):
            path = IMAGES / f"{name}.{language}.png"
            shoot(page, language, path)
            size = path.stat().st_size
            assert size < MAX_BYTES, f"{path}: {size} bytes"
            print(f"{path.name}: {size} bytes")


def shoot(page: Path, language: str, out: Path) -> None:
    """The top of a page, without network."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox"],
        )
        try:
            context = browser.new_context(viewport=_SIZE, color_scheme="light", offline=True)  # type: ignore[arg-type]
            shown = context.new_page()
            shown.goto(page.absolute().as_uri())
            shown.locator(f"nav [for={language}]").click()
            shown.screenshot(path=out)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
