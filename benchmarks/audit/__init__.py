"""Audit of closed questions: the share of right answers of rules that look at no source, or at one source alone.

A benchmark whose answers can be had without its sources measures nothing. Every rule is fitted and tested on different clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.audit.blind_question import BlindOption, BlindQuestion
from benchmarks.hash_collections import hash64
from benchmarks.vocabulary import Estimate

__all__ = ["Audit", "BlindOption", "BlindQuestion", "RuleResult", "TaskAudit", "audit"]

MOST_QUESTIONS = 10_000
"""The questions that are audited: rules learn little from more, which take minutes and gigabytes."""

FEWEST_CLUSTERS = 20
"""The clusters that a model of words is fitted on."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The share of a task's questions that a blind rule answers rightly on clusters that it was not fitted on.

    ``low`` and ``high`` are the ends of its 95% interval over clusters. It is ``flagged`` if it beats chance by an interval that
    is corrected for the number of rules and tasks. ``prefers`` is the cell that it gains most from, such as "1 of 4" for the
    longest option; empty for a model. ``reads_source`` is True for a rule that looks at one source alone.
    """

    rule: str
    looks_at: str
    share: float
    low: float | None
    high: float | None
    flagged: bool
    prefers: str = ""
    reads_source: bool = False


@dataclass(frozen=True, slots=True)
class TaskAudit:
    """The rules' results on the questions of one task, the best first.

    Attributes:
        questions: The number of those that are audited.
        total: The number of all, of which these are a sample of clusters if there are more.
        chance: The exact share of guessing.
        blind: The share of the best rule that looks at no source, chosen on other clusters than it is tested on; that of the
            first of ``rules`` is optimistic. n/a for fewer than three clusters.
        constant: The answer to all questions, where they have one and are too many for that to be chance; else empty.
        is_testable: True if the clusters suffice for flagging a rule that is always right.
    """

    task: str
    questions: int
    clusters: int
    chance: float
    blind: Estimate
    rules: tuple[RuleResult, ...]
    constant: str = ""
    total: int = 0
    is_testable: bool = True

    @property
    def flagged(self) -> tuple[RuleResult, ...]:
        """The rules that beat chance and look at no source."""
        return tuple(rule for rule in self.rules if rule.flagged and not rule.reads_source)

    @property
    def flagged_of_source(self) -> tuple[RuleResult, ...]:
        """The rules that beat chance and look at one source alone."""
        return tuple(rule for rule in self.rules if rule.flagged and rule.reads_source)

    @property
    def has_models(self) -> bool:
        """True if the clusters suffice for models of words."""
        return self.clusters >= FEWEST_CLUSTERS


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of a set of questions.

    ``blind`` is, by instance id, the score of the best rule that looks at no source, which is chosen and fitted on other
    clusters: 1 or 0, or a share for options between which it does not choose. ``chance`` is that of guessing. ``open`` is the
    number of questions that are not audited, since nothing can be chosen.
    """

    tasks: tuple[TaskAudit, ...]
    blind: Mapping[str, float] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)
    open: int = 0

    @property
    def questions(self) -> tuple[int, int]:
        """The number of questions that are audited, and of all."""
        return sum(task.questions for task in self.tasks), sum(task.total for task in self.tasks)


def audit(questions: Sequence[BlindQuestion], *, media: Callable[[str], int | None] | None = None) -> Audit:
    """Audit closed questions by rules that look at no source.

    Questions that differ in nothing but their id count once. Those with fewer than two options, or without a right or a wrong
    one, are left out. Of more than ``MOST_QUESTIONS``, clusters are drawn by a hash, so that tasks with few keep all. ``media``
    returns the size in bytes of the medium with a sha256, None where it is unknown.
    """
    from benchmarks.audit.blind_questions import Questions
    from benchmarks.audit.blind_rule_evaluation import evaluate
    from benchmarks.audit.blind_rules import Counts

    by_task: dict[str, dict[Hashable, list[BlindQuestion]]] = {}
    for question in questions:
        if 0 < len(question.right) < len(question.options):
            by_task.setdefault(question.task, {}).setdefault(_content(question), []).append(question)
    totals = {task: len(distinct) for task, distinct in by_task.items()}
    counts = Counts.of(same[0] for distinct in by_task.values() for same in distinct.values())
    if sum(totals.values()) > MOST_QUESTIONS:
        most = _most_of_task(totals.values())
        by_task = {task: _sample(distinct, most) for task, distinct in by_task.items()}
    tasks = [
        evaluate(task, Questions.of([same[0] for same in distinct.values()]), media, counts)
        for task, distinct in by_task.items()
    ]
    tests = sum(task.tests for task in tasks)
    blind: dict[str, float] = {}
    chance: dict[str, float] = {}
    for task, distinct in zip(tasks, by_task.values(), strict=True):
        for score, same in zip(task.blind, distinct.values(), strict=True):
            blind |= dict.fromkeys((question.id for question in same), float(score))
            chance |= dict.fromkeys((question.id for question in same), same[0].chance)
    return Audit(tuple(replace(task.result(tests), total=totals[task.task]) for task in tasks), blind, chance)


def _most_of_task(sizes: Collection[int]) -> int:
    """Return the number of questions that every task may have, so that all have ``MOST_QUESTIONS``."""
    left, most = MOST_QUESTIONS, 0
    for place, size in enumerate(sorted(sizes)):
        most = left // (len(sizes) - place)
        left -= min(size, most)
    return most


def _sample(distinct: Mapping[Hashable, list[BlindQuestion]], most: int) -> dict[Hashable, list[BlindQuestion]]:
    """Return the questions of whole clusters, by the order of their hashes, up to ``most``; of one cluster at least."""
    by_cluster: dict[Hashable, list[Hashable]] = {}
    for content, same in distinct.items():
        by_cluster.setdefault(same[0].cluster, []).append(content)
    sample: list[Hashable] = []
    for cluster in sorted(by_cluster, key=lambda cluster: hash64(str(cluster))):
        if sample and len(sample) + len(by_cluster[cluster]) > most:
            break
        sample += by_cluster[cluster]
    return {content: distinct[content] for content in sample}


def _content(question: BlindQuestion) -> Hashable:
    return (
        *(question.cluster, question.question, question.options, question.right, question.media),
        *(tuple(question.categories.items()), tuple(question.sources.items())),
    )
