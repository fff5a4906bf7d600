"""Plans of the papers' setups: what is here, what to fetch and to build, calls and time, as far as known without a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from app.engine.model_judging import WorkLeft, work_left
from app.engine.run_plan import CheckedSpec, check_spec, chosen_instances, open_build
from app.engine.runs_to_resume import command_runs
from app.fetch import fetched_files_record
from app.fetch.benchmark_downloads import NOT_FETCHED, RECIPES
from app.fetch.fetch_plan import disk_problem
from app.new_run.run_choices import model_choice
from app.new_run.run_estimate import (
    MeasuredSpeed,
    calls_by_condition,
    judge_costs,
    measured_speed,
    remote_usage,
)
from app.new_run.setup_spec import LeftOut, is_built, setup_spec
from app.papers.paper_setups import PREFIX, Setup
from app.run_spec import BatchSpec, RunSpec
from app.store.question_sets import is_own_build
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.system.project_paths import ASSETS
from benchmarks.errors import STOPPED, RashomonError, SpecError
from benchmarks.fetch.hub_cache import hub_cache
from benchmarks.fetch.hub_repository import OFFLINE, is_id, is_offline
from benchmarks.protocols.remedy_protocols import calls_per_answer
from benchmarks.protocols.repeats import RepeatedInstances
from benchmarks.registry import get_benchmark
from judges.judge_registry import judge_names
from mlx_backends.models.adapter_folder import split_adapter
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.model_catalog import catalog_entry
from mlx_backends.models.model_discovery import can_fetch
from mlx_backends.remote import is_remote, readiness_problem


@dataclass(frozen=True, slots=True)
class DataPlan:
    """The data of a setup. ``state`` tells what is left to do: nothing, a build, or fetching and a build.

    Attributes:
        what: A phrase that describes the data.
        folder: The folder of the build, or else that of the fetched files.
        known_bytes: The bytes to fetch as far as known without a server; ``unknown_size`` is a phrase on the rest, if any.
        origin: The servers that the data are on.
        sources: The sources of a build of what ships with Rashomon, as on the command line.
        missing: Sentences on what cannot be had; the plan is made without it.
        problem: A sentence on why there will be no build; "" if there will be.
    """

    state: Literal["built", "fetched", "shipped", "begun", "none", "unavailable"]
    what: str
    folder: Path
    known_bytes: int = 0
    unknown_size: str = ""
    origin: str = ""
    licences: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    problem: str = ""

    @property
    def to_fetch(self) -> bool:
        return self.state in ("begun", "none")

    @property
    def to_build(self) -> bool:
        return self.state in ("fetched", "shipped") or self.to_fetch


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A model of a setup; ``bytes`` of weights are None if only the Hub knows them, ``problem`` says why it cannot run."""

    name: str
    to_fetch: bool = False
    bytes: int | None = None
    licence: str | None = None
    note: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run of a setup: its ``calls`` by condition, those that are left if it exists.

    ``at_most`` tells that a limit or strata will select among them once the data are here. ``answers`` are left, each in the time
    of ``speed``, which is None if no run of the model on this benchmark was timed in the workspace.
    """

    model: str
    prompt_set: str
    calls: Mapping[str, int]
    answers: int
    at_most: bool
    speed: MeasuredSpeed | None
    note: str = ""

    @property
    def seconds(self) -> float | None:
        if not self.answers:
            return 0.0
        return None if self.speed is None else self.speed.seconds * self.speed.calls * self.answers


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """The plan of a setup, a function of the workspace, the caches and the catalogue alone.

    Attributes:
        judges: The judges, with a sentence on why it is not the paper's if so.
        models_left_out, conditions_left_out: What the plan does without.
        counted: Where the numbers of calls are from, a phrase.
        costs: Sentences on the use of remote models and judges.
        problems: Sentences on why the plan cannot be carried out.
    """

    name: str
    data_benchmark: str
    """The benchmark that the data are of: the setup's, unless the user names another one."""
    data: DataPlan
    models: tuple[ModelPlan, ...]
    models_left_out: LeftOut
    conditions_left_out: LeftOut
    judges: tuple[str, ...]
    judge_sentence: str
    runs: tuple[RunPlan, ...]
    counted: str
    costs: tuple[str, ...]
    not_ready: tuple[str, ...]
    problems: tuple[str, ...]
    exit_code: int = SpecError.exit_code
    """The code for the problems."""

    @property
    def to_fetch(self) -> bool:
        return self.data.to_fetch or any(model.to_fetch for model in self.models)

    @property
    def calls(self) -> int:
        return sum(sum(run.calls.values()) for run in self.runs)

    @property
    def seconds(self) -> float | None:
        """The time of all runs; None if that of one is unknown."""
        times = [run.seconds for run in self.runs]
        return None if None in times else sum(time or 0.0 for time in times)

    @property
    def known_bytes(self) -> int:
        """The bytes to fetch, as far as known."""
        return self.data.known_bytes + sum(model.bytes or 0 for model in self.models if model.to_fetch)

    @property
    def is_size_known(self) -> bool:
        """True if the size of all that is to be fetched is known."""
        return not self.data.unknown_size and all(model.bytes is not None for model in self.models if model.to_fetch)


