"""Question sets: the builds of a user's table under one name, as numbered versions that stay when the table is edited.

::

    sets/NAME/set.json   the table and the versions
    sets/NAME/pages.json which pages are held out: an object of page and true or false
    sets/NAME/1/         the first version, a build; pictures of several versions are one file with several names
    benchmarks/NAME      a link to the newest version, unless a build without versions is there

The runs of a set are those whose data digest is that of one of its versions. A third of the pages is held out for a final
decision. It is drawn by seed, cluster by cluster, and a page keeps its part in every later version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from unicodedata import normalize

from app.store.held_out_questions import build_instances
from benchmarks.build import Build, read_manifest
from benchmarks.errors import RashomonError, SourceError, SpecError, StoreError, did_you_mean
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.file_names import name_key
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import (
    UnsafeFileError,
    open_read,
    read_bytes,
)
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

SETS = "sets"
SET_FILE, PAGES, MEDIA = "set.json", "pages.json", "media"
_LARGEST = 64 << 20
_LONGEST_NAME = 80
_NAME = re.compile(rf"\w[\w.-]{{0,{_LONGEST_NAME - 1}}}")


@dataclass(frozen=True, slots=True)
class SetVersion:
    """A version of a set: its number, from 1, its build and the digest of that, and when it was built, by that clock."""

    number: int
    build: Path
    digest: str
    made: datetime


@dataclass(frozen=True)
class QuestionSet:
    """A named set of questions.

    Attributes:
        table: The table that the newest version was built from; it may have been moved since.
        versions: The versions in order of their numbers, at least one.
        seed: The seed by which pages are drawn.
    """

    name: str
    benchmark: str
    table: str
    versions: tuple[SetVersion, ...]
    seed: int

    @cached_property
    def final_pages(self) -> Mapping[str, bool]:
        """The pages that versions have had as their own, by name in ``Pages``: True if held out. Raises StoreError."""
        return _read_pages(self.latest.build.parent)

    @property
    def latest(self) -> SetVersion:
        """The version with the highest number, whatever the clock said when it was built."""
        return self.versions[-1]

    def version(self, number: int) -> SetVersion:
        """Return a version by its number. Raises SpecError."""
        for version in self.versions:
            if version.number == number:
                return version
        raise SpecError(f"the set {self.name} has no version {number}; it has {self.numbers}.")

    @property
    def numbers(self) -> str:
        """The numbers of the versions in words."""
        last = self.latest.number
        return f"version {last}" if len(self.versions) == 1 else f"versions {self.versions[0].number} to {last}"

    def final_examples(self, build: Build) -> frozenset[str]:
        """Return the ids of the examples of a version's build that are held out for a final decision."""
        pages = get_benchmark(self.benchmark).pages
        return frozenset(i.group for i in build_instances(build) if any(self.final_pages.get(p) for p in pages(i).own))


def set_name(text: str) -> str:
    """Return ``text`` as a set's name, with accents as one character each. Raises SpecError if it cannot be one."""
    text = normalize("NFC", text)
    if not _NAME.fullmatch(text):
        raise SpecError(
            f"{text[:40]!r} cannot name a set; use at most {_LONGEST_NAME} letters from a to z, digits, dots, dashes and "
            "underscores."
        )
    return text


def default_name(table: str) -> str:
    """Return the name of the set of a table called ``table``, without its suffix."""
    return re.sub(r"[^\w.-]+", "-", normalize("NFC", table)).strip("-.")[:_LONGEST_NAME] or "rows"


def set_folders(workspace: Path) -> list[Path]:
    """Return the folders of a workspace's sets, by name, readable or not."""
    try:
        folders = folder_entries(workspace / SETS)
        return sorted(f for f in folders if f.is_dir() and not f.is_symlink() and not f.name.startswith("."))
    except OSError:
        return []


def set_folder(workspace: Path, name: str) -> Path:
    """Return the folder of a set, whose name may differ in ways that some disks do not tell apart, such as case."""
    names = {name_key(folder.name): folder for folder in set_folders(workspace)}
    return names.get(name_key(name), workspace / SETS / name)


