"""References to runs: the texts that stand for a run wherever a command takes one.

::

    NAME              a run of the workspace, or a unique beginning of its name
    FOLDER            a run's folder
    FILE, FILE:RUN    a bundle's run
    latest:MODEL      the newest run of a model that has answers
    latest:MODEL@SET  the same, on a question set
    @SET              the run of the model in use on a question set, or else its newest run
    published:ROW     a row of the paper's tables
    published:FILE    a bundle's run that is compared as such a row is

The texts with ``:`` or ``@`` come first, since a folder of any name can lie in a workspace; ``./`` before a name makes it a path.
A gate takes whole names only: once a run is deleted, its name may be the beginning of another one.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from app.run_spec import LARGEST_SPEC
from app.store.bundles.bundle_layout_and_limits import SPEC, BundleError
from app.store.bundles.bundle_opening import is_bundle_file
from app.store.question_set_runs import FINAL, newest_runs, read_runs
from app.store.question_sets import find_set, read_sets, set_folder
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.store.tried_models import read_tried
from app.store.workspace import Workspace
from app.typed_names import resolve_models
from benchmarks.errors import SpecError, StoreError
from benchmarks.number_ranges import shortened
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes
from benchmarks.untrusted.safe_toml import parse_toml
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from mlx_backends.portable_model_names import without_folders

PUBLISHED, LATEST, OF_SET = "published:", "latest:", "@"
"""The beginnings of references that are no names."""

_ACCEPTED = "Name a run by its name, its folder, FILE:RUN, latest:MODEL or @SET."
_LISTED = 5
"""The number of runs that are listed for an ambiguous name."""
_LONGEST = 200
_LOOKED_AT = 200
"""The number of runs that are looked at for others on the data of the newest one."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run in a folder; ``bundle`` is the file that it was read from, if it is a bundle's."""

    folder: Path
    bundle: Path | None = None


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of the paper's tables by its name; with a ``folder``, a bundle's run that is compared as one."""

    name: str
    folder: Path | None = None


def find_reference(workspace: Workspace, text: str, *, whole: bool = False) -> StoredRun | PublishedRow:
    """Return what ``text`` stands for. Raises SpecError or StoreError, which says what is accepted.

    With ``whole``, the beginning of a name is refused.
    """
    reference = match_reference(workspace, text, whole=whole)
    if reference is not None:
        return reference
    names = workspace.run_names()
    matches = [name for name in names if text and name.startswith(text)]
    if whole and matches:
        described = _describe(workspace, matches)
        raise SpecError(f"there is no run {shortened(text)}, only {described}; write the whole name here.")
    if len(matches) == 1:
        return StoredRun(workspace.runs_folder / matches[0])
    if matches:
        described = _describe(workspace, matches)
        raise StoreError(
            f"{text!r} matches {len(matches)} runs, newest first: {described}; type more of the name, or latest:MODEL@SET."
        )
    problem = f"there is no run {shortened(text)} in {workspace.runs_folder}"
    if place := next((place for place in (text, text.rpartition(":")[0]) if place and path_exists(place)), None):
        raise StoreError(f"{problem}, and {shortened(place)} is neither a run nor a bundle, or is damaged. {_ACCEPTED}")
    if hint := _demo_hint(workspace, text):
        raise StoreError(f"{problem}; {hint}")
    hint = _closest(text, names) if names else "there are no runs yet."
    raise StoreError(f"{problem}; {hint} {_ACCEPTED}")


def match_reference(workspace: Workspace, text: str, *, whole: bool = False) -> StoredRun | PublishedRow | None:
    """Return what ``text`` stands for; None if that is the beginning of a name, or nothing.

    Raises SpecError or StoreError as :func:`find_reference` does.
    """
    if text.startswith(PUBLISHED):
        row = text.removeprefix(PUBLISHED)
        if not row:
            raise SpecError("published: names no row; write published:ROW, a model's name as the paper prints it.")
        received = _bundled_run(row, whole=whole)
        return PublishedRow(row, received.folder if received else None)
    if text.startswith(LATEST):
        return StoredRun(_latest(workspace, text.removeprefix(LATEST)))
    if text.startswith(OF_SET):
        return StoredRun(_of_set(workspace, text.removeprefix(OF_SET)))
    if text in workspace.run_names():
        return StoredRun(workspace.runs_folder / text)
    if text and path_exists(Path(text) / DATABASE):
        return StoredRun(typed_path(text))
    return _bundled_run(text, whole=whole)


def run_folder(workspace: Workspace, text: str, *, whole: bool = False) -> Path:
    """Return the folder of the run of :func:`find_reference`. Raises SpecError, also for a published row, or StoreError."""
    return _stored(workspace, text, whole=whole).folder


def run_folders(workspace: Workspace, texts: Iterable[str]) -> list[Path]:
    """Return the folder of each run; see :func:`run_folder`."""
    return [run_folder(workspace, text) for text in texts]


def newest_of_a_build(workspace: Workspace, most: int = 20) -> list[Path]:
    """Return the folders of the run that was changed last, and of the others on the same data; ``most`` at most.

    The one with the most answers that are no errors comes first, the oldest of several, and then the others, newest first.
    Only the runs that were changed last are looked at, so that thousands of runs take no time. Raises StoreError without a run.
    """
    names = [name for _, name in sorted(_changes(workspace, workspace.run_names()), reverse=True)]
    shared: tuple[str, Any] | None = None
    runs = []
    for name in names[:_LOOKED_AT]:
        with suppress(StoreError), RunStore.read(workspace.runs_folder / name) as run:
            data = run.meta("spec")["benchmark"], run.meta("identity").get("data digest")
            shared = shared or data
            if data == shared:
                answers = sum(progress.done - progress.errors for progress in run.progress())
                runs.append((float(run.meta("created")), name, answers))
        if len(runs) == most:
            break
    if not runs:
        raise StoreError(f"there is no run in {workspace.runs_folder} that can be read; `rashomon demo` makes some.")
    newest_first = sorted(runs, reverse=True)
    baseline = max(reversed(newest_first), key=lambda run: run[2])
    ordered = [baseline, *(run for run in newest_first if run is not baseline)]
    return [workspace.runs_folder / name for _, name, _ in ordered]


def changeable_run(workspace: Workspace, text: str) -> Path:
    """Return :func:`run_folder` for a command that changes the run. Raises SpecError for a bundle's run."""
    run = _stored(workspace, text)
    if run.bundle is not None:
        adopt = f"rashomon adopt {shlex.quote(f'{run.bundle}:{run.folder.name}')}"
        raise SpecError(f"{text} is a bundle's run, which nothing changes; `{adopt}` copies it to your workspace.")
    return run.folder


