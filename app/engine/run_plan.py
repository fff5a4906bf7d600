"""Planning: from a spec to a run folder, either a new one or an existing one that is verified to be the same run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from app.engine.instance_streams import NO_INSTANCES, BuildInstances, PartOfInstances, RunInstances, run_instances
from app.engine.run_identity import differences, engine_facts, refused_differences
from app.engine.unsupported_media import require_instances
from app.fetch.benchmark_downloads import build_commands
from app.run_spec import LARGEST_SPEC, RunSpec, parse_stored
from app.store.question_set_writer import is_version_link
from app.store.question_sets import read_set, version_of_digest
from app.store.run_database import DATABASE
from app.store.run_facts import EXCLUDED_KEY as EXCLUDED
from app.store.run_facts import (
    LICENCE_KEY,
    NONE_EXCLUDED,
    NOT_TRAINED,
    REMARKS_KEY,
    TRAINED_KEY,
    ExcludedInstances,
    TrainedExamples,
)
from app.store.run_store import RunStore
from app.store.store_types import CELLS_KEY, COUNTS_FLAGS_KEY, SCORES_KEY
from app.store.workspace import Workspace
from app.text.shell_quoting import shell_quote
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import BusyError, NoAccessError, SpecError, StoreError, StoreFullError
from benchmarks.instance_sampling import Selection, select
from benchmarks.protocols.repeats import RepeatedInstances
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.safe_files import is_disk_full, read_bytes, replace_file
from benchmarks.untrusted.safe_toml import parse_toml
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.varied_names import FACTOR_NAMES, example_of
from benchmarks.vocabulary import Instance
from mlx_backends.base import EngineInfo
from mlx_backends.baseline_engine import WITHOUT_REQUESTS
from mlx_backends.engine_registry import check_kv_bits, describe, refusal, training_records
from mlx_backends.models.fuse_effect import lost_effect_sentence
from mlx_backends.models.model_licence import stated_licence
from mlx_backends.policy_engine import lacks_references

_DATA = "data digest"
_SPEC = "spec.toml"
SCORING_ENGINES = ("mlx-vlm", "transformers", "policy")
"""The engines that compute likelihoods."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is ready to be worked on."""

    folder: Path
    spec: RunSpec
    existing: bool
    """Flag for a run that existed before."""

    @property
    def name(self) -> str:
        return self.folder.name


@dataclass(frozen=True)
class CheckedSpec:
    """A valid spec with the run that it describes.

    Attributes:
        instances: The instances of a new run, read from the build by every iteration; empty for an existing run, which holds
            its own.
        existing: Flag for a run that already exists.
        excluded: The counts of instances that the model cannot take.
        trained: The counts of examples that the model was trained on.
        lost_effect: The sentence on an adapter whose effect was lost when it was fused into the model; "" if none was.
    """

    spec: RunSpec
    folder: Path
    build: Build
    identity: Mapping[str, Any]
    instances: RunInstances
    existing: bool
    excluded: ExcludedInstances
    trained: TrainedExamples = NOT_TRAINED
    lost_effect: str = ""