def plan_setup(
    workspace: Workspace,
    setup: Setup,
    overrides: Mapping[str, Any],
    *,
    force: bool = False,
    accept_engine: bool = False,
    elsewhere: bool = False,
) -> SetupPlan:
    """Return the plan of a setup, without any network.

    ``accept_engine`` and ``elsewhere`` are as in :func:`~app.engine.run_plan.check_spec`. Raises as :func:`setup_spec`.
    """
    chosen = setup_spec(workspace, setup, overrides, force=force)
    spec = chosen.spec
    runs = command_runs(workspace, spec)
    data = _plan_data(workspace, setup, runs[0])
    judging = [name for name in spec.judge if name not in judge_names() and is_id(name)]
    names = dict.fromkeys(split_adapter(run.model)[0] for run in runs)
    models = tuple(_plan_model(name, force=force) for name in dict.fromkeys([*names, *judging]))
    problems = [data.problem, *(f"{model.name}: {model.problem}" for model in models if model.problem)]
    here = {model.name for model in models if not (model.to_fetch or model.problem)}
    planned, costs = list[RunPlan](), list[str]()
    for run in runs:
        try:
            if data.state != "built":
                run_plan, run_costs = _plan_unbuilt(workspace, setup, run)
            elif split_adapter(run.model)[0] in here:
                checked = check_spec(workspace, run, accept_engine=accept_engine, elsewhere=elsewhere)
                run_plan, run_costs = _plan_checked(workspace, checked)
            else:
                run_plan, run_costs = _plan_without_model(workspace, run), []
        except RashomonError as error:
            problems.append(str(error))
        else:
            planned.append(run_plan)
            costs += run_costs
    plan = SetupPlan(
        setup.name,
        spec.benchmark,
        data,
        models,
        chosen.models_left_out,
        chosen.conditions_left_out,
        tuple(runs[0].judge),
        chosen.judge_sentence,
        tuple(planned),
        "instances are counted in the build" if data.state == "built" else setup.published_source,
        tuple(dict.fromkeys(costs)),
        _not_ready(workspace, spec),
        tuple(filter(None, dict.fromkeys(problems))),
    )
    return plan if plan.problems else _with_fetch_problems(plan)


def _not_ready(workspace: Workspace, spec: BatchSpec) -> tuple[str, ...]:
    """Return sentences on what keeps remote models and judges from answering."""
    options = spec.api.remote_options(workspace.replies)
    remote = [name for name in (*spec.model, *spec.judge) if is_remote(name)]
    return tuple(filter(None, dict.fromkeys(readiness_problem([name], options) for name in remote)))


def _with_fetch_problems(plan: SetupPlan) -> SetupPlan:
    if not plan.to_fetch:
        return plan
    if is_offline():
        return replace(plan, problems=(OFFLINE,), exit_code=STOPPED)
    needs = Counter({plan.data.folder: plan.data.known_bytes if plan.data.to_fetch else 0})
    needs[hub_cache()] += sum(model.bytes or 0 for model in plan.models if model.to_fetch)
    problem = disk_problem(needs, f"{PREFIX}{plan.name}")
    return replace(plan, problems=(problem,), exit_code=STOPPED) if problem else plan


