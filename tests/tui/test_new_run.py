"""New run: by keys alone, and what is wrong is said while it is typed."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from app.new_run.run_estimate import BuildContents
from app.run_spec import load_spec
from app.store.run_summary import read_summary
from app.tui.screens.new_run_options import LIKELIHOOD
from app.tui.screens.new_run_screen import NewRunScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.choice_table import ChoiceTable
from app.tui.widgets.form_field import Field
from app.tui.widgets.tab_line import TabLine
from benchmarks.plugins.find_plugins import forget
from benchmarks.registry import get_benchmark
from tests.benchmarks.plugins.test_find_plugins import install
from tests.support.demo import FOUR_BIT, HeldOutSet
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot
from tests.tui.test_hostile import PAYLOAD, STORED, assert_harmless


@pytest.fixture
def desk(stage: Stage, charts: HeldOutSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a workspace with CMC-Bench built, no models but those that ship here, and nothing of this machine's."""
    build = stage.workspace.build_folder("cmc-bench")
    build.parent.mkdir(parents=True)
    build.symlink_to(charts.build.path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("RASHOMON_WORKSPACE", str(stage.path))
    for name in ("OPENAI", "AZURE_OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.delenv("RASHOMON_ENDPOINT_KEY", raising=False)
    monkeypatch.setattr("mlx_backends.remote.api_keys._keychain", lambda name: None)
    return stage


async def opened(pilot: Pilot[Any], app: RashomonApp) -> NewRunScreen:
    await pilot.press("ctrl+n")
    await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
    screen = app.screen
    assert isinstance(screen, NewRunScreen)
    await until(pilot, lambda: screen.choices.contents is not None and screen.choices.models)
    await pilot.pause()
    return screen


async def known(pilot: Pilot[Any], screen: NewRunScreen) -> None:
    await until(pilot, lambda: screen.preflight is not None)
    await pilot.pause()


async def choose_model(pilot: Pilot[Any], screen: NewRunScreen, name: str) -> None:
    """Go to Models and select the model ``name``."""
    await pilot.press("ctrl+n")
    table = screen._table("model-table")
    names = [option.key for option in table.options]
    await pilot.press("g", *"j" * names.index(name), "space")
    assert table.chosen == [name]


@pytest.mark.parametrize("size", BOTH)
def test_each_part_of_the_form(size: tuple[int, int], desk: Stage, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await until(pilot, lambda: screen._estimate is not None and "checking" not in screen_text(app))
        await snapshot(app, "new-benchmark")
        await pilot.press("ctrl+n", "j", "j", "space")
        await until(pilot, lambda: screen._table("model-table").chosen)
        await known(pilot, screen)
        await snapshot(app, "new-models")
        await pilot.press("ctrl+n", *"12")
        await known(pilot, screen)
        await snapshot(app, "new-scope")
        await pilot.press("ctrl+n")
        await known(pilot, screen)
        await snapshot(app, "new-sampling")
        await pilot.press("ctrl+n")
        await pilot.pause()
        await snapshot(app, "new-judges")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "reads no prompt" in screen_text(app) and "▀" in screen_text(app))
        await snapshot(app, "new-prompt")

    drive(desk.app(), script, size)


def test_the_calls_of_a_remedy_are_counted_before_it_starts(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await choose_model(pilot, screen, "policy:always-text")
        screen.form_view.fields()["protocol"].value = "self-consistency"
        screen.form_view.fields()["samples"].value = "7"
        await until(pilot, lambda: screen.spec is not None and screen.spec.samples == 7)
        await known(pilot, screen)
        assert screen.preflight is not None
        instances = len(screen.preflight.runs[0].estimate.instances)
        assert f"{7 * instances:,}, 7 for each answer" in screen_text(app)
        assert screen.spec is not None
        assert (screen.spec.protocol, screen.spec.samples) == ("self-consistency", 7)
        screen.form_view.fields()["protocol"].value = "verify"
        await until(pilot, lambda: screen.spec is None)
        assert "samples: " in screen_text(app)

    drive(desk.app(), script)


def test_a_run_is_put_together_and_started_by_keys_alone(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await choose_model(pilot, screen, "policy:always-text")
        await pilot.press("ctrl+n", *"2", "ctrl+s")
        await pilot.press("ctrl+r")  # typing has not been looked at yet, and that is no mistake
        await known(pilot, screen)
        assert screen.preflight is not None
        (ahead,) = screen.preflight.runs
        await pilot.press("escape")
        text = screen_text(app)
        assert f"2 examples, {len(ahead.estimate.instances)} instances" in text
        assert "--limit 2" in " ".join(text.replace("│", " ").split())
        await pilot.press("ctrl+s", "enter")
        await until(pilot, lambda: list(Path.cwd().glob("*.toml")))
        (file,) = Path.cwd().glob("*.toml")
        assert load_spec(file, {}) == screen.spec
        await pilot.press("ctrl+r", "y")
        await until(pilot, lambda: (run := app.snapshot.run(ahead.name)) is not None and run.summary.state == "done")

    app = desk.app()
    drive(app, script, (80, 24))
    (name,) = desk.workspace.run_names()
    run = read_summary(desk.workspace.runs_folder / name)
    assert run.spec["model"] == "policy:always-text"
    assert run.done == run.total > 0
    assert app.processes.failures() == []


def test_a_problem_is_shown_at_its_field_its_section_and_below(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        tabs = screen.query_one(TabLine)
        assert "✗" not in screen_text(app), "nothing is wrong before something was typed"
        assert "○ Models" in str(tabs.render())
        await pilot.press("ctrl+n", "space", "ctrl+n", *"0")
        await pilot.pause()
        limit = next(field for field in screen.query(Field) if field.key == "limit")
        assert limit.has_class("-wrong")
        assert screen.spec is None
        assert "✗ Scope" in str(tabs.render())
        assert "limit: give a whole number from 1" in screen_text(app)
        await pilot.press("ctrl+r")
        assert isinstance(app.screen, NewRunScreen)
        await pilot.press("backspace", *"5")
        await known(pilot, screen)
        assert not limit.has_class("-wrong")
        # none of the conditions
        await pilot.press("tab", "j", "j", "a")
        await pilot.pause()
        assert "conditions: select at least one" in " ".join(screen_text(app).split())
        await pilot.press("a")
        await known(pilot, screen)
        assert not screen._problems
        # what is missing is wrong once it was there, or the run was to be started
        await pilot.press("ctrl+b", "space")
        await until(pilot, lambda: "✗ Models" in str(tabs.render()))
        await pilot.press("space", "tab", *"org/none")
        detail = screen.query_one("#model-table-detail", Static)
        await until(pilot, lambda: "'org/none' is neither a folder" in str(detail.content))
        await pilot.press("enter")
        await until(pilot, lambda: "org/none" in screen.choices.models)
        await pilot.pause()
        await until(pilot, lambda: "model" in screen._problems)
        assert "models get org/none`" in screen._problems["model"]

    drive(desk.app(), script, (120, 40))


def test_conditions_without_sources_are_offered_and_off(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+n", "space", "ctrl+n", "tab")
        await known(pilot, screen)
        table, key = screen._table("scope-table"), ("conditions", "closed-book")
        assert key not in table.chosen
        assert "1 run, 144 examples, 1,152 instances" in screen_text(app)
        table.cursor = [option.key for option in table.options].index(key)
        await pilot.press("space")
        await until(pilot, lambda: "1 run, 144 examples, 1,296 instances" in screen_text(app))
        assert screen.spec is not None
        assert set(screen.spec.conditions) == {*get_benchmark("cmc-bench").conditions}
        await pilot.press("space")
        await until(pilot, lambda: screen.spec is not None and screen.spec.conditions == ())
        table.cursor = [option.key for option in table.options].index(("conditions", "without-sources"))
        await pilot.press("space")
        await until(pilot, lambda: "1 run, 144 examples, 1,296 instances" in screen_text(app))
        assert screen.spec.conditions == ("without-sources",)
        await pilot.press("space")
        await until(pilot, lambda: screen.spec is not None and screen.spec.conditions == ())

    drive(desk.app(), script, (120, 40))


def test_a_remote_model_is_asked_about_before_it_starts(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+n", "tab", *"openai:gpt-5", "enter")
        await until(pilot, lambda: "openai:gpt-5" in screen.choices.models)
        await known(pilot, screen)
        await until(pilot, lambda: "cost    openai:gpt-5: 1,167 calls" in screen_text(app))
        assert "there is no key" in screen_text(app)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "Start?" in screen_text(app))
        await pilot.press("n")
        await pilot.pause()
        assert app.screen is screen
        assert not desk.workspace.run_names()

    drive(desk.app(), script, (120, 40))


@pytest.mark.slow
def test_the_prompt_of_the_next_instance_as_the_models_template_puts_it(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+n", "space")
        await known(pilot, screen)
        await pilot.press("ctrl+b", "ctrl+b")
        await until(pilot, lambda: "<|im_start|>user" in screen_text(app))
        assert "1 of 1,152" in screen_text(app)
        await pilot.press("n", "n", "N")
        await until(pilot, lambda: "2 of 1,152" in screen_text(app) and "<|im_start|>user" in screen_text(app))
        assert_harmless(app)

    drive(desk.app(), script, (120, 40))


@pytest.mark.parametrize("size", BOTH)
def test_hostile_names_strata_and_questions_are_only_text(
    size: tuple[int, int], desk: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = (
        desk.path / "models" / PAYLOAD.replace("/", "∕").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )
    models.mkdir(parents=True)
    (models / "config.json").write_text("{}")
    (models / "x.safetensors").write_bytes(b"no")
    read = BuildContents.read

    def hostile(build: Any, prompt_set: str) -> BuildContents:
        contents = read(build, prompt_set)
        changed = [
            replace(instance, strata={"type": STORED, STORED: "x"}, question=STORED, id=f"{STORED}{number}")
            for number, instance in enumerate(contents.instances[:30])
        ]
        return BuildContents(contents.build, contents.benchmark, tuple(changed))

    monkeypatch.setattr("app.new_run.preflight.BuildContents.read", hostile)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        assert_harmless(app)
        await pilot.press("ctrl+n", "space")
        table = screen._table("model-table")
        table.cursor = next(place for place, option in enumerate(table.options) if not option.allowed)
        await known(pilot, screen)
        assert "[@click" in screen_text(app)
        assert_harmless(app)
        for _ in range(4):
            await pilot.press("ctrl+n")
            await pilot.pause()
            assert_harmless(app)
        await until(pilot, lambda: "1 of 27" in screen_text(app))
        assert "[@click" in screen_text(app)
        assert_harmless(app)
        field = next(field for field in screen.query(Field) if field.key == "data")
        field.value = f"/nowhere{STORED}"
        await until(pilot, lambda: "data" in screen._problems)
        await pilot.pause()
        assert_harmless(app)

    drive(desk.app(), script, size)


@pytest.mark.slow
def test_the_form_stays_responsive_while_a_large_build_is_read(desk: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    read = BuildContents.read

    def slow(build: Any, prompt_set: str) -> BuildContents:
        go_on.wait()
        return read(build, prompt_set)

    monkeypatch.setattr("app.new_run.preflight.BuildContents.read", slow)

    async def typing(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen) and app.screen.benchmark is not None)
        screen = app.screen
        assert isinstance(screen, NewRunScreen)
        await until(pilot, lambda: screen.query_one("#model-table", ChoiceTable).row_count)
        await pilot.press("ctrl+n", "space", "ctrl+n", *"17")
        await until(
            pilot, lambda: "checking" in screen_text(app) and screen.spec is not None and screen.spec.limit == 17
        )
        assert screen.preflight is None
        assert sum(thread.name.startswith("asyncio") for thread in threading.enumerate()) < 6
        go_on.set()
        await known(pilot, screen)
        assert "17 examples" in screen_text(app)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        try:
            await typing(pilot, app)
        finally:
            go_on.set()  # else the threads never end, and neither does the app

    drive(desk.app(), script, (80, 24))


@pytest.mark.slow
def test_prompt_sets_of_the_workspace_and_shipped_ones_are_offered_and_previewed(desk: Stage) -> None:
    folder = desk.path / "prompts"
    folder.mkdir()
    (folder / "mine.toml").write_text("user = '{question} My words. {image} {text}'", "utf-8")
    (folder / "wrong.toml").write_text("user = '{question} {typo}'", "utf-8")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        scope = screen._table("scope-table")
        keys = [option.key for option in scope.options]
        by_name = {Path(str(key[1])).stem: scope.options[n] for n, key in enumerate(keys) if isinstance(key, tuple)}
        assert {"paper", "mine", "wrong", "image-first", "read-then-compare"} <= set(by_name)
        assert not by_name["wrong"].allowed
        await pilot.press("ctrl+n", "space", "ctrl+n")
        scope.focus()
        for name in ("paper", "mine", "question-last"):
            scope.cursor = scope.options.index(by_name[name])
            await pilot.press("space")
        await known(pilot, screen)
        assert screen.preflight is not None
        assert [run.run.prompt_set for run in screen.preflight.runs] == ["mine", "question-last"]
        await pilot.press("ctrl+n", "ctrl+n", "ctrl+n")
        await until(pilot, lambda: "My words." in screen_text(app))
        assert_harmless(app)

    drive(desk.app(), script, (120, 40))


@pytest.mark.slow
def test_leaving_ends_the_process_that_renders_prompts(desk: Stage) -> None:
    pids: list[int] = []

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        from app.tui.widgets.prompt_view import PromptView

        screen = await opened(pilot, app)
        await pilot.press("ctrl+n", "space")
        await known(pilot, screen)
        await pilot.press("ctrl+b", "ctrl+b")
        view = screen.query_one(PromptView)
        await until(pilot, lambda: view._renderer is not None and view._renderer._process is not None)
        assert view._renderer is not None
        assert view._renderer._process is not None
        pids.append(view._renderer._process.pid)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, NewRunScreen))

    drive(desk.app(), script, (80, 24))
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.slow
@pytest.mark.parametrize("size", BOTH)
def test_likelihoods_are_offered(
    size: tuple[int, int], desk: Stage, scenes: HeldOutSet, snapshot: Snapshot, tmp_path: Path
) -> None:
    desk.workspace.build_folder("clash").symlink_to(scenes.build.path)
    cached = tmp_path / "hub" / "models--org--tiny-vl-4bit"
    shutil.copytree(FOUR_BIT, cached / "snapshots" / "a1b2")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("a1b2")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        models = screen._table("model-table")
        ways = screen._table("sampling-table")
        assert LIKELIHOOD in [option.key for option in ways.options]
        benchmarks = screen._table("benchmarks")
        benchmarks.cursor = list(screen.choices.benchmarks).index("clash")
        await pilot.press("space")
        await until(pilot, lambda: "clash" in str(screen.choices.contents and screen.choices.contents.benchmark.name))
        models.cursor = next(i for i, option in enumerate(models.options) if option.key == "org/tiny-vl-4bit")
        await pilot.press("ctrl+n", "space", "ctrl+n", "ctrl+n")
        ways.focus()
        await pilot.press("G", "space")
        await known(pilot, screen)
        assert not screen._problems
        assert _score(screen) == "likelihood"
        await pilot.pause()
        await snapshot(app, "new-likelihood")
        await pilot.press("space")
        await known(pilot, screen)
        assert _score(screen) == "generate"
        await pilot.press("space", "ctrl+b", "ctrl+b", "G", "space")
        await known(pilot, screen)
        assert not screen._problems, "policies know their own odds"

    drive(desk.app(), script, size)


@pytest.mark.parametrize("size", BOTH)
def test_the_papers_setup_by_one_key(size: tuple[int, int], desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+t", "ctrl+n", "space")
        await known(pilot, screen)
        assert screen.spec is not None
        assert set(screen.spec.conditions) == {"aligned", "image-correct", "text-correct", "both-wrong"}
        assert (screen.spec.decoding.max_tokens, screen.spec.decoding.temperature, screen.spec.seed) == (256, 0.0, 0)
        (run,) = screen.spec.runs()
        assert run.judge == ("match",)
        assert screen.unsaved()
        assert "gpt-5-mini" in screen_text(app), "the judge is said"

    drive(desk.app(), script, size)


def _score(screen: NewRunScreen) -> str:
    """Return how the form's run scores answers."""
    assert screen.spec is not None
    return screen.spec.score


def test_broken_plugins_are_named_and_not_listed(desk: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site, "broken", "raise SystemExit('[@click=app.exit]bye')", "rashomon.benchmarks")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    forget()

    async def look(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await until(
            pilot, lambda: [note.message for note in app._notifications if "of the package broken" in note.message]
        )
        assert "it raised SystemExit" in screen_text(app)
        assert "broken" not in screen.choices.benchmarks

    try:
        drive(desk.app(), look)
    finally:
        forget()
