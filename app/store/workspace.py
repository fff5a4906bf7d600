"""The workspace: the folder that holds runs and built benchmarks, and nothing that cannot be copied or deleted by hand."""

from __future__ import annotations

import os
import shlex
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.store.database import DATABASE
from app.store.locks import FileLock
from app.store.rows import ConditionProgress
from app.store.run import RunStore
from app.system.paths import exists, typed_path
from benchmarks.base import did_you_mean, digest
from benchmarks.build import read_manifest
from benchmarks.errors import RashomonError, StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError

PAUSE = "pause"
"""The file in a run's folder that pauses the worker at it while it is there."""

_TOLD = 5
"""So many runs whose names begin alike are told apart."""

DEMOS_FOLDER = "rashomon-demo"
"""The folder of a workspace in which each benchmark's demo has a workspace of its own."""

_SYNCHRONISED = ("Mobile Documents", "CloudStorage", "Dropbox", "OneDrive", "Google Drive", "iCloud")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of ``rashomon runs``; ``problem`` says why a run could not be read."""

    name: str
    state: str
    spec: dict[str, Any]
    progress: tuple[ConditionProgress, ...]
    note: str = ""
    created: float | None = None
    problem: str | None = None
    own: bool = True
    """Whether this machine has made it; one that another has made is read-only."""

    @property
    def done(self) -> int:
        return sum(p.done for p in self.progress)

    @property
    def total(self) -> int:
        return sum(p.total for p in self.progress)


class Workspace:
    """A workspace folder; made when something is first written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def find(cls, given: Path | None = None) -> Workspace:
        """The workspace: ``given``, else RASHOMON_WORKSPACE, else the user's data directory."""
        if given is None:
            variable = os.environ.get("RASHOMON_WORKSPACE")
            if variable:
                given = Path(variable)
            else:
                import platformdirs

                given = Path(platformdirs.user_data_dir("rashomon"))
        return cls(typed_path(given))

    @property
    def runs_folder(self) -> Path:
        return self.path / "runs"

    @property
    def replies(self) -> Path:
        """The file in which replies of remote engines, and of models that construct, are kept by content."""
        return self.path / "replies.sqlite"

    def build_folder(self, benchmark: str) -> Path:
        """Where ``rashomon build`` puts a benchmark unless told otherwise."""
        return self.path / "benchmarks" / benchmark

    def build_of(self, store: RunStore) -> Path:
        """The folder of the build that a run was asked from, wherever that is now."""
        data = store.meta("data", None)
        return Path(data) if data else self.build_folder(store.meta("spec")["benchmark"])

    def asked_from(self, build: Path) -> tuple[str, list[str]]:
        """The digest of the build in a folder, and the runs that were asked from it and find their media there; "" and none
        where no build is there."""
        try:
            found = digest(read_manifest(build))
        except (OSError, ValueError, UnsafeFileError):
            return "", []
        names = []
        for name in self.run_names():
            with suppress(Exception), RunStore.read(self.runs_folder / name) as store:  # an unreadable one is none
                if store.meta("identity").get("data digest") == found and self.build_of(store).samefile(build):
                    names.append(name)
        return found, names

    def source_folder(self, benchmark: str) -> Path:
        """Where ``rashomon data get`` puts what a benchmark is built from unless told otherwise."""
        return self.path / "sources" / benchmark

    def command(self) -> str:
        """What to type before a command so that it finds this workspace: nothing more if it is the usual one."""
        return (
            "rashomon" if self.path == Workspace.find().path else f"rashomon --workspace {shlex.quote(str(self.path))}"
        )

    def make(self) -> None:
        """Make the folder. Raises StoreError where that is not possible."""
        try:
            self.runs_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot write in {self.path}: {error.strerror}; name another folder with --workspace or RASHOMON_WORKSPACE."
            ) from error

    def run_names(self) -> list[str]:
        """Every run's folder name, sorted."""
        try:
            with os.scandir(self.runs_folder) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith(".") and _holds_run(entry))
        except OSError:
            return []

    def run_folder(self, name: str) -> Path:
        """The folder of a run given by name, the unambiguous beginning of one, or a path. Raises StoreError."""
        if exists(Path(name) / DATABASE):
            return typed_path(name)
        names = self.run_names()
        matches = [name] if name in names else [known for known in names if name and known.startswith(name)]
        if len(matches) == 1:
            return self.runs_folder / matches[0]
        if matches:
            raise StoreError(
                f"{name!r} begins {len(matches)} runs, the newest first: {self._told_apart(matches)}; say more of the name."
            )
        hint = self._of_a_demo(name) or (did_you_mean(name, names) if names else "there are no runs yet.")
        raise StoreError(f"there is no run {name!r} in {self.runs_folder}; {hint}")

    def _told_apart(self, names: list[str]) -> str:
        """The newest of some runs, each with when it was made and, where these differ, the digest of its data."""
        known: dict[str, tuple[float, str]] = dict.fromkeys(names, (0.0, ""))
        for name in names:
            with suppress(Exception), RunStore.read(self.runs_folder / name) as run:  # an unreadable one tells nothing
                known[name] = run.meta("created", 0.0), run.meta("identity", {}).get("data digest") or ""
        differ = len({data for _, data in known.values()}) > 1
        shown = []
        for name in sorted(names, key=lambda each: known[each], reverse=True)[:_TOLD]:
            created, data = known[name]
            made = [time.strftime("%Y-%m-%d %H:%M", time.localtime(created))] if created else []
            made += [f"data {data[:12]}"] if data and differ else []
            shown.append(f"{name} ({', '.join(made)})" if made else name)
        return ", ".join(shown) + (f" and {len(names) - _TOLD} more" if len(names) > _TOLD else "")

    def _of_a_demo(self, name: str) -> str:
        """How to name the demo that has a run ``name``, or one that begins with it; empty where none has."""
        for demo in self.demos():
            if name and any(known.startswith(name) for known in demo.run_names()):
                return f"a demo has one, in a workspace of its own: {demo.command()} show {shlex.quote(name)}"
        return ""

    def demos(self) -> list[Workspace]:
        """The workspaces of the demos that were run in this one, the newest first."""
        folders = sorted(self.path.glob(f"{DEMOS_FOLDER}/*/runs"), key=lambda runs: runs.stat().st_mtime_ns)
        return [Workspace(folder.parent) for folder in reversed(folders)]

    def summaries(self) -> list[RunSummary]:
        """Every run, oldest first; a damaged one is listed with its problem instead of hiding the others."""
        found = [summary(self.runs_folder / name) for name in self.run_names()]
        return sorted(found, key=lambda run: (run.created or 0, run.name))

    def warning(self) -> str | None:
        """Why this is a poor place for databases that are being written, if it is."""
        if any(mark in part for part in self.path.parts for mark in _SYNCHRONISED):
            return (
                f"{self.path} looks cloud-synchronised; a database that is synchronised while it is written can be "
                "damaged: name another folder with --workspace."
            )
        return None


