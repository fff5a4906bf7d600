"""From a spec to a run folder: made new, or found again and checked to be the same run."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from app.engine.unsupported_media import META as EXCLUDED
from app.engine.unsupported_media import NONE_EXCLUDED, ExcludedInstances, refuse_nothing_left, split
from app.fetch.recipes import to_build
from app.run_spec import RunSpec, parse
from app.store.database import DATABASE
from app.store.run import RunStore
from app.store.sqlite_errors import StoreFullError
from app.store.workspace import Workspace
from app.system.paths import typed_path
from benchmarks.base import Benchmark, Instance, get_benchmark
from benchmarks.build import Build
from benchmarks.errors import SourceError, SpecError, StoreError
from benchmarks.sampling import select
from benchmarks.untrusted.safe_files import is_full, read_bytes, replace_file
from mlx_backends.base import EngineInfo
from mlx_backends.policy import means_nothing
from mlx_backends.registry import IMPORTED, describe

_VERSION = "version of "
_DATA = "data digest"
_DEVICE = "device"
_SPEC = "spec.toml"
_LARGEST_SPEC = 1 << 20
SCORING = ("mlx-vlm", "transformers")
"""The engines that score options by their likelihood."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is ready to be worked on."""

    folder: Path
    spec: RunSpec
    found: bool
    """Whether it was there already."""

    @property
    def name(self) -> str:
        return self.folder.name


@dataclass(frozen=True)
class CheckedSpec:
    """A spec that was found right: what it is about, and what it would ask.

    ``instances`` are those of a run that is still to be made; one that was found holds its own. ``excluded`` are not asked.
    """

    spec: RunSpec
    folder: Path
    build: Build
    identity: Mapping[str, Any]
    instances: Sequence[Instance]
    found: bool
    excluded: ExcludedInstances


def check(workspace: Workspace, spec: RunSpec, *, accept_engine: bool = False) -> CheckedSpec:
    """Check all that can be wrong with a spec, and make nothing.

    Raises SpecError with the differences where a run of that name is another one, and SpecError, StoreError,
    SourceError or ModelError where the build, the model, a condition or a stratum is not there.
    """
    build = open_build(workspace, spec)
    info = describe(spec.model)
    identity = identity_of(spec, build, info)
    folder = workspace.runs_folder / spec.run_name(build.digest)
    if (folder / DATABASE).is_file():
        # Equal data and an equal spec choose equal instances: making 100,000 of them again would only take seconds.
        with RunStore.read(folder) as store:
            check_identity(store, identity, accept_engine=accept_engine, folder=folder)
            return CheckedSpec(spec, folder, build, identity, (), True, ExcludedInstances.kept(store))
    benchmark = get_benchmark(spec.benchmark)
    chosen, excluded = split(chosen_instances(spec, benchmark, build), info.takes)
    refuse_nothing_left(info.model, info.takes, chosen, excluded, benchmark)
    if spec.score == "likelihood":
        check_options(spec, info.engine, chosen)
    if means_nothing(spec.model, (each.references for each in chosen)):
        raise SpecError(
            f"{spec.model} has nothing to say in {spec.benchmark}; `rashomon models` lists the other policies."
        )
    if (folder / DATABASE).is_file():  # another process made it since we looked
        return check(workspace, spec, accept_engine=accept_engine)
    if folder.exists():
        raise StoreError(f"{folder} is in the way and is not a run; move it, or give the run another --name.")
    return CheckedSpec(spec, folder, build, identity, chosen, False, excluded)


def check_options(spec: RunSpec, engine: str, chosen: Sequence[Instance]) -> None:
    """Raise SpecError where a run by likelihood has nothing to score, or nobody who does."""
    if engine not in SCORING:
        raise SpecError(
            f"{spec.model} does not tell how likely it finds an option; have answers generated, or name a local model "
            "that sees."
        )
    benchmark = get_benchmark(spec.benchmark)
    without = sorted({instance.condition for instance in chosen if not benchmark.options(instance)})
    if without:
        raise SpecError(
            f"{spec.benchmark} offers no options under {', '.join(without)}; leave these conditions out, or have answers "
            "generated."
        )