def stored_models(workspace: Workspace) -> dict[str, str | None]:
    """Return the model of each run, by the spec beside its database; None where there is no readable one.

    Thousands of runs take a fraction of a second. The database has the last word on the model.
    """
    return {name: _stored_model(workspace.runs_folder / name) for name in workspace.run_names()}


def _stored_model(folder: Path) -> str | None:
    try:
        return str(parse_toml(read_bytes(folder, SPEC, limit=LARGEST_SPEC))["model"])
    except (OSError, UnsafeFileError, ValueError, KeyError):
        return None


def _stored(workspace: Workspace, text: str, *, whole: bool = False) -> StoredRun:
    reference = find_reference(workspace, text, whole=whole)
    if isinstance(reference, PublishedRow):
        raise SpecError(f"{text} is a row that `rashomon compare` and `parity` put beside runs. {_ACCEPTED}")
    return reference


def _bundled_run(text: str, *, whole: bool) -> StoredRun | None:
    """Return a bundle's run, given as FILE or FILE:RUN; None if no bundle is named.

    With ``whole``, RUN is no beginning of a name.
    Raises BundleError if the bundle cannot be opened, or has no such run, or several and none is named.
    """
    for file, run in ((text, ""), tuple(text.rsplit(":", 1)) if ":" in text else ("", "")):
        if file and path_exists(file) and is_bundle_file(path := typed_path(file)):
            bundle = Workspace.open(path)
            names = bundle.run_names()
            is_beginning = run and whole
            matches = [run] if run in names else [name for name in names if name.startswith(run) and not is_beginning]
            if len(matches) == 1:
                return StoredRun(bundle.runs_folder / matches[0], path)
            problem = f"{'has no run' if not matches else f'has {len(matches)} runs that begin with'} {run!r}"
            known = ", ".join(f"{path.name}:{name}" for name in matches or names)
            raise BundleError(f"{path.name} {problem if run else f'has {len(names)} runs'}; name one of them: {known}.")
    return None


# --- latest:MODEL and @SET -----------------------------------------------------------------------


def _latest(workspace: Workspace, text: str) -> Path:
    """Return the newest run of MODEL, or of MODEL@SET on that set. Raises SpecError."""
    by_run = stored_models(workspace)
    models = {model for model in by_run.values() if model is not None}
    model, digests = _match_model(models, text), None
    if model is None:
        name, at, set_name = text.rpartition(OF_SET)
        model = _match_model(models, name) if at else None
        if model is None:
            known, on_set = sorted(map(without_folders, models)), ""
            with suppress(SpecError):  # a model's name may have an @, too
                text, on_set = (name, f" on the set {find_set(workspace.path, set_name).name}") if at else (text, "")
            raise SpecError(f"there is no run of the model {shortened(text)}{on_set}; {_closest(text, known)}")
        digests = {version.digest for version in find_set(workspace.path, set_name).versions}
    folder = _newest(workspace, by_run, model, digests)
    if folder is None:
        where = f" on the set {set_name}" if digests is not None else ""
        raise SpecError(f"no run of {model}{where} has answers yet; `rashomon runs` lists all runs.")
    return folder


