"""Workspace: the folder of runs and built benchmarks, in which everything can be copied or deleted by hand."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from app.store.bundles.bundle_layout_and_limits import BUILDS, is_sha256
from app.store.bundles.bundle_opening import is_bundle_file, is_opened_bundle, open_bundle
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
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary, oldest_first, read_summary
from benchmarks.build import read_manifest
from benchmarks.errors import NoAccessError, RashomonError, SpecError, StoreError
from benchmarks.untrusted.file_names import twin
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import UnsafeFileError
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import digest

DEMOS_FOLDER = "rashomon-demo"
"""The folder of a workspace with a separate workspace for each benchmark's demo."""

_SYNCHRONISED = ("Mobile Documents", "CloudStorage", "Dropbox", "OneDrive", "Google Drive", "iCloud")


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
        return oldest_first(read_summary(self.runs_folder / name) for name in self.run_names())

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
