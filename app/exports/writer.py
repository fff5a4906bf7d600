"""Which files are wanted, and writing them: each appears whole, in the place of one of its name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

from app.exports.source import Files
from app.store.sqlite_errors import StoreFullError
from app.text.escape import clean
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.safe_files import is_full, make_folder, replace_file


def check_formats(words: Sequence[str], known: Collection[str]) -> None:
    """Raise SpecError where ``words`` name no format, or one that is not among ``known``."""
    if not words:
        raise SpecError(f"--format names no format; known are {', '.join(known)}.")
    for word in words:
        if word not in known:
            raise SpecError(f"there is no format {word!r}; {did_you_mean(word, known)}")


def write(folder: Path, files: Files) -> tuple[tuple[str, int], ...]:
    """Write ``files``; their names with their sizes in bytes. Raises StoreError where that is not possible."""
    sizes = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, whole in files.items():
            inner = PurePosixPath(name).parent
            if inner.parts:
                make_folder(folder, str(inner))
            encoded = whole if isinstance(whole, bytes) else whole.encode("utf-8", "backslashreplace")
            replace_file(folder, name, encoded)
            sizes.append((name, len(encoded)))
    except (OSError, ValueError) as error:  # a folder's name may be no name at all
        if isinstance(error, OSError) and is_full(error):
            raise StoreFullError(f"cannot write in {folder}: {error.strerror}; free some space.") from error
        why = error.strerror if isinstance(error, OSError) else "that is no folder's name"
        raise StoreError(f"cannot write in {folder}: {why}; name another folder.") from error
    return tuple(sizes)


def told(folder: Path, names: Iterable[str]) -> str:
    """What was written, in a line."""
    written = sorted({clean(name.partition("/")[0] + "/" * ("/" in name)) for name in names})
    return f"wrote {clean(str(folder))}: {', '.join(written)}"
