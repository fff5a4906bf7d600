"""The soak's own books: what the workspace must hold after every action."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.soak.commands import Command


@dataclass
class Run:
    """A run that was begun. ``files`` are the digests of its canonical export once it is complete."""

    name: str
    command: tuple[str, ...]
    """The arguments that begin and resume it."""
    reference: str = ""
    """The key of the undisturbed run that has the same answers; empty if there can be none."""
    model: str = ""
    """The name by which the model server knows its model, if that answers."""
    kills: int = 0
    done: int = 0
    complete: bool = False
    deleted: bool = False
    judged: int = 0
    files: dict[str, str] = field(default_factory=dict)


@dataclass
class Training:
    """A training that was begun."""

    name: str
    command: tuple[str, ...]
    complete: bool = False


@dataclass
class Ledger:
    """Everything that was begun, and a counter for new names."""

    runs: dict[str, Run] = field(default_factory=dict)
    trainings: dict[str, Training] = field(default_factory=dict)
    sets: list[str] = field(default_factory=list)
    judges: dict[str, int] = field(default_factory=dict)
    """Kills by the judge's model on the server."""
    judged: dict[str, str] = field(default_factory=dict)
    """The run of each of these judges."""
    number: int = 0
    """The number of the step, which makes names new."""

    def present(self) -> list[Run]:
        """Return the runs that the workspace lists."""
        return [run for run in self.runs.values() if not run.deleted]

    def complete(self) -> list[Run]:
        """Return the runs whose answers and labels are complete."""
        return [run for run in self.present() if run.complete]

    def incomplete(self) -> list[Run]:
        """Return the runs that can be resumed."""
        return [run for run in self.present() if not run.complete]

    def adopt(self, names: Iterable[str]) -> None:
        """Enter runs that were begun under names that the program chose, if they are new."""
        for name in names:
            self.runs.setdefault(name, Run(name, ("resume", name, "--display", "none")))

    def begin(self, step: Step) -> None:
        """Enter what a step begins."""
        self.runs.update({run.name: replace(run) for run in step.begins})
        self.trainings.update({training.name: replace(training) for training in step.trains})
        self.sets += [name for name in step.builds if name not in self.sets]
        self.judges.update(dict.fromkeys(step.judges, 0))
        self.judged.update(dict.fromkeys(step.judges, step.runs[0] if step.runs else ""))
        for name in step.deletes:
            self.runs[name].deleted = True


@dataclass(frozen=True)
class Step:
    """An action with all that was drawn for it: stages of commands that run at the same time."""

    action: str
    stages: tuple[tuple[Command, ...], ...]
    runs: tuple[str, ...] = ()
    """The runs that it may change, and that are checked after it."""
    begins: tuple[Run, ...] = ()
    trains: tuple[Training, ...] = ()
    builds: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    """Names of models on the server that judge."""
    deletes: tuple[str, ...] = ()
    adopts: bool = False
    """True if it may begin a run under a name that the program chooses."""
    ids_of: str = ""
    """The run whose instances {id 0}, {id 1} ... stand for in arguments and files."""
    failing: float = 0.0
    """The share of calls in which the servers fail."""
    files: tuple[tuple[str, str], ...] = ()
    """Files on the desk that are written first, with their texts."""

    def line(self, **values: Any) -> str:
        """Return a line of JSON."""
        return json.dumps({**values, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def parse(cls, line: str) -> Step:
        """Read a line of :meth:`line`."""
        values = {key: value for key, value in json.loads(line).items() if key in cls.__annotations__}
        values["stages"] = [tuple(Command(**_tuples(command)) for command in stage) for stage in values["stages"]]
        values["begins"] = [Run(**_tuples(run)) for run in values["begins"]]
        values["trains"] = [Training(**_tuples(training)) for training in values["trains"]]
        return cls(**_tuples(values))


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
