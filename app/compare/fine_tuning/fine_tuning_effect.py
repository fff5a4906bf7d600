"""Before and after fine-tuning: gains under conflict, losses without it and on other benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.compare.decision.trust_metric import rule_of_rows
from app.compare.fine_tuning.change_by_training import Change, Measure
from app.compare.runs.run_view import RunView, RunViews
from app.report.runs.fine_tuned_pairs import ADAPTER, BASE, WEIGHTS, base_places
from app.report.tables.single_source_accuracy import join_names
from benchmarks.answer_behaviour import names_sources
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError


@dataclass(frozen=True, slots=True)
class FineTuning:
    """A base's run and its fine-tuned model's run, with what changed.

    Attributes:
        base: The run before.
        tuned: The run after.
        gain: The change that training is for: the accuracy under conflict (on all answers of a benchmark that is all
            conflicts), following the rule of the rows there, or the metric that was named.
        detection: The change of the rate at which conflicts are named, if the benchmark measures it apart from accuracy.
        losses: The changes elsewhere, which must stay within the margin. One without a counted answer tells nothing.
        details: The changes under the conditions that make up the losses, if these are several.
        conflicts: The changes under the conditions with a conflict, if these are several, where naming it counts as right if
            the benchmark measures that apart; and that of the share of answers that are from their sources.
        trained: The examples that the fine-tuned model was trained on, a phrase for each benchmark with some.
        other_prompts: The number of instances that both runs have with different prompts or pictures, which are left out.
        rule: What should win by the rows, by which answers under conflict are right; "" where they do not say it.
    """

    base: RunView
    tuned: RunView
    gain: Change
    detection: Change | None
    losses: tuple[Change, ...]
    details: tuple[Change, ...]
    conflicts: tuple[Change, ...] = ()
    trained: tuple[str, ...] = ()
    other_prompts: int = 0
    rule: str = ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes."""
        return (self.gain, *filter(None, [self.detection]), *self.losses, *self.conflicts, *self.details)


def tuned_pairs(runs: Sequence[RunView]) -> list[tuple[RunView, RunView]]:
    """Return each run with an adapter, or of a model that one was fused into, after the run of its base.

    Both have the same prompt set. A run without its base is left out.
    """
    bases = base_places([run.identity for run in runs])
    return [(runs[base], tuned) for tuned, base in zip(runs, bases, strict=True) if base is not None]


def fine_tunings(
    views: RunViews, others: Sequence[RunViews] = (), *, metric: str | None = None, resamples: int
) -> list[FineTuning]:
    """Return what changed for each pair of :func:`tuned_pairs` in ``views``; ``others`` are runs of other benchmarks.

    ``metric`` is what training is for, a metric of the benchmark; None is the accuracy under conflict.
    """
    return [
        fine_tuning(views, base, tuned, others, metric=metric, resamples=resamples)
        for base, tuned in tuned_pairs(views.runs)
    ]


def fine_tuning(
    views: RunViews,
    base: RunView,
    tuned: RunView,
    others: Sequence[RunViews] = (),
    *,
    metric: str | None = None,
    resamples: int,
) -> FineTuning:
    """Return what changed from a base's run to its fine-tuned model's; see :func:`fine_tunings`."""
    benchmark = views.benchmark
    conflicts, without = conflict_conditions(benchmark)
    measure, other_prompts = _measure(views, base, tuned, resamples)
    rule = rule_of_rows(views)
    gain = measure.change(gain_part(rule, without), conflicts)
    detection = measure.metric_change(benchmark.detection) if benchmark.detection and not rule else None
    if metric is not None:
        gain, detection = measure.metric_change(metric), None
    total = "" if metric is not None else gain.part
    under = measure.by_condition(
        "", [name for name in conflicts if without], total, flags_count=bool(benchmark.detection)
    )
    if names_sources(benchmark):
        under += (measure.change_of_sources("in answers from the sources under conflict"),)
    losses, details = _losses(measure, "without conflict", "", without)
    trained = _trained(tuned, "")
    for other in others:
        for before, after in same_models(base, tuned, other.runs):
            title = other.benchmark.title.partition(":")[0]
            rest, more_prompts = _measure(other, before, after, resamples)
            more, conditions = _losses(rest, f"on {title}", f"on {title}, ", other.benchmark.conditions)
            losses, details = losses + more, details + conditions
            trained += _trained(after, f" of {title}")
            other_prompts += more_prompts
    return FineTuning(base, tuned, gain, detection, losses, details, under, trained, other_prompts, rule)


