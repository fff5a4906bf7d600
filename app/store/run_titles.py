"""Titles that a user gives to runs, listed beside their names.

A title is a file in the run's folder. The folder keeps its name, by which the same command resumes the run, its worker commits
answers, and `rashomon show NAME` and comparisons find it; and the database stays as it is, so that a run can be renamed while it
is answered, and a received one without being adopted.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from benchmarks.errors import NoAccessError, StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError, open_read, remove_file, replace_file

TITLE_FILE = "title"
MOST_CHARACTERS = 80


def read_title(folder: Path) -> str:
    """Return the title of the run in ``folder``; empty if it has none. It may be hostile."""
    try:
        with open_read(folder, TITLE_FILE) as file:
            return _one_line(file.read(4 * MOST_CHARACTERS).decode("utf-8", "replace"))
    except (OSError, UnsafeFileError):
        return ""


def set_title(folder: Path, title: str) -> None:
    """Store the title of the run in ``folder``; an empty one is removed. Raises StoreError."""
    text = _one_line(title)
    try:
        if text:
            replace_file(folder, TITLE_FILE, text.encode("utf-8", "replace"))
        else:
            with suppress(FileNotFoundError):
                remove_file(folder, TITLE_FILE)
    except UnsafeFileError as error:
        raise StoreError(str(error)) from error
    except OSError as error:
        raise NoAccessError(f"cannot write in {folder}: {error.strerror}; make the run's folder writable.") from error


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MOST_CHARACTERS]
