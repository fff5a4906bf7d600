"""Headlines of a comparison: the significant differences of each pair of runs, in a sentence or two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from app.compare.comparison_tables import Comparison
from app.compare.decision.against_policies import Floor, compare_with, rules_sentence
from app.compare.decision.target_shares import ALPHA
from app.compare.decision.trust_metric import decisive_target
from app.compare.differences.lost_and_gained import Transitions, acts_of_answers, transitions_headline
from app.compare.differences.metric_differences import CORRECTED, correction
from app.compare.runs.cost_tables import BENCHMARK_ACCURACY, LabelMask, accuracy_difference, correct_labels
from app.compare.runs.decision_scores import missing_answers
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunViews
from app.report.tables.single_source_accuracy import join_names
from app.text.percentage_points import format_points
from benchmarks.answer_behaviour import ACTS, has_scorecard, names_sources
from benchmarks.stats.intervals import few_pages, span
from benchmarks.stats.paired_tests import share_labels
from benchmarks.vocabulary import Cell, Estimate, Table

_NAMED = 4
"""The most metrics of a pair that are named of those that are not worse."""
_EVASIONS = {"flags": "by abstaining", "invents": "by inventing a value", "none": "without an answer"}
"""The acts that no source need be read for, in words."""
_BY_ACCURACY = f"By {BENCHMARK_ACCURACY} (where both sources are wrong, it counts even an invented value as right), "


def headlines(comparison: Comparison) -> list[str]:
    """Return the headlines of each pair of runs, and those of the whole comparison."""
    return [
        *(sentence for pair in comparison.pairs for sentence in pair_headlines(pair, comparison)),
        *shared_headlines(comparison),
    ]


def pair_headlines(pair: RunPair, comparison: Comparison) -> list[str]:
    """Return the headlines of a pair of runs: of a policy that it is no candidate, and losses before gains.

    What becomes of the answers comes first of own rows, and wherever a loss is shown.
    """
    counts_answers = shows_transitions(comparison) or _loses_answers(pair, comparison)
    transitions = transitions_headline(pair, comparison.views) if counts_answers else ""
    accuracy = _accuracy_sentence(pair, comparison, after_answers=counts_answers)
    metrics = _metrics_sentence(pair, comparison, has_accuracy=bool(accuracy))
    floor = _floor_sentence(pair, comparison)
    sentences = [f"{floor} {accuracy}", transitions, metrics] if floor else [transitions, f"{accuracy} {metrics}"]
    return [*filter(None, map(str.strip, sentences))]


def shared_headlines(comparison: Comparison) -> list[str]:
    """Return the headlines of no single pair: models that are not shown to use their sources, few pages, the paper's rows."""
    tables = {table.name: table for table in comparison.tables}
    sentences = [run.not_shown for run in comparison.views.runs]
    sentences.append(few_pages(*(pair.clusters.own_count for pair in comparison.pairs)))
    if "tradeoff" in tables and not comparison.pairs:
        sentences.append("No two of these runs are quantisations of one model, so none is compared with another.")
    if "published" in tables:
        sentences.append(_paper_headline(tables["published"]))
    return [sentence for sentence in sentences if sentence]


def shows_transitions(comparison: Comparison) -> bool:
    """Return whether losses and gains come first: for a user's own rows, which have a scorecard."""
    return comparison.views.own_rows_only and any(table.name == "transitions" for table in comparison.tables)


def _loses_answers(pair: RunPair, comparison: Comparison) -> bool:
    """Return whether it is shown that the run's answers are less often from their sources than the baseline's."""
    benchmark = comparison.views.benchmark
    return names_sources(benchmark) and pair.second.is_model and Transitions.of(pair, benchmark).shows_loss()


