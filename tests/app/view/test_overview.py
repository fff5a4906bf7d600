"""Results on the page: the same sentences and cells as those of `show`, `compare`, `recommend` and the interface."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import app.view
from app.compare.result_cache import ResultCache
from app.json_output.json_envelope import plain
from app.report.tables.table_rendering import cell_text
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from app.tui.screens.compare_screen import CompareScreen
from app.tui.screens.tables_screen import TablesScreen
from app.tui.tui_app import RashomonApp
from app.view.contents.page_contents import Contents
from app.view.contents.page_overview import printed_table, read_overview
from app.view.contents.page_types import Overview, PrintedTable
from benchmarks.vocabulary import Estimate, Instance
from tests.support import covered_runs
from tests.support.browser import BROWSER, Browser, Tab
from tests.support.command import Rashomon
from tests.support.demo import write_table
from tests.support.runs import instances, make_run, says
from tests.support.tui_computed import mixed, press, until_computed, visit
from tests.support.tui_stage import Stage, drive

BENCHMARKS = ("cmc-bench", "clash", "contra4", "own rows")
OTHER = {"contra4": ("--model", "policy:chance", "--conditions", "captions", "--seed", "1")}
DRAWN = Path(app.view.__file__).parent / "drawn"
HOSTILE = "<img src=x onerror=alert(1)>\u202e[@click=app.x]\x1b[31m"
MOMENTS = 10


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "workspace")
    yield stage
    stage.close()


def number_of(instance: str) -> int:
    """Return a number of an instance, the same for the same id."""
    return zlib.crc32(instance.encode())


def overview_of(*folders: Path, rule: str | None = None, cache: ResultCache | None = None) -> Overview:
    return read_overview(cache or ResultCache(), folders, None, rule, number_of, 1)


def answered(benchmark: str, rashomon: Rashomon) -> tuple[Path, ...]:
    """Answer a question set twice, and return the folders of the runs ``one`` and ``two``."""
    if benchmark == "own rows":
        rashomon.run("build", "cmc-bench", "--from", write_table(rashomon.home, 12))
        base: tuple[str, ...] = ("--batch", "--benchmark", "cmc-bench", "--data", "charts")
        rashomon.run(*base, "--model", "policy:always-image", "--name", "one")
    else:
        covered_runs.build(benchmark, rashomon)
        covered_runs.answer(benchmark, rashomon, "one")
        base = ("--batch", "--benchmark", benchmark)
    other = OTHER.get(benchmark, ("--model", "policy:random"))
    judges = ("--judge", "strict", "--judge", "relaxed") if benchmark == "clash" else ()
    limit = () if benchmark in ("contra4", "own rows") else ("--limit", "16")
    rashomon.run(*base, *other, *judges, *limit, "--name", "two")
    return tuple(rashomon.workspace / "runs" / name for name in ("one", "two"))


@pytest.fixture(scope="module", params=BENCHMARKS)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Rashomon, tuple[Path, ...]]:
    rashomon = Rashomon(tmp_path_factory.mktemp("view"))
    return rashomon, answered(request.param, rashomon)


def texts_of(table: dict[str, Any]) -> list[list[str]]:
    """Return the titles of the columns of a table in JSON, then each row, as text."""

    def text(cell: Any) -> str:
        return clean(cell_text(Estimate(**cell) if isinstance(cell, dict) else cell, table["percent"]), newlines=True)

    keys = [column["key"] for column in table["columns"]]
    rows = [[clean(row["label"]), *(text(row["cells"][key]) for key in keys)] for row in table["rows"]]
    return [[clean(column["title"]) for column in table["columns"]], *rows]


def page_texts(table: PrintedTable) -> list[list[str]]:
    return [[*table.columns], *([row.label, *(cell.text for cell in row.cells)] for row in table.rows)]


def check_tables(page: Sequence[PrintedTable], printed: list[dict[str, Any]]) -> None:
    """Assert that the page has these tables, with equal texts, values and notes."""
    by_name = {table.name: table for table in page}
    for table in printed:
        on_page = by_name[table["name"]]
        assert page_texts(on_page) == texts_of(table)
        values = [[cell for cell in row["cells"].values() if isinstance(cell, dict)] for row in table["rows"]]
        assert [[plain(cell.estimate) for cell in row.cells if cell.estimate] for row in on_page.rows] == values
        assert [*on_page.notes][: len(table["notes"])] == [clean(note) for note in table["notes"]]


def check_overview(overview: Overview, rashomon: Rashomon, names: Sequence[str], *options: str) -> None:
    """Assert that an overview of the runs is what the commands print."""
    shown = rashomon.json("show", *names, *options)
    assert [*overview.headlines] == shown["headlines"]
    assert len(overview.tables) == len(shown["tables"])
    check_tables(overview.tables, shown["tables"])
    following = [line for section in overview.next for line in section.lines]
    assert all(any(step["idea"] in line and step["command"] in line for line in following) for step in shown["to_try"])
    if len(names) > 1:
        compared = rashomon.json("compare", *names)
        check_tables(overview.comparison, compared["tables"])
        sentences = {*chain(*(pair.verdict for pair in overview.pairs)), *overview.remarks, *overview.headlines}
        assert {*compared["verdicts"], *compared["headlines"]} <= sentences
        assert overview.pairs[0].verdict[0] == [*compared["verdicts"], *compared["headlines"]][0]
        assert [*overview.warnings] == compared["warnings"]


def test_cells_and_sentences_are_those_of_the_commands(runs: tuple[Rashomon, tuple[Path, ...]]) -> None:
    rashomon, folders = runs
    overview = overview_of(*folders)
    assert overview.problem is None
    check_overview(overview, rashomon, ("one", "two"))
    recommended = rashomon.json("recommend", "one", "two")
    check_tables(overview.comparison, [recommended["table"]])
    lines = [line for section in (*overview.recommendation, *overview.next) for line in section.lines]
    assert {*recommended["unknown"], *recommended["behaviour"], *recommended["to_try"]} <= {*lines}
    assert rashomon.json("recommend", "one", "two", "--plan")["answer"] in lines
    alone = overview_of(folders[0])
    check_overview(alone, rashomon, ("one",))
    assert not alone.pairs
    assert not alone.recommendation
    first = read_overview(ResultCache(), folders, None, None, number_of, 1, whole=False)
    assert not first.complete
    assert (first.headlines, first.lead, first.tables) == (overview.headlines, overview.lead, overview.tables)
    assert not first.pairs
    assert read_overview(ResultCache(), folders[:1], None, None, number_of, 1, whole=False) == alone
    for contents in (overview, alone):
        assert str(rashomon.home) not in json.dumps(plain(contents))


def test_a_rule_on_what_should_win_leads_to_the_scorecard(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    folders = answered("own rows", rashomon)
    overview = overview_of(*folders, rule="text")
    assert overview.lead == "scorecard"
    assert overview.tables[0].name == "scorecard"
    check_overview(overview, rashomon, ("one", "two"), "--trust", "text")


def test_transitions_are_those_of_the_table_and_name_their_instances(runs: tuple[Rashomon, tuple[Path, ...]]) -> None:
    rashomon, folders = runs
    (pair,) = overview_of(*folders).pairs
    (flips,) = rashomon.json("compare", "one", "two")["flips"]
    counts = {(cell["before"], cell["after"]): cell for cell in flips["cells"]}
    for row, was in enumerate(pair.outcomes):
        for column, now in enumerate(pair.outcomes):
            if was == now:
                continue
            count = pair.label_counts[row][column]
            assert count == counts.get((was, now), {"count": 0})["count"]
            assert len(pair.changes.get(f"{was}>{now}", ())) == count
            names = counts[was, now]["instances"] if count else ()
            assert sorted(pair.changes.get(f"{was}>{now}", ())) == sorted(map(number_of, names))
    assert sum(map(sum, pair.label_counts)) == flips["shared"]
    assert len(pair.changes["differs"]) == sum(cell["count"] for cell in flips["cells"])
    assert {"lost", "gained"} <= pair.changes.keys()


def moments(stage: Stage) -> tuple[list[Path], list[list[Instance]], Any]:
    """Return a finished run and a started one, and the questions that are left in ten parts."""
    asked = instances(10)
    finished = stage.run("finished", asked=asked, answering=mixed(0))
    started = stage.run("started", asked=asked, model="org/m", state="running", done=0)
    size = len(asked) // MOMENTS
    parts = [asked[part * size : (part + 1) * size] for part in range(MOMENTS)]
    return [finished, started], parts, mixed(2)


def test_numbers_of_a_run_in_progress_are_those_of_the_commands_at_ten_moments(stage: Stage, tmp_path: Path) -> None:
    folders, parts, answering = moments(stage)
    cache, rashomon = ResultCache(), Rashomon(tmp_path)
    before = None
    for part in parts:
        stage.answer(folders[1], part, answering)
        check_overview(overview_of(*folders, cache=cache), rashomon, ("finished", "started"))
        alone = overview_of(folders[1], cache=cache)
        check_overview(alone, rashomon, ("started",))
        assert alone.tables != before
        before = alone.tables


def test_numbers_of_a_run_in_progress_are_those_of_the_interface_at_ten_moments(stage: Stage) -> None:
    folders, parts, answering = moments(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", tuple(folders))
        for part in parts:
            stage.answer(folders[1], part, answering)
            await press(pilot, "r")
            await until_computed(pilot)
            screen = app.screen
            assert isinstance(screen, TablesScreen)
            assert overview_of(*folders).tables == tuple(map(printed_table, screen.tables))
        await visit(pilot, app, "compare", tuple(folders))
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        assert screen.computed is not None
        (pair,) = overview_of(*folders).pairs
        (displayed,) = screen.computed.overviews
        assert [row.condition for row in pair.conditions] == [row.condition for row in displayed.differences]
        assert [row.difference.value for row in pair.conditions] == [
            row.difference.value for row in displayed.differences
        ]
        compared = {table.name: printed_table(table) for table in screen.computed.comparison.tables}
        on_page = {table.name: table for table in overview_of(*folders).comparison}
        assert {name: table for name, table in on_page.items() if name in compared} == {
            name: table for name, table in compared.items() if name in on_page
        }

    drive(stage.app(), script)


def test_a_question_that_one_run_has_not_answered_is_no_difference(stage: Stage) -> None:
    folders, parts, answering = moments(stage)
    for part in parts[:3]:
        stage.answer(folders[1], part, answering)
    contents = Contents(stage.workspace, folders)
    overview = contents.overview()
    (pair,) = overview.pairs
    assert "pending" not in pair.outcomes
    assert sum(map(sum, pair.label_counts)) == sum(map(len, parts[:3]))
    answered = {contents.number(item.id) for part in parts[:3] for item in part}
    assert pair.changes["differs"]
    assert all(answered.issuperset(numbers) for numbers in pair.changes.values())
    assert overview.done == (len(contents.instances), len(answered))


@pytest.mark.slow
def test_numbers_of_a_process_at_work_are_those_of_the_commands_at_ten_moments(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    folders = answered("own rows", rashomon)
    live = ("--batch", "--benchmark", "cmc-bench", "--data", "charts", "--model", "policy:uniform", "--name", "live")
    folder = folders[0].with_name("live")
    process = rashomon.ordered(seconds=(0.05, 0.08)).start(*live)
    try:
        seen: set[int] = set()
        for _ in range(MOMENTS):
            end = time.monotonic() + 60
            while not folder.exists() or read_summary(folder).done <= max(seen, default=0):
                assert time.monotonic() < end
                time.sleep(0.02)
            (folder / "pause").touch()
            still = -1
            while still != (still := read_summary(folder).done):
                time.sleep(0.5)
            seen.add(still)
            check_overview(overview_of(folders[0], folder), rashomon, ("one", "live"))
            (folder / "pause").unlink()
        assert len(seen) == MOMENTS
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_runs_that_cannot_be_compared_keep_their_tables(stage: Stage) -> None:
    one = stage.run("one", asked=instances(3))
    of_others = [
        Instance(f"other-{item.id}", f"other-{item.group}", item.condition, item.question, item.parts, item.references)
        for item in instances(3)
    ]
    two = stage.run("two", asked=of_others)
    planned = stage.run("planned", state="planned", done=0)
    overview = overview_of(one, two)
    assert overview.tables
    assert overview.problem is None
    assert overview.warnings
    assert overview_of(planned).problem is None
    assert overview_of(one, planned).problem is None
    assert all(section.lines for section in (*overview.next, *overview.recommendation))


def test_runs_of_several_benchmarks_and_deleted_runs_are_problems_without_folders(stage: Stage, tmp_path: Path) -> None:
    one = stage.run("one")
    of_clash = tmp_path / "elsewhere"
    rashomon = Rashomon(of_clash)
    of_clash.mkdir()
    covered_runs.build("clash", rashomon)
    covered_runs.answer("clash", rashomon, "other")
    other = rashomon.workspace / "runs" / "other"
    for folders in ((one, other), (one.with_name("gone"),), (one, one.with_name("gone"))):
        overview = overview_of(*folders)
        assert overview.problem
        assert str(tmp_path) not in overview.problem


def test_hostile_names_are_text(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    folders = [
        make_run(workspace, name, instances(3), says(answer), model=f"org/{HOSTILE}{name}")
        for name, answer in (("a", "12"), ("b", "15"))
    ]
    text = json.dumps(plain(overview_of(*folders)), ensure_ascii=False)
    assert not {*"\u202e\x1b"} & {*text}
    assert "onerror" in text


# --- in a browser --------------------------------------------------------------------------------

PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><link rel="stylesheet" href="overview.css">
<section id="overview"></section><section id="list" tabindex="-1"></section><p id="status"></p><script type="module">
import { drawOverview } from "./overview.js";
const { overview, head } = await (await fetch("contents.json")).json();
window.page = {
  head, overview: null, state: { against: 1, changed: "", table: "" },
  source: { overview: async () => structuredClone(overview), firstResults: async () => structuredClone(overview) },
  set(changes) { Object.assign(this.state, changes); this.draw(); }, draw() { drawOverview(this); },
};
page.draw();
</script>"""
TEXTS = """[...document.querySelectorAll("#overview .box[data-key^='box ']")].map((box) => [
  box.dataset.key.slice(4),
  [...box.querySelectorAll("thead th")].map((cell) => cell.textContent),
  ...[...box.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
])"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a folder that is served, with the scripts of the page, and its address."""
    folder = tmp_path / "site"
    folder.mkdir()
    for file in (*DRAWN.glob("*.js"), *DRAWN.glob("*.css")):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "index.html").write_text(PAGE, "utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


async def opened(browser: Browser, site: tuple[Path, str], overview: Overview, labels: Sequence[str]) -> Tab:
    """Open the results in a tab."""
    head = {"revision": 1, "runs": [{"label": label} for label in labels]}
    (site[0] / "contents.json").write_text(json.dumps(plain({"head": head, "overview": overview})), "utf-8")
    tab = await browser.tab()
    await tab.resize(1200)
    await tab.go(site[1])
    await tab.wait_for("document.querySelector('#overview .results h2') !== null")
    return tab


def browse(tmp_path: Path, script: Any) -> None:
    async def perform() -> None:
        async with Browser(tmp_path / "profile") as browser:
            await script(browser)

    asyncio.run(perform())


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_the_page_has_the_texts_of_the_commands(
    runs: tuple[Rashomon, tuple[Path, ...]], site: tuple[Path, str], tmp_path: Path
) -> None:
    rashomon, folders = runs
    overview = overview_of(*folders)
    compared, shown = (rashomon.json(command, "one", "two") for command in ("compare", "show"))
    recommended = rashomon.json("recommend", "one", "two")
    more = [recommended[key] for key in ("table", "single_sources", "cost_ratios") if recommended[key] is not None]

    async def script(browser: Browser) -> None:
        tab = await opened(browser, site, overview, ("one", "two"))
        displayed = {name: table for name, *table in await tab.evaluate(TEXTS)}
        tables = [*shown["tables"], *compared["tables"], *more]
        assert displayed == {table["name"]: texts_of(table) for table in tables}
        head = await tab.evaluate("document.querySelector('#overview h2').textContent")
        assert head == [*compared["verdicts"], *compared["headlines"]][0]
        plot = await tab.evaluate(
            "[...document.querySelectorAll('.forest tbody tr')].map((row) => row.textContent.replace(/\\s+/g, ' '))"
        )
        (pair,) = overview.pairs
        assert len(plot) == len(pair.conditions)
        for row, condition in zip(plot, pair.conditions, strict=True):
            assert row.startswith(condition.condition)
            assert f"{condition.difference.n:,}{condition.points} {condition.interval}".strip() in row
        titles = await tab.evaluate("[...document.querySelectorAll('#overview td[title]')].map((cell) => cell.title)")
        estimates = [
            cell.estimate
            for table in (*overview.tables, *overview.comparison)
            for row in table.rows
            for cell in row.cells
            if cell.estimate is not None
        ]
        counts = sorted(f"n = {estimate.n:,}" for estimate in estimates)
        assert sorted(title.partition(";")[0] for title in titles) == counts

    browse(tmp_path, script)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_transitions_filter_and_a_new_revision_leaves_what_was_opened(
    stage: Stage, site: tuple[Path, str], tmp_path: Path
) -> None:
    asked = instances(10)
    folders = [
        stage.run(name, asked=asked, answering=mixed(shift), model=model)
        for name, shift, model in (("a", 0, "policy:always-image"), ("b", 1, "policy:random"), ("c", 2, f"m/{HOSTILE}"))
    ]
    with RunStore.read(folders[2]) as store:
        assert HOSTILE in store.meta("spec")["model"]
    overview = overview_of(*folders)

    async def script(browser: Browser) -> None:
        tab = await opened(browser, site, overview, ("a", "b", clean(HOSTILE)))
        assert await tab.evaluate("document.querySelectorAll('img').length") == 0
        click = 'document.querySelector(`#overview [data-key="${%s}"]`).click()'
        await tab.evaluate(click % "'against 2'")
        assert await tab.evaluate("page.state.against") == 2
        pair = next(pair for pair in overview.pairs if pair.run == 2)
        assert await tab.evaluate("document.querySelector('#overview h2').textContent") == pair.verdict[0]
        change = next(name for name in pair.changes if ">" in name)
        await tab.evaluate(click % f"'change {change}'")
        assert await tab.evaluate("page.state.changed") == change
        pressed = "document.querySelectorAll('.transitions [aria-pressed=true]').length"
        assert await tab.evaluate(pressed) == 1
        await tab.evaluate("document.querySelector('[data-key=\"next\"]').open = true")
        await tab.evaluate(f"document.querySelector('[data-key=\"change {change}\"]').focus()")
        await tab.evaluate("page.head.runs.forEach((run) => { run.done = 60 })")
        await tab.evaluate("page.overview.done = [60, 42, 60], page.head.revision = 2")
        await tab.evaluate("page.source.overview = async () => ({ ...page.overview, revision: 2 })")
        await tab.evaluate("page.draw()")
        age = "document.querySelector('#overview .age').textContent"
        assert await tab.evaluate(age) == "Results of the first 42 answers of b; computing …"
        await tab.wait_for("page.overview.revision === 2")
        assert await tab.evaluate(age) == ""
        assert await tab.evaluate("document.querySelector('[data-key=\"next\"]').open")
        assert await tab.evaluate("document.activeElement.dataset.key") == f"change {change}"
        await tab.evaluate(click % f"'change {change}'")
        assert await tab.evaluate("page.state.changed") == ""
        await tab.evaluate(
            "page.head.revision = 3, page.source.overview = async () => { throw new Error('The server has ended.') }"
        )
        await tab.evaluate("page.draw()")
        await tab.wait_for("document.querySelector('#overview').textContent.includes('The server has ended.')")
        assert await tab.evaluate("document.querySelector('#overview h2').textContent") == pair.verdict[0]
        await tab.evaluate("page.source.overview = async () => ({ ...page.overview, revision: 3, problem: 'gone' })")
        await tab.evaluate(click % "'again'")
        await tab.wait_for("document.querySelector('#overview').textContent.trim() === 'gone'")
        await tab.evaluate("page.overview = { ...page.overview, problem: null }, page.draw()")
        await tab.resize(320)
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")

    browse(tmp_path, script)
