"""Changes of question sets on disk: a next version, removal, and the links of benchmarks' folders to the newest version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.store.file_locks import FileLock
from app.store.held_out_questions import assign_pages
from app.store.question_sets import (
    MEDIA,
    PAGES,
    SET_FILE,
    SETS,
    QuestionSet,
    SetVersion,
    read_set,
    read_sets,
    set_folder,
)
from benchmarks.build import Build
from benchmarks.errors import BusyError, SpecError, StoreError, did_you_mean
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import UnsafeFileError, make_folder, replace_file, write_error
from benchmarks.vocabulary import canonical_json

_NEW = "new"
"""The folder in which a version is built before it gets its number."""
_REMOVED = ".removed"
"""The folder of sets that were removed, one of each name."""


@contextmanager
def building(workspace: Path, name: str) -> Iterator[Path]:
    """Yield the folder in which the next version of a set is built, which no other process can use meanwhile.

    What is left in it is removed at the end. Raises StoreError if another process builds the set.
    """
    folder = set_folder(workspace, name)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink():
        raise StoreError(f"{folder} is a link where the folder of a set belongs; remove it or choose another --name.")
    with FileLock(folder / "lock") as lock:
        if not lock.acquire("rashomon, building"):
            raise BusyError(f"another process is building the set {folder.name}; wait for it or choose another --name.")
        try:
            yield folder / _NEW
        finally:
            shutil.rmtree(folder / _NEW, ignore_errors=True)
            if is_new and not (folder / SET_FILE).exists():
                shutil.rmtree(folder, ignore_errors=True)


def record_version(
    workspace: Path, name: str, build: Build, *, table: str, seed: int = 0, built: datetime | None = None
) -> QuestionSet:
    """Move a build into a set as its next version, ``built`` now by default, and link the benchmark's folder to it.

    A build equal to the newest version replaces that one's files, which repairs pictures that were changed. The caller holds
    the lock of :func:`building`, and has moved away a build in the benchmark's folder that is no version. Return the set. Raises
    StoreError if the set is damaged.
    """
    folder = set_folder(workspace, name)
    earlier = read_set(folder) if (folder / SET_FILE).exists() else None
    versions = earlier.versions if earlier else ()
    if versions and versions[-1].digest == build.digest:
        number = versions[-1].number
    else:
        number = versions[-1].number + 1 if versions else 1
        now = datetime.now(UTC).replace(microsecond=0)
        versions = (*versions, SetVersion(number, folder / str(number), build.digest, built or now))
    seed = earlier.seed if earlier else seed
    pages = assign_pages(earlier.final_pages if earlier else {}, build, seed)
    _put_in_place(build.path, folder / str(number))
    for version in versions[:-1]:
        _share_media(folder / str(number), version.build)
    result = QuestionSet(folder.name, build.benchmark, table, versions, seed)
    _write_json(folder, PAGES, pages)
    _write(folder, result)
    _link(workspace / "benchmarks" / build.benchmark, folder / str(number))
    return result


def _write(folder: Path, question_set: QuestionSet) -> None:
    stored = {
        "benchmark": question_set.benchmark,
        "table": question_set.table,
        "seed": question_set.seed,
        "versions": [
            {"number": version.number, "digest": version.digest, "made": version.made.isoformat()}
            for version in question_set.versions
        ],
    }
    _write_json(folder, SET_FILE, stored)


def _write_json(folder: Path, name: str, value: Mapping[str, Any]) -> None:
    replace_file(folder, name, canonical_json(value).encode("utf-8", "backslashreplace"))


def _put_in_place(source: Path, target: Path) -> None:
    """Rename a build to ``target``, in place of what an interrupted process left there or the same build."""
    old = target.with_name(f".{target.name}.replaced")
    shutil.rmtree(old, ignore_errors=True)
    if os.path.lexists(target):
        os.rename(target, old)
    os.rename(source, target)
    shutil.rmtree(old, ignore_errors=True)


def _share_media(build: Path, earlier: Path) -> None:
    """Make equal media of two builds one file, that of ``build``, which was just written; where links fail, nothing changes."""
    with suppress(OSError, UnsafeFileError):
        media = make_folder(earlier, MEDIA)
        names = {path.name for path in folder_entries(build / MEDIA)}
        for path in folder_entries(media):
            if path.name in names and not path.samefile(build / MEDIA / path.name):
                temporary = media / f".{path.name}.new"
                temporary.unlink(missing_ok=True)
                os.link(build / MEDIA / path.name, temporary)
                os.replace(temporary, path)


def is_version_link(workspace: Path, folder: Path) -> bool:
    """Return whether a benchmark's folder is a link to a version of a set, or to one that was removed."""
    if not folder.is_symlink():
        return False
    target = Path(os.path.normpath(folder.parent.resolve() / os.readlink(folder)))
    return target.is_relative_to((workspace / SETS).resolve())


def remove_set(workspace: Path, question_set: QuestionSet) -> Path:
    """Move a set to where :func:`restore_set` finds it, in place of an earlier one of its name; return the folder.

    The benchmark's folder is then linked to the set of which a version was built last. Raises StoreError while it is built.
    """
    folder = workspace / SETS / question_set.name
    with FileLock(folder / "lock") as lock:
        if not lock.acquire("rashomon, removing"):
            raise BusyError(f"another process is building the set {question_set.name}; wait for it.")
        with _writing(workspace):
            removed = make_folder(workspace / SETS, _REMOVED) / question_set.name
            shutil.rmtree(removed, ignore_errors=True)
            os.rename(folder, removed)
            _link_newest(workspace, question_set.benchmark)
    return removed


def restore_set(workspace: Path, name: str) -> QuestionSet:
    """Restore the set of that name that was removed last. Raises SpecError if there is none, or another set has its name."""
    names = []
    with suppress(OSError):
        names = [path.name for path in folder_entries(workspace / SETS / _REMOVED) if not path.is_symlink()]
    if name not in names:
        raise SpecError(f"no removed set {name!r}; {did_you_mean(name, names) if names else 'no set was removed.'}")
    if set_folder(workspace, name).exists():
        raise SpecError(
            f"there is another set {name} now; remove it first, or move {workspace / SETS / _REMOVED / name}."
        )
    restored = read_set(workspace / SETS / _REMOVED / name)
    with _writing(workspace):
        os.rename(workspace / SETS / _REMOVED / name, workspace / SETS / name)
        _link_newest(workspace, restored.benchmark)
    return read_set(workspace / SETS / name)


@contextmanager
def _writing(workspace: Path) -> Iterator[None]:
    """Turn an OSError into a StoreError that names the folder of sets."""
    try:
        yield
    except OSError as error:
        raise write_error(workspace / SETS, error, "make it writable") from error


def _link_newest(workspace: Path, benchmark: str) -> None:
    """Link a benchmark's folder to the version of its sets that was built last, unless another build is there."""
    folder = workspace / "benchmarks" / benchmark
    if os.path.lexists(folder) and not is_version_link(workspace, folder):
        return
    versions = [known.latest for known in read_sets(workspace) if known.benchmark == benchmark]
    if versions:
        _link(folder, max(versions, key=lambda version: version.made).build)
    else:
        folder.unlink(missing_ok=True)


def _link(folder: Path, version: Path) -> None:
    """Link a benchmark's folder to a version, in place of an earlier link."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.link")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(os.path.relpath(version.resolve(), folder.parent.resolve()))
    os.replace(temporary, folder)
