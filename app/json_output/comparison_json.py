"""JSON of ``rashomon compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.compare.comparison_headline import headlines
from app.compare.comparison_tables import Comparison
from app.compare.fine_tuning.change_by_training import Change
from app.compare.fine_tuning.fine_tuning_verdict import Category, Verdict
from app.compare.runs.run_pairs import RunPair
from app.json_output.facts_json import Fact
from app.json_output.show_json import identity_facts, spec_facts
from app.json_output.tables_json import TableJson, table_json
from benchmarks.vocabulary import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run that is compared. ``protocol`` is that of its answers."""

    name: str
    label: str
    """Its name in the tables."""
    state: str
    protocol: str
    spec: tuple[Fact, ...]
    identity: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipCell:
    """The instances whose outcome ``before``, in the baseline, is ``after`` in the run."""

    before: str
    after: str
    count: int
    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipsJson:
    """The outcomes that differ between a baseline and a run, of the ``shared`` instances."""

    baseline: str
    run: str
    shared: int
    cells: tuple[FlipCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeJson:
    """The change of one ``part`` of the answers, as shares. ``interval`` is that of 95% which shows it, with undecided answers.

    ``fell`` and ``rose`` are numbers of answers whose score did; ``became`` and ``rose_by`` are what they do now.
    """

    part: str
    before: float | None
    after: float | None
    difference: float | None
    interval: tuple[float, float] | None
    answers: int
    examples: int
    fell: int
    rose: int
    became: dict[str, int]
    rose_by: dict[str, int]
    lower_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuningJson:
    """The verdict on a fine-tuned model: its category, every loss that is shown, and the gains that it is for.

    ``open`` are the changes that are neither shown nor excluded; ``examples_needed`` is about how many examples would decide
    them, null where that is not known or not the question. ``trained_on`` are the examples of the test data that it learnt.
    """

    base: str
    run: str
    category: Category
    margin: float
    reasons: tuple[str, ...]
    losses: tuple[ChangeJson, ...]
    gains: tuple[ChangeJson, ...]
    open: tuple[ChangeJson, ...]
    changes: tuple[ChangeJson, ...]
    examples_needed: int | None
    trained_on: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResult:
    """A comparison. ``verdicts`` are those on fine-tuned models in words; they and the ``headlines`` are printed first."""

    verdicts: tuple[str, ...]
    fine_tunings: tuple[FineTuningJson, ...]
    headlines: tuple[str, ...]
    warnings: tuple[str, ...]
    runs: tuple[ComparedRun, ...]
    flips: tuple[FlipsJson, ...]
    tables: tuple[TableJson, ...]


def compare_result(comparison: Comparison, verdicts: Sequence[Verdict], tables: Sequence[Table]) -> CompareResult:
    """Return a comparison with the ``tables`` that were asked for."""
    return CompareResult(
        verdicts=tuple(verdict.text for verdict in verdicts),
        fine_tunings=tuple(map(_fine_tuning, verdicts)),
        headlines=tuple(headlines(comparison)),
        warnings=comparison.warnings,
        runs=tuple(
            ComparedRun(
                name=run.name,
                label=run.label,
                state=run.state,
                protocol=run.protocol,
                spec=spec_facts(run.spec),
                identity=identity_facts(run.identity),
            )
            for run in comparison.views.runs
        ),
        flips=tuple(map(_flips, comparison.pairs)),
        tables=tuple(map(table_json, tables)),
    )


def _fine_tuning(verdict: Verdict) -> FineTuningJson:
    tuning = verdict.tuning
    return FineTuningJson(
        base=tuning.base.name,
        run=tuning.tuned.name,
        category=verdict.category,
        margin=verdict.margin,
        reasons=verdict.sentences,
        losses=tuple(map(_change, verdict.losses)),
        gains=tuple(map(_change, verdict.gains)),
        open=tuple(map(_change, verdict.open)),
        changes=tuple(map(_change, tuning.changes)),
        examples_needed=verdict.examples,
        trained_on=tuning.trained,
    )


def _change(change: Change) -> ChangeJson:
    return ChangeJson(
        part=change.part,
        before=change.before.value,
        after=change.after.value,
        difference=change.difference.value,
        interval=change.interval(),
        answers=change.difference.n,
        examples=change.examples,
        fell=change.lost,
        rose=change.gained,
        became=dict(change.became),
        rose_by=dict(change.rose_by),
        lower_is_better=change.is_lower_better,
    )


def _flips(pair: RunPair) -> FlipsJson:
    cells = tuple(
        FlipCell(before=was, after=now, count=count, instances=tuple(pair.instances_behind(was, now)))
        for (was, now), count in sorted(pair.flips().items())
        if was != now
    )
    return FlipsJson(baseline=pair.first.name, run=pair.second.name, shared=len(pair.shared), cells=cells)