def check_spec(
    workspace: Workspace,
    spec: RunSpec,
    *,
    accept_engine: bool = False,
    elsewhere: bool = False,
    by_hand: bool = False,
) -> CheckedSpec:
    """Validate a spec in full, without creating anything.

    ``elsewhere`` tells that a cluster answers, whose nodes check device and versions of the engine themselves, ``by_hand`` that
    the answers are typed, and nothing is requested of the model.

    Raises SpecError with the differences if a run of that name is a different one, and SpecError, StoreError, SourceError or
    ModelError if the build, the model, a condition or a stratum does not exist.
    """
    if not by_hand and (problem := refusal(spec.model)):
        raise SpecError(problem)
    build = open_build(workspace, spec)
    info = describe(spec.model)
    check_kv_bits(spec.model, spec.kv_bits)
    identity = identity_of(spec, build, info)
    folder = workspace.runs_folder / spec.run_name(build.digest)
    workspace.check_run_name(folder.name)
    if (folder / DATABASE).is_file():
        # Equal data and an equal spec select equal instances; selecting 100,000 of them again would waste seconds.
        with RunStore.read(folder) as store:
            check_identity(store, identity, accept_engine=accept_engine or elsewhere, folder=folder)
            excluded, trained = ExcludedInstances.load(store), TrainedExamples.load(store)
            return CheckedSpec(spec, folder, build, identity, NO_INSTANCES, True, excluded, trained)
    benchmark = get_benchmark(spec.benchmark)
    chosen = RepeatedInstances(chosen_instances(spec, benchmark, build), spec.repeats)
    instances, excluded = run_instances(chosen, info.takes, build)
    require_instances(info.model, info.takes, len(instances), excluded, benchmark)
    if spec.score == "likelihood":
        check_scores(spec, info.engine)
    if lacks_references(spec.model, (instance.references for instance in instances)):
        raise SpecError(
            f"{spec.model} answers nothing in {spec.benchmark}; `rashomon models` lists the other policies."
        )
    if (folder / DATABASE).is_file():  # another process created it meanwhile
        return check_spec(workspace, spec, accept_engine=accept_engine, elsewhere=elsewhere, by_hand=by_hand)
    if folder.exists():
        raise StoreError(f"{folder} exists and is not a run; move it, or give the run another --name.")
    trained = trained_examples(spec.model, info.model, build, instances)
    lost_effect = lost_effect_sentence(info.model, training_records(spec.model))
    return CheckedSpec(spec, folder, build, identity, instances, False, excluded, trained, lost_effect)


def trained_examples(model: str, name: str, build: Build, instances: Iterable[Instance]) -> TrainedExamples:
    """Return how many examples of ``instances``, of ``build``, the trainings of ``model`` had; ``name`` is its display name."""
    records = training_records(model)
    if not records:
        return NOT_TRAINED
    from benchmarks.training.trained_on import TrainingRecord  # imports NumPy

    record = TrainingRecord.read(records)
    return TrainedExamples(*record.count_examples(build.digest, instances), name) if record else NOT_TRAINED


def check_scores(spec: RunSpec, engine: str) -> None:
    """Raise SpecError if a run by likelihood has an engine that computes none."""
    if engine not in SCORING_ENGINES:
        raise SpecError(
            f"{spec.model} cannot score by likelihood; leave --score out, or choose a local vision-language model or a policy."
        )


def plan_run(workspace: Workspace, checked: CheckedSpec) -> PlannedRun:
    """Return the run of a checked spec, creating it if it does not exist. Raises StoreError."""
    if not checked.existing:
        workspace.make()
        create_run(
            workspace,
            checked.spec,
            checked.folder,
            checked.identity,
            checked.instances,
            data=checked.build.path,
            excluded=checked.excluded,
            fill=lambda store: _store_facts(store, checked),
        )
    return PlannedRun(checked.folder, checked.spec, checked.existing)


def _store_facts(store: RunStore, checked: CheckedSpec) -> None:
    """Store the licence that the card of a local model states, and which examples it was trained on, for reports."""
    if checked.trained.examples:
        store.set_meta(TRAINED_KEY, checked.trained.to_json())
    if remarks := [*filter(None, (checked.trained.sentence, checked.lost_effect))]:
        store.set_meta(REMARKS_KEY, remarks)
    if checked.identity.get("weights digest") and (licence := stated_licence(checked.spec.model)) is not None:
        store.set_meta(LICENCE_KEY, licence)


