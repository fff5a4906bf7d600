"""A comparison as tables, for the terminal, exports and screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.compare.cost import cost_table, tradeoff_table
from app.compare.differences import differences_table
from app.compare.flips import changes_table, flipped_table, flips_table
from app.compare.pairs import RunPair, own_figures
from app.compare.published import PUBLISHED, published_table
from app.compare.run_view import RunView, RunViews, load, not_labelled, refuse_twice
from app.compare.spec_diff import stem, warnings
from app.report.judge_selection import caveat
from app.report.tables import RESAMPLES, tables_of
from benchmarks.base import Table, did_you_mean
from benchmarks.errors import SpecError
from benchmarks.failure_table import OUTCOMES

QUANTISATION = "quantisation"
_GROUPS = {"quantization": QUANTISATION, QUANTISATION: QUANTISATION}


@dataclass(frozen=True)
class Comparison:
    """Runs beside each other. ``pairs`` are each baseline with each run that is compared to it; ``warnings`` are sentences."""

    sides: RunViews
    pairs: tuple[RunPair, ...]
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    """The figures that were named; empty: all are compared."""
    folders: tuple[Path, ...] = ()
    """Where the runs are, if they were read from there."""


def compare(
    runs: Sequence[str | Path],
    *,
    judge: str | None = None,
    baseline: Path | None = None,
    metrics: Sequence[str] = (),
    group_by: str | None = None,
    instances: bool = False,
    cells: Sequence[str] = (),
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare runs: their folders, and ``published:ROW`` for a row of the paper's.

    Differences are to ``baseline``, else to the first run; grouped by quantisation, to the most bits of each model.
    ``metrics`` are the figures to compare, else all of the benchmark's. With ``instances`` the table ``flipped`` names the
    instances behind the flips, with ``cells`` ("IMAGE:TEXT", one side may be empty) those behind these alone. Raises SpecError
    and StoreError for what cannot be compared.
    """
    rows = [run.removeprefix(PUBLISHED) for run in runs if isinstance(run, str)]
    folders = [run for run in runs if isinstance(run, Path)]
    if not folders:
        raise SpecError("there is no run of yours among these; `rashomon published` shows a paper's tables alone.")
    refuse_twice(folders)
    if baseline is not None:
        folders = [baseline, *(folder for folder in folders if folder != baseline)]
    if len(folders) + len(rows) < 2:
        raise SpecError("one run cannot be compared; name another, or published:ROW for a row of the paper's.")
    sides = load(folders, judge=judge)
    found = compare_sides(
        sides,
        metrics=metrics,
        group_by=group_by,
        keep_first=baseline is not None,
        instances=instances,
        cells=cells,
        resamples=resamples,
    )
    found = replace(found, folders=tuple(folders))
    if not rows:
        return found
    ours = tables_of(folders, judge=judge, published=False)
    beside = published_table(ours, sides, rows, _metrics(sides, metrics) if metrics else ())
    return replace(found, tables=(*found.tables, beside))


def compare_sides(
    sides: RunViews,
    *,
    metrics: Sequence[str] = (),
    group_by: str | None = None,
    keep_first: bool = False,
    instances: bool = False,
    cells: Sequence[str] = (),
    resamples: int = RESAMPLES,
) -> Comparison:
    """:func:`compare` of runs that are read; with ``keep_first`` the first run is the baseline of its group."""
    names = _metrics(sides, metrics)
    grouped = _grouped(sides, group_by, keep_first=keep_first)
    pairs = tuple(
        RunPair(group[0], other, sides.figures, resamples, sides.seed) for group in grouped for other in group[1:]
    )
    told = [*lacking(sides), *dict.fromkeys(w for g in grouped for w in warnings(g, quantisation=bool(group_by)))]
    tables = [_values(sides, names, resamples)]
    if group_by:
        tables.append(tradeoff_table(grouped, pairs, sides, resamples))
    if pairs:
        tables += [differences_table(pairs, names), changes_table(pairs, sides), flips_table(pairs, sides)]
        if instances or cells:
            tables.append(flipped_table(pairs, [_cell(cell, sides) for cell in cells]))
    tables.append(cost_table(sides.sides))
    return Comparison(sides, pairs, tuple(tables), tuple(told), tuple(names) if metrics else ())


def _metrics(sides: RunViews, wanted: Sequence[str]) -> list[str]:
    known = {name.casefold(): name for name in sides.figures.of}
    for word in wanted:
        if word.casefold() not in known:
            raise SpecError(f"{sides.benchmark.name} has no figure {word!r}; {did_you_mean(word, sides.figures.of)}")
    return [known[word.casefold()] for word in dict.fromkeys(wanted)] or list(sides.figures.of)


