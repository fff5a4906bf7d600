"""A run whose database is damaged or altered in many ways, and what every command may say of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.annotation.labelling_session import draw_sample
from app.store.run_database import DATABASE
from app.store.run_facts import ExcludedInstances, stop_reason, worker_deaths
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Generation, Instance, Verdict
from tests.support.command import Rashomon
from tests.support.inside import run_inside
from tests.support.records import judge_called
from tests.support.runs import instances, make_run, says

RUN, OTHER = "damaged", "whole"
SECONDS = 10


@dataclass(frozen=True)
class Outcome:
    """The results of the commands: by command its exit code and output."""

    listed: tuple[str, object]
    show: tuple[int, str]
    export: tuple[int, dict[str, bytes]]
    errors: tuple[str, ...]


class Damaged:
    """A run in a workspace, beside a whole one, whose database is replaced again and again."""

    def __init__(self, home: Path) -> None:
        self.rashomon = Rashomon(home)
        home.mkdir(exist_ok=True)
        workspace = Workspace(self.rashomon.workspace)
        self.folder = _run(workspace, RUN)
        make_run(workspace, OTHER, instances(1), says("12"))
        self.content = (self.folder / DATABASE).read_bytes()
        self.expected = self.look()
        assert self.expected.errors == ()
        self.put(self.content)
        self.whole = self.read()

    def put(self, content: bytes) -> None:
        for path in self.folder.glob(f"{DATABASE}*"):
            path.unlink()
        (self.folder / DATABASE).write_bytes(content)

    def look(self) -> Outcome:
        """Run ``runs``, ``show``, ``export`` and what labelling begins with; fails on any exception, and where it takes long."""
        out = self.rashomon.home / "export"
        for path in out.rglob("*") if out.exists() else ():
            if path.is_file():
                path.unlink()
        begun = time.perf_counter()
        code, listed, error = self._command("runs", "--json")
        assert code == 0, error
        runs = {run["name"]: run for run in json.loads(listed)["result"]}
        assert runs[OTHER]["problem"] is None, "the other run is listed as ever"
        run = runs[RUN]
        displayed = self._command("show", RUN)
        exported = self._command("export", RUN, "--canonical", "--format", "csv", "--out", str(out))
        files = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        errors = [result[2] for result in (displayed, exported) if result[0]]
        try:
            with RunStore.open(self.folder) as store:
                draw_sample(store, "human:ann@1")
        except RashomonError as problem:
            errors.append(str(problem))
        if run["problem"]:
            errors.append(run["problem"])
        assert {displayed[0], exported[0]} <= {0, 2, 3}, (displayed, exported)
        assert time.perf_counter() - begun < SECONDS
        state = ("unreadable", None) if run["problem"] else (run["state"], json.dumps(run, sort_keys=True))
        return Outcome(state, displayed[:2], (exported[0], files), tuple(errors))

    def check(self, content: bytes) -> bool:
        """Return True if some command reports the damage; fail unless all others print what they print of the intact run."""
        self.put(content)
        return self.judged()

    def judged(self) -> bool:
        now = self.look()
        if now.listed[0] != "unreadable":
            assert now.listed == self.expected.listed, "runs differs silently"
        if now.show[0] == 0:
            assert now.show == self.expected.show, "show differs silently"
        if now.export[0] == 0:
            assert now.export == self.expected.export, "the export differs silently"
        return bool(now.errors)

    def read(self) -> tuple[object, ...] | str:
        """Return everything commands read of the run apart from tables, or the error message."""
        begun = time.perf_counter()
        try:
            listed = read_summary(self.folder)
            if listed.problem is not None:
                return listed.problem
            with RunStore.read(self.folder) as store:
                keys = ("spec", "identity", "created", "remarks", "conditions", "correct", "canary", "judges")
                more = (ExcludedInstances.load(store), worker_deaths(store), stop_reason(store), store.meta("data"))
                content = (listed, list(store.records()), store.engines(), [store.meta(key) for key in keys], more)
            with RunStore.open(self.folder) as store:
                draw_sample(store, "human:ann@1")
            return content
        except RashomonError as error:
            return str(error)
        finally:
            assert time.perf_counter() - begun < SECONDS

    def check_reading(self, content: bytes) -> bool:
        """Do the same as :meth:`check` without rendering tables and files."""
        self.put(content)
        result = self.read()
        assert isinstance(result, str) or result == self.whole, "what is read differs silently"
        return isinstance(result, str)

    def _command(self, *arguments: str) -> tuple[int, str, str]:
        code, out, error = run_inside(arguments, self.rashomon.environment, self.rashomon.home)
        assert "Traceback" not in error, error
        return code, out, error


def _run(workspace: Workspace, name: str) -> Path:
    """A run with several conditions, answers that were repeated, errors, two judges, an override and a person's labels."""
    folder = make_run(
        workspace, name, instances(6, question="Wie viele Züge fahren?"), says("12"), failing=_every_ninth()
    )
    with RunStore.open(folder) as store:
        store.set_meta("state", {"state": "done", "note": "", "pid": 1})
        store.set_meta("remarks", ["it was asked in a hurry"])
        for judge, label in (("other@1", "TEXT"), ("override:ann@1", "IMAGE")):
            unjudged = [(row, record) for row, record in store.unjudged(judge_called(judge))]
            store.add_verdicts(
                [
                    (row, record.instance.condition, Verdict(judge, "labelled", label, "a reason"))
                    for row, record in unjudged
                    if judge == "other@1" or row % 5 == 0
                ]
            )
        store.repeat(["aligned"])
        store.use_engine({"engine": "policy", "model": "policy:always-text", "versions": {}})
        store.commit(
            [
                NewAnswer(
                    pending.ordinal,
                    pending.instance.condition,
                    0,
                    "again",
                    Generation(
                        f"{pending.instance.id}#0",
                        "error" if number == 2 else "The answer is 12 Züge.",
                        "stop",
                        (7,) * 40,
                    ),
                    True,
                )
                for number, pending in enumerate(list(store.pending()))
            ]
        )
    return folder


def _every_ninth() -> Callable[[Instance], bool]:
    count = iter(range(10**6))
    return lambda _: next(count) % 9 == 0
