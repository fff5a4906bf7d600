"""Performs steps on a home and checks every invariant after each."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from secrets import token_hex

from assets.demo.recipe import evaluate_demo_model
from tests.soak import invariants
from tests.soak.commands import HANG_S, ROOT, Command, Home, Result
from tests.soak.ledger import Ledger, Run, Step
from tests.soak.servers import ModelServer, hub_with_model, serving
from tests.support.demo import DEMO, write_table
from tests.support.fake_hub import FakeHub
from tests.support.trainings import write_training_set

_UNFINISHED_RUN = re.compile(r"leftover: data/[^/]+/runs/\.rashomon-[0-9a-f]{8}$")
EDITS = {"a": {}, "b": {"question": "How many are there?"}, "c": {"answer": "41"}}


@dataclass
class Player:
    """A home that is played on, the undisturbed one, the servers and the books."""

    home: Home
    reference: Home
    server: ModelServer
    reference_server: ModelServer
    hub: FakeHub
    chance: Random
    ledger: Ledger = field(default_factory=Ledger)
    excused: set[str] = field(default_factory=set)
    """Leftovers of killed commands that the next command to write there removes."""

    def play(self, step: Step) -> tuple[list[Result], list[str]]:
        """Perform a step; return how its commands ended, and the violations."""
        self.ledger.begin(step)
        started = time.time() - 1
        self.server.failing = step.failing
        self.hub.faults.clear()
        if step.failing:
            self.hub.faults["model.safetensors"] = ["cut 500000", "503", "flip"]
        self._write_files(step)
        results, violations = [], []
        for stage in step.stages:
            ended = self.home.run(stage)
            results += ended
            self._book(step, ended)
            violations += [
                f"{problem}: {' '.join(result.command.arguments)}"
                for result in ended
                for problem in invariants.ends_well(result)
            ]
            at_a_terminal = any(
                result.command.keys for result in ended
            )  # what that starts outlives it, but not for long
            violations += [f"orphan: {line}" for line in self.home.survivors(*[3 * HANG_S] * at_a_terminal)]
            if step.adopts:
                self._adopt()
        self.server.failing = 0.0
        self.hub.faults.clear()
        violations += invariants.outputs(self.home, step, results)
        violations += self._without_excused(step, results, self._check(step, started))
        return results, violations

    def _without_excused(self, step: Step, results: list[Result], violations: Iterator[str]) -> Iterator[str]:
        """Leave out what a command that was killed while it created a run left, until the next one creates a run."""
        killed = any(result.command.signal in ("KILL", "TREE") and result.signalled for result in results)
        if step.begins and any(not result.code and not result.command.megabytes for result in results):
            self.excused.clear()
        for violation in violations:
            if killed and _UNFINISHED_RUN.match(violation):
                self.excused.add(violation)
            if violation not in self.excused:
                yield violation

    def _adopt(self) -> None:
        """Enter the run that a step may have begun under a name that the program chose."""
        folder = self.home.workspace / "runs"
        names = {path.name for path in folder.glob("[!.]*") if (path / "run.sqlite").exists()}
        self.ledger.adopt(sorted(names - self.ledger.runs.keys())[:1])

    def _write_files(self, step: Step) -> None:
        names = {}
        if step.ids_of:
            path = self.home.workspace / "runs" / step.ids_of / "run.sqlite"
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                ids = [row[0] for row in database.execute("SELECT id FROM instance ORDER BY ordinal LIMIT 8")]
            names = {f"id {ordinal}": ids[ordinal % len(ids)] for ordinal in range(8)}
        self.home.places = {**self.home.places, **names}
        for name, text in step.files:
            filled = re.sub(r"\{(id \d)\}", lambda match: names[match[1]], text)
            (self.home.desk / name).write_text(filled, "utf-8")

    def _book(self, step: Step, ended: list[Result]) -> None:
        """Enter in the books what the commands of a stage did."""
        interrupted = sum(result.signalled or bool(result.command.keys) for result in ended)
        for name in step.runs:
            self.ledger.runs[name].kills += interrupted
        for model in step.judges:
            self.ledger.judges[model] += interrupted
        # What is undone is all that a person has overridden, in earlier steps as well.
        overridden = step.action == "override" and (len(step.stages) == 1 or self.ledger.runs[step.runs[0]].judged > 0)
        if step.judges or overridden:  # labels that the export has, and the undisturbed run's has not
            run = self.ledger.runs[step.runs[0]]
            run.judged, run.files = run.judged + 1, {}
        for training in step.trains:
            if any(result.code in (0, 5, 6) for result in ended):
                self.ledger.trainings[training.name].complete = True

    def _check(self, step: Step, started: float) -> Iterator[str]:
        yield from invariants.run_facts(self.home, self.ledger)
        yield from invariants.calls(self.home, self.ledger, self.server)
        yield from invariants.paid_twice(self.ledger, self.server)
        complete = self.ledger.complete()
        checked = [run for run in self.ledger.present() if run.name in step.runs and run.done]
        if complete and self.ledger.number % 3 == 0:
            checked.append(self.chance.choice(complete))
        for run in {run.name: run for run in checked}.values():
            yield from invariants.checks_database(self.home, run)
            if run.complete:
                yield from invariants.exports(self.home, self.reference, run)
        if step.action == "bundle":
            run = self.ledger.runs[step.runs[0]]
            yield from invariants.written_elsewhere(self.home.desk / "bundled" / run.name, run.files)
        if step.action == "small disk":
            yield from invariants.written_elsewhere(self.home.desk / "small", self._expected(step.stages[0][0]))
        yield from (f"orphan: {line}" for line in self.home.survivors())
        yield from invariants.files(self.home, started)

    def _expected(self, command: Command) -> dict[str, str]:
        """Return the digests of an undisturbed export of the run on the small disk."""
        words = ["charts" if word == "{disk}/charts" else word for word in command.arguments[2:]]
        key = json.dumps(words[: words.index("--name")])
        digests = invariants.of_reference(self.reference, Run("small", (), key))
        return {} if isinstance(digests, str) else digests


def prepare(folder: Path, seed: int, fault: str, stack: ExitStack) -> Player:
    """Make the homes, start the servers, and build what runs are made from."""
    server, undisturbed = (
        stack.enter_context(serving(ModelServer(seed))),
        stack.enter_context(serving(ModelServer(seed))),
    )
    hub = stack.enter_context(hub_with_model(DEMO / "model-4bit").running())
    places = {"hub": hub.url, "demo": str(ROOT / "assets" / "demo" / "model-4bit")}
    key = f"sk-soak{token_hex(16)}"
    home = Home(folder / "played", {**places, "server": server.url}, key, fault)
    reference = Home(folder / "reference", {**places, "server": undisturbed.url}, key)
    undisturbed.seconds = 0.0
    for place in (home, reference):
        stack.callback(place.end)
    for place in (home, reference):
        for name, edit in EDITS.items():
            write_table(place.user / "tables", 8, name, edit)
        write_training_set(place.user / "training", 4, 1)
        evaluate_demo_model.build("clash", place.user / "builds" / "clash")
        build = Command(("build", "cmc-bench", "--from", "{home}/tables/a.csv", "--name", "charts"), patience=5)
        (result,) = place.run([build])
        if result.code:
            raise RuntimeError(f"the soak cannot begin: {result.err}")
    return Player(home, reference, server, undisturbed, hub, Random(f"{seed} checks"))


def undisturbed(step: Step) -> Step:
    """Return the step without signals, wrong clocks and failing servers."""
    stages = tuple(
        tuple(replace(command, signal="", clock=(0.0, 0.0, 0.0)) for command in stage) for stage in step.stages
    )
    return replace(step, stages=stages, failing=0.0)
