"""A ladder as tables that fit a terminal of 80 columns, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.compare.published import paper_columns
from app.compare.run_view import load
from app.parity.ladder.compare import Ladder, LadderStep
from app.parity.tables import to_json as step_json
from app.report.tables import tables_of
from benchmarks.base import Cell, Estimate, Table

_UNSEEN = "the models' inputs were not looked at"


def tables(found: Ladder) -> list[Table]:
    """The rungs, and the steps between them."""
    return [rungs_table(found), steps_table(found)]


def rungs_table(found: Ladder) -> Table:
    """A row for each rung: its accuracy, and what it answers."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for rung, folder, accuracy in zip(found.rungs, found.folders, found.accuracies, strict=True):
        rows.append((rung.name, (accuracy, accuracy.n, folder.name)))
    notes = (
        "accuracy: the share of right labels over all conditions, with its 95% percentile bootstrap interval over examples.",
        *found.missing,
    )
    return Table("rungs", "The rungs", ("accuracy", "n", "run"), tuple(rows), notes)


def steps_table(found: Ladder) -> Table:
    """A row for each step and one for the whole way: what is given, what the weights make of it, what is answered."""
    rows = [(f"{step.start} → {step.end}", _cells(step)) for step in (*found.steps, found.whole)]
    notes = [
        "inputs: whether prompts, tokens and pixels are the same; logit: by how much one moves on average, of the ten likeliest "
        "tokens; top token: in how many places the likeliest token is the same, led through the first rung's answers; answers, "
        "labels: the share that is the same; accuracy: the end's less the start's, with its 95% paired bootstrap interval.",
        f"The last row is the way as a whole. {len(found.whole.parity.probed)} requests were looked at.",
    ]
    if any(step.aside for step in found.steps):
        notes.append("torch 4-bit: MLX's own 4-bit weights computed back, so that this step is the framework's alone.")
    columns = ("inputs", "logit", "top token", "answers", "labels", "accuracy")
    return Table("steps", "Where the difference enters", columns, tuple(rows), tuple(notes))


def _cells(step: LadderStep) -> tuple[Cell, ...]:
    parity = step.parity
    inputs = [each for each in parity.findings if each.stage in ("asked", "prompt", "tokens", "images", "pixels")]
    differ = [each.stage for each in inputs if each.found == "differs"]
    unknown = any(each.found == "unknown" and each.stage != "images" and each.stage != "pixels" for each in inputs)
    numerics = parity.numerics
    places = numerics.positions if numerics else 0
    answers = parity.answers
    return (
        differ[0] if differ else "unknown" if unknown else "same",
        Estimate(numerics.moved if numerics else None, n=places, reason=_UNSEEN),
        Estimate(numerics.top_same / places if numerics else None, n=places, reason=_UNSEEN),
        Estimate(
            answers.same / answers.shared if answers.shared else None, n=answers.shared, reason="nothing is shared"
        ),
        Estimate(parity.effect.same_labels.value, n=parity.effect.labelled, reason="nothing is labelled in both"),
        parity.effect.difference,
    )


def beside_paper(found: Ladder, rows: Sequence[str], judge: str | None) -> tuple[Table, str]:
    """Every figure of every rung beside the paper's ``rows``, and what part of the distance no rung accounts for, in words.

    Raises SpecError where the paper has no such row.
    """
    folders = list(found.folders)
    sides = load(folders, judge=judge)
    table = paper_columns(tables_of(folders, judge=judge, published=False), sides, rows)
    names = tuple(rung.name for rung in found.rungs)
    runs, papers = len(folders), range(len(folders), len(table.columns))
    table = Table(table.name, table.title, (*names, *table.columns[runs:]), table.rows, table.notes, table.percent)
    told = []
    for paper in papers:
        away = []
        for rung in range(runs):
            apart = [
                abs(ours - theirs)
                for _, cells in table.rows
                if (ours := _value(cells[rung])) is not None and (theirs := _value(cells[paper])) is not None
            ]
            if apart:
                away.append((names[rung], sum(apart) / len(apart), len(apart)))
        if away:
            each = ", ".join(f"{distance:.3f} ({name})" for name, distance, _ in away)
            row = table.columns[paper].removesuffix(" (paper)")
            told.append(
                f"Beside the paper's {row} the {away[0][2]} figures are on average away by {each}: what is there at {away[0][0]} "
                "already is neither MLX nor quantisation, but model, rows, prompt, judge or decoding."
            )
    return table, " ".join(told) or "The paper has no figure that these runs have."


def _value(cell: Cell) -> float | None:
    return cell.value if isinstance(cell, Estimate) else None


def to_json(found: Ladder) -> dict[str, Any]:
    """What is no table of a ladder."""
    return {
        "verdict": found.verdict,
        "rungs": [
            {"name": rung.name, "model": rung.model, "run": folder.name, "aside": rung.aside}
            for rung, folder in zip(found.rungs, found.folders, strict=True)
        ],
        "missing": list(found.missing),
        "steps": [
            {"from": step.start, "to": step.end, "kind": step.kind, "aside": step.aside, **step_json(step.parity)}
            for step in (*found.steps, found.whole)
        ],
    }
