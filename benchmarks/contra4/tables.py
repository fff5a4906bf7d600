"""The tables of the paper that answers fill: Table 2, Figures 5 and 6, Table 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.base import Cell as TableCell
from benchmarks.base import Chart, Estimate, LabelMetrics, Record, Table
from benchmarks.contra4.constants import CATEGORIES, COMBINATIONS, CONDITIONS, LABELS, SIZES
from benchmarks.contra4.construction.meteor import LABEL, meteor
from benchmarks.contra4.counts import Cell, officially, tally
from benchmarks.contra4.instances import GOLD_CAPTIONS, MODALITIES, PREDICTED
from benchmarks.failure_table import by_judge, by_run, failures_table
from benchmarks.stats.intervals import estimate, ratio, resample

if TYPE_CHECKING:
    from numpy.typing import NDArray

Runs = Mapping[str, Sequence[Record]]
_Row = tuple[str, tuple[TableCell, ...]]
_Columns = Mapping[str, tuple[str, ...]]

_NEGATIVES = {"Rand.": ("random",), "Sim.": ("similar",), "All": ("random", "similar")}
MAIN: _Columns = {
    f"{of} / {negatives}": tuple(f"{size}-{each}" for size in sizes for each in kinds)
    for of, sizes in {**{f"{size} Modalities": (size,) for size in SIZES}, "All": SIZES}.items()
    for negatives, kinds in _NEGATIVES.items()
}
"""Table 2's columns, each with the strata ``kind`` that it is made of."""

CAPTIONED = {"Image": "image", "Video": "video", "Audio": "audio", "3D": "point_cloud"}
"""Table 6's columns."""

_INTERVALS = "Intervals: 95%, percentile bootstrap over samples, so that a sample's conditions stay together."
_COUNTED = (
    "Every answer counts: one without a choice, or empty, is not right. By chance: 50%, 33% and 25% of 2, 3 and 4 scenes. "
    "(official): the printed answer stands anywhere in the reply, as the published evaluation counts."
)
_ENTERS = (
    "Labelled and unparsed answers enter the other tables, unparsed ones (no choice, several, or empty) as not right."
)
_OFFICIAL = "official"


def tables(runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Every table that the records fill: main, combinations, categories, failures; captions where there are predicted ones.

    Rows are a run under one condition, by ``judge`` and as the published evaluation counts; "media" goes without saying.
    """
    categories = dict.fromkeys((*CATEGORIES, *sorted(_values(runs, "category"))))
    present = [name for name in categories if name in _values(runs, "category")]

    def table(name: str, title: str, columns: _Columns, cell: Cell, *notes: str, chart: Chart | None = None) -> Table:
        rows = _rows(runs, judge, columns, cell, resamples, seed)
        return Table(name, title, tuple(columns), tuple(rows), (*notes, _COUNTED, _INTERVALS), chart=chart)

    repeated = by_run(
        {
            run: len({r.instance.group for r in records if _combination(r) not in COMBINATIONS})
            for run, records in runs.items()
        }
    )
    left = (f"Left out: samples in which a modality occurs twice ({repeated}).",) if repeated else ()
    made = [
        table("main", "Accuracy by number of modalities and negatives (Table 2)", MAIN, _stratum("kind")),
        table(
            "combinations",
            "Accuracy by modalities (Figure 5)",
            {name: (name,) for name in COMBINATIONS},
            _combination,
            *left,
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
        failures_table(runs, judge, CONDITIONS, enters=_ENTERS),
    ]
    return [made for made in made if made.rows or made.name in ("main", "failures")]


def figures() -> LabelMetrics:
    """Accuracy over all answers under each condition: for correcting it by labels given by people."""

    def of(condition: int) -> Callable[[Any], Any]:
        def rate(counts: Any) -> Any:
            each = counts[..., condition, :]
            return ratio(each[..., LABELS.index("CORRECT")], each.sum(-1))

        return rate

    return LabelMetrics(
        CONDITIONS, LABELS, {f"Accuracy, {name}": of(i) for i, name in enumerate(CONDITIONS)}, unparsed="INCORRECT"
    )


def _rows(runs: Runs, judge: str, columns: _Columns, cell: Cell, resamples: int, seed: int) -> list[_Row]:
    cells = tuple(dict.fromkeys(name for names in columns.values() for name in names))
    rows: list[_Row] = []
    for run, records in runs.items():
        readings = {"": by_judge(judge), " (official)": officially}
        if judge.partition("@")[0] == _OFFICIAL:
            readings = {" (official)": officially}
        counted = {suffix: tally(records, cells, cell, read) for suffix, read in readings.items()}
        for condition in next(iter(counted.values())).conditions if cells else ():
            label = run if condition == "media" else f"{run} / {condition}"
            for suffix, found in counted.items():
                estimates = found.accuracies(condition, tuple(columns.values()), resamples, seed)
                rows.append((f"{label}{suffix}", estimates))
    return rows


def _captions(runs: Runs, resamples: int, seed: int) -> Table:
    """Table 6: each medium once, whichever questions show it."""
    rows: list[_Row] = []
    for run, records in runs.items():
        pairs = {
            pair
            for record in records
            for pair in zip(
                *(record.instance.references.get(name, ()) for name in (MODALITIES, PREDICTED, GOLD_CAPTIONS)),
                strict=False,
            )
        }
        if pairs:
            rows.append(
                (
                    run,
                    tuple(_mean(sorted(pairs), modality, resamples, seed) for modality in CAPTIONED.values()),
                )
            )
    notes = (
        f"{LABEL}: without WordNet's synonyms, which the paper's has, so that ours is at most as high. The captions are those of "
        "the build's captioners; every medium counts once, beside the data set's caption. Intervals: 95%, bootstrap over media.",
    )
    return Table("captions", "METEOR of predicted captions (Table 6)", tuple(CAPTIONED), tuple(rows), notes, judges=())


def _mean(pairs: Sequence[tuple[str, ...]], modality: str, resamples: int, seed: int) -> Estimate:
    scores = [meteor(predicted, gold) for kind, predicted, gold in pairs if kind == modality]
    counted: NDArray[np.float64] = np.array([[score, 1.0] for score in scores]).reshape(-1, 2)
    drawn, whole = resample(counted, resamples, seed), counted.sum(0)
    means = ratio(drawn[:, 0], drawn[:, 1])
    return estimate(float(ratio(whole[0], whole[1])), means, len(scores), reason="no caption of it was predicted")


def _stratum(key: str) -> Cell:
    return lambda record: record.instance.strata.get(key)


def _combination(record: Record) -> str | None:
    return record.instance.strata.get("modalities")


def _values(runs: Runs, key: str) -> set[str]:
    return {record.instance.strata.get(key, "") for records in runs.values() for record in records} - {""}
