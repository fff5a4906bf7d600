"""The choice of an example's contradicting value and wrong image."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice

from benchmarks.build import Difficulty
from benchmarks.cmc_bench.construction.borrowed_answers import Lending
from benchmarks.cmc_bench.construction.candidate_file import CandidateFile
from benchmarks.cmc_bench.construction.cmc_candidates import Candidate, answer_problem
from benchmarks.cmc_bench.construction.cmc_passages import spells_answer, states, twin_problem
from benchmarks.cmc_bench.construction.constructed_examples import NO_DONOR, Pair
from benchmarks.cmc_bench.construction.plausible_values import (
    TOLERANCE,
    ValueKind,
    alternatives,
    fits,
    made_values,
    may_contradict,
    value_kind,
)
from benchmarks.cmc_bench.construction.same_questions import same_question
from benchmarks.cmc_bench.sources.cmc_source_row import OWN_ROWS, SourceRow
from benchmarks.hash_collections import HashOrder, count_distinct, hash64
from benchmarks.text.normal_form import normalise
from benchmarks.values import compare

NO_VALUE = "no contradicting value: no other answer of its type"
NO_WRONG_IMAGE = "no wrong image: no other picture with an answer unlike the gold and the contradicting value"
COMPOUND = "no wrong value: the answer states its value twice, and both would have to change"
NO_WRONG_VALUE = "no plausible wrong value: nothing else of the answer's kind"
NO_OTHER_PICTURE = (
    "no other picture has another answer to this question; add a row that asks it of another picture, or write what a "
    "picture shows in image_answer"
)
NO_THIRD_VALUE = "no other picture has a third answer, beside the right one and the wrong one of the passage"

OWN_VALUE, OWN_OPTION, NAMED, MADE = "the row's own", "own option", "named in the question", "made"
"""Origins of contradicting values, beside those of the paper and ``SCOPES``."""

_NEAR_YEARS = 10
_TRIED, _NEAR_ENOUGH = 256, 16
"""The number of candidates among which pictures with a near answer are looked for, and of such pictures."""
_COUNTED = 4096
"""The number of pools whose distinct answers and pictures are kept once they were counted."""

_PoolPlace = tuple[int, int]
"""A pool's place in the array of all members: the first one, and their number."""


def rank_key(seed: int, purpose: str, text: str) -> str:
    """Return a sort key of ``text`` that depends only on ``seed`` and ``purpose``: a sha256 in hex."""
    return hashlib.sha256(f"{seed}|{purpose}|{text}".encode("utf-8", "surrogatepass")).hexdigest()


def rank(seed: int, purpose: str, text: str) -> int:
    """Return the first 64 bits of :func:`rank_key`, by which texts are sorted where there are many."""
    return hash64(f"{seed}|{purpose}|{text}")


@dataclass(frozen=True, slots=True)
class _Pool:
    """A pool: its members are the numbers of candidates in a part of one array."""

    members: array[int]
    first: int
    size: int

    def walk(self, seed: int, purpose: str, start: str) -> Iterator[int]:
        """Yield the members once, cyclically, from a position that ``start`` decides."""
        begin = int(rank_key(seed, purpose, start), 16) % self.size
        for step in range(self.size):
            yield self.members[self.first + (begin + step) % self.size]