def _holds_run(entry: os.DirEntry[str]) -> bool:
    """Whether a folder has something called as a run's database, or does not let that be seen: reading it tells why."""
    try:
        os.stat(os.path.join(entry.path, DATABASE), follow_symlinks=False)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def summary(folder: Path) -> RunSummary:
    """The summary of the run in ``folder``; whatever is wrong with that run is its ``problem``."""
    return _as_it_is(folder, _noted(folder))


class Summaries:
    """The summaries of a workspace's runs, again and again: a database is read only when it has changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, tuple[_Stamp, RunSummary]] = {}

    def now(self) -> list[RunSummary]:
        """As :meth:`Workspace.summaries`."""
        return deque(self.by_and_by(), maxlen=1).pop()[0]

    def by_and_by(self, every: float = float("inf")) -> Iterator[tuple[list[RunSummary], int]]:
        """Yield the runs that are read so far and how many there are, every ``every`` seconds and in the end all.

        The newest are read first.
        """
        found: dict[str, tuple[_Stamp, RunSummary]] = {}
        stamps = {name: _stamp(self._workspace.runs_folder / name) for name in self._workspace.run_names()}
        told = time.monotonic()
        for name in sorted(stamps, key=lambda name: _changed(stamps[name]), reverse=True):
            known = self._known.get(name)
            folder = self._workspace.runs_folder / name
            found[name] = known if known is not None and known[0] == stamps[name] else (stamps[name], _noted(folder))
            if time.monotonic() - told > every and len(found) < len(stamps):
                yield self._as_they_are(found), len(stamps)
                told = time.monotonic()
        self._known = found
        yield self._as_they_are(found), len(stamps)

    def _as_they_are(self, found: Mapping[str, tuple[_Stamp, RunSummary]]) -> list[RunSummary]:
        runs = [_as_it_is(self._workspace.runs_folder / name, noted) for name, (_, noted) in found.items()]
        return sorted(runs, key=lambda run: (run.created or 0, run.name))


_Stamp = tuple[object, ...]
_SETTLED_NS = 2 * 10**9


def _stamp(folder: Path) -> _Stamp:
    """What differs once a run's database has changed. A change within the clock tick of another is not seen by its time, so
    files that changed just now count as changing."""
    stats: list[tuple[int, ...] | None] = []
    for name in (DATABASE, f"{DATABASE}-wal"):
        try:
            found = (folder / name).stat()
        except OSError:
            stats.append(None)
            continue
        fresh = time.time_ns() - found.st_mtime_ns < _SETTLED_NS
        stats.append((found.st_ino, found.st_size, found.st_mtime_ns, time.monotonic_ns() if fresh else 0))
    return tuple(stats)


def _changed(stamp: _Stamp) -> int:
    """When a run's database changed, by its stamp."""
    return max((part[2] for part in stamp if isinstance(part, tuple)), default=0)


