"""Workspace: the folder of runs and built benchmarks, in which everything can be copied or deleted by hand."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.store.bundles.layout import BUILDS, is_sha256
from app.store.bundles.opening import is_bundle_file, is_opened_bundle, open_bundle
from app.store.data_types import CELLS_KEY, NODES_KEY, ConditionProgress, NodeStatus
from app.store.database import DATABASE
from app.store.locks import KILLED, FileLock
from app.store.question_sets import (
    SETS,
    QuestionSet,
    build_name,
    find_set,
    find_version,
    read_sets,
    set_folder,
    set_folders,
    version_of_digest,
)
from app.store.run import RunStore
from app.store.run_facts import is_judged
from app.store.sqlite_errors import typed_run
from app.store.title import TITLE_FILE, read_title
from benchmarks.build import read_manifest
from benchmarks.errors import NoAccessError, RashomonError, SpecError, StoreError
from benchmarks.untrusted.file_names import twin
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import UnsafeFileError
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import digest
from judges.base import newest_versions

PAUSE_FILE = "pause"
"""The file in a run's folder that pauses its worker while it exists."""

SUPERVISOR_FILE = "supervisor"
"""The lock file in a run's folder of the process that starts the run's worker; its text is :func:`worker_text`."""

ACTIVE_STATES = ("queued", "loading", "running", "judging")
"""The states that a worker records while it works on a run."""

DEMOS_FOLDER = "rashomon-demo"
"""The folder of a workspace with a separate workspace for each benchmark's demo."""

_SYNCHRONISED = ("Mobile Documents", "CloudStorage", "Dropbox", "OneDrive", "Google Drive", "iCloud")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of a run, as in ``rashomon runs``; ``problem`` is the reason why it could not be read, if so."""

    name: str
    state: str
    spec: dict[str, Any]
    progress: tuple[ConditionProgress, ...]
    note: str = ""
    created: float | None = None
    problem: str | None = None
    own: bool = True
    """Flag for a run made on this machine; any other is read-only."""
    quantisation: str = ""
    """The quantisation that the engine reported; empty for a model without local weights."""
    title: str = ""
    """The name that the user gave the run, to be displayed in place of its folder's."""
    cells: int = 1
    """The number of cells of a varied build in which each example is repeated."""
    nodes: tuple[NodeStatus, ...] = ()
    """The nodes of the cluster that answers, or answered last."""
    worker: int | None = None
    """The process id of the worker that recorded the state."""
    source: str = ""
    """The data source of its first instance."""
    newest_verdict: int = 0
    """The id of its newest verdict."""
    cut_reasoning: int = 0
    """The number of judged answers that ended at the limit of tokens within their reasoning."""

    @property
    def done(self) -> int:
        return sum(p.done for p in self.progress)

    @property
    def total(self) -> int:
        return sum(p.total for p in self.progress)

    @property
    def errors(self) -> int:
        """The number of answers that are errors."""
        return sum(p.errors for p in self.progress)

    @property
    def failed_judgements(self) -> int:
        """The number of judgements that failed, of each judge's newest version."""
        ids = {judge for p in self.progress for judge in p.judged}
        judges = newest_versions(ids)
        return sum(judged.failed for p in self.progress for judge, judged in p.judged.items() if judge in judges)

    @property
    def reused(self) -> int:
        """The number of answers that are another run's."""
        return sum(p.reused for p in self.progress)


