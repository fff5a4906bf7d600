"""Competence: a run's accuracy on each source when that source is presented alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import span
from benchmarks.vocabulary import Estimate

READING_THRESHOLD = 0.5
"""The accuracy below which, with its whole 95% interval, a run counts as unable to read the source."""


Counted = tuple[str, str, bool]
"""The condition of a counted answer, the single source of its prompt ("" with several), and whether the answer is right."""


@dataclass(frozen=True)
class CountedAnswers:
    """The counted answers of a run, and their clusters."""

    keys: Sequence[Counted]
    clusters: Clusters
    missing: Mapping[str, int] = field(default_factory=dict)
    """The answers that do not count, such as empty ones, by the single source of their prompts."""

    @classmethod
    def of(cls, answers: Answers, key: Callable[[AnswerKind], Counted | None]) -> CountedAnswers:
        """Return the answers of which ``key`` returns one."""
        keys = [key(kind) for kind in answers.kinds]
        counted = answers.mask(lambda kind: key(kind) is not None)
        every = (keys[number] for number in answers.kind[counted].tolist())
        return cls([known for known in every if known is not None], answers.clusters.at(counted))

    def share(self, test: Callable[[str, str], bool]) -> SourceAccuracy:
        """Return the share of right answers of those whose condition and source pass a test."""
        places = np.array([test(condition, source) for condition, source, _ in self.keys], dtype=np.bool_)
        right = np.array([is_right for _, _, is_right in self.keys], dtype=np.bool_)[places]
        return SourceAccuracy(int(right.sum()), len(right), self.clusters.at(places).mean(right))

    @property
    def sources(self) -> dict[str, SourceAccuracy]:
        """The accuracy on each source alone, with the number of the answers that do not count."""
        names = dict.fromkeys(source for _, source, _ in self.keys if source)
        shares = {name: self.share(lambda condition, source, name=name: source == name) for name in names}  # type: ignore[misc]
        return {
            name: replace(accuracy, share=replace(accuracy.share, missing=self.missing.get(name, 0)))
            for name, accuracy in shares.items()
        }


@dataclass(frozen=True, slots=True)
class SourceAccuracy:
    """Right answers of a run among the ``n`` labelled ones to a single source, and their share with its interval."""

    right: int
    n: int
    share: Estimate

    @property
    def fails(self) -> bool:
        """Return whether the accuracy is significantly below one half."""
        high = self.share.high
        return high is not None and high < READING_THRESHOLD

    def __str__(self) -> str:
        share = self.share
        interval = f", {span(f'{share.low:.1%}', f'{share.high:.1%}')}" if share.low is not None else ""
        return f"right on {self.right} of {self.n} ({share.value or 0:.1%}{interval})"


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
