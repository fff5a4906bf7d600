"""What can be chosen for a run: benchmarks, models, judges. The lists of the command line and of the TUI are these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.fetch import manifest
from app.fetch.recipes import to_build
from app.store.workspace import Workspace
from app.system.paths import ASSETS, exists, typed_path
from benchmarks.base import Benchmark, Modality, benchmark_names, get_benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError
from judges.base import get_judge
from mlx_backends.models.discovery import ModelInfo, cached_models, inspect, resolve
from mlx_backends.models.memory_estimate import fits
from mlx_backends.models.modalities import ALL, in_words
from mlx_backends.policy import PREFIX, policy_names
from mlx_backends.pytorch import spec
from mlx_backends.registry import describe, engine_of, takes_of
from mlx_backends.remote.model_names import ENGINES, KEYS, is_remote

_NEAR = 200
"""So many entries of a folder are looked at for models."""


@dataclass(frozen=True)
class BenchmarkChoice:
    """A benchmark, and the workspace's build of it: None where there is none or it is damaged, as ``state`` says."""

    benchmark: Benchmark
    folder: Path
    build: Build | None
    state: str

    @property
    def name(self) -> str:
        return self.benchmark.name

    def needs(self) -> list[str]:
        """What its data is made from: a line for each source."""
        return [f"{source.name}: {source.description}" for source in self.benchmark.sources]

    def command(self, workspace: Workspace) -> str:
        """What builds it."""
        return " && ".join(to_build(workspace.command(), self.name, workspace.source_folder(self.name)))


def benchmark_choices(workspace: Workspace) -> list[BenchmarkChoice]:
    """Every benchmark. Builds are opened and checked, which reads their rows once."""
    return [_benchmark(workspace, get_benchmark(name)) for name in benchmark_names()]


def _benchmark(workspace: Workspace, benchmark: Benchmark) -> BenchmarkChoice:
    folder = workspace.build_folder(benchmark.name)
    if not folder.exists():
        here = manifest.state(workspace.source_folder(benchmark.name)) == "fetched"
        steps = " && ".join(to_build("rashomon", benchmark.name, workspace.source_folder(benchmark.name)))
        told = "fetched, not built yet" if here else "not built here yet"
        return BenchmarkChoice(benchmark, folder, None, f"{told}: {steps}")
    try:
        build = Build.open(folder)
    except RashomonError as error:
        return BenchmarkChoice(benchmark, folder, None, str(error))
    return BenchmarkChoice(benchmark, folder, build, f"built: {build.manifest['instances']} samples in {folder}")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model. ``word`` is what a spec calls it, ``name`` what people do; ``fits`` None where that cannot be told.

    ``problem`` says why it cannot be run; ``note`` what there is to know besides, such as what memory it needs.
    """

    word: str
    name: str
    kind: str
    quantisation: str | None = None
    weights_bytes: int | None = None
    fits: bool | None = True
    note: str = ""
    problem: str = ""
    takes: tuple[Modality, ...] = ()

    def facts(self) -> str:
        """What it is, in a line."""
        takes = f"takes {in_words(self.takes)}" if self.weights_bytes is not None and self.takes else None
        return ", ".join(fact for fact in (self.kind, self.quantisation, takes, self.problem or self.note) if fact)


def policy_choices() -> list[ModelChoice]:
    """The baselines that need no model."""
    return [ModelChoice(name, name, "policy baseline", takes=ALL) for name in policy_names()]


def cached_choices() -> list[ModelChoice]:
    """The models of the Hugging Face cache, those that cannot be run with why."""
    return [_model(model, model.name) for model in cached_models()]


def near_choices(workspace: Workspace) -> list[ModelChoice]:
    """The models in folders near: the current one, its ``models``, the workspace's ``models``, and those that ship here."""
    places = (Path.cwd(), Path.cwd() / "models", workspace.path / "models", ASSETS / "demo")
    folders = dict.fromkeys(folder for place in places for folder in _model_folders(place))
    return [model_choice(str(folder)) for folder in folders]


def _model_folders(place: Path) -> Iterator[Path]:
    try:
        entries = sorted(place.iterdir())[:_NEAR]
    except OSError:
        return
    for entry in entries:
        if (entry / "config.json").is_file() and any(entry.glob("*.safetensors")):
            yield entry


def model_choice(word: str) -> ModelChoice:
    """What a typed ``word`` names: a policy, a remote model, a folder, or a Hub id. One that is nothing has its problem."""
    if word.startswith(PREFIX):
        problem = "" if word in policy_names() else f"there is no policy {word!r}"
        return ModelChoice(word, word, "policy baseline", fits=not problem, problem=problem, takes=ALL)
    if word.startswith(spec.PREFIX) or engine_of(word):
        kind, note = ("remote", key_state(word)) if is_remote(word) else (word.partition(":")[0], "")
        try:
            describe(word)
        except RashomonError as error:
            return ModelChoice(word, word, kind, fits=None, problem=str(error))
        return ModelChoice(word, word, kind, note=note, takes=takes_of(word))
    try:
        folder = resolve(word)
        return _model(inspect(folder), str(typed_path(word)) if typed_path(word).is_dir() else word)
    except RashomonError as error:
        name = Path(word).name if exists(word) else word
        return ModelChoice(word, name, "model", fits=None, problem=str(error))


def _model(model: ModelInfo, word: str) -> ModelChoice:
    if model.problem is not None:
        return ModelChoice(word, model.name, "model", fits=None, problem=model.problem)
    fit = fits(model.weights_bytes)
    kind = f"{model.architecture} (text only)" if model.engine == "mlx-lm" else model.architecture or "model"
    return ModelChoice(
        word, model.name, kind, model.quantisation, model.weights_bytes, fit.ok, fit.sentence, takes=model.takes
    )


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """A judge of a benchmark's answers. ``word`` is what a spec calls it; one that ends in ``:`` wants a model's name."""

    word: str
    kind: str
    description: str
    ready: bool = True


def judge_choices(benchmark: Benchmark, models: Iterable[ModelChoice] = ()) -> list[JudgeChoice]:
    """The judges by rule, then, where the benchmark has a rubric, ``models`` that can judge and the remote engines."""
    found = []
    for name in benchmark.judges:
        judge = get_judge(name)
        found.append(JudgeChoice(name, "by rule", judge.description))
    if benchmark.rubric is None:
        return found
    local = (model for model in models if model.weights_bytes is not None and not model.problem)
    found += [JudgeChoice(model.word, "model", f"{model.name}, {model.facts()}", bool(model.fits)) for model in local]
    for engine in ENGINES:
        state = key_state(f"{engine}:")
        found.append(JudgeChoice(f"{engine}:", "remote", state, not state.startswith("no key")))
    return found


def key_state(model: str) -> str:
    """Whether the key for a remote ``model`` is in the environment, in words; never the key."""
    from mlx_backends.remote.api_keys import place

    engine = model.partition(":")[0]
    names = next(names for known, names in KEYS.items() if known == engine)
    for name in names:
        if where := place(name, keychain=False):
            return f"key {name} is in the {where}"
    if engine == "endpoint":
        return f"key {names[0]} is not in the environment; many servers need none"
    return f"no key {' or '.join(names)} in the environment"
