"""JSON of ``rashomon compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.compare.headline import headlines
from app.compare.pairs import RunPair
from app.compare.tables import Comparison
from app.json_output.facts import Fact
from app.json_output.show import identity_facts, spec_facts
from app.json_output.tables import TableJson, table_json
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
class CompareResult:
    """A comparison. ``verdicts`` are those on fine-tuned models; they and the ``headlines`` are printed first."""

    verdicts: tuple[str, ...]
    headlines: tuple[str, ...]
    warnings: tuple[str, ...]
    runs: tuple[ComparedRun, ...]
    flips: tuple[FlipsJson, ...]
    tables: tuple[TableJson, ...]


def compare_result(comparison: Comparison, verdicts: Sequence[str], tables: Sequence[Table]) -> CompareResult:
    """Return a comparison with the ``tables`` that were asked for."""
    return CompareResult(
        verdicts=tuple(verdicts),
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


def _flips(pair: RunPair) -> FlipsJson:
    cells = tuple(
        FlipCell(before=was, after=now, count=count, instances=tuple(pair.instances_behind(was, now)))
        for (was, now), count in sorted(pair.flips().items())
        if was != now
    )
    return FlipsJson(baseline=pair.first.name, run=pair.second.name, shared=len(pair.shared), cells=cells)
