"""People as judges: which answers they are shown, what of each, and the labels they send back."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from benchmarks.base import SHOWN_TEXT, Record, did_you_mean
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.spreadsheet import unguarded
from benchmarks.text.answer_text import outcome, visible_answer
from judges.base import HUMAN, OVERRIDE

_VERSION = "1"
_ANNOTATOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

_FIRST_LINE = re.compile(r"[^\r\n]+")
_LIMIT_OF_CELLS = Lock()
OWN = "own answer"
"""What a person is told the answer is called that another one is judged by (``Record.basis``)."""

_LARGEST_FILE = 32 * 1024 * 1024
_SHOWN = 40


def annotator_id(name: str) -> str:
    """The id that the labels of the person called ``name`` are kept under, such as ``human:ann@1``.

    Raises SpecError for a name that is not 1 to 40 of ``A-Z a-z 0-9 . _ -``, the first a letter or a digit.
    """
    if not _ANNOTATOR.fullmatch(name):
        raise SpecError(
            f"{_short(name)} cannot be an annotator's name; take up to 40 letters A to Z, digits, dots, hyphens and "
            "underscores, beginning with a letter or a digit."
        )
    return f"{HUMAN}{name}@{_VERSION}"


def override_id(name: str) -> str:
    """The id that the labels of the person called ``name`` are kept under who saw a judge's: ``override:ann@1``.

    Not the one of their blind labels, by which judges are measured. Raises SpecError as :func:`annotator_id`.
    """
    return OVERRIDE + annotator_id(name).removeprefix(HUMAN)


# --- which answers -------------------------------------------------------------------------------


def sample(records: Iterable[Record], n: int, seed: int, *, stratify_by: str = "") -> list[str]:
    """The ids of ``n`` instances with an answer for people to label, in the order in which to show them.

    All there are where there are fewer. Answers that are errors or empty are never in it. The sample is random within
    each condition, and so is any beginning of it, with each condition, and in it each value of the stratum
    ``stratify_by``, in proportion to within one answer. So a larger ``n`` begins with the smaller sample, and whoever
    stops early leaves a sample that figures can be corrected by. ``seed`` and the ids of the records with an answer
    decide it: draw it when the run is done.
    """
    by_condition: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if outcome(record) != "labelled":
            continue
        instance = record.instance
        by_condition[instance.condition][instance.strata.get(stratify_by, "")].append(instance.id)
    orders = []
    for strata in by_condition.values():
        shuffled = [sorted(ids, key=lambda i: _rank(seed, "sample", i)) for ids in strata.values()]
        orders.append(_merged(shuffled, seed, "stratum"))
    return _merged(orders, seed, "condition")[: max(n, 0)]


def _merged(orders: Sequence[Sequence[str]], seed: int, level: str) -> list[str]:
    """One order of all, with every beginning in proportion: the k-th of s ids comes somewhere in the k-th of s equal parts."""
    placed = [((k + _rank(seed, level, each)) / len(order), each) for order in orders for k, each in enumerate(order)]
    return [each for _, each in sorted(placed)]


def _rank(seed: int, what: str, text: str) -> float:
    """A number in [0, 1) that is the same on every machine."""
    whole = hashlib.sha256(f"{seed}|{what}|{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(whole[:6]) / 2**48


# --- what of them --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlindAnswer:
    """What a person is shown of an answer.

    ``id`` names the instance without saying anything of it. ``references`` are what each source supports, headed by the
    source's name, in an order that says nothing; before them stands the answer that this one is judged by, if there is one.
    """

    id: str
    question: str
    references: tuple[tuple[str, tuple[str, ...]], ...]
    answer: str
    labels: tuple[str, ...]


def blind(record: Record, labels: Sequence[str], seed: int) -> BlindAnswer:
    """What a person is shown of ``record``, which has an answer: not the model, the condition, the strata or any label.

    It is what a judge that is a model gets too. What the answer itself gives away stays in it.
    """
    instance = record.instance
    shown = (name for name in instance.references if not name.startswith(SHOWN_TEXT))
    names = sorted(shown, key=lambda name: _rank(seed, "reference", f"{instance.id}|{name}"))
    own = [(OWN, (visible_answer(record.basis.text),))] if record.basis else []
    return BlindAnswer(
        id=blind_id(record),
        question=instance.question,
        references=(*own, *((name, tuple(instance.references[name])) for name in names)),
        answer=visible_answer(record.answer.text) if record.answer else "",
        labels=tuple(labels),
    )


def blind_id(record: Record) -> str:
    """A name for a record's answer that does not hold its condition, as an instance's id may: 16 hexadecimal digits.

    Another answer to the same instance, or another one that it is judged by, has another name, so that no label ends up on
    an answer that was not seen.
    """
    answer = record.answer.text if record.answer else ""
    whole = f"blind|{record.instance.id}|{answer}"
    if record.basis:
        whole += f"|{record.basis.text}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# --- their labels --------------------------------------------------------------------------------


def read_labels_csv(path: Path, labels: Sequence[str], ids: Mapping[str, str]) -> list[tuple[str, str]]:
    """The (instance id, label) pairs of a CSV file with the columns ``id`` and ``label``, in the file's order.

    ``ids`` maps what may stand in the column id, such as an answer's :func:`blind_id`, to the instance's id; a label is one
    of ``labels`` in any letter case. Other columns are ignored; a row without a label is not labelled yet. The file may
    have a byte order mark, any line ends, commas, semicolons or tabs, and the apostrophe that an export puts before what a
    spreadsheet takes for a formula.
    Raises SourceError, with the row as a spreadsheet counts it, for a file that cannot be read or is no UTF-8 text, an
    unknown id or label, two different labels for one answer, and where there is no label at all.
    """
    rows = _rows(path)
    columns, width = _header(path, rows)
    spelled = {label.casefold(): label for label in labels}
    found: dict[str, tuple[str, int]] = {}
    for number, row in rows[1:]:
        where = f"row {number} of {path}"
        if any(cell.strip() for cell in row[width:]):
            raise SourceError(
                f"{where} has {len(row)} cells where the header has {width}; put cells with commas in quotes."
            )
        name, word = ((row[i] if i < len(row) else "") for i in columns)
        if not word.strip():
            continue
        instance = _look_up(name, ids)
        if instance is None:
            raise SourceError(
                f"{where}: {_short(name)} is not the id of an answer here; take the ids from the exported file."
            )
        label = _look_up(word.casefold(), spelled)
        if label is None:
            raise SourceError(
                f"{where}: {_short(word)} is not a label; {did_you_mean(word.strip().upper()[:_SHOWN], [*spelled.values()])}"
            )
        earlier, at = found.setdefault(instance, (label, number))
        if earlier != label:
            raise SourceError(
                f"{where} labels {_short(name)} {label}, and row {at} labels it {earlier}; keep one of them."
            )
    if not found:
        raise SourceError(f"{path} holds no label yet; fill in its column label and save it as CSV.")
    return [(instance, label) for instance, (label, _) in found.items()]


def _look_up(cell: str, known: Mapping[str, str]) -> str | None:
    for spelling in (cell, cell.strip(), cell.strip().removeprefix("'").strip(), unguarded(cell).strip()):
        if spelling in known:
            return known[spelling]
    return None


def _header(path: Path, rows: Sequence[tuple[int, list[str]]]) -> tuple[tuple[int, int], int]:
    """The places of the columns id and label, and how many columns there are."""
    if not rows:
        raise SourceError(f"{path} is empty; it must have the columns id and label.")
    number, header = rows[0]
    names = _names(header)
    places = []
    for wanted in ("id", "label"):
        if names.count(wanted) != 1:
            has = ", ".join(_short(name) for name in header[:8])
            how_many = "no column" if wanted not in names else "more than one column"
            raise SourceError(f"row {number} of {path} has {how_many} called {wanted!r}; the header it has is {has}.")
        places.append(names.index(wanted))
    return (places[0], places[1]), len(names)


def _names(header: Sequence[str]) -> list[str]:
    return [name.strip().strip("'\"").casefold() for name in header]


def _first_line(text: str) -> str:
    found = _FIRST_LINE.search(text)
    return found[0] if found else ""


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, with their numbers from 1."""
    text = _text(path)
    delimiter = max(",;\t", key=lambda each: len({"id", "label"} & set(_names(_first_line(text).split(each)))))
    number = 0
    rows = []
    try:
        with _cells_of(len(text)):
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            for number, row in enumerate(reader, start=1):
                if any(cell.strip() for cell in row):
                    rows.append((number, row))
    except csv.Error as error:
        raise SourceError(f"row {number + 1} of {path} is not CSV ({error}); save the file as CSV again.") from error
    return rows


@contextmanager
def _cells_of(length: int) -> Iterator[None]:
    """Cells of up to ``length`` characters are read: an answer may be longer than the limit, which is the whole process's."""
    with _LIMIT_OF_CELLS:
        before = csv.field_size_limit(max(length, 1))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > _LARGEST_FILE:
        raise SourceError(f"{path} is larger than 32 MiB; keep only its columns id and label.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise SourceError(f"row {row} of {path} is not UTF-8 text; save the file as CSV in UTF-8.") from error
    if "\0" in text:
        row = text[: text.index("\0")].count("\n") + 1
        raise SourceError(f"row {row} of {path} has bytes that no text has; save the file as CSV in UTF-8.")
    return text


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
