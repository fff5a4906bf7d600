"""Human judges: the answers they label, the input they see, and the labels they return."""

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

from benchmarks.errors import SourceError, SpecError, did_you_mean
from benchmarks.protocols.without_sources import judged_references
from benchmarks.rows.reader_types import open_source
from benchmarks.text.answer_text import answer_outcome, visible_answer
from benchmarks.untrusted.spreadsheet_formula_guard import unguard_formulas
from benchmarks.vocabulary import FOR_POLICIES, RIGHT_VALUE, Record
from judges.base import HUMAN, OVERRIDE

_VERSION = "1"
_ANNOTATOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

_FIRST_LINE = re.compile(r"[^\r\n]+")
_FIELD_LIMIT_LOCK = Lock()
OWN_ANSWER_HEADING = "own answer"
"""The heading under which a person sees the model's own answer (``Record.basis``), the basis of the label."""

_LARGEST_FILE = 32 * 1024 * 1024
_MAX_QUOTED = 40


def annotator_id(name: str) -> str:
    """Return the id for labels of the person called ``name``, such as ``human:ann@1``.

    Raises SpecError for a name that is not 1 to 40 of ``A-Z a-z 0-9 . _ -``, beginning with a letter or a digit.
    """
    if not _ANNOTATOR.fullmatch(name):
        raise SpecError(
            f"{_quote(name)} is not a valid annotator name; use up to 40 letters A to Z, digits, dots, hyphens and "
            "underscores, beginning with a letter or a digit."
        )
    return f"{HUMAN}{name}@{_VERSION}"


def override_id(name: str) -> str:
    """Return the id for labels of the person called ``name`` who saw a judge's label: ``override:ann@1``.

    It differs from the id of their blind labels, by which judges are measured. Raises SpecError as :func:`annotator_id`
    does.
    """
    return OVERRIDE + annotator_id(name).removeprefix(HUMAN)


# --- which answers -------------------------------------------------------------------------------


def draw_sample(records: Iterable[Record], n: int, seed: int, *, stratify_by: str = "") -> list[str]:
    """Return the ids of ``n`` instances with an answer for people to label, in order of display.

    Returns all ids if there are fewer. Answers that are errors or empty are excluded. The sample is random within each
    condition, and so is every prefix of it; each condition, and within it each value of the stratum ``stratify_by``, is
    represented in proportion to within one answer. So a larger ``n`` begins with the smaller sample, and stopping early
    leaves a sample fit for correcting metrics. ``seed`` and the ids of the records with an answer decide it, so draw it
    when the run is complete.
    """
    by_condition: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if answer_outcome(record) != "labelled":
            continue
        instance = record.instance
        by_condition[instance.condition][instance.strata.get(stratify_by, "")].append(instance.id)
    orders = []
    for strata in by_condition.values():
        shuffled = [sorted(ids, key=lambda i: _rank(seed, "sample", i)) for ids in strata.values()]
        orders.append(_merge(shuffled, seed, "stratum"))
    return _merge(orders, seed, "condition")[: max(n, 0)]


def _merge(orders: Sequence[Sequence[str]], seed: int, level: str) -> list[str]:
    """Return all orders merged into one, with every prefix in proportion.

    The k-th of s ids falls somewhere in the k-th of s equal parts.
    """
    placed = [((k + _rank(seed, level, item)) / len(order), item) for order in orders for k, item in enumerate(order)]
    return [item for _, item in sorted(placed)]


