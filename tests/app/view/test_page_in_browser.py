"""The page in a real browser: list, filters, open instance, keys, hostile texts, and a run in progress."""

from __future__ import annotations

import asyncio
import base64
import json
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

import app.view
from app.json_output.samples import VerdictJson
from app.view.contents.data_types import (
    LACKING,
    OUTCOMES,
    Change,
    Changes,
    Head,
    Index,
    Medium,
    Overview,
    Pair,
    PromptMessage,
    PromptPart,
    RunColumns,
    Sibling,
    StratumColumn,
    ViewedAnswer,
    ViewedInstance,
    ViewedRun,
    ViewRow,
)
from tests.support.browser import BROWSER, Browser, Tab

aiohttp = pytest.importorskip("aiohttp")
web = pytest.importorskip("aiohttp.web")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]
DRAWN = Path(app.view.__file__).parent / "drawn"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data:;"
    " connect-src 'self'"
)
CONDITIONS, LABELS = ("aligned", "conflict"), ("RIGHT", "WRONG")
HOSTILE = "<img src=http://elsewhere.test/x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
PIXELS = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='300' height='200'></svg>"
ROWS = "document.querySelectorAll('.rows .body .row').length"
NUMBERS = "[...document.querySelectorAll('.rows .body .row')].map((row) => Number(row.id.slice(3)))"
MARKED = "document.querySelector('.rows [aria-selected=true]')?.id"


def _encoded(code: str, values: Iterable[float]) -> str:
    return base64.b64encode(array(code, values).tobytes()).decode()


