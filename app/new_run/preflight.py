"""Everything there is to say of a spec before it runs, quickly enough to say it while it is typed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.engine.plan import check_options, open_build
from app.new_run.choices import model_choice
from app.new_run.run_estimate import BuildContents, RunEstimate, judge_use, outlook, remote_use
from app.run_spec import BatchSpec, RunSpec
from app.store.database import DATABASE
from app.store.workspace import Workspace
from benchmarks.base import get_benchmark
from benchmarks.errors import AddressError, RashomonError
from judges.base import find_judge
from judges.rubric import RubricJudge
from mlx_backends.registry import engine_name
from mlx_backends.remote import is_remote, ready


@dataclass(frozen=True, slots=True)
class RunPreflight:
    """One run of a spec: what it will be called, whether it is there already, what it asks."""

    run: RunSpec
    name: str
    found: bool
    contents: BuildContents
    outlook: RunEstimate


@dataclass(frozen=True, slots=True)
class Preflight:
    """The runs of a spec, what they may cost, what would end them; ``wrong`` says by field why there are none."""

    runs: tuple[RunPreflight, ...] = ()
    costs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    wrong: Mapping[str, str] | None = None


class PreflightChecker:
    """Looks at specs of one workspace, and keeps what builds hold while they stay the same. May be used in any thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[tuple[Path, str], tuple[object, BuildContents]] = {}
        self._lock = threading.Lock()

    def contents(self, run: RunSpec) -> BuildContents:
        """What the build of a run holds. Raises SourceError, SpecError."""
        folder = Path(run.data) if run.data else self._workspace.build_folder(run.benchmark)
        with self._lock:
            stamp = _stamp(folder)
            known = self._known.get((folder, run.prompt_set))
            if known is None or known[0] != stamp or stamp is None:
                known = (stamp, BuildContents.read(open_build(self._workspace, run), run.prompt_set).counted())
                self._known[folder, run.prompt_set] = known
            return known[1]

    def look(self, spec: BatchSpec) -> Preflight:
        """What the runs of ``spec`` will be. It reads the build the first time, and of remote requests all images' headers."""
        for word in spec.model:
            if problem := model_choice(word).problem:
                return Preflight(wrong={"model": f"{word}: {problem}"})
        benchmark = get_benchmark(spec.benchmark)
        for word in spec.judge:
            try:
                find_judge(word, benchmark)
            except RashomonError as error:
                return Preflight(wrong={"judge": str(error)})
        found = []
        for run in spec.runs():
            try:
                contents = self.contents(run)
            except RashomonError as error:
                return Preflight(wrong={"data": str(error)})
            try:
                ahead = outlook(self._workspace, run, contents).counted()
            except RashomonError as error:
                return Preflight(wrong={"strata": str(error)})
            if run.score == "likelihood":
                try:
                    check_options(run, engine_name(run.model), ahead.instances)
                except RashomonError as error:
                    return Preflight(wrong={"score": str(error)})
            name = run.run_name(contents.build.digest)
            there = (self._workspace.runs_folder / name / DATABASE).is_file()
            found.append(RunPreflight(run, name, there, contents, ahead))
        return Preflight(tuple(found), tuple(self._costs(found)), (*self._excluded(found), *self._warnings(spec)))

    def _costs(self, found: list[RunPreflight]) -> list[str]:
        told = []
        for one in found:
            if one.found:
                continue
            if is_remote(one.run.model):
                told.append(f"{one.run.model}: {remote_use(one.run, one.outlook.instances, one.contents.build)}")
            for word in one.run.judge:
                judge = find_judge(word, one.contents.benchmark)
                if isinstance(judge, RubricJudge) and judge.info.device == "remote":
                    told.append(f"judge {word}: {judge_use(judge, one.run, one.outlook.instances)}")
        return told

    def _excluded(self, found: list[RunPreflight]) -> list[str]:
        new = [one for one in found if not one.found and one.outlook.excluded.total]
        return [f"{one.run.model}: {one.outlook.excluded.sentence}" for one in new]

    def _warnings(self, spec: BatchSpec) -> list[str]:
        """What would end the runs although the spec is right: a remote model or judge without its key or library."""
        terms = spec.api.terms(self._workspace.replies)
        told = []
        for word in dict.fromkeys((*spec.model, *spec.judge)):
            if is_remote(word):
                try:
                    ready(word, terms)
                except AddressError:  # which is asked for before it starts
                    continue
                except RashomonError as error:
                    told.append(f"{word}: {error}")
        # What does not fit is loaded by --force alone.
        for word in spec.model:
            choice = model_choice(word)
            if choice.fits is False:
                told.append(f"{choice.name}: {choice.note}")
        return told


def _stamp(folder: Path) -> object:
    try:
        found = [(folder / name).stat() for name in ("manifest.json", "instances.jsonl")]
    except OSError:
        return None
    return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]
