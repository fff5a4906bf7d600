"""The answers of a run as tables count them: a few bytes for each, without prompts and texts."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, TypeVar

from benchmarks.answer_confidence import UNKNOWN, Confidence, Confidences, confidence_of
from benchmarks.answer_kinds import AnswerKind as AnswerKind
from benchmarks.answer_kinds import InstanceKind as InstanceKind
from benchmarks.answer_kinds import TableReader, key_and_kind
from benchmarks.answer_kinds import instance_kind as instance_kind
from benchmarks.answer_kinds import kind_of as kind_of
from benchmarks.answer_quality import AnswerQuality
from benchmarks.protocols.repeats import split_repeat
from benchmarks.stats.clusters import ClusterNames, Clusters, number_groups
from benchmarks.stats.repeated_answers import RepeatedClusters
from benchmarks.varied_names import example_of
from benchmarks.vocabulary import Estimate, Pages, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.audit.blind_rule_scores import BlindScores

    Codes = NDArray[np.int64]
    Mask = NDArray[np.bool_]

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Answers:
    """The answers of a run, in its order, as arrays.

    Attributes:
        kinds: The kinds of the records, in order of first occurrence.
        kind: The index in ``kinds`` of each record, shape (records,).
        group: The number of each record's example, shape (records,); examples are numbered in order of first occurrence.
        read: Reads the records at these positions again, with their texts.
        example: The number of the example that each group repeats, shape (groups,); without cells and repeats, its own.
        confidence: The confidences of the records; None for a run without likelihoods.
        base: The label of the run whose model this run's was fine-tuned from, if that is among the runs; else empty.
        clusters: The clusters of the records; without any, every example is one.
        quality: The quality of all answers of the run; None where it was not measured.
        blind: The scores of rules that look at no source; None where they were not read.
        weight: What each record counts as in :meth:`counts`, shape (records,); None: as one.
    """

    kinds: Sequence[AnswerKind]
    kind: NDArray[np.int32]
    group: NDArray[np.int32]
    read: Callable[[Sequence[int]], Iterator[Record]]
    example: NDArray[np.int32]
    base: str = ""
    confidence: Confidences | None = None
    clusters: Clusters = field(default=None)  # type: ignore[assignment]
    quality: AnswerQuality | None = None
    blind: BlindScores | None = None
    weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.clusters is None:
            object.__setattr__(self, "clusters", Clusters.of(self.group))

    @classmethod
    def of(cls, records: Sequence[Record], benchmark: TableReader) -> Answers:
        """Return the answers of records that are in memory."""
        columns = AnswerColumns()
        for record in records:
            answer, confidence = record.answer, None
            if answer is not None and answer.scores:
                confidence = confidence_of(
                    record.instance,
                    benchmark.options(record.instance),
                    answer.scores,
                    tokens=len(answer.tokens),
                    finish_reason=answer.finish_reason,
                )
            pages = benchmark.pages(record.instance)
            columns.add(record.instance.group, *key_and_kind(record, benchmark), pages=pages, confidence=confidence)
        return columns.answers(lambda positions: (records[position] for position in positions))

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def is_repeated(self) -> bool:
        """True for a run with repeats."""
        return isinstance(self.clusters, RepeatedClusters)

    @property
    def instances(self) -> int:
        """The number of instances, each of which may have several answers."""
        import numpy as np

        clusters = self.clusters
        return len(np.unique(clusters.instance)) if isinstance(clusters, RepeatedClusters) else len(self)

    @cached_property
    def sizes(self) -> Codes:
        """The number of records of each kind, shape (kinds,)."""
        import numpy as np

        return np.bincount(self.kind, minlength=len(self.kinds))

    @cached_property
    def example_at(self) -> NDArray[np.int32]:
        """The number of the example of each record, which all its repetitions share; shape (records,)."""
        return self.example[self.group]

    def count(self, key: Callable[[AnswerKind], _Key | None]) -> Counter[_Key]:
        """Return the number of records by the key of their kind; those whose key is None are not counted."""
        counts: Counter[_Key] = Counter()
        for kind, size in zip(self.kinds, self.sizes.tolist(), strict=True):
            if size and (name := key(kind)) is not None:
                counts[name] += size
        return counts

    @cached_property
    def judges(self) -> frozenset[str]:
        """The judges that have a verdict on any of the answers."""
        return frozenset(judge for kind in self.kinds for judge in kind.verdicts)

    def codes(self, code: Callable[[AnswerKind], int]) -> Codes:
        """Return a number for each record, computed from its kind; shape (records,)."""
        import numpy as np

        codes: Codes = np.array([code(kind) for kind in self.kinds], dtype=np.int64)[self.kind]
        return codes

    def mask(self, test: Callable[[AnswerKind], bool]) -> Mask:
        """Return a mask of the records whose kind passes a test; shape (records,)."""
        import numpy as np

        mask: Mask = np.array([test(kind) for kind in self.kinds], dtype=np.bool_)[self.kind]
        return mask

    def scores(self, score_of: Callable[[AnswerKind], float | None]) -> NDArray[np.float64]:
        """Return the score of each record, computed from its kind, nan where it has none; shape (records,)."""
        import numpy as np

        # An array of floats has nan for None.
        scores: NDArray[np.float64] = np.array([score_of(kind) for kind in self.kinds], dtype=np.float64)[self.kind]
        return scores

    def cells(self, shape: Sequence[int], cell: Callable[[AnswerKind], Sequence[int] | None]) -> Codes:
        """Return the number of records of each cluster in each cell of a table; shape (clusters, *shape).

        ``cell`` returns the cell of a kind, as an index into an array of ``shape``, or None: such records are not counted. Only
        the clusters of counted records are in the result, in order of their first one.
        """
        return self.counts(shape, lambda kind: () if (place := cell(kind)) is None else (place,))

    def counts(
        self,
        shape: Sequence[int],
        places: Callable[[AnswerKind], Iterable[Sequence[int]]],
        *,
        every_example: bool = False,
        by_example: bool = False,
        shown: bool = True,
    ) -> Codes:
        """Return what :meth:`cells` returns, where a record may be in several cells, or in none.

        With ``every_example``, clusters of which no record is counted are in the result, too; with ``by_example``, it is by
        example rather than by cluster; without ``shown``, no cluster counts what it shows of others.
        """
        import numpy as np

        size = math.prod(shape)
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        flat = [[sum(map(mul, place, strides)) for place in places(kind)] for kind in self.kinds]
        depth = max(map(len, flat), default=0)
        padded = np.array([cells + [-1] * (depth - len(cells)) for cells in flat], dtype=np.int64).reshape(
            len(flat), depth
        )
        is_counted: Mask = np.logical_or.reduce(padded >= 0, axis=1) | every_example
        counted = is_counted[self.kind]
        clusters = Clusters.of(self.group[counted]) if by_example else self.clusters.at(counted)
        clusters = clusters if shown else Clusters.of(clusters.own)
        weight = None if self.weight is None else self.weight[counted]
        tallies = [clusters.tally(column[self.kind[counted]], size, weight) for column in padded.T]
        totals: Codes = np.sum(tallies, axis=0) if tallies else np.zeros((clusters.count, size), dtype=np.int64)
        return totals.reshape(clusters.count, *shape)

    def mean_score(self, score_of: Callable[[AnswerKind], float | None]) -> tuple[Estimate, float]:
        """Return the mean score of the records that have one, with its interval, and the sum of their scores."""
        import numpy as np

        scores = self.scores(score_of)
        has_score = ~np.isnan(scores)
        return self.clusters.at(has_score).mean(scores[has_score]), float(scores[has_score].sum())

    def cluster_of_examples(self) -> Codes:
        """Return the number of each example's cluster, in order of the examples; shape (examples,)."""
        import numpy as np

        count, example = number_groups(self.group)
        clusters = np.zeros(count, dtype=np.int64)
        clusters[example] = self.clusters.own
        return clusters

    def derive(self, change: Callable[[AnswerKind], AnswerKind]) -> Answers:
        """Return these answers with changed kinds, such as with the verdicts of another judge."""
        return replace(self, kinds=[change(kind) for kind in self.kinds])

    def where(self, test: Callable[[AnswerKind], bool]) -> Answers:
        """Return the records whose kind passes a test."""
        import numpy as np

        return self.at(np.flatnonzero(self.mask(test)))

    def at(self, positions: Codes) -> Answers:
        """Return the records at these positions."""
        confidence = None if self.confidence is None else self.confidence.at(positions)
        return replace(
            self,
            kind=self.kind[positions],
            group=self.group[positions],
            read=lambda chosen: self.read(positions[list(chosen)].tolist()),
            confidence=confidence,
            clusters=self.clusters.at(positions),
            blind=None if self.blind is None else self.blind.at(positions),
            weight=None if self.weight is None else self.weight[positions],
        )

    def derive_at(self, positions: Sequence[int], change: Callable[[AnswerKind], AnswerKind]) -> Answers:
        """Return these answers with the kinds of the records at ``positions`` changed."""
        kinds, kind = [*self.kinds], self.kind.copy()
        changed: dict[int, int] = {}
        for position in positions:
            number = int(kind[position])
            if number not in changed:
                changed[number] = len(kinds)
                kinds.append(change(kinds[number]))
            kind[position] = changed[number]
        return replace(self, kinds=kinds, kind=kind)


