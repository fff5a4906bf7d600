"""What should win where sources disagree: asked once, kept, and used by Runs, Results and Compare on the user's own data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.tui.screens.compare_screen import CompareScreen
from app.tui.screens.tables_screen import TablesScreen
from app.tui.tui_app import RashomonApp
from app.tui.tui_settings import Settings, load_settings
from app.tui.widgets.choice_dialogs import ChoiceDialog
from benchmarks.vocabulary import Instance
from tests.support.runs import instances, says
from tests.support.tui_computed import until_computed, visit
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until

QUESTION = "what should win?"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of settings."""
    file = tmp_path / "settings.toml"
    monkeypatch.setattr("app.tui.tui_settings.settings_file", lambda: file)
    monkeypatch.setattr("app.tui.screens.settings_screen.settings_file", lambda: file)
    return file


def own(examples: int = 4, **trust: str) -> list[Instance]:
    """Instances of a table of one's own; ``trust`` has the rules of some examples, by number."""
    rules = {f"factual-000{number[1:]}": rule for number, rule in trust.items()}
    return [
        replace(i, strata={**i.strata, **({"trust": rules[i.group]} if i.group in rules else {})})
        for i in instances(examples, source="rows")
    ]


def follows(source: str) -> Any:
    """Answers that follow a source, and where both are wrong invent a value."""
    values = {"image-correct": {"image": "12", "text": "15"}, "text-correct": {"image": "15", "text": "12"}}
    return lambda i: says(values.get(i.condition, {}).get(source, "99" if i.condition == "both-wrong" else "12"))(i)


def opened(stage: Stage, file: Path) -> RashomonApp:
    settings, problems = load_settings(file)
    return RashomonApp(stage.workspace, images="half", settings=settings, settings_problems=problems)


def line_of(app: RashomonApp, run: str) -> str:
    return next(line for line in screen_text(app).splitlines() if f" {run} " in line)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_list_counts_no_invention_as_right(size: tuple[int, int], stage: Stage, file: Path) -> None:
    stage.run("mine", asked=own(), answering=follows("text"))
    stage.run("papers", answering=follows("text"))

    async def unsaid(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "papers" in screen_text(app))
        assert ".667" in line_of(app, "papers")  # the paper's accuracy takes an invention for right
        assert line_of(app, "mine").split("24/24")[1].split()[:2] == ["-", "12"]
        await pilot.press("j")
        await until(pilot, lambda: "under conflict text 67%, invents 33%, n=12" in screen_text(app))
        assert "Settings (7)" in screen_text(app)

    drive(opened(stage, file), unsaid, size)
    file.write_text('trust = "text"\n')

    async def said(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "papers" in screen_text(app))
        assert "rule .667" in line_of(app, "mine")
        assert "rule" not in line_of(app, "papers")

    drive(opened(stage, file), said, size)


def test_rows_that_say_it_need_no_setting(stage: Stage, file: Path) -> None:
    stage.run("mine", asked=own(n0="text", n1="text", n2="text", n3="image"), answering=follows("text"))
    stage.run("partly", asked=own(n0="text"), answering=follows("text"))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "partly" in screen_text(app))
        assert "rule .500" in line_of(app, "mine")  # 3 of 4 examples, 2 of 3 conflicts of each
        assert "follows rule" in screen_text(app)
        assert "rule" not in line_of(app, "partly")
        await visit(pilot, app, "tables", (stage.workspace.runs_folder / "mine",))
        await until_computed(pilot)
        assert "follows your rule (each row's own)" in screen_text(app)
        assert not isinstance(app.screen, ChoiceDialog)

    drive(opened(stage, file), script, SIZES["120x40"])


def test_a_run_is_counted_on_as_it_answers(stage: Stage, file: Path) -> None:
    asked = own()
    folder = stage.run("mine", asked=asked, done=12, state="running", answering=follows("image"))
    file.write_text('trust = "text"\n')

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "rule .000" in screen_text(app))
        stage.answer(folder, asked, follows("text"))
        await until(pilot, lambda: "rule .333" in screen_text(app))

    drive(opened(stage, file), script, SIZES["120x40"])


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_results_of_own_data_ask_once_and_begin_with_the_scorecard(
    size: tuple[int, int], stage: Stage, file: Path
) -> None:
    run = stage.run("mine", asked=own(), answering=follows("text"))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        await until(pilot, lambda: QUESTION in screen_text(app))
        for answer in ("not said", "the image", "the text", "a flag on it"):
            assert answer in screen_text(app)
        await pilot.press("j", "j", "enter")
        await until(pilot, lambda: load_settings(file)[0].trust == "text")
        await until(pilot, lambda: "follows your rule (text)" in screen_text(app))
        assert isinstance(app.screen, TablesScreen)
        assert app.screen.tables[0].name == "scorecard"
        assert app.screen.place == 0

    drive(opened(stage, file), script, size)

    async def again(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        await until(pilot, lambda: "follows your rule (text)" in screen_text(app))
        assert not isinstance(app.screen, ChoiceDialog)

    drive(opened(stage, file), again, size)


def test_no_answer_is_an_answer_and_settings_change_it(stage: Stage, file: Path) -> None:
    run = stage.run("mine", asked=own(), answering=follows("text"))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        await until(pilot, lambda: QUESTION in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: load_settings(file)[0].trust == "not said")
        await until(pilot, lambda: "follows the text" in screen_text(app))
        await pilot.press("r")
        await until_computed(pilot)
        assert isinstance(app.screen, TablesScreen)
        await pilot.press("f2", "tab", "tab", "j", "j", "space")
        await until(pilot, lambda: load_settings(file)[0].trust == "text")

    drive(opened(stage, file), script, SIZES["80x24"])


def test_papers_data_are_not_asked_about(stage: Stage, file: Path) -> None:
    run = stage.run("papers", answering=follows("text"))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        await until_computed(pilot)
        assert isinstance(app.screen, TablesScreen)
        assert app.screen.tables[0].name == "main"

    drive(opened(stage, file), script, SIZES["80x24"])


def test_compare_decides_by_what_should_win(stage: Stage, file: Path) -> None:
    runs = [stage.run(name, model=f"mlx:{name}", asked=own(12), answering=follows(name)) for name in ("text", "image")]
    file.write_text('trust = "image"\n')

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", tuple(runs))
        await until_computed(pilot)
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        assert screen.computed is not None
        recommendation = screen.computed.recommendation
        assert not isinstance(recommendation, str), recommendation
        assert recommendation.table.columns[0] == "obedience"
        assert recommendation.decision.basis.best == 1
        assert recommendation.by_rule == {}

    drive(opened(stage, file), script, SIZES["80x24"])


@pytest.mark.parametrize(("text", "rule"), [("image", "image"), ("not said", None)])
def test_the_setting_is_read_as_the_option_takes_it(text: str, rule: str | None) -> None:
    assert Settings.model_validate({"trust": text}).rule == rule
    assert Settings().rule is None


def test_another_word_is_ignored_and_reported(file: Path) -> None:
    file.write_text('trust = "picture"\n')
    settings, problems = load_settings(file)
    assert settings.trust is None
    assert any("trust" in problem for problem in problems)
