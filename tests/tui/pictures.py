"""The README's pictures of the interface: ``python -m tests.tui.pictures [SCREEN ...]`` writes ``assets/screens/*.svg``.

Every screen in both sizes, of a workspace that is the same every time: charts of the demo's held-out set, and what the demo
model answers about them. A new screen adds a line to ``SHOTS``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from textual.pilot import Pilot

from app.engine.batch_runs import report_batch
from app.tui.screens import SCREENS
from app.tui.tui_app import RashomonApp
from assets.demo.recipe import evaluate_demo_model
from benchmarks.vocabulary import Generation, Instance
from mlx_backends.base import Backend
from tests.support.demo import BF16, FOUR_BIT, HeldOutSet
from tests.support.runs import Answering, says
from tests.support.trainings import staged_training
from tests.support.tui_computed import press, until_computed, until_settled
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until

SCREENS_FOLDER = Path(__file__).resolve().parents[2] / "assets" / "screens"
FOLDER = Path("/tmp/rashomon")
EXAMPLES = 6


class Shot(NamedTuple):
    """A picture: its name, the screen, which of the workspace's runs it is of, and the keys that lead to it."""

    name: str
    screen: str = "runs"
    runs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    empty: bool = False
    """True for a workspace without runs."""


OWN_MODEL = ("j", "space")
"""The second model of the folder; those that come with the project, and the policies, are listed after them."""

ALL = ("charts-bf16", "charts-4bit", "always-text")
ONE = ("charts-4bit",)

SHOTS = (
    Shot("runs", keys=("j", "space", "j", "space")),
    Shot("runs-grouped", keys=("b", "S", "S")),
    Shot("runs-empty", empty=True),
    Shot("leave", keys=("ctrl+q",)),
    Shot("live-running", "live", ("going-on",)),
    Shot("live-done", "live", ONE),
    Shot("live-interrupted", "live", ("broken-off",)),
    Shot("live-failed", "live", ("failed",)),
    Shot("new", "new"),
    Shot("new-models", "new", keys=("ctrl+n", *OWN_MODEL, "k", "space")),
    Shot("new-what", "new", keys=("ctrl+n", *OWN_MODEL, "ctrl+n", "1", "2")),
    Shot("new-amount", "new", keys=("ctrl+n", *OWN_MODEL, "ctrl+n", "ctrl+n")),
    Shot("new-paper", "new", keys=("ctrl+t", "ctrl+n")),
    Shot("new-prompt", "new", keys=("ctrl+n", *OWN_MODEL, "ctrl+b", "ctrl+b")),
    Shot("samples", "samples", ONE),
    Shot("samples-one", "samples", ONE, ("n", "enter")),
    Shot("samples-filter", "samples", ONE, ("slash", *"is:wrong")),
    Shot("samples-override", "samples", ONE, ("n", "o")),
    Shot("zoom", "samples", ONE, ("n", "z")),
    Shot("label", "label", ONE, ("enter",)),
    Shot("review", "review", keys=("enter", "enter")),
    Shot("tables", "tables", ALL),
    Shot("tables-labels", "tables", ALL, ("p", "t", "t")),
    Shot("compare", "compare", ALL, ("n",)),
    Shot("compare-texts", "compare", ALL, ("n", "c")),
    Shot("compare-metrics", "compare", ALL, ("t",)),
    Shot("compare-flips", "compare", ALL, ("t", "t", "n")),
    Shot("compare-paper", "compare", ALL, ("t", "t", "t", "t")),
    Shot("compare-take", "compare", ALL, ("T",)),
    Shot("flipped", "compare", ALL, ("t", "t", "n", "enter")),
    Shot("answers", "compare", ALL, ("n", "enter")),
    Shot("export", "export", ALL[:2]),
    Shot("export-done", "export", ALL[:2], ("w",)),
    Shot("rows", "rows", keys=(*"charts/rows.csv", "enter", "j", "n")),
    Shot("fetch", "fetch"),
    Shot("vary", "vary", keys=(*["tab"] * 3, *"0,1,2,4", *["tab"] * 3, *"none,forum post")),
    Shot("vary-passages", "vary", keys=("ctrl+n",)),
    Shot("settings", "settings"),
    Shot("trainings", "trainings"),
    Shot("train", "train", keys=(*"mlx-community/Qwen3-VL-4B-Instruct-4bit", "tab", *"charts", "tab", *"clash-llava")),
    Shot("help", keys=("question_mark",)),
    Shot("doctor", "doctor"),
    Shot("answer", "answer", keys=("enter", "enter", "enter")),  # last, as it makes a run
)


