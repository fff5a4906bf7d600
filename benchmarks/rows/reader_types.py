"""Types and limits that the readers of all file formats share."""

from __future__ import annotations

import ast
import json
import os
import stat
import warnings
from collections.abc import Collection, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from benchmarks.errors import SourceError, did_you_mean
from benchmarks.vocabulary import RULES, TRUST

Fields = Mapping[str, Any]

LARGEST_LINE = 16 * 1024 * 1024
"""The maximum size of a JSON line or a table row, in bytes."""


DOCUMENT_COLUMNS = ("document", "doc_id", "page")
"""The columns that name the document or page of a row; the first that a row fills counts."""


BAD_TRUST = f"its {TRUST} is none of {', '.join(RULES)}; write one of them, or leave it empty"


def trust_field(fields: Fields) -> str:
    """Return the rule that a row gives for itself, a key of ``RULES``; "" if none. Raises RowProblem for another value."""
    value = fields.get(TRUST)
    if value is None or (rule := str(value).strip().casefold()) == "":
        return ""
    if rule not in RULES:
        raise RowProblem(BAD_TRUST)
    return rule


def trust_remarks(rows: int, said: int) -> list[str]:
    """Return a remark where some of the usable ``rows`` say what should win, and others do not."""
    partly = (
        f"{said} of {rows} rows say what should win; `--trust` says it for the others, or write it in their {TRUST}"
    )
    return [partly] if 0 < said < rows else []


def check_cluster(cluster: str, columns: Collection[str], file: Path) -> str:
    """Return the column that names the documents, as rows have it; empty if ``cluster`` is. Raises SourceError without it."""
    name = cluster.strip().lower()
    if name and name not in columns:
        raise SourceError(f"{file.name} has no column {cluster!r} for --cluster; {did_you_mean(name, sorted(columns))}")
    return name


def shortened(text: str, limit: int) -> str:
    """Return ``text`` with its end cut off behind ``limit`` characters."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def parse_literal(text: str) -> Any:
    """Return the value that a cell writes as JSON or as a Python literal; None if it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that Python does not know
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


class RowProblem(Exception):
    """The reason for leaving out a row, and the file or line it refers to. The code that reads rows catches it."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.place = place


NOT_UNICODE = "the text is not valid Unicode"


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogate, which JSON can escape but UTF-8 cannot encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_present(file: Path) -> bool:
    """Return whether an optional file is there in any form; :func:`open_source` refuses a pipe, a device or a folder."""
    return os.path.lexists(file)


def open_source(file: Path) -> BufferedReader:
    """Open a file that a user or a data set names. Raises SourceError if it is not a regular file or cannot be read.

    Pipes and devices are refused without waiting for them, since sources are read more than once and must end.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "invalid file name"
        raise SourceError(f"{file} cannot be read ({reason}); check that it exists and is readable.") from error
    raise SourceError(f"{file} is not a regular file; save its contents to a file and name that file.")
