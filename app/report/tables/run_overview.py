"""Overview of runs: what a reader sees first of their tables, and what to try with a single run's model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.report.runs.run_provenance import spec_of
from app.report.tables.policy_sentences import given_values_sentence
from app.report.tables.remedy_advice import Remedy, remedies
from app.report.tables.run_headline import counted_answers, headline
from app.report.tables.table_inputs import TableInputs
from benchmarks.stats.intervals import few_pages
from benchmarks.tables.scorecard import NAME as SCORECARD
from benchmarks.tables.scorecard import scorecard_sentences
from benchmarks.vocabulary import Table

_ASKS = "Say what should win where they disagree with --trust image, text or flag."


def lead_table(inputs: TableInputs, tables: Sequence[Table]) -> Table | None:
    """Return the scorecard where that is what a user reads first."""
    return next((table for table in tables if inputs.leads_with_scorecard and table.name == SCORECARD), None)


def run_headlines(inputs: TableInputs, tables: Sequence[Table]) -> list[str]:
    """Return a line for each run: its scorecard where that leads, else its accuracy and behaviour; then what qualifies them."""
    if (lead := lead_table(inputs, tables)) is None:
        lines = [" ".join(headline(label, run, inputs.judge, inputs.benchmark)) for label, run in inputs.runs.items()]
    else:
        lines = [
            " ".join([*scorecard_sentences(label, lead, run), *_given(label, inputs)])
            for run, label in enumerate(inputs.runs)
        ]
    few = few_pages(*(run.clusters.own_count for run in inputs.runs.values()))
    asks = _ASKS if lead is not None and inputs.asks_what_should_win else ""
    return [*lines, *inputs.not_shown, *filter(None, [few, asks])]


def _given(label: str, inputs: TableInputs) -> list[str]:
    return [given_values_sentence([label])] if label in inputs.policies else []


def run_remedies(folder: Path, inputs: TableInputs) -> list[Remedy]:
    """Return what to try with the model of the only run among ``inputs``."""
    (answers,), benchmark, judge = inputs.runs.values(), inputs.benchmark, inputs.judge
    return remedies(folder.name, spec_of(folder), benchmark, counted_answers(answers, judge, benchmark))