def said_by(backend: Backend, by_id: Mapping[str, Instance], *, gigabytes: float, seconds: float) -> Answering:
    """Answer as the model does, with constant times and memory."""

    @cache
    def answer(instance_id: str) -> Generation:
        generation = evaluate_demo_model.answer(backend, by_id[instance_id])
        return replace(generation, prefill_s=seconds / 2, decode_s=seconds / 2, peak_memory=int(gigabytes * 1e9))

    return lambda instance: answer(instance.id)


def passage(instance: Instance) -> Generation:
    """Answer like the policy that always follows the text."""
    references = instance.references.get("text")
    return says(references[0] if references else "I cannot tell.", peak=None, seconds=0.0)(instance)


def workspace(folder: Path) -> Stage:
    """Return runs in every state of charts of the demo's own, answered by the demo's models and by a policy."""
    stage = Stage(folder / "workspace")
    held = HeldOutSet("cmc-bench", folder / "held-out")
    data = stage.workspace.build_folder("cmc-bench")
    data.parent.mkdir(parents=True)
    data.symlink_to(held.build.path)
    groups = list(dict.fromkeys(instance.group for instance in held.instances))[:EXAMPLES]
    asked = [instance for instance in held.instances if instance.group in groups]
    by_id = {instance.id: instance for instance in asked}
    four_bit = said_by(held.load(FOUR_BIT), by_id, gigabytes=0.31, seconds=0.11)
    bf16 = said_by(held.load(BF16), by_id, gigabytes=0.18, seconds=0.14)
    half = len(asked) // 2
    stage.run(
        "broken-off", asked=asked, answering=four_bit, state="running", done=half, data=data, model="demo/model-4bit"
    )
    stage.die(stage.workspace.runs_folder / "broken-off")
    note = "the key OPENAI_API_KEY is refused; set another."
    stage.run("failed", asked=asked, state="failed", note=note, done=0, data=data, model="openai:some-model")
    stage.run("always-text", asked=asked, answering=passage, data=data, model="policy:always-text", quantisation=None)
    stage.run("charts-4bit", asked=asked, answering=four_bit, data=data, model="demo/model-4bit")
    stage.run("charts-bf16", asked=asked, answering=bf16, data=data, model="demo/model-bf16", quantisation="bf16")
    stage.run(
        "going-on",
        asked=asked,
        answering=bf16,
        state="running",
        done=half + 5,
        data=data,
        model="demo/model-bf16",
        quantisation="bf16",
    )
    staged_training(stage.workspace, "conflicts-filtered", created=1.0)
    growing = staged_training(stage.workspace, "conflicts-unfiltered", state="training", done=130, created=2.0)
    growing.lock().acquire(f"process {os.getpid()}")
    report_batch([stage.workspace.runs_folder / name for name in ("charts-bf16", "going-on", "failed")])
    return stage


def take(shot: Shot, size: str, stage: Stage) -> str:
    """Return the picture as SVG."""
    taken: list[str] = []

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.clear_notifications()
        if shot.screen != "runs":
            app.open_screen(shot.screen, [stage.workspace.runs_folder / name for name in shot.runs])
            await pilot.pause()
        await until_computed(pilot)
        await until_settled(pilot)
        await press(pilot, *shot.keys)
        app.clear_notifications()
        await until(pilot, lambda: not app._notifications and "rendering with" not in screen_text(app))
        await until_settled(pilot)
        taken.append(app.export_screenshot(title=f"rashomon, {SCREENS[shot.screen].title}"))

    drive(stage.app(), script, SIZES[size])
    # Rich numbers a picture's styles by its content; a fixed number keeps pictures of the same screen the same.
    return re.sub(r"terminal-\d+", "terminal-1", taken[0])


def main(names: list[str]) -> None:
    """Write the pictures called ``names``, or all."""
    SCREENS_FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "here").mkdir(parents=True)
    for variable, place in (("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config"), ("HF_HUB_CACHE", "hub")):
        os.environ[variable] = str(FOLDER / place)
    os.environ |= {"LOGNAME": "ann", "USER": "ann", "HOME": str(FOLDER), "HF_HUB_OFFLINE": "1"}
    for variable in ("NO_COLOR", "TEXTUAL_THEME", "TMUX", "RASHOMON_WORKSPACE"):
        os.environ.pop(variable, None)
    os.chdir(FOLDER / "here")
    Path("models").mkdir()
    for model in (BF16, FOUR_BIT):
        Path("models", model.name.replace("model", "chart-reader")).symlink_to(model)
    Path("charts").symlink_to(BF16.parent)
    stage, empty = workspace(FOLDER), Stage(FOLDER / "empty")
    try:
        for shot in SHOTS:
            for size in SIZES:
                if not names or shot.name in names:
                    path = SCREENS_FOLDER / f"{shot.name}-{size}.svg"
                    path.write_text(take(shot, size, empty if shot.empty else stage), "utf-8")
                    print(path.name, flush=True)
    finally:
        stage.close()
        os.chdir("/")
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
