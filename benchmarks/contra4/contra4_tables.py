"""The tables of the paper that records fill: Table 2, Figures 5 and 6, Table 6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.contra4.construction.meteor import LABEL, LABEL_WITH_SYNONYMS, meteor
from benchmarks.contra4.construction.wordnet import wordnet_synonyms
from benchmarks.contra4.contra4_constants import CATEGORIES, COMBINATIONS, CONDITIONS, LABELS, SIZES
from benchmarks.failure_table import counts_by_run, failures_table
from benchmarks.stats.intervals import INTERVALS, ratio
from benchmarks.tables.declared_tables import Column, Grid, Layout, Row, Sheet, Sheets
from benchmarks.vocabulary import Chart, Estimate, LabelMetrics, Table

Runs = Mapping[str, Answers]
_Columns = Mapping[str, tuple[str, ...]]
_Reader = Callable[[AnswerKind, tuple[str, ...]], bool | None]
"""A function from a kind of answer, and the labels that it counts as, to whether it is right; None if it does not count."""

_NEGATIVES = {"Rand.": ("random",), "Sim.": ("similar",), "All": ("random", "similar")}
MAIN_COLUMNS: _Columns = {
    f"{of} / {negatives}": tuple(f"{size}-{kind}" for size in sizes for kind in kinds)
    for of, sizes in {**{f"{size} Modalities": (size,) for size in SIZES}, "All": SIZES}.items()
    for negatives, kinds in _NEGATIVES.items()
}
"""The columns of Table 2, each with its strata ``kind``."""

CAPTION_COLUMNS = {"Image": "image", "Video": "video", "Audio": "audio", "3D": "point_cloud"}
"""The columns of Table 6."""

_COUNTED = (
    "Every answer counts: one without a choice, or empty, is wrong. Chance: 50%, 33% and 25% with 2, 3 and 4 scenes; with the "
    "published test rows, the modality that is right most often in the validation rows has 67%, 48% and 51% without a look at "
    "any scene. (official): the printed answer occurs anywhere in the reply, as the published evaluation counts."
)
_ENTERS = (
    "The other tables count labelled and unparsed answers; unparsed ones (no choice, several, or empty) count as wrong."
)
_OFFICIAL = "official"
_BALANCED_NOTE = (
    "(balanced, ours): a subset of 1,133 of the 2,335 published test rows, in which modality and length of the caption leave the "
    "answer at chance."
)


def tables(benchmark: Benchmark, runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill: main, combinations, categories, captions (if predicted), failures.

    A row is a run under one condition, by ``judge`` or as the published evaluation counts; "media" is not named in it.
    """
    sheets = Sheets(benchmark, runs, judge, resamples, seed)

    def table(name: str, title: str, stratum: str, columns: _Columns, *notes: str, chart: Chart | None = None) -> Table:
        return sheets.table(_layout(name, title, stratum, columns, judge, *notes, chart=chart))

    has_balanced = any(kind.reading.balanced for answers in runs.values() for kind in answers.kinds)
    main = table(
        "main",
        "Accuracy by number of modalities and negatives (Table 2)",
        "kind",
        MAIN_COLUMNS,
        *([_BALANCED_NOTE] if has_balanced else []),
    )
    if any(answers.base for answers in runs.values()):  # Figure 4: one model, fine-tuned on the data of several filters
        main = replace(main, chart="bars", drawn=tuple(name for name in MAIN_COLUMNS if name.endswith(" / All")))
    combinations = {name: (name,) for name in COMBINATIONS}
    present = {kind.strata.get("category", "") for answers in runs.values() for kind in answers.kinds} - {""}
    categories = {name: (name,) for name in (*CATEGORIES, *sorted(present.difference(CATEGORIES))) if name in present}
    all_tables = [
        main,
        table(
            "combinations",
            "Accuracy by modalities (Figure 5)",
            "modalities",
            combinations,
            *_repeated_note(runs),
            chart="heat",
        ),
        table("categories", "Accuracy by category (the categories of Figure 6)", "category", categories, chart="heat"),
        _captions(runs, resamples, seed),
        failures_table(runs, judge, CONDITIONS, scope_note=_ENTERS),
    ]
    return [filled for filled in all_tables if (filled.rows and filled.columns) or filled.name in ("main", "failures")]


def label_metrics() -> LabelMetrics:
    """Return the accuracy over all answers under each condition, for correction by human labels."""

    def of(condition: int) -> Callable[[Any], Any]:
        def rate(counts: Any) -> Any:
            labels = counts[..., condition, :]
            return ratio(labels[..., LABELS.index("CORRECT")], labels.sum(-1))

        return rate

    return LabelMetrics(CONDITIONS, LABELS, {f"Accuracy, {name}": of(i) for i, name in enumerate(CONDITIONS)})


