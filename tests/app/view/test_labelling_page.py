"""Labelling and overriding in a browser: blind, by keyboard, and never by a key pressed before the answer was displayed."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import app.view.drawn as drawn
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.view.served.labelling_routes import routes
from benchmarks.vocabulary import Generation
from judges.human_labels_and_samples import blind_id
from tests.app.view.test_labelling import ANN, HOSTILE, SECRETS, labels_of, make, on_page, records
from tests.support.browser import BROWSER, Browser, Tab

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium")]

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
ITEM = "document.querySelector('.label-item')"
NOTE = "document.querySelector('.label-note').textContent"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass
class PageServer:
    """A server with nothing but the page and the routes of labelling; a picture comes once it may."""

    folder: Path
    base: str = ""
    picture: threading.Event = field(default_factory=threading.Event)

    def app(self) -> Starlette:
        async def head(request: Request) -> Response:
            run = {"name": "secret-model", "label": "secret-model", "model": "secret-model", "state": "done", "note": "",
                   "problem": None, "done": 24, "total": 24, "errors": 0, "judge": "match@4", "writable": True}  # fmt: skip
            facts = {"version": "1", "saved": False, "benchmark": "cmc-bench", "title": "secret-model", "paper": "",
                     "rule": None, "conditions": ["aligned"], "labels": LABELS, "kinds": {}, "outcomes": [],
                     "runs": [run, {**run, "name": "bundle", "label": "bundle", "writable": False}],
                     "instances": 24, "revision": 1}  # fmt: skip
            return JSONResponse(facts)

        async def picture(request: Request) -> Response:
            await asyncio.to_thread(self.picture.wait, 60)
            data = io.BytesIO()
            Image.new("RGB", (200, 100), "green").save(data, "PNG")
            return Response(data.getvalue(), media_type="image/png")

        files = StaticFiles(directory=Path(next(iter(drawn.__path__))), html=True)
        get = [Route("/api/head", head), Route("/picture.png", picture)]
        site = Starlette(routes=[*get, *routes(on_page(self.folder)), Mount("/", files)])

        async def with_policy(scope: Any, receive: Any, send: Any) -> None:
            async def send_on(message: Any) -> None:
                if message["type"] == "http.response.start":
                    message["headers"].append((b"content-security-policy", CSP.encode()))
                await send(message)

            await site(scope, receive, send_on)

        return with_policy  # type: ignore[return-value]


@contextmanager
def served(folder: Path) -> Iterator[PageServer]:
    page = PageServer(folder)
    server = uvicorn.Server(uvicorn.Config(page.app(), port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    page.base = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    try:
        yield page
    finally:
        page.picture.set()
        server.should_exit = True
        thread.join(10)


def drive(folder: Path, profile: Path, script: Callable[[Tab, PageServer], Awaitable[None]]) -> None:
    async def run(page: PageServer) -> None:
        async with Browser(profile) as browser:
            tab = await browser.tab()
            await tab.call("Runtime.enable")
            await script(tab, page)

    with served(folder) as page:
        asyncio.run(run(page))


async def begin(tab: Tab, page: PageServer, name: str = "ann") -> None:
    await tab.go(f"{page.base}#labelling=0")
    await tab.wait_for("document.querySelector('#annotator')?.value")
    await tab.evaluate(f"document.querySelector('#annotator').value = {json.dumps(name)}")
    await tab.press("Enter")
    await tab.wait_for(f"{ITEM} && document.activeElement === {ITEM}")


async def settle(tab: Tab) -> None:
    """Wait for longer than an answer needs to be displayed, and a label to be saved."""
    await asyncio.sleep(0.4)


async def labelled(tab: Tab, count: int) -> None:
    text = "document.querySelector('.label-head p')?.textContent.split(' · ')[1]"
    await tab.wait_for(
        f"{text}?.match(/\\d+/g).slice(0, -1).reduce((sum, number) => sum + Number(number), 0) === {count}"
    )
    await settle(tab)


def rewrite(folder: Path, answer: str, question: str | None = None) -> None:
    """Give all instances this answer."""
    with RunStore.open(folder) as store:
        store.repeat(["aligned", "image-correct", "text-correct", "both-wrong"])
        store.use_engine({})
        pending = list(store.pending())
        answers = [(p, Generation(f"{p.instance.id}#0", answer, "stop")) for p in pending]
        store.commit([NewAnswer(p.ordinal, p.instance.condition, 0, "", g, True) for p, g in answers])


def test_labelling_by_keyboard_and_blind(tmp_path: Path) -> None:
    folder = make(tmp_path / "workspace")

    async def script(tab: Tab, page: PageServer) -> None:
        await tab.go(page.base)
        await tab.wait_for("document.querySelectorAll('.label-offer button').length === 1")
        offer = await tab.evaluate("document.querySelector('.label-offer').textContent")
        assert "one answer at a time" in offer
        assert "Label answers of " in offer
        await begin(tab, page)
        await settle(tab)
        await tab.resize(320, 500)
        for number, key in enumerate("12345s", 1):
            text = await tab.evaluate(
                "document.title + document.body.innerText + document.getElementById('labelling').innerHTML"
            )
            assert not [secret for secret in SECRETS if secret in text]
            await tab.press(key)
            await labelled(tab, number)
            width = await tab.evaluate("document.documentElement.scrollWidth")
            assert width <= 320
        assert await tab.evaluate(NOTE) == "skip saved; u undoes it"
        await tab.press("u")
        await labelled(tab, 5)
        given = [*labels_of(folder).values()]
        assert sorted(map(str, given)) == sorted(LABELS)
        await tab.press("Escape")
        await tab.wait_for("document.title === 'secret-model' && !document.querySelector('.label-item')")
        await begin(tab, page)
        await tab.press("u")
        await tab.wait_for(f"{NOTE}.includes('from an earlier session')")
        await tab.press("1")
        await tab.press("n")
        await tab.wait_for(f"!{NOTE}")
        assert len(labels_of(folder)) == 5
        await tab.press("u")
        await tab.wait_for(f"{NOTE}.includes('from an earlier session')")
        await tab.press("y")
        await labelled(tab, 4)
        assert len(labels_of(folder)) == 4

    drive(folder, tmp_path / "profile", script)


def test_no_key_counts_that_was_pressed_before_the_answer_was_displayed(tmp_path: Path) -> None:
    folder = make(tmp_path / "workspace")

    async def script(tab: Tab, page: PageServer) -> None:
        await begin(tab, page)
        await settle(tab)
        code = {"key": "1", "text": "1"}
        await tab.call("Input.dispatchKeyEvent", type="keyDown", autoRepeat=True, **code)
        await tab.call("Input.dispatchKeyEvent", type="keyDown", timestamp=time.time() - 5, **code)
        await settle(tab)
        assert labels_of(folder) == {}
        # Two keys in one task: the second one belongs to no item.
        await tab.evaluate(
            "for (const key of '12') document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
        )
        await labelled(tab, 1)
        assert list(labels_of(folder).values()) == ["IMAGE"]
        # A click on a button of the former item.
        await tab.evaluate("window.former = document.querySelector('.label-actions button')")
        await tab.press("2")
        await labelled(tab, 2)
        await tab.evaluate("window.former.click()")
        await settle(tab)
        assert len(labels_of(folder)) == 2
        await tab.evaluate("document.querySelectorAll('.label-actions button')[2].click()")
        await labelled(tab, 3)
        assert sorted(map(str, labels_of(folder).values())) == ["BOTH", "IMAGE", "TEXT"]
        # The answer is below what the window has room for.
        await tab.evaluate("document.styleSheets[0].insertRule('.label-text { min-height: 2000px }')")
        await tab.press("s")
        await labelled(tab, 4)
        await tab.press("1")
        await tab.wait_for(f"{NOTE}.startsWith('Scroll')")
        assert len(labels_of(folder)) == 4
        await tab.evaluate("document.querySelector('.label-first-line').scrollIntoView()")
        await settle(tab)
        await tab.press("1")
        await labelled(tab, 5)

    drive(folder, tmp_path / "profile", script)


def test_two_pages_label_at_once_and_an_answer_that_changes_is_displayed_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "workspace")

    async def run(page: PageServer) -> None:
        async with Browser(tmp_path / "profile") as browser:
            first = await browser.tab()
            await begin(first, page)
            await settle(first)
            await asyncio.to_thread(on_other_page, page)
            await first.press("2")
            await first.wait_for(f"{NOTE}.startsWith('Not confirmed: another answer is current')")
            await settle(first)
            await first.press("2")
            await labelled(first, 2)
            assert sorted(map(str, labels_of(folder).values())) == ["IMAGE", "TEXT"]
            rewrite(folder, f"{HOSTILE}\n" + "x" * 3_000_000)
            await first.press("3")
            await first.wait_for(f"{NOTE}.startsWith('Not confirmed: the answers have changed')")
            await first.wait_for(f"{ITEM}.textContent.includes('<img src=x onerror=')")
            await settle(first)
            await first.press("4")
            await labelled(first, 1)
            assert list(labels_of(folder).values()) == ["NEITHER"]
            assert not await first.evaluate("!!document.querySelector('#labelling img, #labelling script')")

    def on_other_page(page: PageServer) -> None:
        import httpx2

        body = {"run": 0, "name": "ann"}
        item = httpx2.post(f"{page.base}api/labelling/begin", json=body).json()["item"]["id"]
        assert (
            httpx2.post(f"{page.base}api/labelling/give", json={**body, "item": item, "label": "IMAGE"}).status_code
            == 200
        )

    with served(folder) as page:
        asyncio.run(run(page))


FORM = """
Promise.all([import('/labelling.js'), import('/source.js')]).then(async ([labelling, sources]) => {
  const source = sources.openSource();
  window.page = { head: await source.head(), source, state: {} };
  const place = document.getElementById('instance');
  place.hidden = false;
  window.put = (answer) => place.replaceChildren(picture, labelling.overrideForm(page, { number: 3, answers: [answer] }, 0));
  window.none = labelling.overrideForm({ ...page, head: { ...page.head, saved: true } }, { number: 3, answers: [{}] }, 0);
  const picture = document.createElement('img');
  picture.src = '/picture.png';
  picture.width = 200;
  picture.height = 100;
  put({ id: ANSWER, outcome: 'wrong' });
})
"""
OVERRIDE = "document.querySelector('.override')"


def test_overriding_on_the_page_once_the_picture_is_displayed(tmp_path: Path) -> None:
    folder = make(tmp_path / "workspace")
    answer = {"id": blind_id(records(folder)[3]), "outcome": "wrong"}
    judge = "override:ann@1"

    async def script(tab: Tab, page: PageServer) -> None:
        await tab.go(page.base)
        await tab.wait_for(
            "document.getElementById('overview')?.textContent.includes('Try again')"
        )  # nothing is drawn again
        await tab.evaluate(FORM.replace("ANSWER", json.dumps(answer["id"])))
        assert await tab.evaluate("window.none === null")
        await tab.evaluate(f"{OVERRIDE}.querySelector('button').focus()")
        await tab.press("Enter")
        await tab.wait_for(f"{OVERRIDE}.querySelector('[name=annotator]').value")
        await tab.evaluate(f"{OVERRIDE}.querySelector('[name=annotator]').value = 'ann'")
        await tab.press("2")
        await tab.wait_for("document.activeElement.name === 'reason'")
        for character in "it says <b>7":
            await tab.press(character)
        await tab.press("Enter")
        await tab.wait_for(f"{OVERRIDE}.textContent.includes('The picture is not displayed yet')")
        assert labels_of(folder, judge) == {}
        undo = f"[...{OVERRIDE}.querySelectorAll('button')].find((b) => b.textContent === 'Undo')"
        assert await tab.evaluate(f"{undo}.hidden"), "there is nothing to undo"
        await tab.evaluate(f"put({json.dumps(answer)})")  # the column is drawn again
        page.picture.set()
        await tab.wait_for("document.images[0].complete && document.activeElement.name === 'reason'")
        await settle(tab)
        await tab.press("Enter")
        await tab.wait_for(f"{OVERRIDE}.textContent.includes('TEXT by ann saved')")
        (verdict,) = [r.verdicts[judge] for r in records(folder) if judge in r.verdicts]
        assert (verdict.label, verdict.reason) == ("TEXT", "it says <b>7")
        await tab.evaluate(f"put({json.dumps({**answer, 'verdicts': {judge: {}}})})")
        await tab.evaluate(f"{undo}.hidden || {undo}.click()")
        await tab.wait_for(f"{OVERRIDE}.textContent.includes('override undone') && {undo}.hidden")
        assert labels_of(folder, judge) == {}
        await tab.press("Escape")
        await tab.wait_for(f"{OVERRIDE}.querySelector('form').hidden && !document.getElementById('status').textContent")

    drive(folder, tmp_path / "profile", script)


def test_a_session_begins_under_a_valid_name_and_on_a_run_of_ones_own(tmp_path: Path) -> None:
    folder = make(tmp_path / "workspace")

    async def script(tab: Tab, page: PageServer) -> None:
        await tab.go(f"{page.base}#labelling=1")
        await tab.wait_for("!!document.querySelector('.label-offer')")
        assert not await tab.evaluate("document.body.classList.contains('labelling')"), "a bundle's run"
        await tab.go(f"{page.base}#labelling=0")
        await tab.wait_for("document.querySelector('#annotator')?.value")
        await tab.evaluate(f"document.querySelector('#annotator').value = {json.dumps('<b>')}")
        await tab.press("Enter")
        await tab.wait_for(f"{NOTE}.includes('is not a valid annotator name')")
        await tab.evaluate("document.querySelector('#annotator').value = 'ann'")
        await tab.press("Enter")
        await tab.wait_for(f"!!{ITEM}")
        await settle(tab)
        await tab.press("1")
        await labelled(tab, 1)

    drive(folder, tmp_path / "profile", script)
    assert labels_of(folder, ANN)