def plan_resume(
    workspace: Workspace,
    folder: Path,
    *,
    data: Path | None = None,
    accept_engine: bool = False,
    elsewhere: bool = False,
) -> PlannedRun:
    """Return the run in ``folder`` after checking that its spec, data and model are unchanged.

    ``data`` is the build's folder if it was moved; a version of a question set is found by its digest. ``elsewhere`` is as in
    :func:`check_spec`. Raises SpecError with the differences if anything changed.
    """
    with RunStore.read(folder) as store:
        spec = parse_stored(RunSpec, store.meta("spec"), str(folder))
        edited = _read_spec_file(folder)
        if edited is not None and edited != spec:
            changes = differences(spec.model_dump(mode="json"), edited.model_dump(mode="json"))
            raise SpecError(
                f"{folder.name}/spec.toml was changed since the run began: {'; '.join(changes)}; "
                "put it back, or start a new run with `rashomon --batch`."
            )
        if spec.model.startswith(WITHOUT_REQUESTS):  # it has no requests to make
            return PlannedRun(folder, spec, existing=True)
        data = data or version_of_digest(workspace.path, store.meta("identity").get(_DATA) or "")
        if data is not None:
            spec = spec.model_copy(update={"data": str(typed_path(data))})
        identity = identity_of(spec, open_build(workspace, spec), describe(spec.model))
        accepted = accept_engine or elsewhere
        check_identity(store, identity, accept_engine=accepted, folder=folder, resuming=True)
        check_kv_bits(spec.model, spec.kv_bits)
    return PlannedRun(folder, spec, existing=True)


def open_build(workspace: Workspace, spec: RunSpec) -> Build:
    """Open the build of a spec. Raises SourceError if there is none, SpecError if it is of another benchmark."""
    path = typed_path(spec.data) if spec.data else workspace.build_folder(spec.benchmark)
    if not spec.data and not path.exists():
        raise not_built(workspace, spec.benchmark, "name a build with --data")
    # The folder of a benchmark may be a link, which leads to another version once its table is built again.
    build = Build.open(path.resolve() if is_version_link(workspace.path, path) else path)
    if build.benchmark != spec.benchmark:
        raise SpecError(f"{path} is a build of {build.benchmark}, not of {spec.benchmark}.")
    return build


def not_built(workspace: Workspace, benchmark: str, otherwise: str) -> SpecError:
    """Return the error for a benchmark without a build in the workspace, with the commands that make it."""
    steps = build_commands(workspace.command(), benchmark, workspace.source_folder(benchmark))
    commands = ", then ".join(f"`{step}`" for step in steps)
    return SpecError(f"{benchmark} is not built in {workspace.path}; run {commands}, or {otherwise}.")


def identity_of(spec: RunSpec, build: Build, info: EngineInfo) -> dict[str, Any]:
    """Return a run's identity, a flat mapping: two runs with equal identities must give the same answers."""
    return {
        **spec.identity(),
        _DATA: build.digest,
        "engine": info.engine,
        "weights digest": info.weights,
        **({"adapter digest": info.adapter} if info.adapter is not None else {}),
        **({"base weights digest": info.base_weights} if info.base_weights is not None else {}),
        "model revision": info.revision,
        "quantisation": info.quantisation,
        **engine_facts(info),
    }


def check_identity(
    store: RunStore, identity: Mapping[str, Any], *, accept_engine: bool, folder: Path, resuming: bool = False
) -> None:
    """Raise SpecError with the differences if a run's stored identity is not ``identity``.

    ``accept_engine`` allows for another device and other versions of the engine, since each answer is stored with its engine.
    ``resuming`` selects advice for a run that is resumed by name, for which another name would be no remedy.
    """
    recorded: dict[str, Any] = store.meta("identity")
    changes, advice = refused_differences(recorded, identity, accept_engine=accept_engine)
    if changes:
        if not resuming:
            resume = f"`rashomon resume {shell_quote(folder.name)}` resumes it as it began"
            advice = advice or f"{resume}; a new run needs another --name"
        elif all(change.startswith(_DATA) for change in changes):
            advice = "rebuild the former data in another folder, and name that with --data"
        else:
            advice = advice or "restore the former settings, or start a new run with `rashomon --batch`"
        raise SpecError(f"{folder.name} cannot be resumed as the same run: {'; '.join(changes)}; {advice}.")


def chosen_instances(spec: RunSpec, benchmark: Benchmark, build: Build) -> Selection:
    """Return the build's instances that the spec selects, in the build's order. Raises SpecError for an unknown name."""
    instances: Iterable[Instance] = BuildInstances(benchmark, build, spec.prompts)
    if spec.part is not None:
        final = read_set(build.path.resolve().parent).final_examples(build)
        instances = PartOfInstances(instances, final, spec.part == "final")
    return select_instances(spec, benchmark, instances)