def _layout(
    name: str, title: str, stratum: str, columns: _Columns, judge: str, *notes: str, chart: Chart | None
) -> Layout:
    """Return a table of accuracies; each column pools the answers with some values of a stratum."""
    official = _grid(stratum, columns, _right_officially)
    readings = {"": _grid(stratum, columns, _right_by_judge), " (official)": official}
    if judge.partition("@")[0] == _OFFICIAL:
        del readings[""]

    def rows(answers: Answers) -> Iterator[Row]:
        present = answers.count(lambda kind: kind.condition)
        balanced = answers.count(lambda kind: kind.condition if kind.reading.balanced else None)
        for condition in (name for name in CONDITIONS if name in present):
            label = "" if condition == "media" else f" / {condition}"
            for suffix, grid in readings.items():
                yield Row(f"{label}{suffix}", of=partial(_is_under, condition), grid=grid)
            if name == "main" and condition in balanced:
                yield Row(
                    f"{label} (balanced, ours)", of=partial(_is_balanced, condition), grid=next(iter(readings.values()))
                )

    accuracies = {name: _accuracy(place) for place, name in enumerate(columns)}
    return Layout(name, title, official, accuracies, rows, (*notes, _COUNTED, INTERVALS), chart=chart)


def _is_under(condition: str, kind: AnswerKind) -> bool:
    return kind.condition == condition


def _is_balanced(condition: str, kind: AnswerKind) -> bool:
    return kind.condition == condition and kind.reading.balanced


def _grid(stratum: str, columns: _Columns, is_right: _Reader) -> Grid:
    """Return the grid of the right answers, and of all answers, in each column."""

    def places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        right = is_right(kind, labels)
        for place, values in enumerate(columns.values()):
            if right is not None and kind.strata.get(stratum) in values:
                yield from [(place, 0), (place, 1)] if right else [(place, 1)]

    return Grid((len(columns), 2), places)


def _right_by_judge(kind: AnswerKind, labels: tuple[str, ...]) -> bool | None:
    return "CORRECT" in labels if labels else None


def _right_officially(kind: AnswerKind, labels: tuple[str, ...]) -> bool | None:
    """Return whether the published evaluation counts an answer as right, whatever the judge."""
    return bool(kind.reading.official) if kind.is_answered else None


def _accuracy(place: int) -> Column:
    return Column(
        lambda counts: ratio(counts[..., place, 0], counts[..., place, 1]),
        lambda totals: totals[place, 1],
        lambda totals: "no such question is answered",
    )


def _repeated_note(runs: Runs) -> tuple[str, ...]:
    repeated = {
        run: len(
            np.unique(answers.example_at[answers.mask(lambda kind: kind.strata.get("modalities") not in COMBINATIONS)])
        )
        for run, answers in runs.items()
    }
    text = counts_by_run(repeated)
    return (f"Left out: samples in which a modality occurs twice ({text}).",) if text else ()


def _captions(runs: Runs, resamples: int, seed: int) -> Table:
    """Return Table 6: each medium counts once, however many questions show it."""
    rows = []
    for run, answers in runs.items():
        if pairs := sorted({pair for kind in answers.kinds for pair in kind.reading.captions}):
            means = (_mean_meteor(pairs, modality, resamples, seed) for modality in CAPTION_COLUMNS.values())
            rows.append((run, tuple(means)))
    stages = (
        f"{LABEL_WITH_SYNONYMS}, with the synonyms of the WordNet on this machine, as the paper's."
        if wordnet_synonyms()
        else f"{LABEL}: without WordNet's synonyms, which the paper's has, so that ours is at most as high. "
        "`pip install 'rashomon[wordnet]'` and `python -m nltk.downloader wordnet` add them."
    )
    notes = (
        f"{stages} The captions are those of "
        "the build's captioners; every medium counts once, beside the data set's caption. Intervals: 95%, over media.",
    )
    return Table(
        "captions", "METEOR of predicted captions (Table 6)", tuple(CAPTION_COLUMNS), tuple(rows), notes, judges=()
    )


def _mean_meteor(pairs: Sequence[tuple[str, ...]], modality: str, resamples: int, seed: int) -> Estimate:
    synonyms = wordnet_synonyms()
    scores = [(meteor(predicted, gold, synonyms), 1.0) for kind, predicted, gold in pairs if kind == modality]
    mean = Column(
        lambda sums: ratio(sums[..., 0], sums[..., 1]),
        lambda totals: totals[1],
        lambda totals: "no caption of it was predicted",
    )
    (cell,) = Sheet(np.array(scores).reshape(-1, 2), resamples, seed).cells([mean])
    return cell
