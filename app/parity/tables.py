"""A comparison stage by stage as tables that fit a terminal of 80 columns, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.compare.pairs import PairedDifference
from app.parity.compare_runs import ParityReport
from app.parity.stages import STAGES, StageFinding
from benchmarks.base import Cell, Estimate, Table
from benchmarks.stats.paired_tests import holm_of_hypotheses, hypotheses


def tables(found: ParityReport, metrics: Sequence[str] = ()) -> list[Table]:
    """The stages, the agreement by condition, and the figures with their paired differences."""
    return [stages_table(found), agreement_table(found), figures_table(found, metrics)]


def stages_table(found: ParityReport) -> Table:
    """A row for each stage: whether A and B are the same there, and what was seen."""
    rows = tuple((each.stage, (each.found, each.said)) for each in found.findings)
    looked = "The models' inputs were not looked at."
    if any(each.stage == "numerics" for each in found.findings):
        other = {str(each["instance"]) for each in found.answers.examples} & set(found.probed)
        count = len(found.probed)
        looked = f"{count} request{' was' if count == 1 else 's were'} looked at, {len(other)} of them with answers that differ."
    notes = (
        f"A is {found.labels[0]} ({found.a.folder.name}), B is {found.labels[1]} ({found.b.folder.name}). {looked}",
        *found.unseen,
        "noise: differs by no more than rounding; unknown: was not looked at. A divergence is Kullback and Leibler's.",
    )
    return Table("stages", "Where A and B part", ("found", "what was seen"), rows, notes)


def agreement_table(found: ParityReport) -> Table:
    """By condition: how many answers are the same, and how far the labels agree."""
    from app.compare.flips import changes_table

    differing = {str(each["instance"]) for each in found.answers.examples}
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    changes = changes_table([found.pair], found.sides) if found.pair.shared else None
    for label, cells in changes.rows if changes else ():
        view = label.rpartition(" / ")[2]
        both = [
            i
            for i, one in found.a.records.items()
            if i in found.b.records
            and view in ("all", one.instance.condition)
            and one.answer
            and found.b.records[i].answer
        ]
        same = sum(i not in differing for i in both)
        rows.append((view, (len(both), same, cells[1], cells[2], cells[3])))
    columns = ("answered", "same answer", "labelled", "same label", "kappa")
    note = "In both runs; intervals: 95%, percentile bootstrap over examples; kappa: Cohen's."
    return Table("agreement", "Agreement of answers and labels", columns, tuple(rows), (note,))


def figures_table(found: ParityReport, metrics: Sequence[str] = ()) -> Table:
    """Every figure of the benchmark in both runs, and B's less A's with its paired interval."""
    pair = found.pair
    compared = {name: pair.compare(pair.figures.of[name]) for name in metrics or pair.figures.of}
    corrected = holm_of_hypotheses([each.p for each in compared.values()], hypotheses(list(compared), pair.figures))
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        ("accuracy", (*map(_bare, found.effect.accuracies), found.effect.difference, found.effect.difference.n, None))
    ]
    rows += [(name, _cells(each, p)) for (name, each), p in zip(compared.items(), corrected, strict=True)]
    note = (
        "Over the answers that both have labelled (accuracy of each run: over all of its own); B - A with its 95% percentile "
        "bootstrap interval, both runs of an example drawn together; p as in `rashomon compare`, corrected by Holm's method."
    )
    return Table("figures", "Figures", ("A", "B", "B - A", "n", "p (Holm)"), tuple(rows), (note,))


def _cells(found: PairedDifference, p: float | None) -> tuple[Cell, ...]:
    chance = Estimate(p, n=found.difference.n, reason=found.difference.reason)
    return (_bare(found.first), _bare(found.second), found.difference, found.difference.n, chance)


def _bare(value: Estimate) -> Estimate:
    return Estimate(value.value, n=value.n, reason=value.reason)


def to_json(found: ParityReport) -> dict[str, Any]:
    """What is no table of a comparison: the verdict, the findings, the answers that differ, and the numbers behind them."""
    return {
        "verdict": found.verdict,
        "a": _side(found, 0),
        "b": _side(found, 1),
        "stages": [finding_json(each) for each in found.findings],
        "answers": asdict(found.answers),
        "effect": asdict(found.effect),
        "numerics": None if found.numerics is None else asdict(found.numerics),
        "looked at": list(found.probed),
        "not looked at": list(found.unseen),
    }


def finding_json(each: StageFinding) -> dict[str, str]:
    """A finding as a JSON object."""
    return {"stage": each.stage, "is": STAGES[each.stage], "found": each.found, "said": each.said, "cause": each.cause}


def _side(found: ParityReport, number: int) -> dict[str, Any]:
    run = (found.a, found.b)[number]
    return {
        "run": run.folder.name,
        "label": found.labels[number],
        "model": run.spec.model,
        "identity": dict(run.identity),
    }