class Workspace:
    """A workspace folder, which is created when something is first written.

    Attributes:
        bundle: The file that the folder was extracted from; None for a regular workspace.
    """

    def __init__(self, path: Path, bundle: Path | None = None) -> None:
        self.path = path
        self.bundle = bundle

    @classmethod
    def find(cls, path: Path | None = None) -> Workspace:
        """Return the workspace at ``path``, or else RASHOMON_WORKSPACE, or else in the user's data directory.

        A file is opened as a bundle. Raises BundleError if it is damaged, StoreError if it is none.
        """
        if path is None:
            variable = os.environ.get("RASHOMON_WORKSPACE")
            if variable:
                path = Path(variable)
            else:
                import platformdirs

                path = Path(platformdirs.user_data_dir("rashomon"))
        path = typed_path(path)
        if is_bundle_file(path):
            return cls.open(path)
        if path_exists(path) and not path.is_dir():
            raise StoreError(f"{path} is neither a folder nor a bundle; name a folder for the workspace.")
        return cls(path)

    @classmethod
    def open(cls, bundle: Path) -> Workspace:
        """Return the workspace in a bundle. Raises BundleError."""
        return cls(open_bundle(bundle), bundle)

    @property
    def read_only(self) -> bool:
        """Return whether the folder is an opened bundle, which nothing writes to."""
        return is_opened_bundle(self.path)

    def require_writable(self) -> None:
        """Raise StoreError for an opened bundle."""
        if self.read_only:
            file = shlex.quote(str(self.bundle or "FILE"))
            raise StoreError(
                f"{self.bundle or self.path} is a bundle, which is only read; `rashomon open {file} --import` copies its runs "
                "to your workspace."
            )

    @property
    def runs_folder(self) -> Path:
        return self.path / "runs"

    @property
    def replies(self) -> Path:
        """The cache file for replies of remote engines, and of models that construct benchmarks."""
        return self.path / "replies.sqlite"

    def build_folder(self, benchmark: str) -> Path:
        """Return the default output folder of ``rashomon build`` for a benchmark."""
        return self.path / "benchmarks" / benchmark

    def question_sets(self) -> list[QuestionSet]:
        """Return the question sets by name, without those that cannot be read."""
        return read_sets(self.path)

    def question_set(self, name: str) -> QuestionSet:
        """Return a question set by name. Raises SpecError if there is none, StoreError if it is damaged."""
        return find_set(self.path, name)

    def data_folder(self, text: str | Path) -> Path:
        """Return the folder of a build, given as its path, or as SET or SET@NUMBER. Raises SpecError."""
        name = str(text)
        path = typed_path(text)
        if "/" in name or path_exists(path / "manifest.json") or not set_folders(self.path):
            return path
        is_set = set_folder(self.path, name.rpartition("@")[0] or name).is_dir()
        return find_version(self.path, name).build if is_set or not path_exists(path) else path

    def builds(self) -> dict[str, Path]:
        """Return the folders of all builds: those of benchmarks by their name, then the versions of sets as SET@NUMBER."""
        builds = {}
        with suppress(OSError):
            for path in sorted(folder_entries(self.path / "benchmarks")):
                with suppress(OSError, ValueError, RashomonError):
                    read_manifest(path)
                    builds[path.name] = path
        builds = {name: path for name, path in builds.items() if not name.startswith(".")}
        return builds | {f"{s.name}@{v.number}": v.build for s in self.question_sets() for v in reversed(s.versions)}

    def runs_by_data(self, names: Iterable[str] | None = None) -> dict[str, list[str]]:
        """Return the names of all runs, or of these, by the digest of the data that they were made from."""
        runs: dict[str, list[str]] = {}
        for name in self.run_names() if names is None else names:
            with suppress(Exception), RunStore.read(self.runs_folder / name) as store:  # an unreadable run is none
                runs.setdefault(store.meta("identity")["data digest"], []).append(name)
        return runs

    def varied_folder(self, build: Path) -> Path:
        """Return the default folder for what `rashomon vary` makes of a build: beside it, but not inside a question set."""
        in_set = build.parent.parent == self.path / SETS
        return self.build_folder(f"{build_name(build)}-varied") if in_set else build.with_name(f"{build.name}-varied")

    def build_of(self, store: RunStore) -> Path:
        """Return the folder of a run's build: the version of a set that it was made from, or else the folder that it names.

        In an opened bundle, it is the one beside the run.
        """
        bundle = store.folder.parent.parent
        if is_opened_bundle(bundle):
            build_digest = store.meta("identity", {}).get("data digest")
            return bundle / BUILDS / (build_digest if is_sha256(build_digest) else "none")
        if (version := version_of_digest(self.path, store.meta("identity", {}).get("data digest") or "")) is not None:
            return version
        data = store.meta("data", None)
        return Path(data) if data else self.build_folder(store.meta("spec")["benchmark"])

    def runs_of_build(self, build: Path) -> tuple[str, list[str]]:
        """Return the digest of the build in a folder, and the runs that use that build; "" and none if there is no build."""
        try:
            build_digest = digest(read_manifest(build))
        except (OSError, ValueError, UnsafeFileError):
            return "", []
        names = []
        for name in self.run_names():
            with suppress(Exception), RunStore.read(self.runs_folder / name) as store:  # an unreadable one is none
                if store.meta("identity").get("data digest") == build_digest and self.build_of(store).samefile(build):
                    names.append(name)
        return build_digest, names

    def source_folder(self, benchmark: str) -> Path:
        """Return the default folder of ``rashomon data get`` for a benchmark's sources."""
        return self.path / "sources" / benchmark

    def command(self) -> str:
        """Return the command line up to a subcommand, with ``--workspace`` unless this is the default workspace."""
        if self.path == Workspace.find().path:
            return "rashomon"
        return f"rashomon --workspace {shlex.quote(str(self.bundle or self.path))}"

    def make(self) -> None:
        """Create the folder. Raises StoreError if that fails, or it is an opened bundle."""
        self.require_writable()
        try:
            self.runs_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoAccessError(
                f"cannot write in {self.path}: {error.strerror}; name another folder with --workspace or RASHOMON_WORKSPACE."
            ) from error

    def run_names(self) -> list[str]:
        """Return the sorted folder names of all runs."""
        try:
            with os.scandir(self.runs_folder) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith(".") and _holds_run(entry))
        except OSError:
            return []

    def check_run_name(self, name: str) -> None:
        """Raise SpecError if another run's name differs from ``name`` only in what some disks ignore, such as capitals."""
        if (other := twin(name, self.run_names())) is not None:
            raise SpecError(f"there is a run {other}, which some disks do not tell from {name}; choose another --name.")

    def demos(self) -> list[Workspace]:
        """Return the workspaces of the demos that were run in this one, newest first."""
        folders = sorted(self.path.glob(f"{DEMOS_FOLDER}/*/runs"), key=lambda runs: runs.stat().st_mtime_ns)
        return [Workspace(folder.parent) for folder in reversed(folders)]

    def summaries(self) -> list[RunSummary]:
        """Return the summaries of all runs, oldest first; a damaged run is included with its problem."""
        return _oldest_first(read_summary(self.runs_folder / name) for name in self.run_names())

    def warning(self) -> str | None:
        """Return a warning if this is a bad place for databases that are being written."""
        if any(mark in part for part in self.path.parts for mark in _SYNCHRONISED):
            return (
                f"{self.path} looks cloud-synchronised; a database that is synchronised while it is written can be "
                "damaged: name another folder with --workspace."
            )
        return None


