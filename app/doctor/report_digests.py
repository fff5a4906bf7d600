"""Digests of a report's sections, which show a reader what was edited or lost since it was written.

Anyone can write new ones, so they show accidents and omissions, not forgery.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
_DIGEST = re.compile(rf": [0-9a-f]{{{_LENGTH}}}$")
_QUOTE = re.compile(r"^[\s>|]+")
_SPACES = re.compile(r"[\u00a0\u2000-\u200b\u202f\u3000\ufeff]")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ADVICE = "if you edited it, pass on the original or say what you changed; if not, ask its sender."


def digest_lines(text: str) -> Iterator[str]:
    """Yield the lines of the section of digests for the ``text`` of a report."""
    digests = [f"{title}: {_digest(lines)}" for title, lines in _sections(text).items()]
    yield from ("", f"[{SECTION}]", *digests, f"{_WHOLE}: {_digest(digests)}")


def check_report(file: Path) -> Iterator[CheckResult]:
    """Yield which sections of the report in ``file`` were edited, or of each report, if it holds several.

    Text around a report and quote marks before its lines, as in a mail, do not count. Raises SpecError if the file is no
    report.
    """
    try:
        data = read_bytes(file.parent, file.name, limit=_MAX_BYTES)
    except (OSError, UnsafeFileError) as error:
        raise SpecError(f"{file} cannot be read as a report; name the file that `rashomon doctor` wrote.") from error
    text = data.decode("utf-16" if data[:2] in _UTF16 else "utf-8", "replace")
    _, *copies = _plain(text).split(TITLE)
    if not copies:
        raise SpecError(f"{file} is no report; name the file that `rashomon doctor` wrote.")
    copies = [copy for copy in copies if _sections(copy)] or copies[:1]  # a title alone may be a mail's subject
    for number, copy in enumerate(copies, 1):
        for result in _check(_sections(copy)):
            yield result if number == 1 else replace(result, check=f"{result.check} (copy {number})")


def _check(sections: dict[str, list[str]]) -> Iterator[CheckResult]:
    names = list(sections)
    before = names[: names.index(SECTION)] if SECTION in names else names
    lines = sections.pop(SECTION, [])
    end = next((number for number, line in enumerate(lines) if line.startswith(f"{_WHOLE}: ")), None)
    covered = [line for line in lines[:end] if end is not None or _DIGEST.search(line)]
    if not covered:
        advice = "ask its sender for the whole file, written by this version."
        yield CheckResult("report", False, "it has no digests: its end is lost, or it is an older version's", advice)
        return
    expected = dict(line.rpartition(": ")[::2] for line in covered)
    problems = _problems(sections, expected, before)
    if end is None:
        problems.append(("report", f"cut off, or its line {_WHOLE!r} removed,"))
    elif _digest(covered) != lines[end].rpartition(": ")[2]:
        problems.append((SECTION, "edited"))
    for title, problem in problems[:_MAX_LISTED]:
        yield CheckResult(title, False, f"{problem} since the report was written", _ADVICE)
    if not problems:
        yield CheckResult("report", True, f"its {len(expected)} sections are as written; this shows no forgery")
    for title in [name for name in sections if name not in expected and name not in before][:_MAX_LISTED]:
        yield CheckResult(title, True, "added after the report was written, as `make mac` does")


def _problems(
    sections: Mapping[str, list[str]], expected: Mapping[str, str], before: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the sections that differ from the ``expected`` digests, each with its problem.

    ``before`` are the sections before the one of digests.
    """
    changed = [
        (title, "edited" if title in sections else "removed")
        for title, digest in expected.items()
        if title not in sections or _digest(sections[title]) != digest
    ]
    added = [(title, "added or renamed, or its digest removed,") for title in before if title not in expected]
    return changed + added


def _plain(text: str) -> str:
    """Return ``text`` with spaces for the special ones that mail programs and editors write, and without marks of quotes."""
    return "\n".join(_QUOTE.sub("", line) for line in _SPACES.sub(" ", text).splitlines())


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section, without blank ones, the space at their ends, and what :func:`_plain` removes."""
    sections: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in map(str.strip, _plain(text).splitlines()):
        if match := _HEADING.fullmatch(line):
            lines = sections.setdefault(match[1], [])
        elif line and lines is not None:
            lines.append(line)
    return sections


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_LENGTH]
