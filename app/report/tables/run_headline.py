"""Headlines: a run's results in one to three sentences, and the list of its other tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from app.report.tables.single_source_accuracy import Counted, CountedAnswers, join_names
from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.factors.factor_tables import reference_cells, reference_note
from benchmarks.protocols.without_sources import shows_no_source
from benchmarks.stats.intervals import span
from benchmarks.tables.missing_labels import MISSING, list_missing, missing_outcomes, uncounted
from benchmarks.vocabulary import Estimate, Table


def headline(label: str, answers: Answers, judge: str, benchmark: Benchmark) -> list[str]:
    """Return sentences on a run's accuracy, its behaviour under conflict, its reading of each source, and what it knows without.

    The first one has the number of answers that are missing, too.
    """

    def conflict_labels(kind: AnswerKind) -> tuple[str, ...] | None:
        return benchmark.counted_labels(kind, judge) or None if kind.condition in benchmark.conflicts else None

    varied = {label: answers}
    answers = reference_cells(varied)[label]
    counted = benchmark.counted_conditions
    accuracy = _accuracy(label, answers, judge, benchmark)
    of_accuracy = answers.where(lambda kind: kind.condition in counted) if accuracy else answers
    clause = missing_clause(of_accuracy, judge, benchmark)
    sentences = (
        [f"{accuracy or f'{label} has no answer that is right or wrong'}{clause}."] if accuracy or clause else []
    )
    if invented := answers.count(lambda kind: _is_invention(kind, judge, benchmark) or None)[True]:
        sentences.append(f"{invented:,} of these give what no source has, which this metric counts as right.")
    label_sets = answers.count(conflict_labels)
    behaviours = {name: sum(n for labels, n in label_sets.items() if name in labels) for name in benchmark.behaviours}
    if any(behaviours.values()):
        name, count = max(behaviours.items(), key=lambda behaviour: behaviour[1])
        total = label_sets.total()
        sentences.append(
            f"Under conflict it {benchmark.behaviours[name]} in {count} of {total} answers ({count / total:.0%})."
        )
    by_source = counted_answers(answers, judge, benchmark).sources
    if by_source:
        listing = ", ".join(
            f"with the {source} alone {reading.right} of {reading.n}" for source, reading in by_source.items()
        )
        failing = [f"{source}s" for source, reading in by_source.items() if reading.fails]
        verdict = f" It does not read the {join_names(failing)}: more rows will not change that." if failing else ""
        sentences.append(f"Right {listing}.{verdict}")
    without, right = score_under(set(filter(shows_no_source, benchmark.without_sources)), answers, judge, benchmark)
    if without.n:
        sentences.append(f"Without any source it is right on {right:.0f} of {without.n}: that much needs no reading.")
    if note := reference_note(varied):
        sentences.append(note)
    if accuracy and (
        clause := missing_clause(answers.where(lambda kind: kind.condition not in counted), judge, benchmark)
    ):
        sentences.append(f"Under the other conditions{clause.removeprefix(';')}.")
    return sentences


def asked_clause(answers: Answers, judge: str, benchmark: Benchmark) -> str:
    """Return the number of instances that were asked, the answers among them that do not count, by outcome, and those cut off."""
    asked = answers.where(lambda kind: kind.finish_reason is not None)
    missing = uncounted(benchmark, asked, judge)
    clause = f"{len(asked)} of {len(answers)} answered"
    if missing:
        names = (*MISSING, *sorted({*missing}.difference(MISSING)))
        reasons = ", ".join(f"{missing[name]:,} {MISSING.get(name, name)}" for name in names if missing[name])
        counted = len(asked) - missing.total()
        clause = f"{len(asked)} of {len(answers)} asked, {counted} with an answer that counts: {reasons}"
    if cut_off := asked.count(lambda kind: kind.finish_reason == "length" and not kind.is_empty)[True]:
        limit = answers.quality and answers.quality.limit
        clause += f"; {cut_off:,} cut off at the limit" + (f" of {limit:,} tokens" if limit else "")
    return clause


def _is_invention(kind: AnswerKind, judge: str, benchmark: Benchmark) -> bool:
    """Return whether an answer counts as right by a value that no source has, and that is not known to be the right one."""
    if kind.condition not in benchmark.counted_conditions or benchmark.counted_score(kind, judge) != 1:
        return False
    verdict = kind.verdicts[judge]
    return benchmark.is_invention(verdict.label, verdict.behaviour)


def _accuracy(label: str, answers: Answers, judge: str, benchmark: Benchmark) -> str:
    """Return the clause on a run's accuracy, after the paper's overall metric if that is no share; empty without answers."""
    counted = benchmark.counted_conditions

    def counted_condition(kind: AnswerKind) -> str | None:
        return kind.condition if kind.condition in counted and benchmark.counted_labels(kind, judge) else None

    share, score = score_under(counted, answers, judge, benchmark)
    if not share.n:
        return ""
    conditions = answers.count(counted_condition)
    condition_names = join_names([condition for condition in benchmark.conditions if condition in conditions])
    amount = f"is right on {score:.0f} of {share.n} answers"
    if benchmark.has_partial_scores:
        amount = f"scores {score:.10g} of {share.n} points"
    overall = [
        f"{metric.value:.2%} in the {name}"
        for name, metric in benchmark.overall(answers, judge).items()
        if metric.value is not None
    ]
    reaches = f"reaches {join_names(overall)}, and " if overall else ""
    return f"{label} {reaches}{amount} ({_with_interval(share)}), under {condition_names}"


def _with_interval(share: Estimate) -> str:
    interval = "" if share.low is None else f", {span(f'{share.low:.1%}', f'{share.high:.1%}')}"
    return f"{share.value:.1%}{interval}"


def missing_clause(answers: Answers, judge: str, benchmark: Benchmark) -> str:
    """Return the clause on the answers without a label, after a semicolon; empty if there are none."""
    missing = missing_outcomes(benchmark, answers, judge)
    as_wrong = missing.pop("unparsed", 0) if benchmark.unparsed_label is not None else 0
    clauses = [f"{as_wrong:,} {MISSING['unparsed']} count as wrong"] if as_wrong else []
    if missing:
        clauses.append(f"{missing.total():,} of {len(answers):,} answers do not count ({list_missing(missing)})")
    return f"; {', and '.join(clauses)}" if clauses else ""


def score_under(
    conditions: Collection[str],
    answers: Answers,
    judge: str,
    benchmark: Benchmark,
    score_of: Callable[[AnswerKind, str, Benchmark], float | None] | None = None,
) -> tuple[Estimate, float]:
    """Return the mean score under ``conditions`` with its interval, and the sum.

    An answer counts as in the benchmark's tables, or as ``score_of`` returns.
    """
    counted = score_of or (lambda kind, judge, benchmark: benchmark.counted_score(kind, judge))
    return answers.mean_score(lambda kind: counted(kind, judge, benchmark) if kind.condition in conditions else None)


def counted_answers(answers: Answers, judge: str, benchmark: Benchmark) -> CountedAnswers:
    """Return the answers that count in the benchmark's tables."""

    def key(kind: AnswerKind) -> Counted | None:
        score = benchmark.counted_score(kind, judge)
        return None if score is None else (kind.condition, kind.instance.single_source, score == 1)

    return CountedAnswers.of(answers, key)


def other_tables_note(tables: Sequence[Table], shown: Sequence[str]) -> str:
    """Return the sentence that lists the tables not in ``shown``, and how to print them; "" if there are none."""
    others = [table.name for table in tables if table.name not in shown]
    return (
        f"More tables: {', '.join(others)} (--table NAME); --all prints every table, --json is for programs."
        if others
        else ""
    )
