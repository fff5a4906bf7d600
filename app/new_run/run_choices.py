"""Choices for a run: benchmarks, models and judges, as the command line and the TUI list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from app.fetch import fetched_files_record
from app.fetch.benchmark_downloads import build_commands
from app.store.question_set_writer import is_version_link
from app.store.question_sets import QuestionSet
from app.store.workspace import Workspace
from app.system.project_paths import ASSETS
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError
from benchmarks.plugins.find_plugins import BrokenPlugin
from benchmarks.registry import REGISTRY as BENCHMARKS
from benchmarks.registry import working_benchmarks
from benchmarks.untrusted.finder_files import folder_entries, is_finder_file
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import Modality
from judges.judge_registry import REGISTRY as JUDGES
from judges.judge_registry import usable_judge
from mlx_backends.engine_registry import describe, has_prefix, modalities, refusal
from mlx_backends.model_family_status import FamilyStatus, family_status
from mlx_backends.models.adapter_folder import join_adapter, read_adapter, split_adapter
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.model_discovery import ModelInfo, cached_models, inspect, read_config, resolve
from mlx_backends.models.model_modalities import ALL_MODALITIES, describe_modalities
from mlx_backends.ocr_engine import READERS
from mlx_backends.policy_engine import PREFIX, policy_description, policy_names
from mlx_backends.pytorch import torch_names_and_devices
from mlx_backends.remote.remote_names_and_media import ENGINES, KEYS, is_remote

_MAX_ENTRIES = 200
"""The number of entries of a folder that are searched for models."""


@dataclass(frozen=True)
class BenchmarkChoice:
    """A benchmark and the workspace's build of it; None if there is none or it is damaged, as ``state`` explains."""

    benchmark: Benchmark
    folder: Path
    build: Build | None
    state: str
    sets: tuple[QuestionSet, ...] = ()
    """The question sets of the benchmark."""

    @property
    def name(self) -> str:
        return self.benchmark.name

    def needs(self) -> list[str]:
        """Return a line for each source of its data."""
        return [f"{source.name}: {source.description}" for source in self.benchmark.sources]

    def command(self, workspace: Workspace) -> str:
        """Return the command that builds it."""
        return " && ".join(build_commands(workspace.command(), self.name, workspace.source_folder(self.name)))


def benchmark_choices(workspace: Workspace) -> list[BenchmarkChoice]:
    """Return every benchmark that can be used. This opens and checks the builds, which reads their rows once."""
    return [_benchmark(workspace, benchmark) for benchmark in working_benchmarks()]


def broken_plugins() -> list[BrokenPlugin]:
    """Return the benchmarks and judges of other packages that cannot be used."""
    return [*BENCHMARKS.broken(), *JUDGES.broken()]


def _benchmark(workspace: Workspace, benchmark: Benchmark) -> BenchmarkChoice:
    folder = workspace.build_folder(benchmark.name)
    if not folder.exists():
        is_fetched = fetched_files_record.fetch_state(workspace.source_folder(benchmark.name)) == "fetched"
        steps = " && ".join(build_commands("rashomon", benchmark.name, workspace.source_folder(benchmark.name)))
        state = "fetched, not built yet" if is_fetched else "not built yet"
        return BenchmarkChoice(benchmark, folder, None, f"{state}: {steps}")
    try:
        build = Build.open(folder)
    except RashomonError as error:
        return BenchmarkChoice(benchmark, folder, None, str(error))
    sets = tuple(known for known in workspace.question_sets() if known.benchmark == benchmark.name)
    state = f"built: {build.manifest['instances']} instances in {folder}"
    if is_version_link(workspace.path, folder):
        state += f", version {folder.resolve().name} of the set {folder.resolve().parent.name}"
    return BenchmarkChoice(benchmark, folder, build, state, sets)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model. ``spec_name`` is its name in a spec, ``name`` its display name; ``fits`` is None if unknown.

    ``problem`` says why it cannot run; ``note`` holds other facts, such as the memory it needs. ``needed_bytes`` of memory are
    needed of the ``available_bytes``.
    """

    spec_name: str
    name: str
    kind: str
    quantisation: str | None = None
    weights_bytes: int | None = None
    fits: bool | None = True
    note: str = ""
    problem: str = ""
    takes: tuple[Modality, ...] = ()
    needed_bytes: int | None = None
    available_bytes: int | None = None
    family: FamilyStatus | None = None
    """The status of a local vision-language model's family."""

    def facts(self) -> str:
        """Return a one-line description."""
        takes = f"takes {describe_modalities(self.takes)}" if self.weights_bytes is not None and self.takes else None
        family = None if self.problem or self.family is None else str(self.family)
        facts = (self.kind, self.quantisation, takes, self.problem or self.note, family)
        return ", ".join(fact for fact in facts if fact)


def policy_choices() -> list[ModelChoice]:
    """Return the baselines that need no model."""
    return [_policy(name) for name in policy_names()]


def _policy(name: str) -> ModelChoice:
    return ModelChoice(name, name, "policy baseline", note=policy_description(name), takes=ALL_MODALITIES)


def reader_choices() -> list[ModelChoice]:
    """Return the readers of printed numbers; without the extra ``ocr`` they have a problem."""
    return [model_choice(name) for name in READERS]


