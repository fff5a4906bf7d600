"""Taking over a run that this machine has not made: what it would use, and a new run of what is valid in it.

Nothing of the received folder is copied as it is: every value is read, parsed and written anew, into a database of our own.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.config import RunName, RunSpec, parse
from app.engine.excluded import NONE_EXCLUDED, Excluded
from app.engine.plan import create
from app.paths import typed_path
from app.store.rows import Answer
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Benchmark, Instance, Record, Verdict, get_benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError, SpecError, StoreError
from mlx_backends.remote import is_remote
from mlx_backends.remote.addresses import agreed
from mlx_backends.remote.names import parse as parse_name

_KEPT = ("judges", "remarks", "canary", "deaths", "order", "reached")
"""Values of a run that are taken over as they are, besides those that :func:`app.engine.plan.create` writes."""

_LABELLING = "labelling "
_PAGE = 256
_UNREADABLE = (RashomonError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Received:
    """A run that this machine has not made.

    ``models`` are who would be asked, the model first, each with the address it is asked at; ``named`` is the build that the
    run names, ``here`` the build of the same digest in the workspace. ``answers`` and ``verdicts`` are as the run counts them.
    """

    folder: Path
    spec: RunSpec
    models: tuple[tuple[str, str | None], ...]
    digest: str | None
    named: Path | None
    here: Path | None
    answers: int
    total: int
    verdicts: dict[str, int]

    def lines(self) -> list[str]:
        """What the run would use, a line each."""
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
class Adopted:
    """A run that was taken over: its folder, what it holds, and how often what was left out and why."""

    folder: Path
    answers: int
    verdicts: int
    left_out: Counter[str]


def examine(workspace: Workspace, folder: Path) -> Received:
    """Read what the run in ``folder`` would use. Raises StoreError, SpecError for what cannot be read or is not foreign."""
    with RunStore.read(folder) as store:
        if store.own:
            raise StoreError(f"{folder.name} was made on this machine; there is nothing to adopt.")
        spec = _spec(store)
        digest = store.meta("identity", {}).get("data digest")
        named = spec.data or store.meta("data")
        progress = store.progress()
    verdicts: Counter[str] = Counter()
    for condition in progress:
        for judge, counts in condition.judged.items():
            verdicts[judge] += counts.labelled + counts.unparsed + counts.failed
    return Received(
        folder,
        spec,
        tuple((word, _address(word)) for word in (spec.model, *spec.judge)),
        digest if isinstance(digest, str) else None,
        Path(named) if named else None,
        _same_build(workspace, spec, digest),
        sum(condition.done for condition in progress),
        sum(condition.total for condition in progress),
        dict(verdicts),
    )


def build_at(received: Received, place: Path) -> Path:
    """Return the folder of the build in ``place``. Raises SpecError unless the run was asked from it."""
    build = Build.open(typed_path(place))
    if build.benchmark != received.spec.benchmark or (received.digest and build.digest != received.digest):
        raise SpecError(
            f"{build.path} is not the build that {received.folder.name} was asked from ({(received.digest or '?')[:12]}); "
            "name that one with --data."
        )
    return build.path


def adopt(workspace: Workspace, received: Received, *, name: str | None = None, data: Path | None = None) -> Adopted:
    """Make a run of this machine of what is valid in a received one, with the build in ``data``.

    The received folder stays as it is. Raises StoreError where the new run's folder is taken or cannot be written, SpecError.
    """
    folder = workspace.runs_folder / _new_name(workspace, received.folder.name, name)
    spec = received.spec.model_copy(update={"data": None if data is None else str(data)})
    benchmark = get_benchmark(spec.benchmark)
    left_out: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    workspace.make()
    with RunStore.read(received.folder) as store:
        instances = [
            record.instance for record in _records(store, left_out) if _fits(benchmark, record.instance, left_out)
        ]
        if not instances:
            raise StoreError(f"nothing in {received.folder.name} can be read; there is nothing to adopt.")
        ordinals = {instance.id: ordinal for ordinal, instance in enumerate(instances)}

        def fill(made: RunStore) -> None:
            answers = _answers(store, benchmark, ordinals, left_out)
            for _, group in groupby(enumerate(answers), key=lambda each: (each[1][0], each[0] // _PAGE)):
                pairs = [pair for _, pair in group]
                made.use_engine(pairs[0][0])
                made.commit([answer for _, answer in pairs])
                counts["answers"] += sum(answer.last for _, answer in pairs)
                counts["verdicts"] += sum(len(answer.verdicts) for _, answer in pairs)
            _copy_values(store, made, left_out)
            made.set_meta("state", {"state": "done" if counts["answers"] else "planned", "note": ""})

        identity = _object(store.meta("identity"))
        create(workspace, spec, folder, identity, instances, data=data, excluded=_excluded(store, left_out), fill=fill)
    return Adopted(folder, counts["answers"], counts["verdicts"], +left_out)


def _answers(
    store: RunStore, benchmark: Benchmark, ordinals: Mapping[str, int], left_out: Counter[str]
) -> Iterator[tuple[dict[str, Any], Answer]]:
    """The valid answers with their verdicts, each with the engine that gave it."""
    for record in _records(store, Counter()):
        ordinal = ordinals.get(record.instance.id)
        if ordinal is None or not record.generations:
            continue
        try:
            rows = store._rows(
                "SELECT g.step, g.request, e.info, i.done FROM generation g JOIN instance i ON i.ordinal = g.instance"
                " JOIN engine e ON e.id = g.engine WHERE g.accepted AND i.id = ? ORDER BY g.step",
                (record.instance.id,),
            )
            steps = [(_text(request), _object(json.loads(info)), bool(done)) for _, request, info, done in rows]
            if [row[0] for row in rows] != list(range(len(record.generations))):
                raise ValueError("the steps of an answer are not all there")
        except _UNREADABLE:
            left_out["answers that cannot be read; they are asked again"] += 1
            continue
        for step, (generation, (request, info, done)) in enumerate(zip(record.generations, steps, strict=True)):
            last = done and step == len(steps) - 1
            verdicts = list(_verdicts(benchmark, record, left_out)) if last else []
            correct = tuple(
                verdict.label is not None and benchmark.correct(record.instance.condition, verdict.label)
                for verdict in verdicts
            )
            yield (
                info,
                Answer(ordinal, record.instance.condition, step, request, generation, last, tuple(verdicts), correct),
            )


def _verdicts(benchmark: Benchmark, record: Record, left_out: Counter[str]) -> Iterator[Verdict]:
    for verdict in record.verdicts.values():
        if verdict.label is None or verdict.label in benchmark.labels:
            yield verdict
        else:
            left_out["verdicts whose label the benchmark does not have"] += 1


def _records(store: RunStore, left_out: Counter[str]) -> Iterator[Record]:
    """The records that can be read: all at once, or one by one from where that fails."""
    seen: set[str] = set()
    with suppress(*_UNREADABLE):
        for record in store.records():
            seen.add(record.instance.id)
            yield record
        return
    for instance in store.ids():
        if instance in seen:
            continue
        try:
            record = next(store.records(only=instance))
        except (*_UNREADABLE, StopIteration):
            left_out["instances that cannot be read"] += 1
        else:
            yield record


def _copy_values(store: RunStore, made: RunStore, left_out: Counter[str]) -> None:
    keys = [key for (key,) in store._rows("SELECT key FROM meta") if isinstance(key, str)]
    for key in keys:
        if key not in _KEPT and not key.startswith(_LABELLING):
            continue
        try:
            value = store.meta(key)
        except _UNREADABLE:
            left_out[f"value {key!r}, which cannot be read"] += 1
        else:
            made.set_meta(key, value)
    try:
        created = float(store.meta("created"))
        if not math.isfinite(created):
            raise ValueError("it is no time")
        made.set_meta("created", created)
    except _UNREADABLE:
        left_out["time, which cannot be read"] += 1


def _excluded(store: RunStore, left_out: Counter[str]) -> Excluded:
    try:
        return Excluded.kept(store)
    except _UNREADABLE:
        left_out["count of what was not asked, which cannot be read"] += 1
        return NONE_EXCLUDED


def _fits(benchmark: Benchmark, instance: Instance, left_out: Counter[str]) -> bool:
    if instance.condition in benchmark.conditions:
        return True
    left_out["instances of a condition that the benchmark does not have"] += 1
    return False


def _spec(store: RunStore) -> RunSpec:
    spec = parse(RunSpec, store.meta("spec"), str(store.folder))
    get_benchmark(spec.benchmark)
    return spec


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


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it is no text")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value
