"""The list of a run's samples: the result of a query, its columns and rows, and the hint on queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from textual.content import Content

from app.report.tables.judge_selection import effective_judges, present_judges
from app.store.run_store import RunStore
from app.store.sample_lists import SampleFilter
from app.tui.hostile_text import literal, sanitize
from app.tui.sample_query import QueryVocabulary, parse_query
from app.tui.theme import HEADING, OUTCOMES
from app.tui.widgets.sample_text import sample_appearance
from app.tui.widgets.table_columns import Column, Row
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark

_MAX_KEY = 20
_MAX_LABEL, _MAX_CONDITION = 16, 20
_MARKS = 2
"""The cells of a label's mark, which the list has for an override or a disagreement."""
_ANSWER_COLUMN = 50
"""The width of the list from which it has a column for answers."""


@dataclass(frozen=True)
class SampleListing:
    """The result of a query: the ordinals that match, the total, the vocabulary for queries, and the filter."""

    ordinals: list[int]
    total: int
    vocabulary: QueryVocabulary
    filter: SampleFilter


def read_listing(folder: Path, query: str) -> SampleListing:
    """Return the samples that match a query. Raises SpecError for one that is wrong."""
    with RunStore.read(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        progress = [p for p in store.progress() if p.total]
        vocabulary = QueryVocabulary(
            [p.condition for p in progress],
            benchmark.labels,
            store.strata(),
            present_judges([store]),
            effective_judges(store),
        )
        sample_filter = parse_query(query, vocabulary)
        total = sum(p.total for p in progress)
        return SampleListing(store.sample_ordinals(sample_filter), total, vocabulary, sample_filter)


def hint_content(values: Mapping[str, Sequence[str]], width: int) -> Content:
    """Return the keys of a query with their values, in lines of ``width`` cells."""
    key_width = min(_MAX_KEY, max(map(len, values), default=0) + 1)
    lines = []
    for key, options in values.items():
        wrapped = wrap(sanitize(", ".join(options), limit=300), max(20, width - key_width - 1)) or [""]
        lines.append(literal(f"{f'{key}:':{key_width}} ", HEADING, limit=_MAX_KEY) + Content(wrapped[0]))
        lines += [Content(" " * (key_width + 1) + line) for line in wrapped[1:]]
    return Content("\n").join(lines)


def list_columns(known: QueryVocabulary, width: int) -> tuple[Column, ...]:
    """Return the columns of a list of this width, as wide as the run's labels and conditions need."""
    labels = max(map(len, (*known.labels, OUTCOMES["undecided"].word)))
    conditions = max(map(len, ("condition", *known.conditions)))
    columns = [
        Column("label", min(_MAX_LABEL, labels + 2 + _MARKS)),
        Column("condition", min(_MAX_CONDITION, conditions)),
        Column("question", 0, min_width=12, distinct=True),
    ]
    if width >= _ANSWER_COLUMN:
        columns.append(Column("answer", 0, min_width=12))
    return tuple(columns)


def list_rows(folder: Path, ordinals: Sequence[int], judges: Sequence[str], with_answers: bool) -> list[Row]:
    """Return the rows of samples; none if the run was deleted meanwhile."""
    try:
        with RunStore.read(folder) as store:
            samples = store.sample_rows(ordinals, judges)
    except (RashomonError, sqlite3.Error):  # the run was deleted meanwhile
        return []
    rows: list[Row] = []
    for row in samples:
        appearance = sample_appearance(row)
        label = [(str(appearance), appearance.colour)]
        rows.append([label, row.condition, row.question or row.id, *[row.answer] * with_answers])
    return rows
