"""The reviewer's page in a real Chromium: no error, no request, both languages, light, dark and paper."""

from __future__ import annotations

import asyncio
import base64
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bundler.cli.app import run
from tests.fakes.planted import PlantedBundle

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = PlantedBundle(tmp_path_factory.mktemp("planted")).build()
    out = tmp_path_factory.mktemp("pack") / "review"
    assert (
        run(["review", str(bundle.out), "--key", str(bundle.public), "--out", str(out), "-q"]) == 0
    )
    return out / "review.html"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[str]:
    """The address of a browser's DevTools."""
    process = subprocess.Popen(
        [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
         "--disable-background-networking", "--disable-component-update", "--no-first-run",
         f"--user-data-dir={tmp_path / 'profile'}", "about:blank"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        told = tmp_path / "profile" / "DevToolsActivePort"
        until = time.monotonic() + 60
        while not told.is_file() or not told.read_text().strip():
            assert time.monotonic() < until, "Chromium did not start"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{told.read_text().split()[0]}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Tab:
    """One page over the DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._next = 0
        self.events: list[dict[str, Any]] = []

    async def do(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        await self._socket.send_json({"id": self._next, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=60)
            if message.get("id") == self._next:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    async def wait_for(self, method: str) -> None:
        while not any(event["method"] == method for event in self.events):
            self.events.append(await self._socket.receive_json(timeout=60))

    async def value(self, expression: str) -> Any:
        found = await self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    async def picture(self, path: Path) -> None:
        shot = await self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


VISIBLE = "[...document.querySelectorAll('h2 .{0}')].filter(e => e.offsetParent !== null).length"


async def look(
    address: str, page: Path, pictures: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{address}/json/list") as answer:
            target = next(one for one in await answer.json() if one["type"] == "page")
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            for domain in ("Page", "Network", "Log", "Runtime"):
                await tab.do(f"{domain}.enable")
            await tab.do("Emulation.setDeviceMetricsOverride", width=1300, height=2600,
                         deviceScaleFactor=1, mobile=False)  # fmt: skip
            await tab.do("Page.navigate", url=page.as_uri())
            await tab.wait_for("Page.loadEventFired")
            seen: dict[str, Any] = {"ko": await tab.value(VISIBLE.format("ko"))}
            await tab.picture(pictures / "ko.png")
            await tab.do(
                "Runtime.evaluate", expression="document.querySelector('nav [for=en]').click()"
            )
            seen["en"] = await tab.value(VISIBLE.format("en"))
            seen["ko after"] = await tab.value(VISIBLE.format("ko"))
            await tab.picture(pictures / "en.png")
            dark = [{"name": "prefers-color-scheme", "value": "dark"}]
            await tab.do("Emulation.setEmulatedMedia", features=dark)
            seen["dark"] = await tab.value("getComputedStyle(document.body).backgroundColor")
            await tab.picture(pictures / "dark.png")
            await tab.do("Emulation.setDeviceMetricsOverride", width=390, height=844,
                         deviceScaleFactor=1, mobile=True)  # fmt: skip
            seen["wide"] = await tab.value("document.documentElement.scrollWidth")
            printed = await tab.do("Page.printToPDF")
            seen["paper"] = base64.b64decode(printed["data"])[:5]
            return tab.events, seen


def test_it_opens_offline_and_asks_for_nothing(browser: str, page: Path, tmp_path: Path) -> None:
    events, seen = asyncio.run(look(browser, page, tmp_path))
    asked = [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]
    assert set(asked) <= {page.as_uri()}
    faults = [
        e for e in events if e["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    ]
    logged = [e["params"]["entry"]["text"] for e in events if e["method"] == "Log.entryAdded"]
    assert not faults
    assert not logged
    assert seen["ko"] == seen["en"] > 8
    assert seen["ko after"] == 0
    assert seen["dark"] == "rgb(20, 23, 27)"
    assert seen["wide"] <= 390
    assert seen["paper"] == b"%PDF-"
