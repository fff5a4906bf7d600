"""Competence: how well a run reads each source where that source is shown alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.base import Estimate
from benchmarks.stats.intervals import wilson

READS = 0.5
"""A run whose 95% interval lies below this share of right answers does not read the source."""


@dataclass(frozen=True, slots=True)
class SourceAccuracy:
    """The right answers of a run among the ``n`` labelled ones in which one source was shown alone."""

    right: int
    n: int

    @property
    def share(self) -> Estimate:
        """The share of right answers with Wilson's interval."""
        return wilson(self.right, self.n)

    @property
    def fails(self) -> bool:
        """Return whether the run is shown to read less than half."""
        high = self.share.high
        return high is not None and high < READS

    def __str__(self) -> str:
        share = self.share
        interval = f", {share.low:.1%} to {share.high:.1%}" if share.low is not None else ""
        return f"right on {self.right} of {self.n} ({share.value or 0:.1%}{interval})"


def readings(answers: Iterable[tuple[str, bool]]) -> dict[str, SourceAccuracy]:
    """Count labelled answers, each as the source that was shown alone (a modality) and whether it is right.

    Answers to which no source was shown alone (an empty modality) are left out.
    """
    counts: dict[str, list[int]] = {}
    for source, right in answers:
        if source:
            count = counts.setdefault(source, [0, 0])
            count[0] += right
            count[1] += 1
    return {source: SourceAccuracy(right, n) for source, (right, n) in counts.items()}


def unread(runs: Mapping[str, Mapping[str, SourceAccuracy]]) -> dict[str, list[str]]:
    """Map each source that a run of ``runs`` does not read to the runs that do not."""
    failing: dict[str, list[str]] = {}
    for run, by_source in runs.items():
        for source, reading in by_source.items():
            if reading.fails:
                failing.setdefault(source, []).append(run)
    return failing


def unread_sentence(source: str, failing: Mapping[str, SourceAccuracy], of: int) -> str:
    """Say that the runs ``failing``, of ``of`` in all, do not read a source, and that more rows do not change that."""
    names = list(failing)
    shares = "; ".join(
        f"{run} is {reading}" if len(names) > 1 else f"it is {reading}" for run, reading in failing.items()
    )
    if len(names) < of or of == 1:
        subject, verb = listed(names), "do not read" if len(names) > 1 else "does not read"
    else:
        subject, verb = ("Neither model", "reads") if of == 2 else (f"None of the {of} models", "reads")
    help_ = (
        f"More rows will not help; a model that reads {source}s will."
        if len(names) == of
        else "More rows will not change that."
    )
    return f"{subject} {verb} the {source}s: with the {source} alone, {shares}. {help_}"


def listed(names: Sequence[str]) -> str:
    """Join names as prose: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