class AnswerColumns:
    """Answers under construction: kinds and examples get their numbers as records are added."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, int] = {}
        self._values: list[AnswerKind] = []
        self._groups: dict[str, int] = {}
        self._kind, self._group = array("i"), array("i")
        self._confidence = array("d")
        self._examples: dict[str, int] = {}
        self._example = array("i")
        self._names = ClusterNames()
        self._group_names: list[str] = []
        self._shown: dict[int, tuple[str, ...]] = {}
        self._first = array("i")  # the group that each one repeats

    def add(
        self,
        group: str,
        key: Hashable,
        kind: Callable[[], AnswerKind],
        *,
        pages: Pages,
        confidence: Confidence | None = None,
    ) -> None:
        """Add a record of the example ``group``; ``kind`` returns its kind, and is called for the first one with ``key``."""
        if confidence is not None:
            self._fill()
            self._confidence.extend(confidence)
        number = self._kinds.get(key)
        if number is None:
            self._values.append(kind())
            number = self._kinds[key] = len(self._kinds)
        self._kind.append(number)
        place = self._groups.setdefault(group, len(self._groups))
        if place == len(self._example):
            name = example_of(group)
            first = self._groups.get(split_repeat(group)[0], place)  # the first repeat comes before the others
            self._first.append(first)
            if first != place:
                self._example.append(self._example[first])
            else:
                self._example.append(place if name == group else self._examples.setdefault(name, place))
            self._group_names.append(name)
        self._names.add(self._group_names[place], pages.own)
        if pages.shown:
            self._shown[len(self._group)] = pages.shown
        self._group.append(place)

    def answers(self, read: Callable[[Sequence[int]], Iterator[Record]]) -> Answers:
        """Return the answers that were added."""
        import numpy as np

        kind, group, example = (np.array(column, dtype=np.int32) for column in (self._kind, self._group, self._example))
        confidence = None
        if self._confidence:
            self._fill()
            confidence = Confidences(*np.array(self._confidence).reshape(-1, len(UNKNOWN)).T)
        clusters, first = Clusters.of(*self._clusters(group)), np.array(self._first, dtype=np.int64)
        if len(first) and (first != np.arange(len(first))).any():
            clusters = RepeatedClusters(clusters.own, clusters.shown, _instances(group, first))
        return Answers(tuple(self._values), kind, group, read, example, confidence=confidence, clusters=clusters)

    def _clusters(self, group: NDArray[np.int32]) -> tuple[Codes, Codes]:
        """Return the number of each record's own cluster, and those of the pages that it shows besides."""
        import numpy as np

        own = np.array([self._names.cluster(name) for name in self._group_names], dtype=np.int64)[group]
        shown = np.full((len(group), max(map(len, self._shown.values()), default=0)), -1, dtype=np.int64)
        for place, pages in self._shown.items():
            shown[place, : len(pages)] = [self._names.page(page) for page in pages]
        return own, shown

    def _fill(self) -> None:
        """Add unknown confidences for all records so far that have none."""
        missing = len(self._kind) - len(self._confidence) // len(UNKNOWN)
        self._confidence.extend(UNKNOWN * missing)


def _instances(group: NDArray[np.int32], first: Codes) -> Codes:
    """Return the number of the instance that each record asks; ``first`` is the group that each one repeats.

    Every repeat of an example has the same instances in the same order.
    """
    import numpy as np

    order = np.argsort(group, kind="stable")
    _, starts, sizes = np.unique(group[order], return_index=True, return_counts=True)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return number_groups(first[group] * sizes.max() + rank)[1]
