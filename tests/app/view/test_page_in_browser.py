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
from app.json_output.samples_json import VerdictJson
from app.view.contents.page_types import (
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
    policies: tuple[int, ...] = ()
    siblings: int = 2
    modality: Literal["audio", "video"] = "audio"
    medium: str | None = None
    served: list[Changes] = field(default_factory=list)
    broken: bool = False
    ended: bool = False
    compared: bool = True

    def codes(self, number: int, run: int) -> tuple[int, int]:
        """Return the codes of an outcome and a label: run 1 loses instance 3 and gains 4, and has no label for 5."""
        if run == 1 and number == 5:
            return OUTCOMES.index("undecided"), LACKING
        is_right = number != 4 if run == 0 else number != 3
        return (OUTCOMES.index("right"), 0) if is_right else (OUTCOMES.index("wrong"), 1)

    def head(self) -> Head:
        run = ViewedRun(
            name="run", label="run", model="model", is_policy=False, state="running", note="", problem=None, done=11, total=12,
            errors=0, judge="match", writable=False,
        )  # fmt: skip
        return Head(
            version="0", saved=False, benchmark="cmc-bench", title="A page", paper="", rule=None, conditions=CONDITIONS,
            labels=LABELS, kinds={name: {"RIGHT": "right", "WRONG": "wrong"} for name in CONDITIONS},
            meanings={"WRONG": f"is wrong {HOSTILE}"},
            runs=tuple(
                replace(run, label=f"run {place} {HOSTILE}", is_policy=place in self.policies) for place in range(self.runs)
            ),
            instances=self.instances, revision=1,
        )  # fmt: skip

    def index(self) -> Index:
        numbers = range(self.instances)
        codes = [[self.codes(number, run) for number in numbers] for run in range(self.runs)]
        runs = tuple(
            RunColumns(
                outcome=_encoded("B", (outcome for outcome, _ in column)),
                label=_encoded("B", (label for _, label in column)),
                flags=_encoded("B", (4 if number == 6 else number == 7 and run == 0 for number in numbers)),
                tokens=_encoded("I", (100_000 - number for number in numbers)),
                seconds=_encoded("f", (number % 5 for number in numbers)),
            )
            for run, column in enumerate(codes)
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
            run=1, verdict=(), meaning="", conditions=(), outcomes=(), label_counts=(),
            changes={"lost": (3,), "gained": (4,), "differs": (3, 4, 5), "RIGHT>WRONG": (3,)},
        )  # fmt: skip
        pairs = (replace(pair, run=run, verdict=(f"Run {run} is as good.",)) for run in range(1, self.runs))
        return Overview(revision=1, pairs=tuple(pairs))

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
                Sibling(number=number // 2 * 2 + place, id="id", condition=name, name=name)
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

    async def results(self, is_first: bool) -> Any:
        """Return the results, the first ones without the comparison, which is computed until ``compared`` is set."""
        overview = self.overview()
        if is_first:
            overview = replace(overview, pairs=(), headlines=("run 0 is right",), complete=False)
        while not is_first and not self.compared:
            await asyncio.sleep(0.02)
        return web.json_response(asdict(overview))

    async def reply(self, request: Any) -> Any:
        """Answer as the server of the page does."""
        what, query = request.match_info["what"], request.query
        if self.ended:
            raise web.HTTPForbidden(text="this page is served to one session")
        if self.broken:
            raise web.HTTPServiceUnavailable(text="The server is being restarted.")
        if what == "rows":
            return web.json_response([asdict(self.row(int(number))) for number in query["numbers"].split(",")])
        if what == "overview":
            return await self.results(is_first="part" in query)
        if what == "number":
            if not query["id"].startswith("instance "):
                raise web.HTTPBadRequest(text="there is no such instance")
            return web.json_response({"number": int(query["id"].removeprefix("instance "))})
        if what == "instance":
            return web.json_response(asdict(self.instance(int(query["number"]))))
        if what == "search":
            return web.json_response([number for number in range(self.instances) if query["words"] in f"q{number}"])
        if what == "answer":
            return web.json_response({"text": " and...", "length": len(self.answers) + 7})
        if what == "changes":
            while not (self.served or self.broken or self.ended):
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


def test_results_appear_before_the_comparison(tmp_path: Path) -> None:
    contents = Contents(compared=False)

    async def visit(tab: Tab) -> None:
        results = "document.getElementById('overview').textContent"
        await tab.wait_for(
            f"{results}.includes('run 0 is right') && {results}.includes('comparison of the runs: comp')"
        )
        await tab.evaluate("location.hash = 'changed=lost'")
        contents.compared = True
        await tab.wait_for(f"!{results}.includes('computing') && JSON.stringify({NUMBERS}) === '[3]'")

    _visit(tmp_path, contents, visit)


def test_an_id_in_the_address_becomes_a_number(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.wait_for("location.hash === '#instance=7' && document.querySelector('.answer')")
        await tab.evaluate("location.hash = 'id=instance%204&condition=aligned'")
        await tab.wait_for("location.hash === '#instance=4&condition=aligned'")
        await tab.evaluate("location.hash = 'id=another'")
        await tab.wait_for("document.body.textContent.includes('there is no such instance')")
        assert await tab.evaluate("location.hash") == ""

    _visit(tmp_path, Contents(), visit, "id=instance%207")


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


def test_numbers_of_menus_are_of_instances_within_the_other_filters(tmp_path: Path) -> None:
    menus = "[...document.querySelectorAll('.menu')].find((node) => node.querySelector('summary').textContent.startsWith('%s'))"

    async def numbers(tab: Tab, title: str) -> tuple[str, list[str]]:
        menu = menus % title
        await tab.evaluate(f"{menu}.querySelector('summary').click()")
        await tab.wait_for(f"{menu}.open && {menu}.querySelector('.number')")
        labels = await tab.evaluate(f"[...{menu}.querySelectorAll('label')].map((node) => node.textContent)")
        words = await tab.evaluate(f"{menu}.querySelector('p').textContent")
        await tab.press("Escape")
        return words, labels

    async def visit(tab: Tab) -> None:
        assert await numbers(tab, "Outcome") == (
            "Instances with such an answer of any run",
            ["right12", "wrong2", "undecided1"],
        )
        await tab.evaluate("location.hash = 'condition=conflict'")
        await tab.wait_for(f"{ROWS} === 6")
        within = "Instances with such an answer of any run, within the other filters"
        assert await numbers(tab, "Label") == (within, ["RIGHT6", "WRONG1"])
        assert await numbers(tab, "Flags") == (within, ["overridden1"])
        assert await numbers(tab, "Condition") == ("Instances, within the other filters", ["aligned6", "conflict6"])
        assert await numbers(tab, "document") == ("Instances, within the other filters", ["one4", "two2"])
        await tab.evaluate("location.hash = 'label=WRONG&run=0'")
        await tab.wait_for(f"{ROWS} === 1")
        assert (await numbers(tab, "Outcome"))[1] == ["wrong1"]

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
        await tab.resize(1200, 400)
        await tab.press("Escape")
        assert await tab.evaluate(f"{MARKED} + location.hash") == "row1"
        at_the_list = "document.getElementById('filters').getBoundingClientRect().top < 200"
        at_the_end = "scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2"
        assert await tab.evaluate(f"{at_the_list} || {at_the_end}")
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


def test_a_press_that_filters_the_list_leads_to_it_and_enter_opens_the_marked_row(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.resize(1200, 500)
        await tab.wait_for("document.querySelector('[data-key=\"change differs\"]')")
        await tab.evaluate("document.querySelector('[data-key=\"change differs\"]').focus()")
        await tab.press("Enter")
        await tab.wait_for(f"{ROWS} === 3 && document.activeElement.matches('.rows')")
        await tab.press("j")
        await tab.press("Enter")
        await tab.wait_for("location.hash.includes('instance=4') && location.hash.includes('changed=differs')")
        await tab.press("Escape")
        await tab.evaluate("document.querySelector('[data-key=\"change differs\"]').focus()")
        await tab.press("k")
        await tab.press("Enter")
        await tab.wait_for("location.hash.includes('instance=3')")
        await tab.press("l")
        assert await tab.evaluate("document.activeElement.matches('.rows')")
        await tab.evaluate("scrollTo(0, 0)")
        await tab.evaluate("document.activeElement.blur()")
        assert (await tab.evaluate("document.getElementById('to-list').textContent")) == "3 instances ↓"
        await tab.press("l")
        assert await tab.evaluate("document.activeElement.matches('.rows')")
        top = await tab.evaluate("document.getElementById('filters').getBoundingClientRect().top")
        assert top >= await tab.evaluate("document.querySelector('.title').getBoundingClientRect().bottom")

    _visit(tmp_path, Contents(), visit)


def test_hidden_runs_are_left_out_of_what_differs(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.wait_for("document.querySelectorAll('.rows .row[id]').length")
        link = "document.getElementById('to-list').textContent"
        await tab.press("d")
        await tab.wait_for(f"{link} === '3 instances ↓'")
        await tab.press("2")
        await tab.wait_for(f"{link} === '0 instances ↓'")
        await tab.press("0")
        await tab.wait_for(f"{link} === '3 instances ↓'")
        await tab.evaluate("location.hash = 'differ=1&run=0'")
        await tab.wait_for(f"location.hash.includes('run=0') && {link} === '3 instances ↓'")

    _visit(tmp_path, Contents(), visit)


def test_a_status_covers_nothing_and_goes_with_the_next_action(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.resize(320)
        await tab.evaluate("import('/dom.js').then(({ say }) => say('Saved.'))")
        status = "document.getElementById('status')"
        assert await tab.evaluate(f"{status}.textContent") == "Saved."
        assert await tab.evaluate(
            f"{status}.getBoundingClientRect().bottom <= document.getElementById('main').getBoundingClientRect().top"
        )
        await tab.press("Enter")
        await tab.wait_for("document.querySelector('.answer')")
        assert await tab.evaluate(f"{status}.textContent") == ""

    _visit(tmp_path, Contents(), visit)


def test_labels_have_their_meaning_and_the_one_who_gave_them(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.wait_for("document.querySelector('#row3 .badge.wrong')?.title.includes('WRONG')")
        badge = "document.querySelectorAll('#row%d .badge')[%d].title"
        assert await tab.evaluate(badge % (3, 1)) == f"WRONG: is wrong {HOSTILE}; wrong; by the judge match"
        assert await tab.evaluate(badge % (7, 0)) == "RIGHT; right; by a person"
        assert await tab.evaluate(badge % (5, 1)) == "undecided"
        legend = await tab.evaluate("document.querySelector('.legend').textContent")
        assert f"WRONG{'is wrong '}{HOSTILE}" in legend
        assert "By the judge match" in legend

    _visit(tmp_path, Contents(), visit)


def test_overridden_labels_are_marked_and_counted_beside_the_results(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        cells = "[...document.querySelectorAll('#row%d [role=gridcell]')].map((node) => node.textContent)"
        await tab.wait_for(f"({cells})[1]?.includes('* overridden an answer')" % 7)
        assert "overridden" not in (await tab.evaluate(cells % 7))[2]
        assert "overridden" not in "".join(await tab.evaluate(cells % 6))
        label = await tab.evaluate("document.querySelectorAll('#row7 [role=gridcell]')[1].getAttribute('aria-label')")
        assert label.startswith("RIGHT, right, overridden")
        await tab.wait_for("document.querySelector('#overview .overrides')")
        note = await tab.evaluate("document.querySelector('#overview .overrides').textContent")
        assert note == "* 1 label is overridden: the list shows it, these results are the judge's."

    _visit(tmp_path, Contents(), visit)


def test_the_first_model_is_compared_and_rules_are_marked(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        await tab.wait_for("document.querySelector('#overview h2')?.textContent === 'Run 2 is as good.'")
        chips = await tab.evaluate("[...document.querySelectorAll('.chip')].map((node) => node.textContent)")
        assert ["rule, no model" in chip for chip in chips] == [False, True, False]
        await tab.evaluate("location.hash = 'against=1'")
        await tab.wait_for("document.querySelector('#overview h2')?.textContent === 'Run 1 is as good.'")

    _visit(tmp_path, Contents(runs=3, policies=(1,)), visit)


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


def test_a_page_whose_session_ended_goes_on_with_the_next_one(tmp_path: Path) -> None:
    contents = Contents()

    async def visit(tab: Tab) -> None:
        await tab.evaluate("window.isOld = true")
        contents.ended = True
        await tab.wait_for("document.getElementById('status').textContent === 'this page is served to one session'")
        contents.ended = False
        contents.served.append(Changes(revision=1, runs=contents.head().runs))
        await tab.wait_for("!window.isOld && document.querySelector('.rows .row[id]')")
        assert await tab.evaluate("location.hash") == "#condition=aligned"

    _visit(tmp_path, contents, visit, "condition=aligned")


def test_a_list_that_is_cut_off_looks_so(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> None:
        rows = "document.querySelector('.rows')"
        assert not await tab.evaluate(f"{rows}.matches('.cut')")
        await tab.resize(320)
        await tab.wait_for(f"{rows}.matches('.cut')")
        await tab.evaluate(f"{rows}.scrollLeft = 9999")
        await tab.wait_for(f"!{rows}.matches('.cut')")

    _visit(tmp_path, Contents(runs=4), visit)


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