def _rank(seed: int, salt: str, text: str) -> float:
    """Return a number in [0, 1) that is the same on every machine."""
    digest = hashlib.sha256(f"{seed}|{salt}|{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6]) / 2**48


# --- what of them --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlindAnswer:
    """An answer as a person sees it.

    ``id`` names the instance without revealing anything about it. ``references`` are the answers of each source, headed
    by the source's name, in an order that reveals nothing; if the label depends on the model's own answer, that comes
    first.
    """

    id: str
    question: str
    references: tuple[tuple[str, tuple[str, ...]], ...]
    answer: str
    labels: tuple[str, ...]


def blind_answer(record: Record, labels: Sequence[str], seed: int) -> BlindAnswer:
    """Return a record with an answer as a person sees it, without the model, the condition, the strata or any label.

    A judge that is a model sees the same. Anything the answer itself gives away stays in it.
    """
    instance = record.instance
    shows_right = RIGHT_VALUE.upper() in labels
    references = instance.references if shows_right else judged_references(instance)
    visible = (n for n in references if not n.startswith(FOR_POLICIES) and (n != RIGHT_VALUE or shows_right))
    names = sorted(visible, key=lambda name: _rank(seed, "reference", f"{instance.id}|{name}"))
    own_answer = [(OWN_ANSWER_HEADING, (visible_answer(record.basis.text),))] if record.basis else []
    return BlindAnswer(
        id=blind_id(record),
        question=instance.question,
        references=(*own_answer, *((name, tuple(references[name])) for name in names)),
        answer=visible_answer(record.answer.text) if record.answer else "",
        labels=tuple(labels),
    )


def blind_id(record: Record) -> str:
    """Return a name for a record's answer that hides the condition an instance's id may hold: 16 hexadecimal digits.

    Another answer to the same instance, or another basis of the label, has another name, so that no label ends up on an
    answer that the annotator did not see.
    """
    answer = record.answer.text if record.answer else ""
    content = f"blind|{record.instance.id}|{answer}"
    if record.basis:
        content += f"|{record.basis.text}"
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# --- their labels --------------------------------------------------------------------------------


def read_labels_csv(path: Path, labels: Sequence[str], ids: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the (instance id, label) pairs of a CSV file with the columns ``id`` and ``label``, in the file's order.

    ``ids`` maps the accepted values of the column id, such as an answer's :func:`blind_id`, to the instance's id; a
    label is one of ``labels`` in any letter case. Other columns are ignored; a row without a label is not labelled yet.
    The file may have a byte order mark, any line ends, commas, semicolons or tabs, and the apostrophe that an export
    puts before text a spreadsheet would take for a formula.

    Raises SourceError, with the row number of a spreadsheet, for a file that cannot be read or is not UTF-8 text, an
    unknown id or label, two different labels for one answer, and a file without any label.
    """
    rows = _rows(path)
    columns, width = _header(path, rows)
    spelled = {label.casefold(): label for label in labels}
    by_instance: dict[str, tuple[str, int]] = {}
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
                f"{where}: {_quote(name)} is not the id of an answer in this run; copy the ids from the exported file."
            )
        label = _look_up(word.casefold(), spelled)
        if label is None:
            raise SourceError(
                f"{where}: {_quote(word)} is not a label; {did_you_mean(word.strip().upper()[:_MAX_QUOTED], [*spelled.values()])}"
            )
        earlier, at = by_instance.setdefault(instance, (label, number))
        if earlier != label:
            raise SourceError(
                f"{where} labels {_quote(name)} {label}, and row {at} labels it {earlier}; keep one of them."
            )
    if not by_instance:
        raise SourceError(f"{path} holds no label yet; fill in its column label and save it as CSV.")
    return [(instance, label) for instance, (label, _) in by_instance.items()]


def _look_up(cell: str, values: Mapping[str, str]) -> str | None:
    for spelling in (cell, cell.strip(), cell.strip().removeprefix("'").strip(), unguard_formulas(cell).strip()):
        if spelling in values:
            return values[spelling]
    return None


def _header(path: Path, rows: Sequence[tuple[int, list[str]]]) -> tuple[tuple[int, int], int]:
    """Return the indices of the columns id and label, and the number of columns."""
    if not rows:
        raise SourceError(f"{path} is empty; it must have the columns id and label.")
    number, header = rows[0]
    names = _names(header)
    places = []
    for column in ("id", "label"):
        if names.count(column) != 1:
            columns = ", ".join(_quote(name) for name in header[:8])
            how_many = "no column" if column not in names else "more than one column"
            raise SourceError(f"row {number} of {path} has {how_many} called {column!r}; its header is {columns}.")
        places.append(names.index(column))
    return (places[0], places[1]), len(names)


def _names(header: Sequence[str]) -> list[str]:
    return [name.strip().strip("'\"").casefold() for name in header]


def _first_line(text: str) -> str:
    match = _FIRST_LINE.search(text)
    return match[0] if match else ""


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, with their numbers from 1."""
    text = _text(path)
    delimiter = max(
        ",;\t", key=lambda candidate: len({"id", "label"} & set(_names(_first_line(text).split(candidate))))
    )
    number = 0
    rows = []
    try:
        with _cell_limit(len(text)):
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            for number, row in enumerate(reader, start=1):
                if any(cell.strip() for cell in row):
                    rows.append((number, row))
    except csv.Error as error:
        raise SourceError(f"row {number + 1} of {path} is not CSV ({error}); save the file as CSV again.") from error
    return rows


@contextmanager
def _cell_limit(length: int) -> Iterator[None]:
    """Raise csv's field size limit, which is the whole process's, to ``length`` characters within the context."""
    with _FIELD_LIMIT_LOCK:
        before = csv.field_size_limit(max(length, 1))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _text(path: Path) -> str:
    with open_source(path) as file:
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise SourceError(f"{path} is larger than 32 MiB; keep only its columns id and label.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise SourceError(f"row {row} of {path} is not UTF-8 text; save the file as CSV in UTF-8.") from error
    if "\0" in text:
        row = text[: text.index("\0")].count("\n") + 1
        raise SourceError(f"row {row} of {path} contains null bytes; save the file as CSV in UTF-8.")
    return text


def _quote(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 3] + "...")