def plan(workspace: Workspace, checked: CheckedSpec) -> PlannedRun:
    """The run of a checked spec: the one that is there, else a new one. Raises StoreError."""
    if not checked.found:
        workspace.make()
        create(
            workspace,
            checked.spec,
            checked.folder,
            checked.identity,
            checked.instances,
            data=checked.build.path,
            excluded=checked.excluded,
        )
    return PlannedRun(checked.folder, checked.spec, checked.found)


def replan(workspace: Workspace, folder: Path, *, data: Path | None = None, accept_engine: bool = False) -> PlannedRun:
    """The run in ``folder``, checked to be resumable: the spec, the data and the model are still what they were.

    ``data`` is where the build lies now, if it moved. Raises SpecError with the difference where something changed.
    """
    with RunStore.read(folder) as store:
        spec = parse(RunSpec, store.meta("spec"), str(folder))
        edited = _read_spec_file(folder)
        if edited is not None and edited != spec:
            told = differences(spec.model_dump(mode="json"), edited.model_dump(mode="json"))
            raise SpecError(
                f"{folder.name}/spec.toml was changed since the run began: {'; '.join(told)}; "
                "put it back, or start a new run with `rashomon --batch`."
            )
        if spec.model.startswith(IMPORTED):  # nothing of it will be asked
            return PlannedRun(folder, spec, found=True)
        if data is not None:
            spec = spec.model_copy(update={"data": str(typed_path(data))})
        identity = identity_of(spec, open_build(workspace, spec), describe(spec.model))
        check_identity(store, identity, accept_engine=accept_engine, folder=folder, resuming=True)
    return PlannedRun(folder, spec, found=True)


def open_build(workspace: Workspace, spec: RunSpec) -> Build:
    """The build a spec runs on. Raises SourceError where there is none, SpecError where it is of another benchmark."""
    path = typed_path(spec.data) if spec.data else workspace.build_folder(spec.benchmark)
    if not spec.data and not path.exists():
        steps = to_build(workspace.command(), spec.benchmark, workspace.source_folder(spec.benchmark))
        told = ", then ".join(f"`{step}`" for step in steps)
        raise SpecError(f"{spec.benchmark} is not built in {workspace.path}; run {told}, or name a build with --data.")
    build = Build.open(path)
    if build.benchmark != spec.benchmark:
        raise SpecError(f"{path} is a build of {build.benchmark}, not of {spec.benchmark}.")
    return build


