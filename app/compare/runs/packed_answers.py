"""Answers of a run by instance id, as arrays: what a comparison holds of each, in about a hundred bytes."""

from __future__ import annotations

from array import array
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.lazy_sequence import LazySequence
from benchmarks.protocols.repeats import split_repeat
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.repeated_answers import RepeatedClusters

Places = NDArray[np.int64]
Numbers = NDArray[np.int32]


class LabelledAnswer(NamedTuple):
    """A run's answer to one instance.

    ``outcome`` is the label, or why there is none. ``prompt`` are 64 bits of a digest of the prompt and its media.
    """

    group: str
    condition: str
    outcome: str
    prompt: int
    single_source: str = ""
    """The modality of the only source, where the prompt has a single one: see :meth:`Benchmark.single_source`."""
    cut_off: bool = False
    """The answer ended at the limit of tokens."""
    gives_right: bool = False
    """The answer gives the right value though no source has it, as its verdict says."""
    off_topic: bool = False
    """The answer gives no value of the kind asked for, as its verdict says."""
    rule: str = ""
    """The rule of the row itself; see :data:`benchmarks.vocabulary.TRUST`."""


class PackedTexts(LazySequence[str]):
    """Texts in one piece of memory."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._data, self._ends = bytearray(), array("q", [0])
        for text in texts:
            self.append(text)

    def append(self, text: str) -> None:
        """Add a text; not once :meth:`places` was called."""
        self._data += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._data))

    def __getstate__(self) -> tuple[bytearray, array[int]]:
        return self._data, self._ends  # the order of hashes is a process's own

    def __setstate__(self, state: tuple[bytearray, array[int]]) -> None:
        self._data, self._ends = state

    def __len__(self) -> int:
        return len(self._ends) - 1

    def item(self, place: int) -> str:
        return self._data[self._ends[place] : self._ends[place + 1]].decode("utf-8", "surrogatepass")

    @cached_property
    def _hashed(self) -> tuple[NDArray[np.int64], Places]:
        """The sorted hashes of the texts, and the place of each."""
        hashes = np.fromiter(map(hash, self), np.int64, len(self))
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    def equals(self, other: PackedTexts) -> bool:
        """Return whether ``other`` has the same texts in the same order."""
        return self is other or (self._ends == other._ends and self._data == other._data)

    def places(self, texts: Sequence[str]) -> Places:
        """Return the place of each of ``texts`` here, -1 where it is not; shape (texts,)."""
        if isinstance(texts, PackedTexts) and self.equals(texts):
            return np.arange(len(self))
        hashes, order = self._hashed
        wanted = np.fromiter(map(hash, texts), np.int64, len(texts))
        starts, ends = np.searchsorted(hashes, wanted), np.searchsorted(hashes, wanted, side="right")
        places = np.full(len(texts), -1, np.int64)
        for number, (text, start, end) in enumerate(zip(texts, starts.tolist(), ends.tolist(), strict=True)):
            for place in order[start:end].tolist():  # texts with equal hashes are told apart
                if self[place] == text:
                    places[number] = place
        return places

    def at(self, places: Places) -> Sequence[str]:
        """Return the texts at ``places``, which are decoded as they are read."""
        return _Texts(self, places)


class _Texts(LazySequence[str]):
    def __init__(self, texts: PackedTexts, places: Places) -> None:
        self._texts, self._places = texts, places

    def __len__(self) -> int:
        return len(self._places)

    def item(self, place: int) -> str:
        return self._texts.item(int(self._places[place]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class PackedAnswers(Mapping[str, LabelledAnswer]):
    """Answers by instance id, in a run's order.

    Attributes:
        ids: The ids of the instances.
        groups, conditions, outcomes, sources: The names of groups, which are examples, of conditions, of outcomes and of single
            sources.
        group, condition, outcome, source: The index of each answer's in these, shape (answers,).
        prompt: The digest of each prompt, shape (answers,).
        cut_off: A mask of the answers that ended at the limit of tokens, shape (answers,).
        gives_right: A mask of the answers that give the right value though no source has it, shape (answers,).
        off_topic: A mask of the answers that give no value of the kind asked for, shape (answers,).
        clusters: The clusters of the answers.
        rules, rule: The rules of the answers' own rows, "" for none, and the index of each answer's, shape (answers,).
    """

    ids: PackedTexts
    groups: PackedTexts
    conditions: tuple[str, ...]
    outcomes: tuple[str, ...]
    sources: tuple[str, ...]
    group: Numbers
    condition: Numbers
    outcome: Numbers
    source: Numbers
    prompt: NDArray[np.uint64]
    cut_off: NDArray[np.bool_]
    gives_right: NDArray[np.bool_]
    off_topic: NDArray[np.bool_]
    clusters: Clusters
    rules: tuple[str, ...]
    rule: Numbers

    @classmethod
    def of(cls, answers: Mapping[str, LabelledAnswer]) -> PackedAnswers:
        """Return ``answers`` as arrays."""
        items = list(answers.values())
        groups, group = numbered([answer.group for answer in items])
        conditions, condition = numbered([answer.condition for answer in items])
        outcomes, outcome = numbered([answer.outcome for answer in items])
        sources, source = numbered([answer.single_source for answer in items])
        prompt = np.array([answer.prompt for answer in items], np.uint64)
        cut_off = np.array([answer.cut_off for answer in items], np.bool_)
        gives_right = np.array([answer.gives_right for answer in items], np.bool_)
        off_topic = np.array([answer.off_topic for answer in items], np.bool_)
        names = PackedTexts(answers), PackedTexts(groups)
        return cls(
            *names,
            conditions,
            outcomes,
            sources,
            group,
            condition,
            outcome,
            source,
            prompt,
            cut_off,
            gives_right,
            off_topic,
            Clusters.of(group),
            *numbered([answer.rule for answer in items]),
        )

    def sharing(self, other: PackedAnswers) -> PackedAnswers:
        """Return these answers with the texts of ``other`` where they are the same, which then take no memory of their own."""
        ids = other.ids if other.ids.equals(self.ids) else self.ids
        return replace(self, ids=ids, groups=other.groups if other.groups.equals(self.groups) else self.groups)

    @property
    def is_repeated(self) -> bool:
        """True for a run with repeats."""
        return isinstance(self.clusters, RepeatedClusters)

    @cached_property
    def example(self) -> Numbers:
        """The number of each answer's example, which all its repeats share; shape (answers,)."""
        if not self.is_repeated:
            return self.group
        return numbered([split_repeat(name)[0] for name in self.groups])[1][self.group]

    def places(self, ids: Sequence[str]) -> Places:
        """Return the place of the answer to each of these instances, -1 where there is none; shape (ids,).

        The one answer of a run without repeats stands for every repeat of its instance.
        """
        places = self.ids.places(ids)
        if not self.is_repeated and len(missing := np.flatnonzero(places < 0)):
            places[missing] = self.ids.places([split_repeat(ids[number])[0] for number in missing.tolist()])
        return places

    def paired_places(self, other: PackedAnswers) -> tuple[Places, Places]:
        """Return the places here and in ``other`` of the instances that both have, in the order of these answers.

        Repeats are paired by their number. Where only one run has them, each is paired with the other's single answer, so that
        the mean difference is that of the means over repeats.
        """
        if other.is_repeated and not self.is_repeated:
            here = self.places(other.ids)
            there = np.argsort(here, kind="stable")
            there = there[here[there] >= 0]
            return here[there], there
        there = other.places(self.ids)
        here = np.flatnonzero(there >= 0)
        return here, there[here]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __getitem__(self, instance: str) -> LabelledAnswer:
        (place,) = self.ids.places([instance]).tolist()
        if place < 0:
            raise KeyError(instance)
        return self.at(place)

    def at(self, place: int) -> LabelledAnswer:
        """Return the answer at a place."""
        return LabelledAnswer(
            self.groups[self.group[place]],
            self.conditions[self.condition[place]],
            self.outcomes[self.outcome[place]],
            int(self.prompt[place]),
            self.sources[self.source[place]],
            bool(self.cut_off[place]),
            bool(self.gives_right[place]),
            bool(self.off_topic[place]),
            self.rules[self.rule[place]],
        )

    def values(self) -> ValuesView[LabelledAnswer]:
        return _Values(self)

    def items(self) -> ItemsView[str, LabelledAnswer]:
        return _Items(self)

    def condition_codes(self, codes: Mapping[str, int]) -> Places:
        """Return the code of each answer's condition, -1 for one without; shape (answers,)."""
        return _recoded(self.conditions, self.condition, codes)

    def outcome_codes(self, codes: Mapping[str, int]) -> Places:
        """Return the code of each answer's outcome, -1 for one without; shape (answers,)."""
        return _recoded(self.outcomes, self.outcome, codes)

    def rule_codes(self, codes: Mapping[str, int]) -> Places:
        """Return the code of the rule of each answer's row, -1 for one without; shape (answers,)."""
        return _recoded(self.rules, self.rule, codes)

    def source_codes(self, codes: Mapping[str, int]) -> Places:
        """Return the code of the single source of each answer's prompt, -1 for one without; shape (answers,)."""
        return _recoded(self.sources, self.source, codes)


class _Values(ValuesView[LabelledAnswer]):
    _mapping: PackedAnswers

    def __iter__(self) -> Iterator[LabelledAnswer]:
        return map(self._mapping.at, range(len(self._mapping)))


class _Items(ItemsView[str, LabelledAnswer]):
    _mapping: PackedAnswers

    def __iter__(self) -> Iterator[tuple[str, LabelledAnswer]]:
        return zip(self._mapping.ids, _Values(self._mapping), strict=True)


def numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Numbers]:
    """Return the distinct ones of ``names`` in order of first occurrence, and the index of each name in these."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(name, len(known)) for name in names]
    return tuple(known), np.array(numbers, np.int32)


def _recoded(names: Sequence[str], numbers: NDArray[Any], codes: Mapping[str, int]) -> Places:
    recoded: Places = np.array([codes.get(name, -1) for name in names], np.int64)[numbers]
    return recoded