def select_instances(spec: RunSpec, benchmark: Benchmark, instances: Iterable[Instance]) -> Selection:
    """Return those of a build's instances that the spec selects. Raises SpecError for an unknown name."""
    return select(
        instances,
        limit=spec.limit,
        conditions=spec.conditions or None,
        named_only=benchmark.without_sources,
        strata={key: list(words) for key, words in spec.strata.items()} or None,
        stratify_by=benchmark.stratum,
        seed=spec.seed,
    )


def create_run(
    workspace: Workspace,
    spec: RunSpec,
    folder: Path,
    identity: Mapping[str, Any],
    instances: Iterable[Instance],
    *,
    data: Path | None,
    excluded: ExcludedInstances = NONE_EXCLUDED,
    fill: Callable[[RunStore], None] = lambda store: None,
) -> None:
    """Create the run ``folder``, completely or not at all; ``fill`` adds its initial contents.

    Raises StoreError if it cannot be written, or another process created it first; SpecError as
    :meth:`Workspace.check_run_name`.
    """
    workspace.check_run_name(folder.name)
    benchmark = get_benchmark(spec.benchmark)
    meta = {
        "spec": spec.model_dump(mode="json"),
        "identity": identity,
        "data": None if data is None else str(data.absolute()),
        "conditions": list(benchmark.conditions),
        "correct": {
            c: [label for label in benchmark.labels if benchmark.correct(c, label)] for c in benchmark.conditions
        },
        SCORES_KEY: {c: {label: benchmark.score(c, label) for label in benchmark.labels} for c in benchmark.conditions},
        COUNTS_FLAGS_KEY: benchmark.counts_flags,
        "created": time.time(),
        "state": {"state": "planned"},
        EXCLUDED: excluded.to_json(),
    }
    no_room = f"there is no room for a new run in {workspace.runs_folder}; free some space."
    try:
        cells: set[tuple[str | None, ...]] = set()
        with OwnFolder(
            workspace.runs_folder, mode=0o777
        ) as new:  # renamed at the end, so that a run is always complete
            with RunStore.create(new.path, meta, _noting_cells(instances, cells), benchmark.basis) as store:
                if len(cells) > 1:
                    store.set_meta(CELLS_KEY, len(cells))
                fill(store)
            replace_file(new.path, _SPEC, tomli_w.dumps(without_none(spec.model_dump(mode="json"))).encode("utf-8"))
            new.keep_as(folder)
    except StoreFullError as error:
        raise StoreFullError(no_room) from error
    except OSError as error:
        if os.path.lexists(folder):
            if not (folder / DATABASE).is_file():
                raise StoreError(
                    f"{folder} exists and is not a run; move it, or give the run another --name."
                ) from error
            raise BusyError(
                f"another process has just begun {folder.name}; `rashomon runs` shows how far it is."
            ) from error
        if is_disk_full(error):
            raise StoreFullError(no_room) from error
        raise NoAccessError(
            f"cannot write in {workspace.runs_folder}: {error.strerror}; name another --workspace."
        ) from error


def _noting_cells(instances: Iterable[Instance], cells: set[tuple[str | None, ...]]) -> Iterator[Instance]:
    """Yield instances, and add the cells of a varied build that they are in to ``cells``."""
    for instance in instances:
        if example_of(instance.group) != instance.group:
            cells.add(tuple(instance.strata.get(name) for name in FACTOR_NAMES))
        yield instance


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` without empty values, also in nested tables, since TOML has no null."""
    cleaned = {key: without_none(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: value for key, value in cleaned.items() if value not in (None, [], {})}


def _read_spec_file(folder: Path) -> RunSpec | None:
    try:
        return parse_stored(
            RunSpec, parse_toml(read_bytes(folder, _SPEC, limit=LARGEST_SPEC)), f"{folder.name}/{_SPEC}"
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SpecError(f"{folder.name}/{_SPEC} cannot be read ({error}); restore it.") from error