def identity_of(spec: RunSpec, build: Build, info: EngineInfo) -> dict[str, Any]:
    """What a run is, flat: two runs with equal identities must give the same answers."""
    versions = {_VERSION + name: version for name, version in info.versions.items()}
    return {
        **spec.what_decides(),
        _DATA: build.digest,
        "engine": info.engine,
        "weights digest": info.weights,
        "model revision": info.revision,
        "quantisation": info.quantisation,
        _DEVICE: info.device,
        **versions,
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs, as "key: was ... , is ..."; of digests as much as tells them apart."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return [f"{key}: was {_short(before.get(key))}, is {_short(now.get(key))}" for key in keys]


def _short(value: Any) -> str:
    return value[:12] if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else repr(value)


def check_identity(
    store: RunStore, identity: Mapping[str, Any], *, accept_engine: bool, folder: Path, resuming: bool = False
) -> None:
    """Raise SpecError with the differences where a run is not what it was.

    ``resuming`` is the run itself, not the spec of one: another name for it is no remedy. With
    ``accept_engine`` another device or other versions of the engine are let pass; which engine gave an answer is kept with it.
    """
    before: dict[str, Any] = store.meta("identity")
    told = differences(before, identity)
    engine = [difference for difference in told if difference.startswith((_VERSION, _DEVICE))]
    if accept_engine:
        told = [difference for difference in told if difference not in engine]
    if told:
        if told == engine:
            advice = "add --accept-engine to go on all the same"
        elif not resuming:
            advice = "give the new run another --name"
        elif all(each.startswith(_DATA) for each in told):
            advice = "build it again as it was, in another folder, and name that with --data"
        else:
            advice = "put back what it was, or start a new run with `rashomon --batch`"
        raise SpecError(f"{folder.name} cannot be resumed, it would not be the same run: {'; '.join(told)}; {advice}.")


def chosen_instances(spec: RunSpec, benchmark: Benchmark, build: Build) -> Sequence[Instance]:
    """The instances a run asks: the build's, in its order, restricted as the spec says. Raises SpecError if none."""
    chosen = chosen_of(spec, benchmark, list(benchmark.instances(build, spec.prompt_set)))
    twice = [name for name, count in Counter(instance.id for instance in chosen).items() if count > 1]
    if twice:
        raise SourceError(f"{build.path} holds the id {twice[0]!r} more than once; build it again.")
    return chosen


def chosen_of(spec: RunSpec, benchmark: Benchmark, every: Sequence[Instance]) -> Sequence[Instance]:
    """Those of ``every`` instance of a build that a run asks. Raises SpecError if none."""
    chosen = select(
        every,
        limit=spec.limit,
        conditions=spec.conditions or None,
        strata={key: list(words) for key, words in spec.strata.items()} or None,
        stratify_by=benchmark.stratum,
        seed=spec.seed,
    )
    if not chosen:
        raise SpecError("no instance is left by these conditions, strata and limit; widen them.")
    return chosen


def create(
    workspace: Workspace,
    spec: RunSpec,
    folder: Path,
    identity: Mapping[str, Any],
    instances: Sequence[Instance],
    *,
    data: Path | None,
    excluded: ExcludedInstances = NONE_EXCLUDED,
    fill: Callable[[RunStore], None] = lambda store: None,
) -> None:
    """Make the run ``folder``, whole or not at all; ``fill`` puts in what it is to hold from the beginning.

    Raises StoreError where it cannot be written or another process was quicker.
    """
    benchmark = get_benchmark(spec.benchmark)
    meta = {
        "spec": spec.model_dump(mode="json"),
        "identity": identity,
        "data": None if data is None else str(data.absolute()),
        "conditions": list(benchmark.conditions),
        "correct": {
            c: [label for label in benchmark.labels if benchmark.correct(c, label)] for c in benchmark.conditions
        },
        "created": time.time(),
        "state": {"state": "planned"},
        EXCLUDED: excluded.to_json(),
    }
    # Planned under a hidden name and renamed, so that a run folder is always a whole plan.
    for left in workspace.runs_folder.glob(".planning-*"):
        if not _is_alive(left.name.split("-")[1]):
            shutil.rmtree(left, ignore_errors=True)
    hidden: Path | None = None
    no_room = f"there is no room for a new run in {workspace.runs_folder}; free some space."
    try:
        hidden = workspace.runs_folder / f".planning-{os.getpid()}-{secrets.token_hex(4)}"
        hidden.mkdir()
        with RunStore.create(hidden, meta, instances, benchmark.basis) as store:
            fill(store)
        replace_file(hidden, _SPEC, tomli_w.dumps(without_none(spec.model_dump(mode="json"))).encode("utf-8"))
        os.rename(hidden, folder)
    except StoreFullError as error:
        raise StoreFullError(no_room) from error
    except OSError as error:
        if folder.exists():
            raise StoreError(
                f"another process has just begun {folder.name}; `rashomon runs` shows how far it is."
            ) from error
        if is_full(error):
            raise StoreFullError(no_room) from error
        raise StoreError(
            f"cannot write in {workspace.runs_folder}: {error.strerror}; name another --workspace."
        ) from error
    finally:
        if hidden is not None:
            shutil.rmtree(hidden, ignore_errors=True)


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` without what is not said, in its tables too: TOML has no null."""
    whole = {key: without_none(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: value for key, value in whole.items() if value not in (None, [], {})}


def _read_spec_file(folder: Path) -> RunSpec | None:
    import tomllib

    try:
        return parse(
            RunSpec, tomllib.loads(read_bytes(folder, _SPEC, limit=_LARGEST_SPEC).decode()), f"{folder.name}/{_SPEC}"
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise SpecError(f"{folder.name}/{_SPEC} cannot be read ({error}); put it back.") from error


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