def _plan_data(workspace: Workspace, setup: Setup, run: RunSpec) -> DataPlan:
    name, folder = run.benchmark, workspace.source_folder(run.benchmark)
    if is_built(workspace, run):
        place = Path(run.data) if run.data else workspace.build_folder(name)
        try:
            build = open_build(workspace, run)
        except RashomonError as error:
            return DataPlan("unavailable", "", place, problem=str(error))
        rows = f"{build.manifest['instances']:,} rows"
        own = not run.data and is_own_build(build.path, get_benchmark(name).rows_source)
        return DataPlan("built", f"{rows} of your own table, not the paper's data" if own else rows, build.path)
    if setup.shipped and name == setup.name:
        sources = tuple(f"{source}={ASSETS / place}" for source, place in setup.shipped.items())
        what = f"what ships with Rashomon ({', '.join(setup.shipped)})"
        return DataPlan("shipped", what, workspace.build_folder(name), sources=sources, missing=(setup.shipped_data,))
    if name not in RECIPES:
        return DataPlan("unavailable", "", folder, problem=NOT_FETCHED.get(name, f"{name} has no data to fetch."))
    recipe, state = RECIPES[name], fetched_files_record.fetch_state(folder)
    missing = (recipe.manual_steps,) if recipe.manual_steps else ()
    if state == "fetched":
        return DataPlan(state, recipe.what, folder, licences=recipe.licences, missing=missing)
    return DataPlan(
        state,
        recipe.what,
        folder,
        recipe.known_bytes,
        recipe.unknown_size,
        recipe.origin,
        recipe.licences,
        missing=missing,
    )


def _plan_model(name: str, *, force: bool) -> ModelPlan:
    if not can_fetch(name):
        choice = model_choice(name)
        too_large = (
            ""
            if choice.fits is not False or force or choice.problem
            else f"{choice.note}; add --force, or name another one."
        )
        return ModelPlan(name, bytes=choice.weights_bytes, note=choice.note, problem=choice.problem or too_large)
    entry = catalog_entry(name)
    if entry is None:
        return ModelPlan(name, to_fetch=True)
    fit = memory_fit(entry.weights_bytes)
    problem = "" if fit.ok or force else f"{fit.sentence}; add --force, or name another one."
    return ModelPlan(name, True, entry.weights_bytes, entry.licence, fit.sentence, problem)


def _plan_checked(workspace: Workspace, checked: CheckedSpec) -> tuple[RunPlan, list[str]]:
    """Return the plan of a run whose data and model are here, and sentences on its costs."""
    run, speed = checked.spec, measured_speed(workspace, checked.spec)
    if checked.existing:
        with RunStore.read(checked.folder) as store:
            left, progress = work_left(store, run), store.progress()
        rest = {p.condition: p.total - p.done for p in progress if p.total > p.done}
        note = state_of(left, sum(p.total for p in progress))
        return RunPlan(run.model, run.prompt_set, rest, left.answers, False, speed, note), []
    note = " ".join(filter(None, (checked.excluded.sentence, checked.trained.sentence, checked.lost_effect)))
    calls = calls_by_condition(run, checked.instances)
    return RunPlan(run.model, run.prompt_set, calls, len(checked.instances), False, speed, note), [*_costs(checked)]


def _plan_without_model(workspace: Workspace, run: RunSpec) -> RunPlan:
    """Return the plan of a run whose model is not here, and which media it takes not known."""
    chosen = chosen_instances(run, get_benchmark(run.benchmark), open_build(workspace, run))
    instances = RepeatedInstances(chosen, run.repeats)
    answers, calls = sum(1 for _ in instances), calls_by_condition(run, instances)
    return RunPlan(run.model, run.prompt_set, calls, answers, False, measured_speed(workspace, run))


def _plan_unbuilt(workspace: Workspace, setup: Setup, run: RunSpec) -> tuple[RunPlan, list[str]]:
    """Return the plan of a run by the numbers of the published data, and sentences on its costs."""
    times = calls_per_answer(run.protocol, run.samples)
    counts = setup.published if run.benchmark == setup.name else {}
    answers = {name: counts[name] * run.repeats for name in run.conditions if name in counts}
    calls, total = {name: n * times for name, n in answers.items()}, sum(answers.values())
    at_most = bool(run.strata) or run.limit not in (None, setup.values.get("limit"))
    remote = [run.model] if is_remote(run.model) else []
    remote += [f"judge {name}" for name in run.judge if is_remote(name)]
    costs = [
        f"{name}: at most {total:,} answers; tokens and money are known once the data are built" for name in remote
    ]
    return RunPlan(run.model, run.prompt_set, calls, total, at_most, measured_speed(workspace, run)), costs


def _costs(run: CheckedSpec) -> Iterator[str]:
    if is_remote(run.spec.model):
        yield f"{run.spec.model}: {remote_usage(run.spec, run.instances, run.build)}"
    yield from judge_costs(run.spec, get_benchmark(run.spec.benchmark), run.instances)


def state_of(left: WorkLeft, total: int) -> str:
    """Return how far an existing run of ``total`` instances is."""
    if left.answers:
        return f"the spec is valid, {total - left.answers} of {total} instances are answered already; nothing was run"
    answered = f"all {total} instances are answered"
    if left.verdicts:
        return f"{answered}, and {left.verdicts} answers are left to judge"
    return f"{answered} and judged; nothing is left to run"
