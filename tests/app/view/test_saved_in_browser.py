"""The saved page in a real browser: opened from disk without a network, it does all that the served page does but labelling."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.text.text_escaping import clean
from app.view.contents.page_contents import Contents
from app.view.saved.saved_page import saved_page
from tests.support.browser import BROWSER, Browser, Tab
from tests.support.hostile_texts import HOSTILE
from tests.support.saved_page import make_hostile_runs

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]
LIST = "document.querySelectorAll('#list .body .row').length > 0 && document.getElementById('list').textContent"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("saved")
    workspace = make_hostile_runs(home)
    folders = [workspace.runs_folder / name for name in sorted(workspace.run_names())]
    path = home / "<img src=x onerror=window.hacked=1>.html"
    path.write_text("".join(saved_page(Contents(workspace, folders, saved=True))), "utf-8")
    return path


def opened(file: Path, steps: Callable[[Tab], Awaitable[None]], profile: Path, fragment: str = "") -> None:
    """Open the page with the network cut, take the steps, and check that nothing was requested and nothing went wrong."""

    async def run() -> None:
        async with Browser(profile) as browser:
            tab = await browser.tab()
            for domain in ("Network", "Runtime", "Log"):
                await tab.call(f"{domain}.enable")
            await tab.call(
                "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
            )
            await tab.go(f"{file.as_uri()}{fragment}")
            await steps(tab)
            await tab.evaluate("1")
            assert requests(tab) <= {file.as_uri()}
            assert [event["params"] for event in tab.events if event["method"] == "Runtime.exceptionThrown"] == []
            assert [event["params"] for event in tab.events if event["method"] == "Log.entryAdded"] == []
            assert not await tab.evaluate("'hacked' in window")

    asyncio.run(run())


def requests(tab: Tab) -> set[str]:
    """Return the addresses that were requested, but for what is in the page itself."""
    addresses = {
        event["params"]["request"]["url"] for event in tab.events if event["method"] == "Network.requestWillBeSent"
    }
    return {address.partition("#")[0] for address in addresses if not address.startswith("data:")}


def test_filters_search_and_instances_work_from_disk(file: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.wait_for(f"{LIST}.includes('aligned')")
        count = "document.getElementById('filters').innerText"
        assert "80" in await tab.evaluate(count)
        await tab.evaluate("location.hash = '#outcome=error'")
        await tab.wait_for(f"{count}.includes('40') && !document.getElementById('list').innerText.includes('✓')")
        await tab.evaluate("location.hash = '#words=HYPERLINK'")
        await tab.wait_for("document.querySelectorAll('#list .body .row').length === 2")
        await tab.evaluate("location.hash = '#id=factual-0001%2Faligned'")
        await tab.wait_for("location.hash === '#instance=2'")
        await tab.evaluate("location.hash = '#instance=0'")
        await tab.wait_for("document.querySelector('#instance img')?.naturalWidth === 256")
        text = await tab.evaluate("document.getElementById('instance').innerText")
        assert "</script><script>window.hacked = 1</script> 12" in text

    opened(file, steps, tmp_path)


def test_every_hostile_text_is_displayed_as_text(file: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.wait_for("document.getElementById('instance')?.hidden === false")
        for place, text in enumerate(HOSTILE):
            await tab.evaluate(f"location.hash = '#instance={2 * place}'")
            expected = clean(text, newlines=True)
            await tab.wait_for(f"document.getElementById('instance').textContent.includes(`factual-{place:04d}`)")
            assert f"{expected} 12" in await tab.evaluate("document.getElementById('instance').textContent")
        assert (
            await tab.evaluate("document.querySelectorAll('iframe, base, form, object, embed, a[href^=http]').length")
            == 0
        )

    opened(file, steps, tmp_path, "#instance=0")


def test_the_keys_work_from_disk(file: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.wait_for(LIST)
        await tab.press("j")
        await tab.press("Enter")
        await tab.wait_for("location.hash === '#instance=1'")
        await tab.press("Escape")
        await tab.wait_for("document.getElementById('instance').hidden")

    opened(file, steps, tmp_path)