@dataclass
class Contents:
    """Twelve instances, in pairs of an example's two conditions, with the answers of ``runs``; ``served`` as a run goes on."""

    runs: int = 2
    instances: int = 12
    answers: str = "an answer"
    siblings: int = 2
    modality: Literal["audio", "video"] = "audio"
    medium: str | None = None
    served: list[Changes] = field(default_factory=list)
    broken: bool = False

    def codes(self, number: int, run: int) -> tuple[int, int]:
        """Return the codes of an outcome and a label: run 1 loses instance 3 and gains 4, and has no label for 5."""
        if run == 1 and number == 5:
            return OUTCOMES.index("undecided"), LACKING
        is_right = number != 4 if run == 0 else number != 3
        return (OUTCOMES.index("right"), 0) if is_right else (OUTCOMES.index("wrong"), 1)

    def head(self) -> Head:
        run = ViewedRun(
            name="run", label="run", model="model", state="running", note="", problem=None, done=11, total=12,
            errors=0, judge="match", writable=False,
        )  # fmt: skip
        return Head(
            version="0", saved=False, benchmark="cmc-bench", title="A page", paper="", rule=None, conditions=CONDITIONS,
            labels=LABELS, kinds={name: {"RIGHT": "right", "WRONG": "wrong"} for name in CONDITIONS},
            runs=tuple(replace(run, label=f"run {place} {HOSTILE}") for place in range(self.runs)),
            instances=self.instances, revision=1,
        )  # fmt: skip

    def index(self) -> Index:
        numbers = range(self.instances)
        codes = [[self.codes(number, run) for number in numbers] for run in range(self.runs)]
        runs = tuple(
            RunColumns(
                outcome=_encoded("B", (outcome for outcome, _ in column)),
                label=_encoded("B", (label for _, label in column)),
                flags=_encoded("B", (4 if number == 6 else 0 for number in numbers)),
                tokens=_encoded("I", (100_000 - number for number in numbers)),
                seconds=_encoded("f", (number % 5 for number in numbers)),
            )
            for column in codes
        )
        strata = {
            "document": StratumColumn(values=("one", "two"), codes=_encoded("I", (1 + n % 3 % 2 for n in numbers)))
        }
        return Index(
            revision=1, condition=_encoded("B", (number % 2 for number in numbers)),
            group=_encoded("I", (number // 2 for number in numbers)), strata=strata, runs=runs,
        )  # fmt: skip

    def overview(self) -> Overview:
        pair = Pair(
            run=1, verdict=("Run 1 is as good.",), meaning="", conditions=(), outcomes=(), label_counts=(),
            changes={"lost": (3,), "gained": (4,), "differs": (3, 4, 5), "RIGHT>WRONG": (3,)},
        )  # fmt: skip
        return Overview(revision=1, pairs=(pair,))

    def row(self, number: int) -> ViewRow:
        return ViewRow(
            number=number, id=f"q{number}", question=f"Question {number} {HOSTILE}", answers=(self.answers,) * self.runs
        )

    def instance(self, number: int) -> ViewedInstance:
        return ViewedInstance(
            number=number, id=f"q{number}", condition=CONDITIONS[number % 2], question=f"Question {number} {HOSTILE}",
            strata={HOSTILE: HOSTILE}, references={HOSTILE: (HOSTILE,)},
            media=(
                Medium(modality="image", facts=HOSTILE, type="image/png", original=PIXELS, preview=PIXELS),
                Medium(
                    modality=self.modality, facts="The file is missing.", type="", original=self.medium,
                    preview=self.medium and PIXELS,
                ),
            ),
            prompt=((PromptMessage(role=HOSTILE, parts=(PromptPart(text=HOSTILE), PromptPart(medium=0))),),),
            siblings=tuple(
                Sibling(number=number // 2 * 2 + place, condition=name)
                for place, name in enumerate(CONDITIONS[: self.siblings])
            ),
            answers=tuple(self.answer(number, run) for run in range(self.runs)),
        )  # fmt: skip

    def answer(self, number: int, run: int) -> ViewedAnswer:
        outcome, label = self.codes(number, run)
        return ViewedAnswer(
            id="a", outcome=OUTCOMES[outcome], label=None if label == LACKING else LABELS[label], judge="match", reason=HOSTILE,
            behaviour=HOSTILE, answer=self.answers, length=len(self.answers) + 7, reasoning=HOSTILE, error=HOSTILE,
            truncated=True, overridden=True, completion_tokens=5, prompt_tokens=9, seconds=0.5, origin=None,
            own_answer=HOSTILE, prompt=(),
            verdicts={HOSTILE: VerdictJson(status="labelled", label=HOSTILE, reason=HOSTILE, raw=HOSTILE)},
            remarks=(HOSTILE,), repeats=(),
        )  # fmt: skip

    async def reply(self, request: Any) -> Any:
        """Answer as the server of the page does."""
        what, query = request.match_info["what"], request.query
        if self.broken:
            raise web.HTTPServiceUnavailable(text="The server is being restarted.")
        if what == "rows":
            return web.json_response([asdict(self.row(int(number))) for number in query["numbers"].split(",")])
        if what == "instance":
            return web.json_response(asdict(self.instance(int(query["number"]))))
        if what == "search":
            return web.json_response([number for number in range(self.instances) if query["words"] in f"q{number}"])
        if what == "answer":
            return web.json_response({"text": " and...", "length": len(self.answers) + 7})
        if what == "changes":
            while not self.served and not self.broken:
                await asyncio.sleep(0.02)
            return web.json_response(asdict(self.served.pop(0))) if self.served else await self.reply(request)
        return web.json_response(asdict(getattr(self, what)()))


async def _file(request: Any) -> Any:
    return web.FileResponse(
        DRAWN / (request.match_info["file"] or "index.html"), headers={"Content-Security-Policy": POLICY}
    )


@asynccontextmanager
async def _opened(contents: Contents, profile: Path, state: str) -> AsyncIterator[Tab]:
    """Serve contents, and open the page in a tab at a state."""
    server = web.Application()
    server.router.add_get("/api/{what}", contents.reply)
    server.router.add_get("/{file:.*}", _file)
    runner = web.AppRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with Browser(profile) as browser:
        tab = await browser.tab()
        await tab.resize(1200)
        await tab.go(f"http://127.0.0.1:{port}/#{state}")
        await tab.wait_for("document.querySelector('.rows .row[id], .answer')")
        yield tab
    await runner.cleanup()


def _visit(tmp_path: Path, contents: Contents, visit: Callable[[Tab], Awaitable[None]], state: str = "") -> None:
    async def perform() -> None:
        async with _opened(contents, tmp_path / "profile", state) as tab:
            await visit(tab)

    asyncio.run(perform())


def test_filters_and_orders_are_in_the_address(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        expected = {
            "condition=aligned": [0, 2, 4, 6, 8, 10],
            "outcome=undecided": [5],
            "outcome=wrong&run=0": [4],
            "label=WRONG": [3, 4],
            "flag=truncated": [6],
            "in.document=two": [1, 4, 7, 10],
            "differ=1": [3, 4, 5],
            "changed=lost": [3],
            "changed=differs&condition=conflict": [3, 5],
            "changed=RIGHT>WRONG": [3],
            "changed=constructor": [],
            "words=q1": [1, 10, 11],
            "words=q1&condition=aligned": [10],
            "sort=shortest": [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
            "sort=slowest": [4, 9, 3, 8, 2, 7, 1, 6, 11, 0, 5, 10],
            "sort=changed": [3, 4, 0, 1, 2, 5, 6, 7, 8, 9, 10, 11],
            "in.__proto__=x&instance=99&run=7&against=0&sort=constructor": list(range(12)),
        }
        await tab.wait_for("document.querySelector('#filters option[value=lost]').textContent === 'lost (1)'")
        for state, numbers in expected.items():
            await tab.evaluate(f"location.hash = '{state}'")
            await tab.wait_for(f"JSON.stringify({NUMBERS}) === '{json.dumps(numbers, separators=(',', ':'))}'")
        await tab.evaluate("history.back()")
        await tab.wait_for(f"{NUMBERS}[0] === 3")

    _visit(tmp_path, Contents(), visit)


def test_menus_select_and_are_cleared(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.evaluate("document.querySelectorAll('.menu summary')[0].click()")
        await tab.wait_for("document.querySelector('.menu[open] input')")
        await tab.evaluate("document.querySelector('.menu[open] input').click()")
        assert await tab.evaluate(ROWS) == 6
        assert await tab.evaluate("location.hash") == "#condition=aligned"
        assert await tab.evaluate("document.querySelector('.count').textContent") == "6 of 12"
        await tab.press("Escape")
        assert not await tab.evaluate("document.querySelectorAll('.menu[open]').length")
        await tab.evaluate(
            "[...document.querySelectorAll('#filters button')].find((node) => node.textContent === 'Clear').click()"
        )
        assert await tab.evaluate(f"{ROWS} + location.hash") == "12"

    _visit(tmp_path, Contents(), visit)


def test_keys_move_open_switch_and_zoom(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        for key in "jjk":
            await tab.press(key)
        assert await tab.evaluate(MARKED) == "row1"
        await tab.press("Enter")
        await tab.wait_for("document.querySelectorAll('.answer').length === 2")
        await tab.press("[")
        await tab.wait_for("document.querySelector('.question h2').textContent.startsWith('Question 0')")
        assert (
            await tab.evaluate("document.querySelector('[role=tab][aria-selected=true]').textContent.trim()")
            == "aligned ✓✓"
        )
        await tab.press("2")
        assert await tab.evaluate("document.querySelectorAll('.answer').length") == 1
        await tab.press("0")
        assert await tab.evaluate("document.querySelectorAll('.answer').length") == 2
        await tab.press("z")
        await tab.wait_for("document.querySelector('dialog .viewer img').style.transform")
        before = await tab.evaluate("document.querySelector('dialog img').getBoundingClientRect().width")
        await tab.press("+")
        await tab.wait_for(f"document.querySelector('dialog img').getBoundingClientRect().width > {before * 1.2}")
        await tab.press("Escape")
        await tab.wait_for("!document.querySelector('dialog') && location.hash === '#instance=0'")
        await tab.press("n")
        await tab.wait_for("document.querySelector('.question h2').textContent.startsWith('Question 1')")
        await tab.press("Escape")
        assert await tab.evaluate(f"{MARKED} + location.hash") == "row1"
        await tab.press("/")
        for key in "q1":
            await tab.press(key)
        await tab.wait_for(f"{ROWS} === 3 && location.hash === '#words=q1'")
        await tab.press("j")
        assert await tab.evaluate("document.getElementById('search').value") == "q1j"
        await tab.press("Escape")
        await tab.press("?")
        assert await tab.evaluate("document.querySelector('dialog.help').textContent.includes('next instance')")

    _visit(tmp_path, Contents(), visit)


def test_an_instance_without_siblings_has_no_tabs_and_both_names_of_a_run(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.wait_for("document.querySelectorAll('.answer').length === 2")
        assert (
            await tab.evaluate("document.getElementById('instance').firstElementChild.textContent.includes('null')")
            is False
        )
        names = "[...document.querySelectorAll('.chip .run-name, .answer .run-name')].map((node) => node.textContent.trim())"
        assert await tab.evaluate(names) == ["run"] * 4

    _visit(tmp_path, Contents(siblings=1), visit, "instance=0")


def test_a_picture_in_full_size_closes_as_the_state_changes(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.press("Enter")
        for leave in ("history.back()", "location.hash = '#instance=3'"):
            await tab.evaluate("location.hash = '#instance=2'")
            await tab.wait_for("document.querySelector('.question h2')?.textContent.startsWith('Question 2')")
            await tab.press("z")
            await tab.wait_for("document.querySelector('dialog.zoom[open]')")
            await tab.evaluate(leave)
            await tab.wait_for("location.hash !== '#instance=2' && !document.querySelector('dialog')")

    _visit(tmp_path, Contents(), visit)


@pytest.mark.parametrize(("modality", "word"), [("audio", "sound"), ("video", "video")])
def test_what_the_browser_cannot_play_is_a_picture(
    modality: Literal["audio", "video"], word: str, tmp_path: Path
) -> None:
    async def visit(tab: Tab) -> None:
        await tab.wait_for(
            f"document.querySelector('.media').textContent.includes('This browser cannot play the {word}.')"
        )
        await tab.wait_for("document.querySelectorAll('.media .viewer img').length === 2")
        assert await tab.evaluate("document.querySelectorAll('audio, video').length") == 0

    _visit(tmp_path, Contents(modality=modality, medium=f"data:{modality}/mp4,nothing"), visit, "instance=0")


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.wait_for("document.querySelectorAll('.answer').length === 2")
        await tab.evaluate("document.querySelectorAll('#instance details').forEach((node) => { node.open = true; })")
        await tab.evaluate(
            "[...document.querySelectorAll('.answer button')].find((node) => node.textContent.startsWith('Show')).click()"
        )
        await tab.wait_for("document.querySelector('.answer').textContent.includes(' and...')")
        assert await tab.evaluate("document.title") == "A page"
        assert (
            await tab.evaluate("document.querySelectorAll('#instance script, [onerror], img:not(.viewer img)').length")
            == 0
        )
        await tab.press("Escape")
        await tab.wait_for(ROWS)
        assert await tab.evaluate("document.title") == "A page"
        addresses = await tab.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert {urlsplit(address).hostname for address in addresses} <= {"127.0.0.1", None}

    _visit(tmp_path, Contents(answers=HOSTILE), visit, "instance=0")


def test_a_run_goes_on_and_a_server_comes_back(tmp_path: Path) -> None:
    contents = Contents()

    async def visit(tab: Tab) -> None:
        await tab.press("j")
        change = Change(number=1, run=1, outcome=OUTCOMES.index("wrong"), label=1, flags=0, tokens=1, seconds=1)
        runs = tuple(replace(run, done=12, state="done") for run in contents.head().runs)
        contents.served.append(Changes(revision=2, runs=runs, changes=(change,)))
        await tab.wait_for("document.querySelector('#row1 .wrong')?.textContent === '✗ WRONG'")
        assert await tab.evaluate(MARKED) == "row1"
        assert await tab.evaluate("document.querySelectorAll('.chip progress').length") == 0
        contents.broken = True
        await tab.wait_for("document.getElementById('status').textContent === 'The server is being restarted.'")
        contents.broken = False
        contents.served.append(Changes(revision=3, runs=runs, whole=True))
        await tab.wait_for("document.getElementById('status').textContent === 'Connected again.'")
        await tab.wait_for("!document.querySelector('#row1 .wrong')")
        assert await tab.evaluate(MARKED) == "row1"

    _visit(tmp_path, contents, visit)


@pytest.mark.parametrize("width", [320, 800, 2000])
def test_the_page_fits_its_window(tmp_path: Path, width: int) -> None:
    async def visit(tab: Tab) -> None:
        await tab.resize(width)
        for state, part in (("", ".rows .row[id]"), ("instance=0", "#instance .answer")):
            await tab.evaluate(f"location.hash = '{state}'")
            await tab.wait_for(f"document.querySelector('{part}')?.getClientRects().length")
            assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), state

    _visit(tmp_path, Contents(runs=12, answers="x" * 5000), visit)


def test_many_rows_are_a_few_elements(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.press("End")
        await tab.wait_for(f"{MARKED} === 'row19999'")
        await tab.wait_for("document.querySelector('#row19999').textContent.includes('q19999')")
        assert await tab.evaluate(ROWS) < 60
        await tab.press("k")
        assert await tab.evaluate(MARKED) == "row19998"

    _visit(tmp_path, Contents(instances=20_000), visit)