def cached_choices() -> list[ModelChoice]:
    """Return the models in the Hugging Face cache; those that cannot run have a problem."""
    return [_model(model, model.name) for model in cached_models()]


def nearby_choices(workspace: Workspace) -> list[ModelChoice]:
    """Return the models in the current folder, its ``models``, the workspace's ``models``, and those that ship with Rashomon."""
    places = (Path.cwd(), Path.cwd() / "models", workspace.path / "models", ASSETS / "demo")
    folders = dict.fromkeys(folder for parent in places for folder in _model_folders(parent))
    return [model_choice(str(folder)) for folder in folders]


def _model_folders(parent: Path) -> Iterator[Path]:
    try:
        entries = folder_entries(parent)[:_MAX_ENTRIES]
    except OSError:
        return
    for entry in entries:
        if (entry / "config.json").is_file() and any(
            not is_finder_file(file.name) for file in entry.glob("*.safetensors")
        ):
            yield entry


def model_choice(spec_name: str) -> ModelChoice:
    """Return the model named ``spec_name``: a policy, a remote model, a folder or a Hub id. An unknown one has a problem."""
    if spec_name.startswith(PREFIX):
        if spec_name in policy_names():
            return _policy(spec_name)
        problem = f"there is no policy {spec_name!r}"
        return ModelChoice(spec_name, spec_name, "policy baseline", fits=False, problem=problem, takes=ALL_MODALITIES)
    if spec_name.startswith(torch_names_and_devices.PREFIX) or has_prefix(spec_name):
        kind, note = ("remote", key_state(spec_name)) if is_remote(spec_name) else (spec_name.partition(":")[0], "")
        if spec_name in READERS:
            kind, note = "text recognition", READERS[spec_name]
        try:
            describe(spec_name)
            problem = refusal(spec_name)
        except RashomonError as error:
            problem = str(error)
        if problem:
            return ModelChoice(spec_name, spec_name, kind, fits=None, problem=problem)
        return ModelChoice(spec_name, spec_name, kind, note=note, takes=modalities(spec_name))
    try:
        name, adapter = split_adapter(spec_name)
        choice = _model(inspect(resolve(name)), str(typed_path(name)) if typed_path(name).is_dir() else name)
        return choice if adapter is None else _with_adapter(choice, str(typed_path(adapter)))
    except RashomonError as error:
        name = Path(spec_name).name if path_exists(spec_name) else spec_name
        return ModelChoice(spec_name, name, "model", fits=None, problem=str(error))


def _with_adapter(choice: ModelChoice, folder: str) -> ModelChoice:
    """Return the model of ``choice`` with the adapter in ``folder``. Raises ModelError if there is none."""
    name = f"{choice.name}+{read_adapter(folder).name}"
    return replace(choice, spec_name=join_adapter(choice.spec_name, folder), name=name)


def _model(model: ModelInfo, spec_name: str) -> ModelChoice:
    if model.problem is not None:
        return ModelChoice(spec_name, model.name, "model", fits=None, problem=model.problem)
    fit = memory_fit(model.weights_bytes)
    kind = f"{model.architecture} (text only)" if model.engine == "mlx-lm" else model.architecture or "model"
    return ModelChoice(
        spec_name,
        model.name,
        kind,
        model.quantisation,
        model.weights_bytes,
        fit.ok,
        fit.sentence,
        takes=model.takes,
        needed_bytes=fit.need,
        available_bytes=fit.available,
        family=family_status(read_config(model.path), model.name) if model.engine == "mlx-vlm" else None,
    )


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """A judge of a benchmark's answers. ``spec_name`` is its name in a spec; one that ends in ``:`` needs a model's name."""

    spec_name: str
    kind: str
    description: str
    ready: bool = True


def judge_choices(benchmark: Benchmark, models: Iterable[ModelChoice] = ()) -> list[JudgeChoice]:
    """Return the rule-based judges and, if the benchmark has a rubric, ``models`` that can judge and the remote engines."""
    choices = []
    for name in benchmark.judges:
        if (judge := usable_judge(name)) is not None:
            choices.append(JudgeChoice(name, "by rule", judge.description))
    if benchmark.rubric is None:
        return choices
    local = (model for model in models if model.weights_bytes is not None and not model.problem)
    choices += [
        JudgeChoice(model.spec_name, "model", f"{model.name}, {model.facts()}", bool(model.fits)) for model in local
    ]
    for engine in ENGINES:
        state = key_state(f"{engine}:")
        choices.append(JudgeChoice(f"{engine}:", "remote", state, not state.startswith("no key")))
    return choices


def key_state(model: str) -> str:
    """Return a sentence on whether the API key for a remote ``model`` is set, without the key."""
    from mlx_backends.remote.api_keys import key_source

    engine = model.partition(":")[0]
    names = next(names for known, names in KEYS.items() if known == engine)
    for name in names:
        if location := key_source(name, keychain=False):
            return f"key {name} is in the {location}"
    if engine == "endpoint":
        return f"key {names[0]} is not in the environment; many servers need none"
    return f"no key {' or '.join(names)} in the environment"