def gain_part(rule: str, without: Sequence[str]) -> str:
    """Return the part of the answers that training is for; ``without`` are the conditions without a conflict."""
    if rule:
        return f"in following your rule ({rule}) under conflict"
    return "under conflict" if without else "on all answers"


def _measure(views: RunViews, before: RunView, after: RunView, resamples: int) -> tuple[Measure, int]:
    """Return the measure of two runs on the instances with the same prompt, and the number of the others that both have."""
    here, there = before.coded.paired_places(after.coded)
    is_other = before.coded.prompt[here] != after.coded.prompt[there]
    if is_other.any():
        left_out = {*after.coded.ids.at(there[is_other])}
        after = replace(after, answers={name: answer for name, answer in after.coded.items() if name not in left_out})
    return Measure.of(views, before, after, resamples), int(is_other.sum())


def _losses(
    measure: Measure, part: str, prefix: str, conditions: Sequence[str]
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the change under ``conditions`` together, called ``part``, and under each of them if there are several.

    Conditions under which the runs share no instance are left out; those under which no answer of both counts are not.
    """
    shared = [condition for condition in conditions if condition in measure.shared_conditions]
    return (measure.change(part, shared),) if shared else (), measure.by_condition(prefix, shared, part)


def orphans(runs: Sequence[RunView]) -> list[str]:
    """Return a sentence on each fine-tuned run whose base is not among ``runs``, so that nothing is known of its effect."""
    bases = base_places([run.identity for run in runs])
    sentences = []
    for run, base in zip(runs, bases, strict=True):
        if not run.identity.get(ADAPTER) or base is not None:
            continue
        weights = run.identity.get(BASE) or run.identity.get(WEIGHTS)
        same = [other.label for other in runs if other is not run and other.identity.get(WEIGHTS) == weights]
        reason = (
            f"{join_names(same)} has its base's weights, but another adapter or prompt set"
            if same
            else "no run here has its base's weights (another quantisation has others, and so has a fused model)"
        )
        sentences.append(
            f"There is no verdict on the adapter of {run.label}: {reason}. Add a run of its base with the same prompt set."
        )
    return sentences


def _trained(run: RunView, what: str) -> tuple[str, ...]:
    counts = run.trained
    return (f"{counts.examples:,} of the {counts.of:,} examples{what}",) if counts.examples else ()


def conflict_conditions(benchmark: Benchmark) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a benchmark's conditions with a conflict and those without; where it does not tell them apart, all and none."""
    conditions = benchmark.full_conditions
    if not benchmark.conflicts:
        return conditions, ()
    without = benchmark.without_conflict or tuple(c for c in conditions if c not in benchmark.conflicts)
    return tuple(c for c in conditions if c not in without), without


def check_pairs(views: RunViews) -> None:
    """Raise SpecError unless the runs of a further benchmark are a base and what was fine-tuned from it."""
    if not tuned_pairs(views.runs):
        names = ", ".join(run.label for run in views.runs)
        raise SpecError(
            f"these runs are of several benchmarks (of {views.benchmark.name}: {names}); compare runs of one, or on each a "
            "base's and its fine-tuned model's."
        )


def same_models(base: RunView, tuned: RunView, runs: Sequence[RunView]) -> list[tuple[RunView, RunView]]:
    """Return the pairs of ``runs`` with the adapter of ``tuned`` on the weights of ``base``."""
    return [
        (before, after)
        for before, after in tuned_pairs(runs)
        if after.identity.get(ADAPTER) == tuned.identity.get(ADAPTER)
        and before.identity.get(WEIGHTS) == base.identity.get(WEIGHTS)
    ]
