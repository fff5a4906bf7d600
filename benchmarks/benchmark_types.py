"""Data types of the interface of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.vocabulary import Instance, Verdict


@dataclass(frozen=True, slots=True)
class DataSource:
    """A source a build can draw on: its name on the command line, what it is, and its Hub id if it has one.

    ``own`` marks a table of a user's own examples, which no paper's rows rest on.
    """

    name: str
    description: str
    hub_id: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class AbstentionRule:
    """The labels that abstain, or name the conflict, by condition; and the conditions under which the sources disagree, or agree.

    Without a conflict, an abstention is needless. Conditions of neither kind do not count.
    """

    conflict: tuple[str, ...]
    without: tuple[str, ...]
    labels: Mapping[str, frozenset[str]]

    @property
    def conditions(self) -> tuple[str, ...]:
        """All conditions that count."""
        return (*self.without, *self.conflict)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The right answer to an example's question, and the value that its contradicting text states."""

    truth: str
    value: str


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """An answer that was produced elsewhere, with the verdicts that were published with it."""

    instance: Instance
    answer: str
    verdicts: tuple[Verdict, ...] = ()
