"""Runs of a command: those that an earlier one left unfinished, or new ones."""

from __future__ import annotations

import re
import time
from pathlib import Path

from app.engine.run_identity import refused_differences
from app.engine.run_plan import identity_of, open_build
from app.run_name_patterns import Moment, is_pattern, moment_of
from app.run_spec import BatchSpec, RunSpec
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from benchmarks.errors import RashomonError
from mlx_backends.engine_registry import describe

_ENDED = ("done", "stopped", "unreadable")
"""The states of runs that no command resumes by itself."""
_NIGHT = 12 * 3600.0
"""The seconds after which an unfinished run no longer counts as one of the same night."""
_STEM = 74
"""The longest beginning of a numbered name, which leaves five digits."""


def command_runs(workspace: Workspace, spec: BatchSpec, *, accept_engine: bool = False) -> list[RunSpec]:
    """Return the runs of a spec, with the names that they have in the workspace.

    The date and time in a name are those of the newest unfinished run that began less than 12 hours ago, so that a night's run is
    resumed after midnight. Runs without a name that ask all anew are new ones, unless one of them was interrupted: then the
    command is resumed. Those with a pattern that ask all anew are numbered beside a run of other data, weights or options, which
    stays as it is; ``accept_engine`` is as in :func:`~app.engine.run_plan.check_identity`. Raises SpecError as
    :meth:`BatchSpec.runs` does.
    """
    if is_pattern(spec.name):
        runs = spec.runs(_unfinished_moment(workspace, spec, accept_engine=accept_engine))
        return [_beside_others(workspace, run, accept_engine=accept_engine) for run in runs] if spec.fresh else runs
    runs = spec.runs()
    if spec.name is not None or not spec.fresh:
        return runs
    try:
        stems = [run.run_name(open_build(workspace, run).digest) for run in runs]
    except RashomonError:  # reported when the spec is checked
        return runs
    newest = [_newest(workspace, stem) for stem in stems]
    interrupted = any(state not in ("", "failed", *_ENDED) for _, state in newest)
    names = [
        _numbered(stem, max(number, 1)) if interrupted else fresh_name(workspace, stem)
        for stem, (number, _) in zip(stems, newest, strict=True)
    ]
    return [
        run if name == stem else run.model_copy(update={"name": name})
        for run, stem, name in zip(runs, stems, names, strict=True)
    ]


def fresh_name(workspace: Workspace, stem: str) -> str:
    """Return the name for a run that asks all anew: that of the newest called ``stem``, or the next one if that has ended."""
    number, state = _newest(workspace, stem)
    return _numbered(stem, number + 1 if state in _ENDED else max(number, 1))


def _newest(workspace: Workspace, stem: str) -> tuple[int, str]:
    """Return the number and the state of the newest run called ``stem``; 0 and "" if there is none."""
    expression = re.compile(re.escape(_numbered(stem, 0)[:-1]) + "([0-9]{1,5})")
    names = workspace.run_names()
    numbers = [int(match[1]) for name in names if (match := expression.fullmatch(name))] + [1] * (stem in names)
    if not numbers:
        return 0, ""
    return max(numbers), read_summary(workspace.runs_folder / _numbered(stem, max(numbers))).state


def _numbered(stem: str, number: int) -> str:
    """Return the name of a run; that of the first is ``stem`` itself. A derived name ends in the 8 digits of its digest."""
    if number == 1:
        return stem
    return f"{stem if len(stem) <= _STEM else stem[: _STEM - 9] + stem[-9:]}-{number}"


def _beside_others(workspace: Workspace, run: RunSpec, *, accept_engine: bool) -> RunSpec:
    """Return a run with the newest number of its name, or with the next one if that is of another version."""
    assert run.name is not None
    number, _ = _newest(workspace, run.name)
    name = _numbered(run.name, max(number, 1))
    if number and not _is_version(workspace.runs_folder / name, workspace, run, accept_engine=accept_engine):
        name = _numbered(run.name, number + 1)
    return run.model_copy(update={"name": name})


def _is_version(folder: Path, workspace: Workspace, run: RunSpec, *, accept_engine: bool) -> bool:
    """Return whether the stored run may be resumed as ``run``; True if that cannot be known, which is reported later."""
    try:
        identity = identity_of(run, open_build(workspace, run), describe(run.model))
        with RunStore.read(folder) as store:
            return not refused_differences(store.meta("identity"), identity, accept_engine=accept_engine)[0]
    except RashomonError:
        return True


def _unfinished_moment(workspace: Workspace, spec: BatchSpec, *, accept_engine: bool) -> Moment | None:
    """Return the moment in the name of the newest unfinished run of a spec that began less than 12 hours ago, if any.

    If all is asked anew, numbered names count as well, and runs of another version do not.
    """
    assert spec.name is not None
    since = time.time() - _NIGHT
    earliest = time.strftime("%Y-%m-%d", time.localtime(since))
    moments = []
    for name in workspace.run_names():
        moment = moment_of(spec.name, name, spec.model)
        if moment is None and spec.fresh:
            moment = moment_of(spec.name, re.sub("-[0-9]{1,5}$", "", name), spec.model)
        if moment is not None:
            moments.append((moment, name))
    for moment, name in sorted(moments, reverse=True):
        if moment.date and moment.date < earliest:
            return None
        folder = workspace.runs_folder / name
        run = read_summary(folder)
        if (run.created or 0) < since or run.state in _ENDED:
            continue
        asked = [new for new in spec.runs(moment) if new.model == run.spec["model"]]
        if not spec.fresh or any(_is_version(folder, workspace, new, accept_engine=accept_engine) for new in asked):
            return moment
    return None