def read_set(folder: Path) -> QuestionSet:
    """Return the set in a folder. Raises StoreError if it is damaged."""
    try:
        stored = parse_json(read_bytes(folder, SET_FILE, limit=_LARGEST), _LARGEST)
        versions = tuple(
            SetVersion(
                int(version["number"]),
                folder / str(int(version["number"])),
                str(version["digest"]),
                datetime.fromisoformat(version["made"]),
            )
            for version in stored["versions"]
        )
        numbers = [version.number for version in versions]
        if not numbers or numbers != sorted(set(numbers)) or numbers[0] < 1:
            raise ValueError("the versions are not in order")
        benchmark, table = stored["benchmark"], stored["table"]
        if not (isinstance(table, str) and _NAME.fullmatch(benchmark)):  # which names a folder
            raise ValueError("the table or the benchmark has no name of one")
        return QuestionSet(folder.name, benchmark, table, versions, int(stored["seed"]))
    except (OSError, UnsafeFileError, OutsideJSONError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(
            f"the set {folder.name} cannot be read: {folder / SET_FILE} is missing or damaged; build it under another --name."
        ) from error


def _read_pages(folder: Path) -> dict[str, bool]:
    try:
        stored = parse_json(read_bytes(folder, PAGES, limit=_LARGEST), _LARGEST)
        if not all(isinstance(part, bool) for part in stored.values()):
            raise ValueError("a page is in no part")
        return dict(stored)
    except (OSError, UnsafeFileError, OutsideJSONError, AttributeError, ValueError) as error:
        problem = f"{folder / PAGES} is missing or damaged, so what the set {folder.name} holds out is unknown"
        raise StoreError(f"{problem}; build the table under another --name.") from error


def read_sets(workspace: Path) -> list[QuestionSet]:
    """Return the readable sets of a workspace, by name."""
    sets = []
    for folder in set_folders(workspace):
        with suppress(StoreError):
            sets.append(read_set(folder))
    return sets


def find_set(workspace: Path, name: str) -> QuestionSet:
    """Return a set by name. Raises SpecError if there is none, StoreError if it is damaged."""
    folder = set_folder(workspace, name)
    if folder not in set_folders(workspace):
        names = [known.name for known in set_folders(workspace)]
        hint = did_you_mean(name, names) if names else "`rashomon build BENCHMARK --from TABLE` makes one."
        raise SpecError(f"there is no set {name!r}; {hint}")
    return read_set(folder)


def find_version(workspace: Path, name: str) -> SetVersion:
    """Return the version named as SET@NUMBER, or the newest of SET. Raises SpecError, StoreError."""
    set_part, at, number = name.rpartition("@")
    if not at:
        return find_set(workspace, name).latest
    question_set = find_set(workspace, set_part)
    if not re.fullmatch(r"[0-9]{1,6}", number):
        raise SpecError(f"{name!r} names no version; write {set_part}@{question_set.latest.number}.")
    return question_set.version(int(number))


def build_name(folder: Path) -> str:
    """Return a name for what is made of a build: SET-NUMBER for a version of a set, the folder's name for another build."""
    place = folder.resolve()
    return f"{place.parent.name}-{place.name}" if (place.parent / SET_FILE).is_file() else place.name


def set_of_build(folder: Path) -> QuestionSet | None:
    """Return the set of which a build is a version; None if it is none. Raises StoreError if the set is damaged."""
    parent = folder.resolve().parent
    return read_set(parent) if (parent / SET_FILE).is_file() else None


def version_of_digest(workspace: Path, build_digest: str) -> Path | None:
    """Return the build of the version with that data digest; None if no set has one."""
    for question_set in read_sets(workspace):
        for version in question_set.versions:
            if version.digest == build_digest and version.build.is_dir():
                return version.build
    return None


def changed_media(build: Path) -> list[str]:
    """Return the names of the media of a build whose bytes are not those that it was built with. Raises OSError."""
    changed = []
    for path in sorted(folder_entries(build / MEDIA)):
        try:
            with open_read(build, f"{MEDIA}/{path.name}") as file:
                same = file_digest(file, "sha256").hexdigest() == path.stem
        except UnsafeFileError:
            same = False
        if not same:
            changed.append(path.name)
    return changed


def is_own_build(folder: Path, source: str) -> bool:
    """Return whether the build in a folder is from a table of the user's rows alone, ``source`` being that source's name."""
    try:
        return set(read_manifest(folder)["sources"]) == {source}
    except (OSError, ValueError, KeyError, TypeError, RashomonError):
        return False


def share_of_rows(first: Path, second: Path) -> float:
    """Return the share of the smaller of two builds' rows that the other one has, too; 0 if either cannot be read."""
    try:
        rows = [{row.group for row in Build.open(path).built_rows()} for path in (first, second)]
    except SourceError:
        return 0.0
    return len(rows[0] & rows[1]) / (min(map(len, rows)) or 1)