def _floor_sentence(pair: RunPair, comparison: Comparison) -> str:
    """Return that a policy of the pair is no candidate, and whether the model beats it; "" where neither run is a policy."""
    runs, views = (pair.first, pair.second), comparison.views
    policies = [run for run in runs if run.is_policy]
    sentence = rules_sentence(policies)
    models = [run for run in runs if run.is_model]
    if comparison.metrics or len(policies) != 1 or not models:
        return sentence
    floor = compare_with(models[0], policies[0], views, decisive_target(views, None))
    if floor is None or floor.is_perfect:
        return sentence
    verdict = f"{floor.model.label} {floor.verb} it"
    if _is_of_decision(accuracy_difference(pair, views), floor):
        return f"{sentence} {verdict}."
    strictness = f" (where {floor.basis.metric.strictness})" if floor.basis.metric.strictness else ""
    return f"{sentence} {verdict} {floor.basis.metric.compared}{strictness}: {floor.describe()}."


def _is_of_decision(difference: Estimate, floor: Floor) -> bool:
    """Return whether the difference of accuracy rests on the scores of the decision, in which no invention is right."""
    lead, n = floor.basis.difference(0, 1).value, len(floor.basis.group)
    return difference.value is not None and n == difference.n and np.isclose(abs(difference.value), abs(lead)).item()


def _metrics_sentence(pair: RunPair, comparison: Comparison, *, has_accuracy: bool) -> str:
    """Return how many metrics differ significantly, and which; where none can be tested, why."""
    first, second = pair.first.label, pair.second.label
    differences = next(table for table in comparison.tables if table.name == "differences")
    prefix = f"{second} / "
    rows = [(label.removeprefix(prefix), cells) for label, cells in differences.rows if label.startswith(prefix)]
    p, size = differences.columns.index(CORRECTED), differences.columns.index("difference")
    tested = [(name, cells) for name, cells in rows if _value(cells[p]) is not None]
    significant = [(name, _value(cells[size]) or 0.0) for name, cells in tested if (_value(cells[p]) or 0.0) <= ALPHA]
    if not tested:
        lacking = _missing_sentences(pair, correct_labels(comparison.views))
        none = f"Nothing between {first} and {second} can be tested: no answer counts in both. {lacking}"
        return "" if has_accuracy else none.rstrip()
    corrected = f"corrected for {correction(comparison.pairs, [name for name, _ in rows], differences)}"
    if not significant:
        subject = "The metric does not differ" if len(tested) == 1 else f"None of the {len(tested)} metrics differs"
        return f"{subject} significantly ({corrected})."
    verb = "differs" if len(significant) == 1 else "differ"
    kinds = _by_direction(pair, comparison, significant)
    metrics = "; ".join(f"{kind} {join_names(names)}" for kind, names in kinds.items() if names)
    return f"Of {len(tested)} metrics {len(significant)} {verb} significantly ({corrected}): {metrics}."


def _by_direction(
    pair: RunPair, comparison: Comparison, differences: Sequence[tuple[str, float]]
) -> dict[str, list[str]]:
    """Return significant differences of metrics in words: every one for the worse, then those for the better, and the others."""
    signs = {name: metric_direction(comparison.views, name) for name, _ in differences}
    ordered = sorted(differences, key=lambda metric: -abs(metric[1]))
    worse = [f"{name} ({value:+.3f})" for name, value in ordered if signs[name] * value < 0]
    better = [
        f"{name} ({value:+.3f}{_evasions(pair, comparison.views, name)})"
        for name, value in ordered
        if signs[name] * value > 0
    ]
    others = [f"{name} ({value:+.3f})" for name, value in ordered if not signs[name]]
    return {"worse": worse, "better": _shortened(better), "neither better nor worse": _shortened(others)}


def _shortened(names: list[str]) -> list[str]:
    return names if len(names) <= _NAMED else [*names[:_NAMED], f"{len(names) - _NAMED} more"]


def metric_direction(views: RunViews, name: str) -> int:
    """Return 1 for a metric of which higher values are better, -1 for lower ones, 0 where neither is known.

    If the benchmark does not declare it, a share of right labels alone is better if it is higher, one of wrong labels alone if
    it is lower.
    """
    metrics = views.label_metrics
    if name in metrics.lower_is_better:
        return -1 if metrics.lower_is_better[name] else 1
    hits = share_labels(metrics.of[name], metrics)
    if hits is None:
        return 0
    is_right = correct_labels(views)[hits]
    return 1 if is_right.all() else 0 if is_right.any() else -1


