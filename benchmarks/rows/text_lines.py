"""Lines of text files in the encodings that programs save: UTF-8, UTF-16 and Windows-1252. Their contents may be hostile."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.rows.reader_types import LARGEST_LINE, RowProblem, open_source

_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_WORKBOOKS = {b"PK\x03\x04": "it .xlsx or .ods", b"\xd0\xcf\x11\xe0": "it as .xlsx from your spreadsheet"}

_CHUNK = 1 << 20

LONG_LINE = f"the line is longer than {LARGEST_LINE // 1024**2} MiB"
DAMAGED = "the line is not whole text: part of it is UTF-8 and part is not"


def text_lines(file: Path) -> Iterator[str | RowProblem]:
    """Yield a file's lines with their ends: a line feed, a carriage return or both.

    The encoding is UTF-16 if the file begins so, else UTF-8; a line that is not UTF-8 is Windows-1252. A line that is too long
    or in no encoding is a RowProblem. Raises SourceError for a file that is not text.
    """
    with open_source(file) as data:
        start = data.read(4)
        data.seek(0)
        if workbook := _WORKBOOKS.get(start):
            raise SourceError(f"{file.name} is a workbook, not text; save {workbook}.")
        with io.TextIOWrapper(data, _encoding(start), errors="surrogateescape", newline="") as lines:
            while line := _read_line(lines, file):
                if "\0" in line:
                    raise SourceError(f"{file.name} contains NUL characters, so it is not text; save it as CSV UTF-8.")
                if len(line) > LARGEST_LINE:
                    while line and not line.endswith(("\n", "\r")):
                        line = _read_line(lines, file)
                    yield RowProblem(LONG_LINE)
                else:
                    yield line if line.isascii() else in_one_encoding(line)


def _read_line(lines: io.TextIOWrapper, file: Path) -> str:
    """Return a line, or the first part of one that is too long. Raises SourceError for damaged UTF-16."""
    try:
        return lines.readline(LARGEST_LINE + 1)
    except UnicodeDecodeError as error:  # bytes of UTF-8 that are no text become surrogates
        raise SourceError(f"{file.name} is damaged UTF-16; save it again as CSV UTF-8.") from error


def is_utf(file: Path) -> bool:
    """Return whether all of a file is text in UTF-8 or UTF-16. Raises SourceError if it cannot be read."""
    with open_source(file) as data:
        decoder = codecs.getincrementaldecoder(_encoding(data.read(4)))()
        data.seek(0)
        try:
            while chunk := data.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _encoding(start: bytes) -> str:
    for bom, name in _BOMS.items():
        if start.startswith(bom):
            return name
    zeros = tuple(byte == 0 for byte in start)
    if zeros in ((False, True, False, True), (True, False, True, False)):
        return "utf-16-be" if zeros[0] else "utf-16-le"
    return "utf-8"


def in_one_encoding(line: str) -> str | RowProblem:
    """Return a text whose bytes that are not UTF-8 were decoded as surrogates, as Windows-1252 if it has no other UTF-8."""
    foreign = sum("\udc80" <= character <= "\udcff" for character in line)
    if not foreign:
        return line
    if foreign < sum(not character.isascii() for character in line):
        return RowProblem(DAMAGED)
    data = line.encode("utf-8", "surrogateescape")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:  # five bytes have no character there
        return data.decode("latin-1")
