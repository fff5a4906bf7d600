"""A paper's rows below those of runs, and the notes on how comparable they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from app.papers.published_results import published_rows
from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.vocabulary import Table


def add_published(table: Table, benchmark: Benchmark, runs: Mapping[str, Answers]) -> Table:
    """Return ``table`` with the paper's rows below it, if the paper has that table, and notes on their comparability."""
    rows = published_rows(table, benchmark.name)
    if not rows:
        return table
    examples = {run: _examples(answers) for run, answers in runs.items()}
    distinct_examples = dict.fromkeys(examples.values())
    basis = (
        f"the rows above on {next(iter(distinct_examples))}"
        if len(distinct_examples) == 1
        else "; ".join(f"{run} on {counts}" for run, counts in examples.items())
    )
    note = f"Rows marked (paper) rest on {benchmark.paper_rows}; {basis}."
    comparison = (
        f"Their prompts: {benchmark.paper_prompts}. Their judge: {benchmark.paper_judge}. `rashomon compare RUN published:ROW` "
        "computes the difference to each."
    )
    return replace(table, rows=(*table.rows, *rows), notes=(*table.notes, note, comparison), published=len(rows))


def _examples(answers: Answers) -> str:
    """Return the number of answered examples of a run, with the number from each source."""
    names = sorted({kind.strata.get("source", "") for kind in answers.kinds})
    answered = answers.mask(lambda kind: kind.finish_reason is not None)
    source_of = answers.codes(lambda kind: names.index(kind.strata.get("source", "")))
    examples = {*zip(answers.example_at[answered].tolist(), source_of[answered].tolist(), strict=True)}
    sources = Counter(names[source] for _, source in examples if names[source])
    of = f" ({', '.join(f'{count} of {source}' for source, count in sorted(sources.items()))})" if sources else ""
    return f"{len(examples)} examples{of}"


def without_published(table: Table) -> Table:
    """Return ``table`` without the paper's rows and the two notes on them; see :func:`add_published`."""
    if not table.published:
        return table
    return replace(table, rows=table.rows[: -table.published], notes=table.notes[:-2], published=0)