def _evasions(pair: RunPair, views: RunViews, name: str) -> str:
    """Return, after a semicolon, that most of a metric's rise are answers that abstain or invent; "" where they are not."""
    hits = share_labels(views.label_metrics.of[name], views.label_metrics)
    if hits is None or not has_scorecard(views.benchmark):
        return ""
    place, condition, before, after = pair.coded.T
    rose = hits[condition, after] & ~hits[condition, before]
    acts = acts_of_answers(pair.second.coded, views.benchmark)[pair.places[1][place[rose]]]
    counts = Counter(act for number in acts.tolist() if (act := [*ACTS][number]) in _EVASIONS)
    if 2 * counts.total() <= rose.sum():
        return ""
    ways = join_names([f"{count:,} {_EVASIONS[act]}" for act, count in counts.most_common()])
    return f"; of {int(rose.sum()):,} answers, {ways}"


def _accuracy_sentence(pair: RunPair, comparison: Comparison, *, after_answers: bool) -> str:
    """Return both accuracies and their difference; empty where only named metrics are compared, or nothing can be."""
    difference = accuracy_difference(pair, comparison.views)
    if comparison.metrics or difference.value is None:
        return ""
    correct = correct_labels(comparison.views)
    shares = (pair.counts * correct).sum((0, 2, 3)) / difference.n
    empty = pair.empty_answers(correct)
    interval, caveat = " (all on one page)", ", not significant"
    if difference.low is not None and difference.high is not None:
        low, high = (format_points(x, sign=True) for x in (difference.low, difference.high))
        interval, caveat = f" ({span(low, high)} at 95%)", "" if difference.low > 0 or difference.high < 0 else caveat
    start = _BY_ACCURACY if after_answers else ""
    sentences = (
        f"{start}{pair.second.label} is right on {shares[1]:.1%} of the {difference.n} answers that count in both, "
        f"{pair.first.label} on {shares[0]:.1%}: {format_points(difference.value, sign=True)} points{interval}{caveat}. "
        f"{_empty_sentence(pair, empty)}{_missing_sentences(pair, correct)}"
    )
    return sentences.rstrip()


def _missing_sentences(pair: RunPair, correct: LabelMask) -> str:
    """Return a sentence, before a space, on the answers that do not count of each run that lacks any."""
    runs = (pair.first, pair.second)
    missing = {run.label: missing_answers(run, pair.label_metrics, correct, decision=False) for run in runs}
    return "".join(f"{run} {counts.clause}. " for run, counts in missing.items() if counts.total)


def _empty_sentence(pair: RunPair, empty: tuple[int, int]) -> str:
    """Return the sentence, before a space, on the empty answers among those that count; "" without any."""
    counts = [f"{count} of {run.label}" for run, count in zip((pair.first, pair.second), empty, strict=True) if count]
    return f"Empty answers among them count as {pair.label_metrics.unparsed}: {', '.join(counts)}. " if counts else ""


def _paper_headline(table: Table) -> str:
    """Return the number of the paper's metrics that ours differ from significantly, in a sentence."""
    column = table.columns.index("difference")
    differences = [cells[column] for _, cells in table.rows if _value(cells[column]) is not None]
    with_interval = [
        cell for cell in differences if isinstance(cell, Estimate) and cell.low is not None and cell.high is not None
    ]
    if not differences:
        return ""
    if not with_interval:
        return "The paper gives neither n nor deviation, so its differences cannot be tested."
    significant = sum((cell.low or 0) > 0 or (cell.high or 0) < 0 for cell in with_interval)
    n_without_interval = len(differences) - len(with_interval)
    untested = (
        f" For {n_without_interval} more the paper gives neither n nor deviation, so they have no interval."
        if n_without_interval
        else ""
    )
    return (
        f"The 95% interval of the difference from the paper excludes 0 for {significant} of {len(with_interval)} "
        f"metrics.{untested}"
    )


def _value(cell: Cell) -> float | None:
    return cell.value if isinstance(cell, Estimate) else None
