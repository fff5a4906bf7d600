"""Which files are wanted, and writing them: each appears whole, in the place of one of its name."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from app.exports.source import Files
from app.report.text import clean
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError, StoreError


def check_formats(words: Sequence[str], known: Collection[str]) -> None:
    """Raise SpecError where ``words`` name no format, or one that is not among ``known``."""
    if not words:
        raise SpecError(f"--format names no format; known are {', '.join(known)}.")
    for word in words:
        if word not in known:
            raise SpecError(f"there is no format {word!r}; {did_you_mean(word, known)}")


def write(folder: Path, files: Files) -> None:
    """Write ``files`` and say where. Raises StoreError where that is not possible."""
    parts: list[Path] = []
    try:
        for name, whole in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            parts.append(path.with_name(f".{path.name}.part"))
            parts[-1].write_bytes(whole if isinstance(whole, bytes) else whole.encode("utf-8", "backslashreplace"))
            os.replace(parts[-1], path)
    except OSError as error:
        for part in parts:
            part.unlink(missing_ok=True)
        raise StoreError(f"cannot write in {folder}: {error.strerror}; name another folder with --out.") from error
    written = sorted({clean(name.partition("/")[0] + "/" * ("/" in name)) for name in files})
    print(f"wrote {clean(str(folder))}: {', '.join(written)}")
