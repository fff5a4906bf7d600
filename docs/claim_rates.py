"""Rates of false claims, with their limits."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from docs.study_kinds import Events

CONFIDENCE = 0.95


def binomial_tail(count: int, n: int, p: float) -> float:
    """Return the probability of at most ``count`` successes of ``n``."""
    if p <= 0 or count >= n:
        return 1.0
    if p >= 1:
        return 0.0
    logs = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
        for k in range(count + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))


def upper_limit(count: int, n: int, confidence: float = CONFIDENCE) -> float:
    """Return Clopper and Pearson's one-sided upper limit of a rate (1934): the beta quantile, by bisection of the tail."""
    if count >= n:
        return 1.0
    low, high = count / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_tail(count, n, middle) > 1 - confidence else (low, middle)
    return high


def lower_limit(count: int, n: int) -> float:
    """Return the one-sided lower limit of a rate."""
    return 1 - upper_limit(n - count, n)


@dataclass
class Tally:
    """Numbers of studies and of false claims, or decisions, by row."""

    studies: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, events: Events) -> None:
        """Count a study."""
        for key, happened in events.items():
            self.studies[key] += 1
            self.counts[key] += happened

    def rate(self, key: str) -> float:
        """Return the share of studies."""
        return self.counts[key] / self.studies[key]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the page: a claim, and the most studies in which it may be false, or for ``power`` the least that decide."""

    key: str
    claim: str
    limit: float
    power: bool = False

    def verdict(self, tally: Tally) -> str:
        """Return whether the requirement is met: "yes" if its limit of confidence is within it, "no" if the rate is not."""
        if self.power:
            return "yes" if tally.rate(self.key) >= self.limit else "no"
        if tally.rate(self.key) > self.limit:
            return "no"
        return "yes" if upper_limit(tally.counts[self.key], tally.studies[self.key]) <= self.limit else "rate only"

    @property
    def short(self) -> str:
        """The claim without its requirement."""
        return self.claim[4:]

    @property
    def required(self) -> str:
        """The requirement, as on the page."""
        return f"{'≥' if self.power else '≤'} {100 * self.limit:g}%"

    def line(self, tables: Tally, commands: Tally) -> str:
        """Return the line of the page's table."""
        verdicts = dict.fromkeys(self.verdict(tally) for tally in (tables, commands) if tally.studies[self.key])
        return f"| {self.claim} | {self.required} | {self.cells(tables)} | {self.cells(commands)} | {', '.join(verdicts)} |"

    def cells(self, tally: Tally) -> str:
        """Return the rate with its limit of confidence, in words of the page."""
        if not tally.studies[self.key]:
            return "-"
        count, n = tally.counts[self.key], tally.studies[self.key]
        limit = lower_limit(count, n) if self.power else upper_limit(count, n)
        return f"{count / n:.1%} ({limit:.1%})"


ROWS = (
    Row("equal headline", "(a) equal models: `compare` says that an accuracy differs", 0.05),
    Row("equal metrics", "(a) equal models: `compare` says that a metric differs (Holm)", 0.05),
    Row("equal compare", "(a) equal models: `compare` says either", 0.05),
    Row("equal worse", "(a) equal models: `recommend`, also with `--trust`, says that one is worse", 0.05),
    Row("equal behaviour", "(a) equal models: `recommend` says that one behaves otherwise", 0.05),
    Row("mirrored", "(a) equal accuracy, opposite behaviour: an accuracy differs, or one is worse", 0.05),
    Row("unequal headline", "(b) unequal models: an accuracy differs, wrong sign", 0.025),
    Row("unequal metrics", "(b) unequal models: a metric differs, wrong sign", 0.025),
    Row("unequal worse", "(b) unequal models: the better one is worse, also with `--trust`", 0.025),
    Row("unequal rules", "(b) unequal models: another one follows a rule most, without `--trust`", 0.025),
    Row("threshold holds accuracy", "(c) a loss of exactly the margin: the run holds", 0.05),
    Row("threshold holds trust", "(c) the same with `--trust`", 0.05),
    Row("threshold worse accuracy", "(c) a loss of exactly the margin: worse by more than the margin", 0.05),
    Row("threshold worse trust", "(c) the same with `--trust`", 0.05),
    Row("policy accuracy", "(d) as good as the policies: a model beats one, as the advice says", 0.05),
    Row("policy trust", "(d) the same with `--trust flag`", 0.05),
    Row("policy floors accuracy", "(d) as good as the policies: any model beats both, said or not", 0.05),
    Row("policy floors trust", "(d) the same with `--trust flag`", 0.05),
    Row("power headline", "(e) power: `compare` says that the accuracy differs", 0.8, power=True),
    Row("power holds accuracy", "(e) power: the run holds", 0.8, power=True),
    Row("power holds whole", "(e) power: the run holds, no answer missing", 0.8, power=True),
    Row("power holds trust", "(e) power: the run holds, with `--trust`", 0.8, power=True),
)
