"""Headlines: a run's results in one to three sentences, and the list of its other tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from app.report.competence import join_names, source_accuracies
from app.store.run import RunStore
from benchmarks.base import Benchmark
from benchmarks.registry import get_benchmark
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.vocabulary import Record, Table

_OF_PAPER = re.compile(r" \((?:all conditions, )?(?:Tables?|Figures?|[Ss]ections?|equations?|Appendix)\b[^()]*\)")


def headline(label: str, records: Iterable[Record], judge: str, benchmark: Benchmark) -> list[str]:
    """Return sentences on the accuracy of the run ``label``, its behaviour under conflict, and its reading of each source."""
    labels: Counter[str] = Counter()
    groups: dict[str, list[int]] = {}
    conditions: dict[str, None] = {}
    single_source_hits: list[tuple[str, bool]] = []
    missing: Counter[str] = Counter()
    metrics = benchmark.label_metrics()
    # An answer that a sibling is judged by is neither right nor wrong, and nor is that sibling's.
    bases = {benchmark.basis(condition) for condition in benchmark.conditions}
    judged_alone = {name for name in benchmark.conditions if benchmark.basis(name) is None and name not in bases}
    counted_conditions = judged_alone.intersection(benchmark.conditions if metrics is None else metrics.conditions)
    for record in records:
        instance, outcome = record.instance, record.outcome(judge)
        if outcome != "labelled":
            missing[outcome] += 1
            continue
        label_name = str(record.verdicts[judge].label)
        is_correct = benchmark.correct(instance.condition, label_name)
        single_source_hits.append((benchmark.single_source(instance), is_correct))
        if instance.condition in counted_conditions:
            conditions[instance.condition] = None
            hits = groups.setdefault(instance.group, [0, 0])
            hits[0] += is_correct
            hits[1] += 1
        if instance.condition in benchmark.conflicts:
            labels[label_name] += 1
    sentences = []
    if groups:
        share = clustered_wilson([hit for hit, _ in groups.values()], [size for _, size in groups.values()])
        hits_in_all, n = sum(hit for hit, _ in groups.values()), share.n
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
    by_source = source_accuracies(single_source_hits)
    if by_source:
        listing = ", ".join(
            f"with the {source} alone {reading.right} of {reading.n}" for source, reading in by_source.items()
        )
        failing = [f"{source}s" for source, reading in by_source.items() if reading.fails]
        verdict = f" It does not read the {join_names(failing)}: more rows will not change that." if failing else ""
        sentences.append(f"Right {listing}.{verdict}")
    if missing:
        listing = ", ".join(f"{count} {outcome}" for outcome, count in sorted(missing.items()))
        sentences.append(f"Without a label: {listing}.")
    return sentences


def has_only_own_rows(folder: Path) -> bool:
    """Return whether every example of a run comes from the user's own table, so that no paper's rows are comparable."""
    with RunStore.read(folder) as store:
        rows_source = get_benchmark(store.meta("spec")["benchmark"]).rows_source
        source = ""
        for record in store.records() if rows_source else ():
            source = record.instance.strata.get("source", "")
            if source != rows_source:
                return False
        return bool(source)


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
