"""Writing of exported files: each is replaced atomically."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from app.exports.export_input import Files
from app.store.sqlite_errors import StoreFullError
from app.text.escape import clean
from benchmarks.errors import SpecError, StoreError, did_you_mean
from benchmarks.untrusted.safe_files import is_disk_full, make_folder, replace_file


def check_formats(formats: Sequence[str], known: Collection[str]) -> None:
    """Raise SpecError if ``formats`` is empty, or holds one that is not in ``known``."""
    if not formats:
        raise SpecError(f"--format names no format; choose from {', '.join(known)}.")
    for form in formats:
        if form not in known:
            raise SpecError(f"there is no format {form!r}; {did_you_mean(form, known)}")


def write_files(folder: Path, files: Files) -> tuple[tuple[str, int], ...]:
    """Write ``files`` and return their names with their sizes in bytes. Raises StoreError if that fails."""
    sizes = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            inner = PurePosixPath(name).parent
            if inner.parts:
                make_folder(folder, str(inner))
            pieces = _Encoded(content)
            replace_file(folder, name, pieces)
            sizes.append((name, pieces.size))
    except (OSError, ValueError) as error:  # ValueError for an invalid name
        if isinstance(error, OSError) and is_disk_full(error):
            raise StoreFullError(f"cannot write in {folder}: {error.strerror}; free some space.") from error
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid folder name"
        raise StoreError(f"cannot write in {folder}: {reason}; name another folder.") from error
    return tuple(sizes)


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
