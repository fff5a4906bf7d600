"""Tables of a ladder, which fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from app.compare.papers.paper_comparison import paper_columns
from app.compare.runs.view_reader import load_views
from app.parity.ladder.ladder_comparison import Ladder, LadderStep
from app.report.tables.run_tables import tables_of
from benchmarks.stats.intervals import INTERVALS
from benchmarks.vocabulary import Cell, Estimate, Table

_NOT_PROBED = "the models were not probed"


def tables(ladder: Ladder) -> list[Table]:
    """Return the rungs, and the steps between them."""
    return [rungs_table(ladder), steps_table(ladder)]


def rungs_table(ladder: Ladder) -> Table:
    """Return a table with a row for each rung: its accuracy and its run."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for rung, folder, accuracy in zip(ladder.rungs, ladder.folders, ladder.accuracies, strict=True):
        rows.append((rung.name, (accuracy, accuracy.n, folder.name)))
    notes = (
        "accuracy: the share of right labels over all conditions.",
        INTERVALS,
        *ladder.missing,
    )
    return Table("rungs", "The rungs", ("accuracy", "n", "run"), tuple(rows), notes)


def steps_table(ladder: Ladder) -> Table:
    """Return a table with a row for each step and one from top to bottom: inputs, logits, answers and labels."""
    rows = [(f"{step.start} → {step.end}", _cells(step)) for step in (*ladder.steps, ladder.overall)]
    notes = [
        "inputs: whether prompts, tokens and pixels are the same; logit: the mean shift over the ten likeliest tokens; top "
        "token: the share of positions with the same likeliest token, with the first rung's answers forced; answers, labels: "
        "the share that is the same; accuracy: the end's less the start's.",
        INTERVALS,
        f"The last row goes from top to bottom. {len(ladder.overall.parity.probed)} requests were probed.",
    ]
    if any(step.side_branch for step in ladder.steps):
        notes.append("torch 4-bit: MLX's 4-bit weights dequantised, so that this step changes only the framework.")
    columns = ("inputs", "logit", "top token", "answers", "labels", "accuracy")
    return Table("steps", "Where the difference enters", columns, tuple(rows), tuple(notes))


def _cells(step: LadderStep) -> tuple[Cell, ...]:
    parity = step.parity
    inputs = [f for f in parity.findings if f.stage in ("asked", "prompt", "tokens", "images", "pixels")]
    differing = [finding.stage for finding in inputs if finding.status == "differs"]
    unknown = any(finding.status == "unknown" and finding.stage not in ("images", "pixels") for finding in inputs)
    numerics, answers = parity.numerics, parity.answers
    positions = numerics.positions if numerics else 0
    return (
        differing[0] if differing else "unknown" if unknown else "same",
        Estimate(numerics.moved if numerics else None, n=positions, reason=_NOT_PROBED),
        Estimate(numerics.top_same / positions if numerics else None, n=positions, reason=_NOT_PROBED),
        Estimate(
            answers.same / answers.shared if answers.shared else None, n=answers.shared, reason="nothing is shared"
        ),
        Estimate(parity.effect.same_labels.value, n=parity.effect.labelled, reason="nothing is labelled in both"),
        parity.effect.difference,
    )


def compare_with_paper_columns(ladder: Ladder, rows: Sequence[str], judge: str | None) -> tuple[Table, str]:
    """Compare every rung with the paper's ``rows``; also return the distance that no rung explains, in words.

    Raises:
        SpecError: The paper has no such row.
    """
    folders = list(ladder.folders)
    views = load_views(folders, judge=judge)
    table = paper_columns(tables_of(folders, judge=judge, published=False), views, rows)
    names = tuple(rung.name for rung in ladder.rungs)
    runs = len(folders)
    table = Table(table.name, table.title, (*names, *table.columns[runs:]), table.rows, table.notes, table.percent)
    sentences = []
    for paper in range(runs, len(table.columns)):
        distances = []
        for rung in range(runs):
            differences = [
                abs(ours - theirs)
                for _, cells in table.rows
                if (ours := _value(cells[rung])) is not None and (theirs := _value(cells[paper])) is not None
            ]
            if differences:
                distances.append((names[rung], sum(differences) / len(differences), len(differences)))
        if distances:
            by_rung = ", ".join(f"{distance:.3f} ({name})" for name, distance, _ in distances)
            row = table.columns[paper].removesuffix(" (paper)")
            first, _, count = distances[0]
            sentences.append(
                f"Compared with the paper's {row}, the {count} values differ on average by {by_rung}: the distance already "
                f"present at {first} comes neither from MLX nor from quantisation, but from model, rows, prompt, judge or "
                "decoding."
            )
    return table, " ".join(sentences) or "The paper has none of the values of these runs."


def _value(cell: Cell) -> float | None:
    return cell.value if isinstance(cell, Estimate) else None
