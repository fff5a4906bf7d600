"""Writing of exported files: each is replaced atomically."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path, PurePosixPath

from app.exports.export_input import Files, RecordLines
from app.system.parallel_processes import map_shares
from app.text.text_escaping import clean
from benchmarks.errors import NoAccessError, SpecError, StoreError, StoreFullError, did_you_mean
from benchmarks.untrusted.safe_files import is_disk_full, make_folder, replace_file
from benchmarks.vocabulary import Record

_HELD = 5_000
"""The most records that are held in memory, some 40 MB."""

_SHARE = 5_000
"""The number of records that is worth another process, which takes as long to start."""


def check_formats(formats: Sequence[str], known: Collection[str]) -> None:
    """Raise SpecError if ``formats`` is empty, or holds one that is not in ``known``."""
    if not formats:
        raise SpecError(f"--format names no format; choose from {', '.join(known)}.")
    for form in formats:
        if form not in known:
            raise SpecError(f"there is no format {form!r}; {did_you_mean(form, known)}")


def write_files(folder: Path, files: Files) -> tuple[tuple[str, int], ...]:
    """Write ``files`` and return their names with their sizes in bytes. Raises StoreError if that fails."""
    sizes: dict[str, int] = {}
    files_by_run: dict[int, list[tuple[str, RecordLines]]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            inner = PurePosixPath(name).parent
            if inner.parts:
                make_folder(folder, str(inner))
            if isinstance(content, RecordLines):
                files_by_run.setdefault(id(content.records), []).append((name, content))
            else:
                sizes[name] = _write(folder, name, content)
        runs = list(files_by_run.values())
        records = sum(len(contents[0][1].records) for contents in runs)
        for sizes_of_run in map_shares(partial(_write_runs, folder), runs, ceil(len(runs) * _SHARE / max(1, records))):
            sizes |= sizes_of_run
    except (OSError, ValueError) as error:  # ValueError for an invalid name
        if isinstance(error, OSError) and is_disk_full(error):
            raise StoreFullError(f"cannot write in {folder}: {error.strerror}; free some space.") from error
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid folder name"
        kind = NoAccessError if isinstance(error, OSError) else StoreError
        raise kind(f"cannot write in {folder}: {reason}; name another folder.") from error
    return tuple((name, sizes[name]) for name in files)


def _write_runs(folder: Path, runs: Sequence[Sequence[tuple[str, RecordLines]]]) -> list[dict[str, int]]:
    """Write the files of some runs; return their sizes by name for each run. The records of a small run are read once."""
    sizes = []
    for contents in runs:
        records: Iterable[Record] = contents[0][1].records
        if len(contents) > 1 and len(contents[0][1].records) <= _HELD:
            records = list(records)
        sizes.append({name: _write(folder, name, content.lines(records)) for name, content in contents})
    return sizes


def _write(folder: Path, name: str, content: str | bytes | Iterable[str]) -> int:
    """Write a file; return its size."""
    pieces = _Encoded(content)
    replace_file(folder, name, pieces)
    return pieces.size


class _Encoded:
    """The content of a file in pieces of bytes; ``size`` is the number of bytes so far."""

    def __init__(self, content: str | bytes | Iterable[str]) -> None:
        self._content = (content,) if isinstance(content, str | bytes) else content
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._content:
            encoded = piece if isinstance(piece, bytes) else piece.encode("utf-8", "backslashreplace")
            self.size += len(encoded)
            yield encoded


def written_message(folder: Path, names: Iterable[str]) -> str:
    """Return a one-line message on the files written."""
    written_names = sorted({clean(name.partition("/")[0] + "/" * ("/" in name)) for name in names})
    return f"wrote {clean(str(folder))}: {', '.join(written_names)}"
