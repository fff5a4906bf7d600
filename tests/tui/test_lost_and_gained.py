"""The answers that a run loses or gains, listed by themselves in Compare and in a cell of Flips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from app.compare.differences.label_flips import flipped_table
from app.compare.runs.run_pairs import RunPair
from app.tui.screens.compare_screen import CompareScreen
from app.tui.screens.comparison_overview import Overview
from app.tui.screens.flips_screen import FlippedScreen
from app.tui.tui_app import RashomonApp
from benchmarks.vocabulary import Generation, Instance
from tests.support.runs import says
from tests.support.tui_computed import until_computed, visit
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until


def before(instance: Instance) -> Generation:
    """Reads both sources, but for one example of which it invents everything."""
    return says("99" if instance.group.endswith("2") else "12")(instance)


def after(instance: Instance) -> Generation:
    """Invents one example's answers, has the third one back, and is cut off once under the same label."""
    generation = says("99" if instance.group.endswith("0") else "12")(instance)
    return replace(generation, finish_reason="length") if instance.id == "factual-0001/aligned" else generation


def effects(pair: RunPair, screen: CompareScreen) -> dict[str, list[str]]:
    """The ids of the instances lost and gained, as ``rashomon compare --flips`` lists them."""
    assert screen.computed is not None
    table = flipped_table([pair], benchmark=screen.computed.comparison.views.benchmark)
    place = table.columns.index("effect")
    return {e: [name for name, cells in table.rows if cells[place] == e] for e in ("lost", "gained")}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_key_lists_the_answers_lost_then_those_gained(size: tuple[int, int], stage: Stage) -> None:
    runs = (stage.run("before", answering=before), stage.run("after", answering=after))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        await until_computed(pilot)
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        assert screen.computed is not None
        (overview,) = screen.query(Overview)
        expected = effects(screen.computed.comparison.pairs[0], screen)
        assert all(expected.values())
        assert "factual-0001/aligned" in expected["lost"], "the label is the same"
        assert f"□ x -{len(expected['lost'])} +{len(expected['gained'])}" in screen_text(app)
        every = [change.instance for change in overview.changes]
        for effect, names in expected.items():
            await pilot.press("x")
            assert f"■ x {effect} {len(names)}" in screen_text(app)
            assert [change.instance for change in overview.changes] == names
        await pilot.press("x")
        assert [change.instance for change in overview.changes] == every
        await pilot.press("x", "f")
        assert [change.instance for change in overview.changes] == every, "f lists what it lists otherwise"

    drive(stage.app(), script, size)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_cell_of_the_flips_can_be_narrowed(size: tuple[int, int], stage: Stage) -> None:
    runs = (stage.run("before", answering=before), stage.run("after", answering=after))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        await until_computed(pilot)
        compare = app.screen
        assert isinstance(compare, CompareScreen)
        assert compare.computed is not None
        pair = compare.computed.comparison.pairs[0]
        expected = effects(pair, compare)
        app.push_screen(FlippedScreen(runs, compare.computed.comparison, pair, None, "NEITHER"))
        await until(pilot, lambda: "all → NEITHER" in screen_text(app))
        screen = app.screen
        assert isinstance(screen, FlippedScreen)
        await pilot.press("x")
        lost = [name for name in expected["lost"] if name != "factual-0001/aligned"]
        await until(pilot, lambda: f"all → NEITHER, lost: {len(lost)}" in screen_text(app))
        assert [change.instance for change in screen.flips] == lost
        await pilot.press("x")
        await until(pilot, lambda: "all → NEITHER, gained: 0" in screen_text(app))
        assert "no labels differ" in screen_text(app)
        await pilot.press("x")
        await until(pilot, lambda: "all → NEITHER: " in screen_text(app))

    drive(stage.app(), script, size)


def test_labels_that_name_no_source_have_no_such_key(stage: Stage) -> None:
    def pope(name: str, text: str) -> Any:
        return stage.run(name, benchmark="pope", answering=says(text), asked=_questions())

    runs = (pope("yes", "yes"), pope("no", "no"))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        await until_computed(pilot)
        assert " x " not in screen_text(app)
        await pilot.press("x")
        assert isinstance(app.screen, CompareScreen)

    drive(stage.app(), script)


def _questions() -> list[Instance]:
    return [
        Instance(f"q{n}/random", f"q{n}", "random", "Is there a cat?", (), {"answer": ("yes",)}, {"source": "coco"})
        for n in range(4)
    ]
