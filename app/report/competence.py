"""Competence: a run's accuracy on each source when that source is presented alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.stats.intervals import span, wilson
from benchmarks.vocabulary import Estimate

READING_THRESHOLD = 0.5
"""The accuracy below which, with its whole 95% interval, a run counts as unable to read the source."""


@dataclass(frozen=True, slots=True)
class SourceAccuracy:
    """Right answers of a run among the ``n`` labelled ones to a single source."""

    right: int
    n: int

    @property
    def share(self) -> Estimate:
        """The share of right answers with Wilson's interval."""
        return wilson(self.right, self.n)

    @property
    def fails(self) -> bool:
        """Return whether the accuracy is significantly below one half."""
        high = self.share.high
        return high is not None and high < READING_THRESHOLD

    def __str__(self) -> str:
        share = self.share
        interval = f", {span(f'{share.low:.1%}', f'{share.high:.1%}')}" if share.low is not None else ""
        return f"right on {self.right} of {self.n} ({share.value or 0:.1%}{interval})"


def source_accuracies(numbers: Mapping[tuple[str, bool], int]) -> dict[str, SourceAccuracy]:
    """Return the accuracy on each source, from the number of labelled answers by single source (a modality) and rightness.

    Answers to several sources (an empty modality) are skipped.
    """
    counts: dict[str, list[int]] = {}
    for (source, right), number in numbers.items():
        if source:
            count = counts.setdefault(source, [0, 0])
            count[0] += right * number
            count[1] += number
    return {source: SourceAccuracy(right, n) for source, (right, n) in counts.items()}


def unread_sources(runs: Mapping[str, Mapping[str, SourceAccuracy]]) -> dict[str, list[str]]:
    """Map each source that is not read by some run to the runs that do not read it."""
    failing: dict[str, list[str]] = {}
    for run, by_source in runs.items():
        for source, reading in by_source.items():
            if reading.fails:
                failing.setdefault(source, []).append(run)
    return failing


def unread_sentence(source: str, failing: Mapping[str, SourceAccuracy], of: int) -> str:
    """Return the sentence that ``failing``, out of ``of`` runs, do not read a source, and that more rows will not help."""
    names = list(failing)
    shares = "; ".join(
        f"{run} is {reading}" if len(names) > 1 else f"it is {reading}" for run, reading in failing.items()
    )
    if len(names) < of or of == 1:
        subject, verb = join_names(names), "do not read" if len(names) > 1 else "does not read"
    else:
        subject, verb = ("Neither model", "reads") if of == 2 else (f"None of the {of} models", "reads")
    help_ = (
        f"More rows will not help; a model that reads {source}s will."
        if len(names) == of
        else "More rows will not change that."
    )
    return f"{subject} {verb} the {source}s: with the {source} alone, {shares}. {help_}"


def join_names(names: Sequence[str]) -> str:
    """Join names as prose: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