class Pairing:
    """The choice of an example's contradicting value and wrong image, so that all rules hold jointly.

    Candidates are their numbers. In memory are 12 bytes of each candidate for each of its pools.
    """

    def __init__(self, candidates: CandidateFile, seed: int, difficulty: Difficulty | None) -> None:
        self._candidates, self._seed = candidates, seed
        self._of_all, self._difficulty = difficulty is not None, difficulty or "near"
        self._lending = Lending(candidates, seed, self._difficulty, self._takes_plausible)
        order, memberships = HashOrder(), HashOrder()
        pools, ends = array("Q"), array("Q")  # the hashes of each candidate's pools, and where they end
        for number, candidate in enumerate(candidates):
            order.add(rank(seed, "pool", candidate.id), number)
            pools.extend(map(_pool_hash, {*_value_pools(candidate), *_image_pools(candidate)}))
            ends.append(len(pools))
        for _, number in order:
            for pool_hash in pools[ends[number - 1] if number else 0 : ends[number]]:
                memberships.add(pool_hash, number)
        self._keys, self._members = array("Q"), array("I")
        for key_hash, number in memberships:
            self._keys.append(key_hash)
            self._members.append(number)
        self._counts = lru_cache(_COUNTED)(self._count)
        self._lent = Counter[int]()  # how often an answer is a wrong image's

    def _pool(self, key: tuple[str, ...]) -> _Pool:
        key_hash = _pool_hash(key)
        first = bisect_left(self._keys, key_hash)
        return _Pool(self._members, first, bisect_right(self._keys, key_hash, first) - first)

    def _count(self, pool: _PoolPlace) -> tuple[int, int]:
        """Return the number of distinct answers and of distinct pictures in a pool."""
        members = self._members[pool[0] : sum(pool)]
        file = self._candidates
        return count_distinct(map(file.answers.__getitem__, members)), count_distinct(
            map(file.pictures.__getitem__, members)
        )

    def example(self, number: int) -> Pair | str:
        """Return the contradicting value and the donor of an example, or the reason why there is none.

        A user's own row is never refused: what cannot be shown of it is left out. Sources that disagree are left as they are.
        """
        candidate = self._candidates[number]
        if candidate.is_conflict:
            return Pair("", NO_DONOR, "")
        donor = self._donor(number, candidate, (candidate.row.answer,))
        first = ("", "")
        for value, origin in self._values(number, candidate):
            row = candidate.row
            if row.passage and states(row.passage, value, row.question, ("same", "unclear")):
                continue  # which value it then states could not be told
            first = first if first[0] else (value, origin)
            if donor is None:
                break
            other = self._donor(number, candidate, (candidate.row.answer, value))
            if other is not None:
                self._lent[self._candidates.answers[other]] += 1
                return Pair(value, other, origin)
        value, origin = first
        if candidate.row.source != OWN_ROWS:
            return NO_WRONG_IMAGE if value else NO_VALUE
        no_value = COMPOUND if self._lending.kind(number).is_compound else NO_WRONG_VALUE
        why = twin_problem(candidate.row) or no_value
        left_out = {} if value else {"image-correct": why, "both-wrong": why}
        if donor is None:
            left_out |= {"text-correct": NO_OTHER_PICTURE, "both-wrong": NO_OTHER_PICTURE}
        return Pair(value, NO_DONOR if donor is None else donor, origin, left_out or {"both-wrong": NO_THIRD_VALUE})

    def _values(self, number: int, candidate: Candidate) -> Iterator[tuple[str, str]]:
        gold = candidate.row.answer
        if not spells_answer(candidate.row):
            return
        if candidate.row.conflict:
            yield candidate.row.conflict, OWN_VALUE
            return
        for option in sorted(
            set(candidate.row.options), key=lambda o: rank_key(self._seed, f"option|{candidate.id}", o)
        ):
            if answer_problem(option) is None and _differ(option, gold, candidate):
                yield option, OWN_OPTION
        if self._takes_plausible(candidate):
            yield from self._plausible_values(number, candidate)
            return
        pools = [self._pool(key) for key in _value_pools(candidate)]
        if candidate.type == "temporal":
            for pool in pools:
                yield from ((y, "year within 10") for y in self._others(pool, number, candidate) if _near(y, gold))
        for pool in pools:
            yield from ((value, "same coarse type") for value in self._others(pool, number, candidate))

    def _takes_plausible(self, candidate: Candidate) -> bool:
        return self._of_all or candidate.row.source == OWN_ROWS

    def _plausible_values(self, number: int, candidate: Candidate) -> Iterator[tuple[str, str]]:
        row, kind = candidate.row, self._lending.kind(number)
        values: Iterable[tuple[str, str]] = ((value, NAMED) for value in alternatives(row))
        if lent := self._lending.lent(number):
            values = chain(values, [lent])
        generated = made_values(row, kind, self._difficulty, f"{self._seed}|make|{candidate.id}")
        return (
            (value, origin) for value, origin in chain(values, ((v, MADE) for v in generated)) if fits(row, kind, value)
        )

    def _others(self, pool: _Pool, number: int, candidate: Candidate) -> Iterator[str]:
        """Yield each answer of the pool that differs from the candidate's, once."""
        answers = self._candidates.answers
        seen = {answers[number]}
        distinct, _ = self._counts((pool.first, pool.size))
        for other in pool.walk(self._seed, "value", candidate.id):
            if len(seen) == distinct:
                return
            if answers[other] not in seen:
                seen.add(answers[other])
                answer = self._candidates[other].row.answer
                if _differ(answer, candidate.row.answer, candidate, _tolerance(candidate)):
                    yield answer

    def _donor(self, number: int, candidate: Candidate, taken_values: Collection[str]) -> int | None:
        """Return a candidate with another picture whose answer is none of ``taken_values``.

        Beside a plausible wrong value its answer is near that, or near the right one, as a draw decides: else the value that is
        unlike the two others would always be a wrong one. Of these, the answer that is lent least. Where none is near, and for
        published rows, the first is taken.
        """
        centre = self._centre(candidate, taken_values)
        pools = (self._pool(key) for key in _image_pools(candidate))
        donors = (self._donor_in(pool, number, candidate, taken_values, centre) for pool in pools)
        return next((donor for donor in donors if donor is not None), None)

    def _donor_in(
        self,
        pool: _Pool,
        number: int,
        candidate: Candidate,
        taken_values: Collection[str],
        centre: ValueKind | None,
    ) -> int | None:
        answers, pictures = self._candidates.answers, self._candidates.pictures
        refused: set[int] = set()
        first: int | None = None
        near: list[int] = []
        distinct_answers, distinct_pictures = self._counts((pool.first, pool.size))
        if distinct_pictures == 1:
            return None
        for other in islice(pool.walk(self._seed, "image", candidate.id), _TRIED if centre else None):
            is_near = centre is not None and self._is_near(centre, other)
            if answers[other] in refused or pictures[other] == pictures[number] or (first is not None and not is_near):
                continue
            if not self._is_another_answer(other, candidate, taken_values):
                refused.add(answers[other])
                if len(refused) == distinct_answers:
                    break
                continue
            if centre is None:
                return other
            first = other if first is None else first
            near += [other] if is_near else []
            if len(near) == _NEAR_ENOUGH:
                break
        return min(near, key=lambda donor: self._lent[answers[donor]]) if near else first

    def _is_another_answer(self, other: int, candidate: Candidate, taken_values: Collection[str]) -> bool:
        # A published row's donor answers another question, about which this one settles nothing.
        question = candidate.row.question if candidate.row.source == OWN_ROWS else ""
        answer = self._candidates[other].row.answer
        return all(compare(answer, value, question).verdict == "different" for value in taken_values)

    def _centre(self, candidate: Candidate, values: Collection[str]) -> ValueKind | None:
        """Return the kind of one of ``values``, drawn, near which the wrong image's answer should be; None for any."""
        if not self._takes_plausible(candidate):
            return None
        drawn = [*values][hash64(f"{self._seed}|near|{candidate.id}") % len(values)]
        return value_kind(replace(candidate.row, answer=drawn))

    def _is_near(self, kind: ValueKind, number: int) -> bool:
        other = self._lending.kind(number)
        return kind.key == other.key and may_contradict(kind, other, self._difficulty)


