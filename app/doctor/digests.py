"""Digests of a report's sections, which show a reader what was edited or lost since it was written.

Anyone can write new ones, so they show accidents and omissions, not forgery.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from app.doctor.check_result import CheckResult
from benchmarks.errors import SpecError
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes

TITLE = "Rashomon: report on a machine"
SECTION = "digests"
_WHOLE = "whole"
_LENGTH = 12  # hexadecimal digits
_MAX_BYTES = 1 << 20
_MAX_LISTED = 20
_HEADING = re.compile(r"\[([^\[\]]{1,80})\]")


def digest_lines(text: str) -> Iterator[str]:
    """Yield the lines of the section of digests for the ``text`` of a report."""
    digests = [f"{title}: {_digest(lines)}" for title, lines in _sections(text).items()]
    yield from ("", f"[{SECTION}]", *digests, f"{_WHOLE}: {_digest(digests)}")


def check_report(file: Path) -> Iterator[CheckResult]:
    """Yield which sections of the report in ``file`` were edited. Text around the report, as in a mail, does not count.

    Raises SpecError if the file is no report.
    """
    try:
        text = read_bytes(file.parent, file.name, limit=_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, UnsafeFileError) as error:
        raise SpecError(f"{file} cannot be read as a report; name the file that `rashomon doctor` wrote.") from error
    _, title, text = text.partition(TITLE)
    if not title:
        raise SpecError(f"{file} is no report; name the file that `rashomon doctor` wrote.")
    sections = _sections(text)
    lines = sections.pop(SECTION, [])
    end = next((number for number, line in enumerate(lines) if line.startswith(f"{_WHOLE}: ")), None)
    if end is None:
        advice = "ask its sender for the whole file, written by this version."
        yield CheckResult("report", False, "it has no digests: its end is lost, or it is an older version's", advice)
        return
    covered, whole = lines[:end], lines[end].rpartition(": ")[2]
    expected = dict(line.rpartition(": ")[::2] for line in covered)
    problems = [
        (title, "edited" if title in sections else "missing")
        for title, digest in expected.items()
        if title not in sections or _digest(sections[title]) != digest
    ]
    if _digest(covered) != whole:
        problems.append((SECTION, "edited"))
    for title, problem in problems[:_MAX_LISTED]:
        yield CheckResult(title, False, f"{problem} since the report was written", "ask its sender why.")
    if not problems:
        yield CheckResult("report", True, f"its {len(expected)} sections are as written; this shows no forgery")
    for title in list(sections.keys() - expected.keys())[:_MAX_LISTED]:
        yield CheckResult(title, True, "added after the report was written, as `make mac` does")


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section, without blank ones and the space at their ends."""
    sections: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in map(str.strip, text.splitlines()):
        if match := _HEADING.fullmatch(line):
            lines = sections.setdefault(match[1], [])
        elif line and lines is not None:
            lines.append(line)
    return sections


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_LENGTH]