def _match_model(models: Collection[str], text: str) -> str | None:
    """Return the model of that name, in full or without folders; None if there is none. Raises SpecError if there are several."""
    for name in (text, *resolve_models([text])):
        if name in models:
            return name
    matches = sorted(model for model in models if without_folders(model) == text)
    if len(matches) > 1:
        raise SpecError(f"{text!r} matches {len(matches)} models: {', '.join(matches[:_LISTED])}; name one in full.")
    return matches[0] if matches else None


def _of_set(workspace: Workspace, name: str) -> Path:
    """Return the run of the model in use on a set, that of the newest version it has answered; without one, the set's newest run.

    The rows held out for a final decision never stand for a set. Raises SpecError.
    """
    question_set = find_set(workspace.path, name)
    tried, by_run = read_tried(set_folder(workspace.path, name)), stored_models(workspace)
    if not tried.incumbent:
        digests = {version.digest for version in question_set.versions}
        folder = _newest(workspace, by_run, None, digests)
        if folder is None:
            raise SpecError(f"no run on the set {question_set.name} has answers yet; `rashomon try MODEL` makes one.")
        return folder
    of_model = [run for run, model in by_run.items() if model in (tried.incumbent, None)]
    finished = newest_runs(read_runs(workspace, question_set, of_model), tried)
    runs = [run for run in finished if run.model == tried.incumbent]
    if not runs:
        ask = f"rashomon try {shlex.quote(tried.incumbent)} --set {question_set.name}"
        in_use = f"{tried.incumbent}, the model in use on {question_set.name}"
        raise SpecError(f"{in_use}, has no finished run there; `{ask}` makes one.")
    return workspace.runs_folder / max(runs, key=lambda run: (run.version, run.created, run.name)).name


def _newest(
    workspace: Workspace, by_run: Mapping[str, str | None], model: str | None, digests: Collection[str] | None
) -> Path | None:
    """Return the newest run with answers, of ``model`` and on data with one of these digests unless they are None.

    One that asked the rows held out is never meant: it serves one decision.

    A run was planned when it says so, but not after its last change: then a clock was wrong. So the runs are read in the order
    of their last change, and only until no other can be newer. Raises StoreError for a damaged run of the model among them.
    """
    newest: tuple[float, str] | None = None
    names = (name for name, other in by_run.items() if model is None or other in (model, None))
    for changed, name in sorted(_changes(workspace, names), reverse=True):
        if newest is not None and changed < newest[0]:
            break
        try:
            with RunStore.read(workspace.runs_folder / name) as run:
                planned = min(float(run.meta("created")), changed), name
                if newest is not None and planned < newest:
                    continue
                spec, data = run.meta("spec"), run.meta("identity").get("data digest")
                is_sought = model in (None, spec["model"]) and (digests is None or data in digests)
                if is_sought and spec.get("part") != FINAL and run.has_answers:
                    newest = planned
        except StoreError:
            if model is not None and by_run[name] == model:
                raise
    return None if newest is None else workspace.runs_folder / newest[1]


def _changes(workspace: Workspace, names: Iterable[str]) -> Iterator[tuple[float, str]]:
    """Yield when each run's database was last changed, in seconds since 1970, with the run's name."""
    for name in names:
        with suppress(OSError):
            yield os.stat(workspace.runs_folder / name / DATABASE, follow_symlinks=False).st_mtime, name


# --- messages ------------------------------------------------------------------------------------


def _closest(text: str, known: Sequence[str]) -> str:
    """Return the end of a message about ``text``, of which there may be thousands of ``known`` alternatives."""
    close = get_close_matches(text[:_LONGEST], known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "`rashomon runs` lists all."


def _describe(workspace: Workspace, names: Sequence[str]) -> str:
    """List the newest of these runs, each with its date and, if their data differ, its question set or the data's digest."""
    facts_by_name: dict[str, tuple[float, str]] = dict.fromkeys(names, (0.0, ""))
    for name in names:
        with suppress(Exception), RunStore.read(workspace.runs_folder / name) as run:  # an unreadable run has no facts
            facts_by_name[name] = run.meta("created", 0.0), run.meta("identity", {}).get("data digest") or ""
    data_differ = len({data for _, data in facts_by_name.values()}) > 1
    sets = {
        version.digest: f"{question_set.name}{OF_SET}{version.number}"
        for question_set in (read_sets(workspace.path) if data_differ else ())
        for version in question_set.versions
    }
    descriptions = []
    for name in sorted(names, key=lambda run: facts_by_name[run], reverse=True)[:_LISTED]:
        created, data = facts_by_name[name]
        facts = [time.strftime("%Y-%m-%d %H:%M", time.localtime(created))] if created else []
        facts += [f"set {sets[data]}" if data in sets else f"data {data[:12]}"] if data and data_differ else []
        descriptions.append(f"{name} ({', '.join(facts)})" if facts else name)
    return ", ".join(descriptions) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _demo_hint(workspace: Workspace, name: str) -> str:
    """Return the command for a demo's run with the prefix ``name``; "" if there is none."""
    for demo in workspace.demos():
        if name and any(known.startswith(name) for known in demo.run_names()):
            return f"a demo has one in a separate workspace: {demo.command()} show {shlex.quote(name)}"
    return ""