def _holds_run(entry: os.DirEntry[str]) -> bool:
    """Return whether a folder holds a run's database, or cannot be read; reading it as a run reports the reason."""
    try:
        os.stat(os.path.join(entry.path, DATABASE), follow_symlinks=False)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def read_summary(folder: Path) -> RunSummary:
    """Return the summary of the run in ``folder``; an error becomes its ``problem``."""
    return _current(folder, _stored_summary(folder))


class Summaries:
    """Cache of the summaries of a workspace's runs: a database is read again only once it has changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, tuple[Stamp, RunSummary]] = {}

    def read_incrementally(self, first: float = float("inf")) -> Iterator[tuple[list[RunSummary], int]]:
        """Yield the runs read so far with the number of all runs, and finally all runs.

        The newest runs are read first. The first yield comes after ``first`` seconds, each further one after twice the time of
        the one before: what the caller does with thousands of runs takes no more than a share of the time.
        """
        stored: dict[str, tuple[Stamp, RunSummary]] = {}
        current: list[RunSummary] = []
        stamps = {name: run_stamp(self._workspace.runs_folder / name) for name in self._workspace.run_names()}
        began, wait = time.monotonic(), first
        for name in sorted(stamps, key=lambda name: _changed(stamps[name]), reverse=True):
            cached = self._known.get(name)
            folder = self._workspace.runs_folder / name
            if cached is None or cached[0] != stamps[name]:
                cached = stamps[name], _stored_summary(folder)
            stored[name] = cached
            current.append(_current(folder, cached[1]))
            if time.monotonic() - began > wait and len(current) < len(stamps):
                yield _oldest_first(current), len(stamps)
                wait *= 2
        self._known = stored
        yield _oldest_first(current), len(stamps)


def _oldest_first(runs: Iterable[RunSummary]) -> list[RunSummary]:
    return sorted(runs, key=lambda run: (run.created or 0, run.name))


Stamp = tuple[object, ...]
"""The value of :func:`run_stamp`."""
_CLOCK_TICK_NS = 2 * 10**9


def run_stamp(folder: Path) -> Stamp:
    """Return a stamp that differs once a run's database has changed.

    Two changes within a clock tick leave the same file time, so a file that changed just now counts as changed each time.
    """
    stats: list[tuple[int, ...] | None] = []
    for name in (DATABASE, f"{DATABASE}-wal", TITLE_FILE):
        try:
            stat = (folder / name).stat()
        except OSError:
            stats.append(None)
            continue
        fresh = time.time_ns() - stat.st_mtime_ns < _CLOCK_TICK_NS
        stats.append((stat.st_ino, stat.st_size, stat.st_mtime_ns, time.monotonic_ns() if fresh else 0))
    return tuple(stats)


def _changed(stamp: Stamp) -> int:
    """Return the time of a run's last change, by its stamp."""
    return max((part[2] for part in stamp if isinstance(part, tuple)), default=0)


