"""Headless Chromium driven through its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
from PIL import Image

aiohttp = pytest.importorskip("aiohttp")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60.0
KEY_CODES = {
    "Tab": 9,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "Enter": 13,
    "Escape": 27,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


class NoPageError(Exception):
    """The tab is between two pages."""


class Tab:
    """A tab of a browser, driven through its debugging protocol.

    Attributes:
        events: The events of the protocol's domains that were enabled, as they came with the replies to commands.
    """

    def __init__(self, socket: Any) -> None:
        self._socket, self._number = socket, 0
        self.events: list[dict[str, Any]] = []

    async def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            try:
                message = json.loads((await asyncio.wait_for(self._socket.receive(), PATIENCE / 6)).data)
            except TimeoutError as error:  # a command that comes as a page goes is never replied to
                raise NoPageError(method) from error
            if "method" in message:
                self.events.append(message)
            if message.get("id") == self._number:
                if "error" in message:
                    raise NoPageError(message["error"]["message"])
                return message["result"]

    async def go(self, address: str) -> None:
        await self.call("Page.navigate", url=address)

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, awaited where it is a promise."""
        result = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def wait_for(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = asyncio.get_running_loop().time() + PATIENCE
        while True:
            with suppress(NoPageError):
                if await self.evaluate(f"Boolean({condition})"):
                    return
            assert asyncio.get_running_loop().time() < end, f"it is never so: {condition}"
            await asyncio.sleep(0.05)

    async def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the page and the theme that the system prefers."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def press(self, key: str) -> None:
        text: dict[str, Any] = {"text": key} if len(key) == 1 else {"windowsVirtualKeyCode": KEY_CODES[key]}
        if key == "Enter":
            text["text"] = "\r"
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self) -> Image.Image:
        shot = await self.call("Page.captureScreenshot", format="png")
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")

    async def until(self, seen: Callable[[Image.Image], bool]) -> Image.Image:
        """Return the first picture of the page that ``seen`` accepts, once it stays as it is."""
        end = asyncio.get_running_loop().time() + PATIENCE
        before = None
        while True:
            with suppress(NoPageError):
                picture = await self.picture()
                if seen(picture) and before == picture.tobytes():
                    return picture
                before = picture.tobytes()
            assert asyncio.get_running_loop().time() < end, "it never looks so"
            await asyncio.sleep(0.2)


class Browser:
    """A headless browser with a profile of its own."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile

    async def __aenter__(self) -> Self:
        assert BROWSER is not None
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        options += ["--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={self._profile}"]
        self.process = subprocess.Popen(
            [BROWSER, *options, "--window-size=1200,800", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._client = aiohttp.ClientSession()
        file = self._profile / "DevToolsActivePort"
        for _ in range(600):
            if file.exists() and file.read_text().strip():
                break
            await asyncio.sleep(0.1)
        self._port = int(file.read_text().split()[0])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        self.process.kill()
        self.process.wait()

    async def tab(self) -> Tab:
        """Open a tab."""
        base = f"http://127.0.0.1:{self._port}/json"
        async with self._client.put(f"{base}/new?about:blank") as reply:
            address = (await reply.json())["webSocketDebuggerUrl"]
        tab = Tab(await self._client.ws_connect(address, max_msg_size=0))
        await tab.call("Page.enable")
        return tab
