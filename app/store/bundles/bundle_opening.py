"""Opened bundles: extracted once, by the digest of the file, to a private folder of the user's cache.

The folder is a workspace that is only read: its runs are of another machine, and its files have no permission to be written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from app.store.bundles.bundle_layout_and_limits import MANIFEST, BundleError
from benchmarks.errors import StoreFullError
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import is_disk_full, make_folder, open_regular

_FOLDER = "bundles"
_KEPT_S = 30 * 24 * 3600
"""Seconds for which an extracted bundle is kept after it was opened last."""
_ZIP = b"PK\3\4"
_NAMES: dict[Path, str] = {}
"""The names of the files of the folders that this process has opened."""


def is_bundle_file(path: Path) -> bool:
    """Return whether a path is a file that could be a bundle; a folder, a missing file and other files are none."""
    try:
        with open_regular(path) as stream:
            return stream.read(len(_ZIP)) == _ZIP
    except (OSError, ValueError):
        return False


def is_opened_bundle(folder: Path) -> bool:
    """Return whether a folder is an extracted bundle, which nothing writes to."""
    return os.path.lexists(folder / MANIFEST)


def open_bundle(path: Path) -> Path:
    """Return the folder with the verified contents of a bundle, extracted now unless it was before. Raises BundleError."""
    try:
        with open_regular(
            path
        ) as stream:  # opened once, for the name may be another file's by the time it is extracted
            cache = _cache()
            folder = cache / hashlib.file_digest(stream, "sha256").hexdigest()
            if not is_opened_bundle(folder):
                _remove_old(cache)
                _extract(path, stream, folder)
    except OSError as error:
        kind = StoreFullError if is_disk_full(error) else BundleError
        raise kind(f"cannot open {path}: {error.strerror or error}.") from error
    with suppress(OSError):
        os.utime(folder)
    _NAMES[folder] = path.name
    return folder


def bundle_name(folder: Path) -> str | None:
    """Return the name of the file that the run in a folder was read from; None for a run of a workspace."""
    return _NAMES.get(folder.parent.parent)


def _cache() -> Path:
    """Return the folder of opened bundles, which only this user can read; create it if necessary."""
    folder = make_folder(make_private(cache_folder()), _FOLDER)
    status = os.stat(folder, follow_symlinks=False)
    if status.st_uid != os.geteuid():
        raise BundleError(f"{folder} belongs to another user; name another cache with XDG_CACHE_HOME.")
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.chmod(folder, 0o700)
    return folder


def _extract(path: Path, stream: BufferedReader, folder: Path) -> None:
    """Extract the bundle in an open file to ``folder``, which appears complete; ``path`` is for messages."""
    from app.store.bundles.bundle_archive import open_archive

    with OwnFolder(folder.parent) as staging:
        with open_archive(path, stream) as archive:
            archive.extract(staging.path)
        _set_modes(staging.path, file=0o400, inner=0o500)
        try:
            staging.keep_as(folder)
        except OSError:
            if not is_opened_bundle(folder):  # otherwise another process was faster
                raise
        else:
            os.chmod(folder, 0o500)


def _remove_old(cache: Path) -> None:
    """Remove the bundles that were not opened for a month, and what an interrupted extraction left as long ago."""
    with suppress(OSError):
        for folder in folder_entries(cache):
            if time.time() - folder.stat(follow_symlinks=False).st_mtime > _KEPT_S:
                _remove(folder)


def _remove(folder: Path) -> None:
    with suppress(OSError):
        _set_modes(folder, file=0o600, inner=0o700)
        os.chmod(folder, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _set_modes(folder: Path, *, file: int, inner: int) -> None:
    """Set the permissions of everything in a folder, but not of the folder itself."""
    for path, is_folder in list(_walk(folder)):
        os.chmod(path, inner if is_folder else file)


def _walk(folder: Path) -> Iterator[tuple[str, bool]]:
    os.chmod(folder, 0o700)
    for place, folders, files in os.walk(folder):
        for name in folders:
            os.chmod(os.path.join(place, name), 0o700)
            yield os.path.join(place, name), True
        for name in files:
            yield os.path.join(place, name), False
