"""Costs of runs (memory, disk and time), alone and next to their accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.run_pairs import RunPair, counted_in_both, share_of_labels
from app.compare.runs.run_view import RunView, RunViews
from app.compare.runs.spec_diff import chip_of, unquantised_model
from benchmarks.stats.intervals import INTERVALS
from benchmarks.vocabulary import Cell, Estimate, Table

COSTS = ("tokens per second", "seconds per answer", "peak memory, GB", "size on disk, GB")
BENCHMARK_ACCURACY = "benchmark accuracy"
"""The share of right labels as the benchmark's tables count them: what a comparison displays."""
_GB = 1e9
_NOT_TIMED, _NO_TOKENS = "no answer was timed", "the engine does not count tokens"
_REUSED = "most answers were reused from runs that are not here"
_UNLABELLED = "there is no labelled answer"

LabelMask = NDArray[np.bool_]


def cost_cells(run: RunView) -> tuple[Estimate, ...]:
    """Return the columns ``COSTS`` of a run; n/a where the engine does not report them."""
    cost = run.cost
    peak = None if cost.peak_memory is None else cost.peak_memory / _GB
    size = None if run.weights_bytes is None else run.weights_bytes / _GB
    reused = _REUSED if 2 * cost.unmeasured > cost.answers else ""
    return (
        Estimate(cost.tokens_per_second, n=cost.timed, reason=reused or _NOT_TIMED),
        Estimate(cost.seconds_per_answer, n=cost.timed, reason=reused or _NOT_TIMED),
        Estimate(peak, n=cost.answers, reason=reused or "the engine does not report its memory"),
        Estimate(size, n=1, reason="the model has no local weights, or the run predates their measurement"),
    )


def cost_table(runs: Sequence[RunView]) -> Table:
    """Return a table with a row for each run: quantisation, chip, and the cost of its answers."""
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (run.label, (run.quantisation or "", chip_of(run) or "", run.cost.answers, *cost_cells(run))) for run in runs
    ]
    notes = (
        "Over all answers of a run except errors. tokens per second: the tokens after an answer's first, divided by their "
        "decoding time; seconds per answer: from the prepared prompt to the last token; peak memory: the engine's highest; "
        "GB: 10^9 bytes. Reused answers count with what they cost in the run that gave them.",
    )
    return Table("cost", "Memory and speed", ("quantisation", "chip", "answers", *COSTS), tuple(rows), notes)


def tradeoff_table(groups: Sequence[Sequence[RunView]], pairs: Sequence[RunPair], views: RunViews) -> Table:
    """Return quality against memory and speed, with a row for each quantisation of each model."""
    pair_of_run = {id(pair.second): pair for pair in pairs}
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for group in groups:
        for run in group:
            pair = pair_of_run.get(id(run))
            difference = None if pair is None else accuracy_difference(pair, views)
            label = f"{unquantised_model(run)} / {run.quantisation or run.label}"
            rows.append((label, (accuracy(run, views), difference, *cost_cells(run))))
    notes = (
        f"{_accuracy_note(views)}; difference: to the "
        f"first row of the same model, over the answers {counted_in_both(views.runs, views.label_metrics)}.",
        INTERVALS,
    )
    columns = (BENCHMARK_ACCURACY, "difference", *COSTS)
    return Table("tradeoff", "Quality against memory and speed, by quantisation", columns, tuple(rows), notes)


def remedies_table(pairs: Sequence[RunPair], views: RunViews) -> Table | None:
    """Return the gain of other protocols beside what they cost; None if the runs have the same protocol."""
    pairs = [pair for pair in pairs if _stored_protocol(pair.first) != _stored_protocol(pair.second)]
    if not pairs:
        return None
    first = pairs[0].first
    rows: list[tuple[str, tuple[Cell, ...]]] = [(first.label, _remedy_cells(first, None, views))]
    rows += [(pair.second.label, _remedy_cells(pair.second, pair, views)) for pair in pairs]
    notes = (
        f"{_accuracy_note(views)}; gain: its difference "
        f"from {first.label}, over the answers {counted_in_both(views.runs, views.label_metrics)}. Tokens: of prompts "
        "and answers, of all calls for an answer; seconds: of all calls for an answer.",
        INTERVALS,
    )
    columns = (
        "protocol",
        BENCHMARK_ACCURACY,
        "gain",
        "tokens per answer",
        "extra tokens",
        "seconds per answer",
        "extra seconds",
    )
    return Table("remedies", "Gain and cost of protocols", columns, tuple(rows), notes)


def _accuracy_note(views: RunViews) -> str:
    """Return the definition of the benchmark accuracy."""
    conditions = ", ".join(views.label_metrics.conditions)
    return f"{BENCHMARK_ACCURACY}: the share of right labels over {conditions} together, counted as in the benchmark's tables"


def _remedy_cells(run: RunView, pair: RunPair | None, views: RunViews) -> tuple[Cell, ...]:
    cost, first = run.cost, None if pair is None else pair.first.cost
    return (
        run.protocol,
        accuracy(run, views),
        None if pair is None else accuracy_difference(pair, views),
        Estimate(cost.tokens_per_answer, n=cost.metered, reason=_NO_TOKENS),
        None if first is None else _extra(cost.tokens_per_answer, first.tokens_per_answer, cost.metered, _NO_TOKENS),
        Estimate(cost.seconds_per_answer, n=cost.timed, reason=_NOT_TIMED),
        None if first is None else _extra(cost.seconds_per_answer, first.seconds_per_answer, cost.timed, _NOT_TIMED),
    )


def _stored_protocol(run: RunView) -> str:
    return str(run.identity.get("protocol") or "")


def _extra(value: float | None, first: float | None, n: int, reason: str) -> Estimate:
    return Estimate(None if value is None or first is None else value - first, n=n, reason=reason)


def correct_labels(views: RunViews) -> LabelMask:
    """Return the labels that are right under each condition, of shape (conditions, labels).

    Their share over all conditions is the accuracy.
    """
    metrics, is_correct = views.label_metrics, views.benchmark.correct
    return np.array([[is_correct(condition, label) for label in metrics.labels] for condition in metrics.conditions])


def accuracy(run: RunView, views: RunViews) -> Estimate:
    """Return the share of a run's labels that are right, over all conditions."""
    return share_of_labels(run, views.label_metrics, correct_labels(views))


def accuracy_difference(pair: RunPair, views: RunViews) -> Estimate:
    """Return the second run's accuracy less the first one's, over the answers that count in both."""
    _, difference = pair.hit_difference(correct_labels(views))
    return Estimate(None, reason=_UNLABELLED) if difference is None else difference.estimate
