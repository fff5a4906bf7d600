"""`rashomon serve` in a real browser: keys, pictures, reloading, two tabs."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from PIL import Image
from textual.color import Color

from app.tui.theme import THEME
from benchmarks.vocabulary import Media
from tests.app.commands.system.test_serve_command import serving
from tests.support.browser import BROWSER, Browser
from tests.support.command import children_of
from tests.support.runs import instances
from tests.support.tui_stage import Stage

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]
RED = (250, 10, 10)
BACKGROUND = Color.parse(THEME.background or "").rgb


def _drawn(picture: Image.Image) -> bool:
    """Return whether the interface is drawn: most of the page is of its background, and there is text on it."""
    colours = picture.getcolors(1 << 24) or []
    return max(colours)[1] == BACKGROUND and len(colours) > 20


def _red(picture: Image.Image) -> int:
    return sum(
        count for count, colour in picture.getcolors(1 << 24) or [] if isinstance(colour, tuple) and _is_red(colour)
    )


def _is_red(colour: tuple[int, ...]) -> bool:
    return all(abs(value - red) < 12 for value, red in zip(colour, RED, strict=True))


def _run_with_a_red_picture(home: Path) -> Path:
    stage = Stage(home / "workspace")
    data = home / "build"
    (data / "media").mkdir(parents=True)
    file = data / "red.png"
    Image.new("RGB", (200, 150), RED).save(file)
    picture = Media(hashlib.sha256(file.read_bytes()).hexdigest(), ".png")
    file.rename(data / "media" / picture.name)
    stage.run("red", asked=instances(2, picture=picture), data=data)
    return stage.path


def _in_browser(tmp_path: Path, visit: Callable[[Browser, str, Callable[[], list[int]]], Awaitable[None]]) -> None:
    """Call ``visit`` with a browser, the link, and a function that lists the interfaces' processes."""
    home = tmp_path / "home"
    home.mkdir()
    _run_with_a_red_picture(home)

    async def perform(process: subprocess.Popen[str], link: str) -> None:
        async with Browser(tmp_path / "profile") as browser:
            await visit(browser, link, lambda: children_of(process.pid))

    with serving(home) as (process, link):
        asyncio.run(perform(process, link))


def test_keys_work_after_loading_and_pictures_are_drawn(tmp_path: Path) -> None:
    async def visit(browser: Browser, link: str, interfaces: Callable[[], list[int]]) -> None:
        tab = await browser.tab()
        await tab.go(link)
        await tab.until(_drawn)
        await tab.press("?")
        await tab.until(lambda picture: not _drawn(picture))  # the help dims what is under it
        await tab.press("Escape")
        await tab.until(_drawn)
        await tab.press("3")
        assert _red(await tab.until(lambda picture: _red(picture) > 1000)) > 1000

    _in_browser(tmp_path, visit)


def test_a_page_is_reloaded_and_opened_twice(tmp_path: Path) -> None:
    async def visit(browser: Browser, link: str, interfaces: Callable[[], list[int]]) -> None:
        first = await browser.tab()
        await first.go(link)
        await first.until(_drawn)
        (before,) = interfaces()
        await first.call("Page.reload")
        await first.until(lambda picture: _drawn(picture) and interfaces() not in ([], [before]))
        second = await browser.tab()
        await second.go(link)
        await second.until(lambda picture: _drawn(picture) and len(interfaces()) == 2)
        assert before not in interfaces(), "the interface of a page that is gone ends with it"

    _in_browser(tmp_path, visit)


def test_another_browser_is_refused_with_the_same_link(tmp_path: Path) -> None:
    async def visit(browser: Browser, link: str, interfaces: Callable[[], list[int]]) -> None:
        tab = await browser.tab()
        await tab.go(link)
        await tab.until(_drawn)
        async with Browser(tmp_path / "other") as other:
            refused = await other.tab()
            await refused.go(link)
            await refused.until(lambda picture: True)
            text = await refused.call("Runtime.evaluate", expression="document.body.innerText")
            assert "one session" in text["result"]["value"]
        assert len(interfaces()) == 1

    _in_browser(tmp_path, visit)
