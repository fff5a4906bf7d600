"""Reading of a bundle without trusting it: every limit is checked before the bytes that it bounds are read.

The members are exactly those of the manifest, regular files whose names have the forms of a bundle, and each has the size and
the digest that the manifest states. The manifest is no proof of where a bundle comes from.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any

from app.store.bundles.bundle_layout_and_limits import (
    FORMAT,
    MANIFEST,
    MAX_BYTES,
    MAX_MANIFEST,
    MAX_MEMBERS,
    MAX_RATIO,
    SMALL,
    BundleError,
    is_member_name,
    member_digests,
)
from app.system.project_paths import free_space
from benchmarks.errors import StoreFullError
from benchmarks.untrusted.file_names import repeated_name
from benchmarks.untrusted.safe_files import is_disk_full, make_folder, open_write
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

_PIECE = 1 << 20
_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LARGEST_DIRECTORY = 16 << 20
_SPARE = 64 << 20
"""Bytes that extracting leaves free on the disk."""

_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    KeyError,
    OverflowError,
)
"""The exceptions with which the zip library meets damaged archives."""


class Archive:
    """An open bundle whose members were checked, except for their contents."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, manifest: Mapping[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self._archive = archive
        try:
            self._digests = member_digests(manifest)
        except ValueError as error:
            raise _refusal(path, str(error)) from error
        if set(self._digests) != {info.filename for info in archive.infolist()} - {MANIFEST}:
            raise _refusal(path, "its members are not those of its manifest")
        for name, (_, size) in self._digests.items():
            if size != archive.getinfo(name).file_size:
                raise _refusal(path, f"{name} has another size than its manifest says")

    @property
    def size(self) -> int:
        """The size of all members in bytes."""
        return sum(info.file_size for info in self._archive.infolist())

    def extract(self, folder: Path) -> None:
        """Write all members to the empty ``folder``, with their digests verified, the manifest last.

        Raises BundleError for a damaged member, and StoreFullError if the disk is full.
        """
        try:
            if free_space(folder) < self.size + _SPARE:
                raise _full(folder)
            for name, (sha256, size) in self._digests.items():
                make_folder_of(folder, name)
                self._extract(folder, name, sha256, size)
            with open_write(folder, MANIFEST, new=True) as stream:
                stream.write(self._archive.read(MANIFEST))
        except OSError as error:
            if is_disk_full(error):
                raise _full(folder) from error
            raise BundleError(f"cannot extract {self.path.name} to {folder}: {error.strerror or error}.") from error
        except _FAULTS as error:
            raise _refusal(self.path, "it is damaged") from error

    def _extract(self, folder: Path, name: str, sha256: str, size: int) -> None:
        hasher, written = hashlib.sha256(), 0
        with self._archive.open(name) as source, open_write(folder, name, new=True) as target:
            while piece := source.read(_PIECE):
                written += len(piece)
                if written > size:
                    break
                hasher.update(piece)
                target.write(piece)
        if written != size or hasher.hexdigest() != sha256:
            raise _refusal(self.path, f"{name} is damaged")


def make_folder_of(folder: Path, name: str) -> None:
    """Create the folders inside ``folder`` that the member ``name`` is in."""
    inner = str(PurePosixPath(name).parent)
    if not (folder / inner).is_dir():
        make_folder(folder, inner)


@contextmanager
def open_archive(path: Path, stream: BufferedReader) -> Iterator[Archive]:
    """Open the bundle in an open file and check its members; ``path`` is for messages. Raises BundleError."""
    try:
        _check_directory(stream, path)
        with zipfile.ZipFile(stream) as archive:
            _check_members(archive, path, os.fstat(stream.fileno()).st_size)
            yield Archive(path, archive, _read_manifest(archive, path))
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror or error}.") from error
    except _FAULTS as error:
        raise _refusal(path, "it is no zip, or a damaged one") from error


def _check_directory(stream: BufferedReader, path: Path) -> None:
    """Raise BundleError unless the list of members is small enough to be read, which the zip library does at once."""
    end = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, end - _LOCATOR.size - _END.size))
    tail = stream.read()
    if len(tail) < _END.size:
        raise _refusal(path, "it is no zip")
    signature, *_, count, size, _, comment = _END.unpack(tail[-_END.size :])
    if signature != b"PK\5\6" or comment:
        raise _refusal(path, "it does not end as a bundle does")
    before = tail[: -_END.size]
    if before[:4] == b"PK\6\7" and len(before) == _LOCATOR.size:
        _, _, offset, _ = _LOCATOR.unpack(before)
        if offset + _END_64.size > end:
            raise _refusal(path, "its end is damaged")
        stream.seek(offset)
        record = _END_64.unpack(stream.read(_END_64.size))
        count, size = max(count, record[7]), max(size, record[8])  # the zip library may use either
    if count > MAX_MEMBERS + 1 or size > _LARGEST_DIRECTORY:
        raise _refusal(path, f"it lists more than {MAX_MEMBERS:,} members")
    stream.seek(0)


def _check_members(archive: zipfile.ZipFile, path: Path, file_size: int) -> None:
    """Raise BundleError for a member that no bundle has, and for too many or too large ones."""
    members = archive.infolist()
    if len(members) > MAX_MEMBERS + 1:
        raise _refusal(path, f"it has more than {MAX_MEMBERS:,} members")
    if (twice := repeated_name(info.filename for info in members)) is not None:
        raise _refusal(path, f"it has two members whose names are equal, capitals aside: {twice[:80]!r}")
    for info in members:
        name = info.filename
        if name != info.orig_filename or not (name == MANIFEST or is_member_name(name)):
            raise _refusal(path, f"it has a member {info.orig_filename[:80]!r}, which no bundle has")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or info.flag_bits & 1:
            raise _refusal(path, f"{name} is a link, encrypted, or no regular file")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _refusal(path, f"{name} is compressed in a way that bundles are not")
    total = sum(info.file_size for info in members)
    if total > MAX_BYTES or total > max(SMALL, MAX_RATIO * file_size):
        raise _refusal(path, f"it would take {total / 1e9:,.1f} GB, which its size does not explain")


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> Mapping[str, Any]:
    if MANIFEST not in archive.NameToInfo:
        raise _refusal(path, "it has no manifest")
    if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST:
        raise _refusal(path, "its manifest is too large")
    try:
        with archive.open(MANIFEST) as stream:
            manifest = parse_json(stream.read(MAX_MANIFEST + 1), MAX_MANIFEST)
    except OutsideJSONError as error:
        raise _refusal(path, f"its manifest is {error}") from error
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(version, int):
        raise _refusal(path, "its manifest has no format")
    if version > FORMAT:
        raise BundleError(f"{path.name} was made by a newer Rashomon (format {version}); update Rashomon to open it.")
    if version != FORMAT:
        raise _refusal(path, "its manifest has an unknown format")
    return dict(manifest)


def _refusal(path: Path, reason: str) -> BundleError:
    return BundleError(f"{path.name} is not a bundle that can be opened: {reason}; get a fresh copy from its author.")


def _full(folder: Path) -> StoreFullError:
    return StoreFullError(f"the disk of {folder} has no room for the bundle; free some space, then open it again.")
