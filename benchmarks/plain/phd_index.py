"""The PhD Index: the harmonic mean of the shares of right answers to questions with yes and with no (arXiv 2403.11116)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.plain.plain_declaration import CONFLICT
from benchmarks.stats.intervals import INTERVALS, ratio
from benchmarks.tables.declared_tables import Column, Grid, Layout, Row, Sheets

if TYPE_CHECKING:
    from benchmarks.base import Benchmark
    from benchmarks.vocabulary import Table

_CONDITIONS = (CONFLICT, "image-only")
_ASKED = ("yes", "no")
_NOTE = "PhD Index: 2 * Yes recall * No recall / (Yes recall + No recall). image-only is the paper's PhD-base, on the same rows."


def phd_index(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> Table:
    """Return the PhD Index with and without the context, and by type with it."""
    columns = {
        "Yes recall": Column(partial(_recall, 0)),
        "No recall": Column(partial(_recall, 1)),
        "PhD Index": Column(_index),
    }
    grid = Grid((len(_CONDITIONS), len(_ASKED), 2), _places)
    layout = Layout("phd-index", "PhD Index", grid, columns, _rows, (_NOTE, INTERVALS))
    return Sheets(benchmark, runs, judge, resamples, seed).table(layout)


def _places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int, int]]:
    condition, asked = kind.condition, kind.strata.get("asked")
    if condition in _CONDITIONS and asked in _ASKED:
        yield from ((_CONDITIONS.index(condition), _ASKED.index(asked), int(label != "IMAGE")) for label in labels)


def _rows(answers: Answers) -> Iterator[Row]:
    present = answers.count(lambda kind: kind.condition)
    yield from (Row(f" / {name}", place) for place, name in enumerate(_CONDITIONS) if present[name])
    for name in sorted(answers.count(lambda kind: kind.strata.get("type"))):
        yield Row(f" / {CONFLICT} / {name}", 0, partial(_is_of, name))


def _is_of(name: str, kind: AnswerKind) -> bool:
    return kind.strata.get("type") == name


def _recall(asked: int, counts: Any) -> Any:
    return ratio(counts[..., asked, 0], counts[..., asked, :].sum(-1))


def _index(counts: Any) -> Any:
    yes, no = _recall(0, counts), _recall(1, counts)
    return np.where(yes + no == 0, 0.0, ratio(2 * yes * no, yes + no))
