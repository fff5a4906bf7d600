"""``rashomon runs --prune`` and ``--restore``: deletion of old runs, and its undoing."""

from __future__ import annotations

import math
import re
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from app.store.file_locks import FileLock
from app.store.question_set_runs import newest_runs, read_runs
from app.store.question_sets import QuestionSet, read_set, set_folders
from app.store.reusable_answers import ReusedAnswers
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary, supervised_worker
from app.store.run_trash import Trash, folder_size
from app.store.tried_models import read_tried
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean, size
from benchmarks.errors import SpecError, StoreError, StoreFullError
from benchmarks.vocabulary import digest
from judges.base import HUMAN, OVERRIDE
from mlx_backends.baseline_engine import split_baseline
from mlx_backends.imported_engine import IMPORTED
from mlx_backends.person_engine import PERSON

_FINISHED = ("done", "stopped")
_ASKED = ("benchmark", "prompt_set", "conditions", "strata", "limit", "part")
_SECONDS = {"h": 3600, "d": 86400, "w": 604800}
_DAY = 86400
_LEAST_FREE = 10**7
"""The bytes free below which a disk is full: a run of some hundred answers would not fit."""


@dataclass(frozen=True, slots=True)
class PruneArguments:
    """The options of ``rashomon runs --prune``.

    Attributes:
        keep: The number of newest finished runs to keep of those that asked a model the same; None for any number.
        older_than: The least age, such as 30d; None for any.
        match: A glob pattern of names; only these runs are looked at; None for all.
        include_used: Whether runs that something else rests on are deleted, too.
    """

    keep: int | None = None
    older_than: str | None = None
    match: str | None = None
    include_used: bool = False
    yes: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    summary: RunSummary
    id: str
    data: str
    model: str
    asked: str
    """The digest of what it was asked, whatever the version of its question set; runs are counted by this and the model."""

    @property
    def name(self) -> str:
        return self.summary.name


def prune(workspace: Workspace, arguments: PruneArguments) -> None:
    """Show which runs would be deleted, ask, and delete them. Raises SpecError, StoreError.

    They stay in the trash until the next call, or until the interface is closed.
    """
    workspace.require_writable()
    sets = [read_set(folder) for folder in set_folders(workspace.path)]
    runs = _read(workspace, sets)
    going = _chosen(workspace, runs, arguments)
    uses = _uses(workspace, runs, sets)
    used: dict[str, str] = {}
    while held := {
        name: reason
        for name in going
        if (reason := next((text for user, text in uses[name] if user not in going), None)) is not None
        and name not in used
    }:
        used |= held
        if not arguments.include_used:
            going = {name: why for name, why in going.items() if name not in held}
    _print_preview(workspace, going, used, kept=not arguments.include_used)
    trash = Trash(workspace)
    if names := trash.left():
        print(clean(f"Deleted before, and then gone for good: {', '.join(names)}."))
    if not going and not names:
        return
    if not arguments.yes and not _confirmed():
        print("nothing was deleted.")
        return
    if names:
        print(f"{size(trash.empty_left())} freed: {count_of(len(names), 'run')} deleted before.")
    _delete(workspace, [*going], yes=arguments.yes)


def restore(workspace: Workspace) -> None:
    """Restore the runs that the last ``--prune`` deleted.

    Raises StoreError if there are none, or for those whose name is taken, which stay in the trash.
    """
    errors: list[StoreError] = []
    with closing(Trash(workspace)) as trash:
        if not trash.take_over():
            raise StoreError("there is no deleted run to restore.")
        while len(trash.names) > len(errors):
            try:
                print(clean(f"{trash.restore(skip=len(errors)).name} is restored."))
            except StoreError as error:
                errors.append(error)
        if errors:
            raise type(errors[0])(" ".join(map(str, errors)))
        trash.empty()


def _confirmed() -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SpecError("deleting needs confirmation; check the list above, then add --yes.")
    import click

    return click.confirm("Delete?", default=False)


def _delete(workspace: Workspace, names: Sequence[str], *, yes: bool) -> None:
    """Delete runs; raise the first StoreError at the end, once all others are deleted.

    If ``yes`` and the disk is full, they are deleted for good, since the trash would free nothing.
    """
    errors, gone, freed = [], 0, 0
    is_full = yes and shutil.disk_usage(workspace.runs_folder).free < _LEAST_FREE
    with closing(Trash(workspace)) as trash:
        for name in names:
            folder = workspace.runs_folder / name
            try:
                if not is_full:
                    try:
                        trash.delete(folder)
                        continue
                    except StoreFullError:  # such as a quota
                        if not yes:
                            raise
                        is_full = True
                count = folder_size(folder)
                trash.delete(folder, for_good=True)
                gone, freed = gone + 1, freed + count
            except StoreError as error:  # a process has just begun to use it
                errors.append(error)
        if gone:
            print(
                f"{count_of(gone, 'run')} deleted for good, {size(freed)} freed: the disk is full, and the trash would free "
                "nothing. This cannot be undone."
            )
        if trash.names:
            print(
                f"{count_of(len(trash.names), 'run')} deleted. Until the next --prune, or until the interface is closed, "
                f"`{workspace.command()} runs --restore` brings them back."
            )
    if errors:
        raise errors[0]


