"""Headlines: a run's results in one to three sentences, and the list of its other tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.report.competence import join_names, source_accuracies
from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.factors.tables import reference_cells, reference_note
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.vocabulary import Table

_OF_PAPER = re.compile(r" \((?:all conditions, )?(?:Tables?|Figures?|[Ss]ections?|equations?|Appendix)\b[^()]*\)")


def headline(label: str, answers: Answers, judge: str, benchmark: Benchmark) -> list[str]:
    """Return sentences on the accuracy of the run ``label``, its behaviour under conflict, and its reading of each source."""
    conditions_counted = counted_conditions(benchmark)

    def is_labelled(kind: AnswerKind) -> bool:
        return kind.outcome(judge) == "labelled"

    def is_right(kind: AnswerKind) -> bool:
        return benchmark.correct(kind.condition, kind.label(judge))

    def is_counted(kind: AnswerKind) -> bool:
        return is_labelled(kind) and kind.condition in conditions_counted

    def conflict_label(kind: AnswerKind) -> str | None:
        return kind.label(judge) if is_labelled(kind) and kind.condition in benchmark.conflicts else None

    missing = answers.count(lambda kind: None if is_labelled(kind) else str(kind.outcome(judge)))
    varied = {label: answers}
    answers = reference_cells(varied)[label]
    # Of each example, the wrong and the right answers.
    counts = answers.cells((2,), lambda kind: (int(is_right(kind)),) if is_counted(kind) else None)
    conditions = answers.count(lambda kind: kind.condition if is_counted(kind) else None)
    labels = answers.count(conflict_label)
    sources = answers.count(lambda kind: (kind.instance.single_source, is_right(kind)) if is_labelled(kind) else None)
    sentences = []
    if len(counts):
        share = clustered_wilson(counts[:, 1].tolist(), counts.sum(1).tolist())
        hits_in_all, n = int(counts[:, 1].sum()), share.n
        condition_names = join_names([condition for condition in benchmark.conditions if condition in conditions])
        label_note = ", each with one label" if benchmark.counts_flags else ""
        interval = f"{share.value:.1%}, {share.low:.1%} to {share.high:.1%}"
        sentences.append(
            f"{label} is right on {hits_in_all} of {n} answers{label_note} ({interval}), under {condition_names}."
        )
    behaviours = [(count, name) for name, count in labels.items() if name in benchmark.behaviours]
    if behaviours:
        count, name = max(behaviours, key=lambda pair: pair[0])
        total = labels.total()
        sentences.append(
            f"Under conflict it {benchmark.behaviours[name]} in {count} of {total} answers ({count / total:.0%})."
        )
    by_source = source_accuracies(sources)
    if by_source:
        listing = ", ".join(
            f"with the {source} alone {reading.right} of {reading.n}" for source, reading in by_source.items()
        )
        failing = [f"{source}s" for source, reading in by_source.items() if reading.fails]
        verdict = f" It does not read the {join_names(failing)}: more rows will not change that." if failing else ""
        sentences.append(f"Right {listing}.{verdict}")
    if note := reference_note(varied):
        sentences.append(note)
    if missing:
        listing = ", ".join(f"{count} {outcome}" for outcome, count in sorted(missing.items()))
        sentences.append(f"Without a label: {listing}.")
    return sentences


def counted_conditions(benchmark: Benchmark) -> frozenset[str]:
    """Return the conditions under which an answer is right or wrong by itself.

    An answer that a sibling is judged by is neither, and nor is that sibling's.
    """
    metrics = benchmark.label_metrics()
    bases = {benchmark.basis(condition) for condition in benchmark.conditions}
    judged_alone = {name for name in benchmark.conditions if benchmark.basis(name) is None and name not in bases}
    return frozenset(judged_alone.intersection(benchmark.conditions if metrics is None else metrics.conditions))


def has_only_own_rows(runs: Iterable[Answers], benchmark: Benchmark) -> bool:
    """Return whether every example of the runs comes from the user's own table, so that no paper's rows are comparable."""
    sources = [{kind.strata.get("source", "") for kind in answers.kinds} for answers in runs]
    return bool(benchmark.rows_source) and all(of_run == {benchmark.rows_source} for of_run in sources)


def without_paper(table: Table) -> Table:
    """Return ``table`` with the paper's table numbers removed from its title and notes."""
    return replace(
        table, title=_OF_PAPER.sub("", table.title), notes=tuple(_OF_PAPER.sub("", note) for note in table.notes)
    )


def other_tables_note(tables: Sequence[Table], shown: Sequence[str]) -> str:
    """Return the sentence that lists the tables not in ``shown``, and how to print them; "" if there are none."""
    others = [table.name for table in tables if table.name not in shown]
    return (
        f"More tables: {', '.join(others)} (--table NAME); --all prints every table, --json is for programs."
        if others
        else ""
    )
