"""Taking over a run that this machine has not made: what it would use, and a new run of what is valid in it.

Nothing of the received folder is copied as it is: every value is read, parsed and written anew, into a database of our own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.engine.plan import create
from app.engine.unsupported_media import META as EXCLUDED
from app.engine.unsupported_media import NONE_EXCLUDED, ExcludedInstances
from app.run_spec import RunName, RunSpec, parse
from app.store.integrity.salvage import Report, Salvage, SavedInstance
from app.store.rows import NewAnswer
from app.store.run import RunStore
from app.store.workspace import Workspace
from app.system.paths import typed_path
from benchmarks.base import Benchmark, get_benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError, SpecError, StoreError
from mlx_backends.remote import is_remote
from mlx_backends.remote.addresses import agreed
from mlx_backends.remote.model_names import parse as parse_name

_KEPT = ("created", "judges", "remarks", "canary", "deaths", "order", "reached")
"""Values of a run that are taken over as they are, besides those that :func:`app.engine.plan.create` writes."""

_LABELLING = "labelling "
_READ = ("meta", "instance", "engine", "generation", "verdict")
"""The tables whose rows are taken over; the counters are made anew."""
_PAGE = 256


@dataclass(frozen=True)
class ReceivedRun:
    """A run that this machine has not made, or that is damaged.

    ``models`` are who would be asked, the model first, each with the address it is asked at; ``named`` is the build that the
    run names, ``here`` the build of the same digest in the workspace. ``answers`` and ``verdicts`` are those that are valid.
    """

    folder: Path
    own: bool
    spec: RunSpec
    models: tuple[tuple[str, str | None], ...]
    digest: str | None
    named: Path | None
    here: Path | None
    answers: int
    total: int
    verdicts: dict[str, int]

    def lines(self) -> list[str]:
        """Return what the run would use, a line each."""
        (model, address), *judges = self.models
        told = [f"benchmark  {self.spec.benchmark}", f"model      {_at(model, address)}"]
        told += [f"judge      {_at(*judge)}" for judge in judges]
        where = self.here or self.named
        origin = "this workspace's, of the same digest" if self.here else "as the run names it; not checked"
        told.append(f"media      {where} ({origin})" if where else "media      no build is named")
        told.append(f"answers    {self.answers} of {self.total}")
        told += [f"verdicts   {count} by {judge}" for judge, count in sorted(self.verdicts.items())]
        return told


@dataclass(frozen=True)
class AdoptedRun:
    """A run that was taken over: its folder, what it holds, and a sentence for everything that was left out."""

    folder: Path
    answers: int
    verdicts: int
    left_out: list[str]


def examine(workspace: Workspace, folder: Path) -> ReceivedRun:
    """Read what the run in ``folder`` would use. Raises StoreError, SpecError for what cannot be read."""
    with Salvage.read(folder) as store:
        values = store.saved_meta(_ignored)
        spec = _spec(values, folder)
        digest = values["identity"].get("data digest")
        named = spec.data or values.get("data")
        counts: Counter[str] = Counter()
        verdicts: Counter[str] = Counter()
        for saved in store.saved(_ignored):
            counts["total"] += 1
            counts["done"] += saved.done
            verdicts.update(verdict.judge for answer in saved.answers for verdict in answer.verdicts)
        return ReceivedRun(
            folder,
            store.own,
            spec,
            tuple((word, _address(word)) for word in (spec.model, *spec.judge)),
            digest if isinstance(digest, str) else None,
            Path(named) if named else None,
            _same_build(workspace, spec, digest),
            counts["done"],
            counts["total"],
            dict(verdicts),
        )


def build_at(received: ReceivedRun, place: Path) -> Path:
    """Return the folder of the build in ``place``. Raises SpecError unless the run was asked from it."""
    build = Build.open(typed_path(place))
    if build.benchmark != received.spec.benchmark or (received.digest and build.digest != received.digest):
        raise SpecError(
            f"{build.path} is not the build that {received.folder.name} was asked from ({(received.digest or '?')[:12]}); "
            "name that one with --data."
        )
    return build.path


def adopt(
    workspace: Workspace, received: ReceivedRun, *, name: str | None = None, data: Path | None = None
) -> AdoptedRun:
    """Make a run of this machine of what is valid in a received one, with the build in ``data``.

    The received folder stays as it is. Raises StoreError where the new run's folder is taken or cannot be written, SpecError.
    """
    folder = workspace.runs_folder / _new_name(workspace, received.folder.name, name)
    spec = received.spec.model_copy(update={"data": None if data is None else str(data)})
    benchmark = get_benchmark(spec.benchmark)
    damage: list[str] = []
    counts: Counter[str] = Counter()
    workspace.make()
    with Salvage.read(received.folder) as store:
        values = store.saved_meta(lambda error: damage.append(str(error)))
        instances = [saved.instance for saved in _fitting(store, benchmark, _ignored)]
        if not instances:
            raise StoreError(f"nothing in {received.folder.name} can be read; there is nothing to adopt.")

        def fill(made: RunStore) -> None:
            answers = _answers(_fitting(store, benchmark, lambda error: damage.append(str(error))), benchmark, damage)
            for _, group in groupby(enumerate(answers), key=lambda each: (each[1][0], each[0] // _PAGE)):
                pairs = [pair for _, pair in group]
                made.use_engine(pairs[0][0])
                made.commit([answer for _, answer in pairs])
                counts["answers"] += sum(answer.last for _, answer in pairs)
                counts["verdicts"] += sum(len(answer.verdicts) for _, answer in pairs)
            for key, value in values.items():
                if key in _KEPT or key.startswith(_LABELLING):
                    made.set_meta(key, value)
            made.set_meta("state", {"state": "done" if counts["answers"] else "planned", "note": ""})

        create(
            workspace,
            spec,
            folder,
            values["identity"],
            instances,
            data=data,
            excluded=ExcludedInstances(**values[EXCLUDED]) if EXCLUDED in values else NONE_EXCLUDED,
            fill=fill,
        )
        store.find_missing(lambda error: damage.append(str(error)), _READ)
    return AdoptedRun(folder, counts["answers"], counts["verdicts"], damage)


def _fitting(store: Salvage, benchmark: Benchmark, report: Report) -> Iterator[SavedInstance]:
    """The valid instances of conditions that the benchmark has."""
    for saved in store.saved(report):
        if saved.instance.condition in benchmark.conditions:
            yield saved
        else:
            report(
                StoreError(f"{saved.instance.id} has the condition {saved.instance.condition!r}, which there is not")
            )


def _answers(
    every: Iterable[SavedInstance], benchmark: Benchmark, damage: list[str]
) -> Iterator[tuple[dict[str, Any], NewAnswer]]:
    """The answers with their verdicts, each with the engine that gave it."""
    for ordinal, saved in enumerate(every):
        condition = saved.instance.condition
        for step, answer in enumerate(saved.answers):
            verdicts = tuple(v for v in answer.verdicts if v.label is None or v.label in benchmark.labels)
            if len(verdicts) < len(answer.verdicts):
                damage.append(f"a verdict on {saved.instance.id} has a label that {benchmark.name} does not have")
            yield (
                answer.engine,
                NewAnswer(
                    ordinal,
                    condition,
                    step,
                    answer.request,
                    answer.generation,
                    saved.done and step == len(saved.answers) - 1,
                    verdicts,
                    tuple(v.label is not None and benchmark.correct(condition, v.label) for v in verdicts),
                    answer.finished_at,
                ),
            )


def _spec(values: Mapping[str, Any], folder: Path) -> RunSpec:
    if "spec" not in values or "identity" not in values:
        raise StoreError(f"{folder.name} does not say what it is; its spec or its identity cannot be read.")
    spec = parse(RunSpec, values["spec"], str(folder))
    get_benchmark(spec.benchmark)
    return spec


def _ignored(error: StoreError) -> None:
    pass


def _same_build(workspace: Workspace, spec: RunSpec, digest: Any) -> Path | None:
    """The workspace's build of that digest, whichever folder it has."""
    usual = workspace.build_folder(spec.benchmark)
    with suppress(OSError):
        for place in (usual, *sorted(usual.parent.iterdir())):
            with suppress(RashomonError, OSError, ValueError):
                if (build := Build.open(place)).digest == digest and build.benchmark == spec.benchmark:
                    return build.path
    return None


def _new_name(workspace: Workspace, old: str, name: str | None) -> str:
    """A name that no run has: ``name``, else the old one, with "-adopted" where that is taken."""
    taken = set(workspace.run_names())
    if name is None:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", old).lstrip("._-")[:64] or "run"
        numbered = (f"{plain}-adopted{number}" for number in ("", *range(2, len(taken) + 3)))
        return next(each for each in (plain, *numbered) if each not in taken)
    try:
        TypeAdapter(RunName).validate_python(name)
    except ValidationError as error:
        raise SpecError("--name takes letters, digits, '.', '_' and '-', at most 80.") from error
    if name in taken:
        raise StoreError(f"{name} is there already; give another --name.")
    return name


def _address(model: str) -> str | None:
    return parse_name(model).address if is_remote(model) else None


def _at(model: str, address: str | None) -> str:
    if address is None:
        return model
    new = "" if agreed([model]) else "; new on this machine: you are asked before anything is sent"
    return f"{model} (at {address}{new})"
