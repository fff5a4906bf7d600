"""Data types of a run's store, besides those of ``benchmarks.vocabulary``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.vocabulary import Generation, Instance, Verdict

if TYPE_CHECKING:
    from benchmarks.base import Benchmark

CELLS_KEY = "cells"
"""The meta key of the number of cells of a varied build that a run is of."""

SCORES_KEY = "scores"
"""The meta key of the share of the full score that each label earns, by condition; older runs have "correct" alone."""

COUNTS_FLAGS_KEY = "counts flags"
"""The meta key of :attr:`Benchmark.counts_flags`."""


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """A finished generation on its way into the store."""

    ordinal: int
    condition: str
    step: int
    request_digest: str
    generation: Generation
    last: bool
    """Flag for the protocol's last step of this instance."""
    verdicts: tuple[Verdict, ...] = ()
    finished_at: float | None = None
    """The time in seconds since 1970; None for now."""
    engine: Mapping[str, Any] | None = None
    """The engine that answered; None for that of :meth:`app.store.run_store.RunStore.use_engine`."""


@dataclass(frozen=True, slots=True)
class JudgedCounts:
    """Counts of a judge's verdicts on one condition or more: labelled, unparsed, failed, and undecided.

    ``correct`` is the sum of the labelled answers' scores, which are 1 for right and 0 for wrong in most benchmarks.
    """

    labelled: int = 0
    correct: float = 0
    unparsed: int = 0
    failed: int = 0
    undecided: int = 0

    @property
    def total(self) -> int:
        """The number of verdicts."""
        return self.labelled + self.unparsed + self.failed + self.undecided

    def counted(self, benchmark: Benchmark | None) -> int:
        """Return the number of verdicts that count in a benchmark's tables; None: an unknown one's."""
        return self.labelled + (self.unparsed if benchmark is not None and benchmark.unparsed_label is not None else 0)

    @classmethod
    def sum(cls, counts: Iterable[JudgedCounts]) -> JudgedCounts:
        """Return the sum of the counts."""
        return cls(*map(sum, zip(*map(astuple, counts), strict=True)))


@dataclass(frozen=True, slots=True)
class ConditionProgress:
    """Progress of one condition of a run.

    ``seconds`` is the time spent answering; ``peak_memory`` is in bytes. Of the ``done`` answers, ``reused`` are other runs':
    their time and tokens do not count.
    """

    condition: str
    total: int
    done: int
    errors: int
    truncated: int
    tokens: int
    seconds: float
    peak_memory: int
    judged: Mapping[str, JudgedCounts]
    reused: int = 0

    @property
    def known_peak(self) -> int:
        """The peak memory in bytes; 0 if it is unknown, or of the few answers that were not reused."""
        return 0 if 2 * self.reused > self.done else self.peak_memory


NODES_KEY = "nodes"
"""The meta key of a run's :class:`NodeStatus` entries."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node of the cluster that answers a run, or answered last.

    ``state`` is "ready" or says why it is not, with a ``note``. ``answers`` and ``errors`` are those that it gave since the last
    start or resumption; ``held`` are the requests that it has now. ``peak_memory`` is in bytes, of the ``memory`` that a model
    can use there. ``judge`` is the judge whose model the node ran; empty for the model that answers.
    """

    name: str
    state: str
    note: str = ""
    answers: int = 0
    errors: int = 0
    held: int = 0
    per_second: float | None = None
    peak_memory: int = 0
    memory: int = 0
    judge: str = ""


@dataclass(frozen=True, slots=True)
class PendingInstance:
    """An instance that is not done, with the accepted generations of its earlier steps."""

    ordinal: int
    instance: Instance
    generations: tuple[Generation, ...]


@dataclass(frozen=True, slots=True)
class InstancePosition:
    """Position of an instance in a run: its ordinal, the group of its example, its condition, and if it is done."""

    ordinal: int
    group: str
    condition: str
    done: bool