def _pool_hash(key: tuple[str, ...]) -> int:
    return hash64("\0".join((str(len(key)), *key)))


def _value_pools(candidate: Candidate) -> list[tuple[str, ...]]:
    """Return the pools of other values, the preferred first: answers of the same coarse type."""
    return _pools(("value", candidate.coarse), candidate.row)


def _image_pools(candidate: Candidate) -> list[tuple[str, ...]]:
    """Return the pools of wrong images, the preferred first: for ChartQA, those of the same conflict type.

    For a user's own row they are of rows that ask the same question, so that the picture answers it. A picture that does not
    show its row's answer is in none.
    """
    row = candidate.row
    if row.image_answer:
        return []
    if row.source == OWN_ROWS:
        return _pools(("image", same_question(row)), row)
    return _pools(("image", candidate.type if row.family == "chartqa" else ""), row)


def _pools(kind: tuple[str, ...], row: SourceRow) -> list[tuple[str, ...]]:
    """Return pool keys: the same subfield, then the same subject, then (unless the row is of MMMU) the same source."""
    family = "" if row.source == OWN_ROWS else row.family
    corpus = (*kind, row.source, family)
    keys = []
    if row.subfield:
        keys.append((*corpus, "subfield", row.subject, row.subfield))
    if row.subject or family == "mmmu":
        keys.append((*corpus, "subject", row.subject))
    return keys if family == "mmmu" else [*keys, corpus]


def _differ(value: str, other: str, candidate: Candidate, tolerance: float = 0.0) -> bool:
    """Return whether two values are different answers to the candidate's question: neither the same, nor unclear."""
    return compare(value, other, candidate.row.question, tolerance).verdict == "different"


def _tolerance(candidate: Candidate) -> float:
    """Return the share within which the task that the row comes from counts a number as its gold answer.

    ChartQA's relaxed accuracy accepts numbers within 5% of the gold (Masry et al. 2022, section 5). Years are held to be
    exact: within 5% every year near a gold one would be it. A user's own rows come with no tolerance.
    """
    is_exact = candidate.row.family != "chartqa" or candidate.row.source == OWN_ROWS or candidate.coarse == "year"
    return 0.0 if is_exact else TOLERANCE


def _near(year: str, gold: str) -> bool:
    return abs(int(normalise(year)) - int(normalise(gold))) <= _NEAR_YEARS