def _own(store: RunStore) -> bool:
    """Return whether a run was made on this machine; False if the machine has no key."""
    try:
        return store.own
    except StoreError:
        return False


def _stored_summary(folder: Path) -> RunSummary:
    """Return the summary from the database alone, with the state that the worker recorded last."""
    try:
        with RunStore.read(folder) as store:
            recorded = store.meta("state", {})
            progress, spec = tuple(store.progress()), store.meta("spec")
            state, note = recorded.get("state", "planned"), recorded.get("note", "")
            created = store.meta("created", 0.0) or None
            quantisation = str(store.meta("identity", {}).get("quantisation") or "")
            title, cells = read_title(folder), store.meta(CELLS_KEY, 1)
            nodes = tuple(NodeStatus(**node) for node in store.meta(NODES_KEY, []))
            source, newest_verdict = store.ends()
            # While a run goes on, its summary is read several times a second, and Live names these answers.
            is_cut = state != "running" and any(p.truncated for p in progress)
            return RunSummary(
                folder.name,
                state,
                spec,
                progress,
                note,
                created,
                own=_own(store),
                quantisation=quantisation,
                title=title,
                cells=cells if type(cells) is int else 1,
                nodes=nodes,
                worker=recorded.get("pid"),
                source=source,
                newest_verdict=newest_verdict,
                cut_reasoning=store.cut_reasoning() if is_cut else 0,
            )
    except Exception as error:  # one damaged run, possibly from elsewhere, must not hide the others
        return _unreadable(folder, error)


def _current(folder: Path, stored: RunSummary) -> RunSummary:
    """Return the stored summary with the run's current state."""
    if stored.problem is not None:
        return stored
    try:
        state = run_state(folder, stored)
        if state == "interrupted" != stored.state:  # or its worker ended, or another began, since that was read
            stored = _stored_summary(folder)
            state = run_state(folder, stored)
    except Exception as error:
        return _unreadable(folder, error)
    note = "" if state == "done" or (state == "planned" != stored.state) else stored.note
    if state == "interrupted" != stored.state:
        note = f"{KILLED}; every answer reported done is safe"
    return replace(stored, state=state, note=note)


def _unreadable(folder: Path, error: Exception) -> RunSummary:
    problem = str(error)
    if not isinstance(error, RashomonError):
        problem = f"it cannot be read ({type(error).__name__}: {error}); run `rashomon doctor {typed_run(folder)}` for details."
    return RunSummary(folder.name, "unreadable", {}, (), problem=problem)


def run_state(folder: Path, stored: RunSummary) -> str:
    """Return a run's current state: the one that its worker recorded, unless that worker is gone or another is about to start.

    A run is done once it is answered and judged by its own judges, even if another judge was interrupted later.
    """
    recorded = stored.state
    alive = FileLock(folder / "lock").holder() is not None
    complete = stored.done == stored.total
    if complete and not alive and recorded != "planned" and is_judged(stored.spec, stored.progress):
        return "done"
    if not alive and supervised_worker(folder) not in (None, worker_text(stored.worker)):
        return "planned"
    if recorded in ACTIVE_STATES and not alive:
        return "interrupted"
    if recorded in ("running", "judging") and (folder / PAUSE_FILE).exists():
        return "paused"
    return "partial" if recorded == "done" and not complete else recorded


def supervised_worker(folder: Path) -> str | None:
    """Return the :func:`worker_text` of the process that starts a run's worker; None if there is no such process."""
    return FileLock(folder / SUPERVISOR_FILE).holder()


def worker_text(pid: int | None) -> str:
    """Return the text for the worker that a supervisor has started for a run; None for no worker yet."""
    return "no worker yet" if pid is None else f"worker {pid}"