def _own(store: RunStore) -> bool:
    """Return whether this machine has made a run; without its key nothing is known to be."""
    try:
        return store.own
    except StoreError:
        return False


def _noted(folder: Path) -> RunSummary:
    """The summary as the database has it: its state is what the worker noted."""
    try:
        with RunStore.read(folder) as store:
            noted = store.meta("state", {})
            progress, spec = tuple(store.progress()), store.meta("spec")
            state, note = noted.get("state", "planned"), noted.get("note", "")
            created = store.meta("created", 0.0) or None
            return RunSummary(folder.name, state, spec, progress, note, created, own=_own(store))
    except Exception as error:  # of a run that somebody else may have written: it hides no other one
        return _unreadable(folder, error)


def _as_it_is(folder: Path, noted: RunSummary) -> RunSummary:
    if noted.problem is not None:
        return noted
    try:
        state = run_state(folder, noted.state, noted.progress)
    except Exception as error:
        return _unreadable(folder, error)
    note = "" if state == "done" else noted.note
    if state == "interrupted" != noted.state:
        note = "the process that worked on it is gone without a word; every answer reported done is safe"
    return replace(noted, state=state, note=note)


def _unreadable(folder: Path, error: Exception) -> RunSummary:
    problem = str(error)
    if not isinstance(error, RashomonError):
        problem = f"it cannot be read ({type(error).__name__}: {error}); `rashomon doctor {folder.name}` says more."
    return RunSummary(folder.name, "unreadable", {}, (), problem=problem)


def run_state(folder: Path, noted: str, progress: tuple[ConditionProgress, ...]) -> str:
    """A run's state now: what its worker noted, unless that worker is gone."""
    alive = FileLock(folder / "lock").holder() is not None
    complete = all(p.done == p.total for p in progress)
    if complete and not alive:  # whatever became of a judge: what it lacks is asked when it is asked again
        return "done" if noted != "planned" else noted
    if noted in ("queued", "loading", "running", "judging") and not alive:
        return "interrupted"
    if noted in ("running", "judging") and (folder / PAUSE).exists():
        return "paused"
    return "partial" if noted == "done" and not complete else noted
