"""The tables of the paper that records fill: Table 2, Figures 5 and 6, Table 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.base import LabelMetrics
from benchmarks.contra4.constants import CATEGORIES, COMBINATIONS, CONDITIONS, LABELS, SIZES
from benchmarks.contra4.construction.meteor import LABEL, LABEL_WITH_SYNONYMS, meteor
from benchmarks.contra4.construction.wordnet import wordnet_synonyms
from benchmarks.contra4.counts import CellSelector, official_outcome, tally
from benchmarks.failure_table import counts_by_run, failures_table, outcome_by_judge
from benchmarks.stats.intervals import estimate, ratio, resample
from benchmarks.vocabulary import Cell as TableCell
from benchmarks.vocabulary import Chart, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

Runs = Mapping[str, Answers]
_Row = tuple[str, tuple[TableCell, ...]]
_Columns = Mapping[str, tuple[str, ...]]

_NEGATIVES = {"Rand.": ("random",), "Sim.": ("similar",), "All": ("random", "similar")}
MAIN_COLUMNS: _Columns = {
    f"{of} / {negatives}": tuple(f"{size}-{kind}" for size in sizes for kind in kinds)
    for of, sizes in {**{f"{size} Modalities": (size,) for size in SIZES}, "All": SIZES}.items()
    for negatives, kinds in _NEGATIVES.items()
}
"""The columns of Table 2, each with its strata ``kind``."""

CAPTION_COLUMNS = {"Image": "image", "Video": "video", "Audio": "audio", "3D": "point_cloud"}
"""The columns of Table 6."""

_INTERVALS = "Intervals: 95%, percentile bootstrap over samples, so that a sample's conditions stay together."
_COUNTED = (
    "Every answer counts: one without a choice, or empty, is wrong. Chance: 50%, 33% and 25% with 2, 3 and 4 scenes. "
    "(official): the printed answer occurs anywhere in the reply, as the published evaluation counts."
)
_ENTERS = (
    "The other tables count labelled and unparsed answers; unparsed ones (no choice, several, or empty) count as wrong."
)
_OFFICIAL = "official"


def tables(runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill: main, combinations, categories, captions (if predicted), failures.

    A row is a run under one condition, by ``judge`` or as the published evaluation counts; "media" is not named in it.
    """
    categories = dict.fromkeys((*CATEGORIES, *sorted(_values(runs, "category"))))
    present = [name for name in categories if name in _values(runs, "category")]

    def table(
        name: str, title: str, columns: _Columns, cell: CellSelector, *notes: str, chart: Chart | None = None
    ) -> Table:
        rows = _rows(runs, judge, columns, cell, resamples, seed)
        return Table(name, title, tuple(columns), tuple(rows), (*notes, _COUNTED, _INTERVALS), chart=chart)

    repeated = counts_by_run(
        {
            run: number_groups(answers.group[answers.mask(lambda kind: _combination(kind) not in COMBINATIONS)])[0]
            for run, answers in runs.items()
        }
    )
    notes = (f"Left out: samples in which a modality occurs twice ({repeated}).",) if repeated else ()
    main = table("main", "Accuracy by number of modalities and negatives (Table 2)", MAIN_COLUMNS, _stratum("kind"))
    if any(answers.base for answers in runs.values()):  # Figure 4: one model, fine-tuned on the data of several filters
        main = replace(main, chart="bars", drawn=tuple(name for name in MAIN_COLUMNS if name.endswith(" / All")))
    all_tables = [
        main,
        table(
            "combinations",
            "Accuracy by modalities (Figure 5)",
            {name: (name,) for name in COMBINATIONS},
            _combination,
            *notes,
            chart="heat",
        ),
        table(
            "categories",
            "Accuracy by category (the categories of Figure 6)",
            {name: (name,) for name in present},
            _stratum("category"),
            chart="heat",
        ),
        _captions(runs, resamples, seed),
        failures_table(runs, judge, CONDITIONS, scope_note=_ENTERS),
    ]
    return [filled for filled in all_tables if filled.rows or filled.name in ("main", "failures")]


def label_metrics() -> LabelMetrics:
    """Return the accuracy over all answers under each condition, for correction by human labels."""

    def of(condition: int) -> Callable[[Any], Any]:
        def rate(counts: Any) -> Any:
            labels = counts[..., condition, :]
            return ratio(labels[..., LABELS.index("CORRECT")], labels.sum(-1))

        return rate

    return LabelMetrics(CONDITIONS, LABELS, {f"Accuracy, {name}": of(i) for i, name in enumerate(CONDITIONS)})


def _rows(runs: Runs, judge: str, columns: _Columns, cell: CellSelector, resamples: int, seed: int) -> list[_Row]:
    cells = tuple(dict.fromkeys(name for names in columns.values() for name in names))
    rows: list[_Row] = []
    for run, answers in runs.items():
        readings = {"": outcome_by_judge(judge), " (official)": official_outcome}
        if judge.partition("@")[0] == _OFFICIAL:
            readings = {" (official)": official_outcome}
        counts = {suffix: tally(answers, cells, cell, reader) for suffix, reader in readings.items()}
        for condition in next(iter(counts.values())).conditions if cells else ():
            label = run if condition == "media" else f"{run} / {condition}"
            for suffix, run_counts in counts.items():
                estimates = run_counts.accuracies(condition, tuple(columns.values()), resamples, seed)
                rows.append((f"{label}{suffix}", estimates))
    return rows


def _captions(runs: Runs, resamples: int, seed: int) -> Table:
    """Return Table 6: each medium counts once, however many questions show it."""
    rows: list[_Row] = []
    for run, answers in runs.items():
        pairs = {pair for kind in answers.kinds for pair in kind.reading.captions}
        if pairs:
            rows.append(
                (
                    run,
                    tuple(_mean(sorted(pairs), modality, resamples, seed) for modality in CAPTION_COLUMNS.values()),
                )
            )
    stages = (
        f"{LABEL_WITH_SYNONYMS}, with the synonyms of the WordNet on this machine, as the paper's."
        if wordnet_synonyms()
        else f"{LABEL}: without WordNet's synonyms, which the paper's has, so that ours is at most as high. "
        "`pip install 'rashomon[wordnet]'` and `python -m nltk.downloader wordnet` add them."
    )
    notes = (
        f"{stages} The captions are those of "
        "the build's captioners; every medium counts once, beside the data set's caption. Intervals: 95%, bootstrap over media.",
    )
    return Table(
        "captions", "METEOR of predicted captions (Table 6)", tuple(CAPTION_COLUMNS), tuple(rows), notes, judges=()
    )


def _mean(pairs: Sequence[tuple[str, ...]], modality: str, resamples: int, seed: int) -> Estimate:
    synonyms = wordnet_synonyms()
    scores = [meteor(predicted, gold, synonyms) for kind, predicted, gold in pairs if kind == modality]
    score_counts: NDArray[np.float64] = np.array([[score, 1.0] for score in scores]).reshape(-1, 2)
    resampled_sums, total = resample(score_counts, resamples, seed), score_counts.sum(0)
    means = ratio(resampled_sums[:, 0], resampled_sums[:, 1])
    return estimate(float(ratio(total[0], total[1])), means, len(scores), reason="no caption of it was predicted")


def _stratum(key: str) -> CellSelector:
    return lambda kind: kind.strata.get(key)


def _combination(kind: AnswerKind) -> str | None:
    return kind.strata.get("modalities")


def _values(runs: Runs, key: str) -> set[str]:
    return {kind.strata.get(key, "") for answers in runs.values() for kind in answers.kinds} - {""}