def _read(workspace: Workspace, sets: Sequence[QuestionSet]) -> list[_Run]:
    """Return the readable runs, oldest first."""
    set_names = {version.digest: known.name for known in sets for version in known.versions}
    runs = []
    for summary in workspace.summaries():
        if summary.problem is None:
            with RunStore.read(workspace.runs_folder / summary.name) as store:
                run_id, data = str(store.meta("id")), str(store.meta("identity", {}).get("data digest"))
            asked = digest([set_names.get(data, ""), *(summary.spec.get(key) for key in _ASKED)])
            runs.append(_Run(summary, run_id, data, str(summary.spec["model"]), asked))
    return runs


def _chosen(workspace: Workspace, runs: Sequence[_Run], arguments: PruneArguments) -> dict[str, str]:
    """Return the names of the runs that are old enough to go, and why. Raises SpecError."""
    if arguments.keep is None and arguments.older_than is None:
        raise SpecError("--prune needs a limit; add --keep N, --older-than 30d, or both.")
    least_age = None if arguments.older_than is None else _seconds(arguments.older_than)
    alike_names = Counter(_without_numbers(run.name) for run in runs)
    now, newer, going = time.time(), Counter[tuple[str, str]](), {}
    for run in reversed(runs):
        if not run.summary.own or not fnmatchcase(run.name, arguments.match or "*"):
            continue
        age, alike = now - (run.summary.created or now), (run.model, run.asked)
        reasons = [] if arguments.keep is None else [f"{count_of(newer[alike], 'newer run')}"]
        reasons += [] if least_age is None else [f"{age / _DAY:.0f} days old"]
        if arguments.match is None and alike_names[_without_numbers(run.name)] == 1:
            reasons.append("the only run of such a name")
        is_beyond = arguments.keep is None or newer[alike] >= arguments.keep
        newer[alike] += run.summary.state in _FINISHED
        if is_beyond and (least_age is None or age > least_age) and not _in_use(workspace.runs_folder / run.name):
            going[run.name] = ", ".join(reasons)
    return dict(reversed(going.items()))


def _without_numbers(name: str) -> str:
    """Return what the names of a run's repetitions have in common, such as ``nightly-`` of nightly-2026-11-29."""
    return re.sub("[0-9]+", "", name).rstrip("-_")


def _seconds(text: str) -> int:
    match = re.fullmatch("([0-9]{1,5})([hdw])", text)
    if match is None:
        raise SpecError(f"--older-than {text!r} is no age; write hours, days or weeks, such as 12h, 30d or 8w.")
    return int(match[1]) * _SECONDS[match[2]]


def _in_use(folder: Path) -> bool:
    """Return whether a process works on a run, or is about to."""
    return FileLock(folder / "lock").holder() is not None or supervised_worker(folder) is not None


def _uses(
    workspace: Workspace, runs: Sequence[_Run], sets: Sequence[QuestionSet]
) -> Mapping[str, list[tuple[str, str]]]:
    """Return what rests on each run: the run that uses it, or "" for something else, and a clause. Raises StoreError."""
    uses = defaultdict[str, list[tuple[str, str]]](list)
    for question_set in sets:
        tried = read_tried(question_set.latest.build.parent)
        digests = {version.digest for version in question_set.versions}
        every = read_runs(workspace, question_set, [run.name for run in runs if run.data in digests])
        for asked in (*newest_runs(every, tried), *newest_runs(every, tried, final=True)):
            part = "the incumbent" if asked.model == tried.incumbent else "the newest run of its model"
            uses[asked.name].append(("", f"{part} in the history of {question_set.name}"))
    names = {run.id: run.name for run in runs}
    for run in runs:
        uses[run.name] += (("", clause) for clause in _made_by_people(run))
        if run.summary.reused:
            with RunStore.read(workspace.runs_folder / run.name) as store:
                lenders = ReusedAnswers.load(store).lenders
            for lender, count in lenders.items():
                uses[names.get(lender, "")].append((run.name, f"{run.name} reuses {count_of(count, 'answer')} of it"))
        rule, model = split_baseline(run.model)
        for other in runs if rule else ():
            is_source = (other.model, other.data) == (model, run.data)
            if is_source and (other.summary.created or 0) <= (run.summary.created or math.inf):
                uses[other.name].append((run.name, f"the baseline {run.name} may be made of it"))
    return uses


def _made_by_people(run: _Run) -> Iterator[str]:
    """Yield what of a run cannot be computed again."""
    labels = sum(
        counts.labelled
        for condition in run.summary.progress
        for judge, counts in condition.judged.items()
        if judge.startswith((HUMAN, OVERRIDE))
    )
    if labels:
        yield f"it has {count_of(labels, 'label')} of people"
    if run.model.startswith(PERSON):
        yield "a person gave its answers"
    if run.model.startswith(IMPORTED):
        yield "its answers were imported"


def _print_preview(workspace: Workspace, going: Mapping[str, str], used: Mapping[str, str], *, kept: bool) -> None:
    sizes = {name: folder_size(workspace.runs_folder / name) for name in going}
    if going:
        print(f"{count_of(len(going), 'run')} to delete, {size(sum(sizes.values()))}:")
    else:
        print("there is no run to delete.")
    for name, why in going.items():
        print(clean(f"  {name}: {size(sizes[name])}; {why}"))
        if name in used:
            print(clean(f"    although {used[name]}"))
    if used and kept:
        print(f"{count_of(len(used), 'run')} kept, because something rests on {'it' if len(used) == 1 else 'them'}:")
        for name, reason in used.items():
            print(clean(f"  {name}: {reason}"))
        print("--include-used deletes such runs, too.")