def _cell(cell: str, sides: RunViews) -> tuple[str, str]:
    """A cell of the flips as it is named, "IMAGE:TEXT"; an empty side is any."""
    labels = {word.casefold(): word for word in (*sides.benchmark.labels, *OUTCOMES) if word != "labelled"}
    was, colon, now = cell.partition(":")
    if not colon or not (was or now):
        raise SpecError(
            f"{cell!r} is no cell; name the two labels as in IMAGE:TEXT, or one of them as in IMAGE: or :TEXT."
        )
    for word in (was, now):
        if word and word.casefold() not in labels:
            raise SpecError(f"{sides.benchmark.name} has no label {word!r}; {did_you_mean(word, labels.values())}")
    return labels.get(was.casefold(), ""), labels.get(now.casefold(), "")


def _grouped(sides: RunViews, group_by: str | None, *, keep_first: bool) -> list[list[RunView]]:
    """The runs that are compared with each other, the baseline of each group first."""
    if group_by is None:
        return [list(sides.sides)]
    if group_by not in _GROUPS:
        raise SpecError(f"runs cannot be grouped by {group_by!r}; {did_you_mean(group_by, _GROUPS)}")
    groups: dict[tuple[str, str], list[RunView]] = {}
    for side in sides.sides:
        groups.setdefault((stem(side), str(side.spec["prompt_set"])), []).append(side)
    first = sides.sides[0] if keep_first else None
    return [sorted(group, key=lambda side: (side is not first, -_bits(side))) for group in groups.values()]


def _bits(side: RunView) -> float:
    """By what runs of one model are ordered: how much room its weights take, else what its quantisation says."""
    if side.weights_bytes:
        return float(side.weights_bytes)
    digits = "".join(c if c.isdigit() else " " for c in side.quantisation or "").split()
    return float(digits[0]) if digits else 0.0


def lacking(sides: RunViews) -> list[str]:
    """What a run lacks that the others have."""
    told = []
    for side in sides.sides:
        if not side.judged:
            told.append(
                f"{sides.judge} has not labelled {side.label}, so nothing of it can be compared: `rashomon judge "
                f"{side.name} --judge {sides.judge.rpartition('@')[0] or sides.judge}`."
            )
        elif lost := not_labelled(side, sides.figures.labels):
            each = ", ".join(f"{count} {outcome}" for outcome, count in sorted(lost.items()))
            counted = " (unparsed ones count)" if sides.figures.unparsed and lost["unparsed"] else ""
            how_many = f"{sum(lost.values())} of its {len(side.said)} instances have no label"
            told.append(f"{side.label} is {side.state}: {how_many}: {each}{counted}.")
    first = sides.sides[0]
    for side in sides.sides[1:]:
        both = sum(instance in first.said for instance in side.said)
        if not both:
            told.append(f"{first.label} and {side.label} share no instance: nothing between them can be tested.")
        elif both < max(len(side.said), len(first.said)):
            told.append(
                f"{first.label} ({len(first.said)} instances) and {side.label} ({len(side.said)}) share {both}: differences "
                "rest on those."
            )
    told += [f"{side.label}: {remark}" for side in sides.sides for remark in side.remarks]
    return told


def _values(sides: RunViews, names: Sequence[str], resamples: int) -> Table:
    rows = tuple(
        (side.label, tuple(own_figures(side, sides.figures, names, resamples=resamples, seed=sides.seed)))
        for side in sides.sides
    )
    notes = [
        "Each run over all that it has labelled, with 95% percentile bootstrap intervals over examples. Whether runs differ is "
        "not seen by whether these intervals overlap, but in the table of differences.",
        f"Labels by {sides.judge}{caveat(sides.judge)}.",
    ]
    if sides.benchmark.counts_flags:
        notes.append("Each answer counts with one label here; the paper's tables count every label that fits.")
    return Table("values", "Figures of each run", tuple(names), rows, tuple(notes))


def to_json(found: Comparison) -> dict[str, Any]:
    """What is no table of a comparison: the runs, the warnings, and the instances behind every flip."""
    return {
        "judge": found.sides.judge,
        "runs": [
            {"name": side.name, "label": side.label, "state": side.state, "spec": side.spec, "identity": side.identity}
            for side in found.sides.sides
        ],
        "warnings": list(found.warnings),
        "flips": [_flips(pair) for pair in found.pairs],
    }


def _flips(pair: RunPair) -> Mapping[str, Any]:
    cells = [
        {"from": was, "to": now, "count": count, "instances": pair.behind(was, now)}
        for (was, now), count in sorted(pair.flips().items())
        if was != now
    ]
    return {"baseline": pair.first.name, "run": pair.second.name, "shared": len(pair.shared), "cells": cells}
