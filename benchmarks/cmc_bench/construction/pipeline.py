"""The construction of section 3.2: contradicting values, wrong images, quotas.

Every choice is made by sha256(seed | purpose | id), as an order or a place to start, so that it depends on the seed and
the rows' content alone.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.cmc_bench.constants import TYPES, ConflictType
from benchmarks.cmc_bench.construction.candidates import Candidate, answer_problem
from benchmarks.cmc_bench.construction.passages import states
from benchmarks.cmc_bench.sources.base import SourceRow
from benchmarks.rows.files import SkippedRow
from benchmarks.text.answer_equality import number, same_value

NO_VALUE = "no contradicting value: no other answer of its type"
NO_WRONG_IMAGE = "no wrong image: no other picture with an answer unlike the gold and the contradicting value"

_NEAR_YEARS = 10
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class ConstructedExample:
    """A candidate with its contradicting value and the candidate that provides the wrong image.

    The gold, ``value`` and ``donor``'s answer are three different answers; the two images differ in their pixels.
    ``origin`` says where the value comes from.
    """

    right: Candidate
    value: str
    donor: Candidate
    origin: str

    @property
    def id(self) -> str:
        return self.right.id


@dataclass(frozen=True)
class ConstructedExamples:
    """The examples by type in order of choice, the rows left out, and the number that was not needed."""

    examples: Mapping[ConflictType, Sequence[ConstructedExample]]
    left_out: Sequence[SkippedRow]
    unused: Mapping[ConflictType, int]

    @property
    def all(self) -> Iterator[ConstructedExample]:
        for examples in self.examples.values():
            yield from examples


def rank_key(seed: int, purpose: str, text: str) -> str:
    """Return a sort key of ``text`` that depends only on ``seed`` and ``purpose``: a sha256 in hex."""
    return hashlib.sha256(f"{seed}|{purpose}|{text}".encode("utf-8", "surrogatepass")).hexdigest()


def construct(candidates: Iterable[Candidate], *, seed: int, per_type: int) -> ConstructedExamples:
    """Return up to ``per_type`` examples of each conflict type; MMMU's are spread evenly over subjects.

    A candidate that cannot be paired is left out with the reason, and another takes its place while there is one.
    """
    all_candidates = list(candidates)
    pairing = _Pairing(all_candidates, seed)
    examples: dict[ConflictType, Sequence[ConstructedExample]] = {}
    left_out: list[SkippedRow] = []
    unused: dict[ConflictType, int] = {}
    for kind in TYPES:
        waiting = _by_subject([c for c in all_candidates if c.type == kind], seed)
        chosen_examples: list[ConstructedExample] = []
        while waiting and len(chosen_examples) < per_type:
            for subject in list(waiting)[: per_type - len(chosen_examples)]:
                example = _first(waiting[subject], pairing, left_out)
                if example is None:
                    del waiting[subject]
                else:
                    chosen_examples.append(example)
        examples[kind] = chosen_examples
        unused[kind] = sum(len(queue) for queue in waiting.values())
    return ConstructedExamples(examples, left_out, unused)


def _by_subject(candidates: Iterable[Candidate], seed: int) -> dict[str, deque[Candidate]]:
    queues: defaultdict[str, deque[Candidate]] = defaultdict(deque)
    for candidate in sorted(candidates, key=lambda c: rank_key(seed, "choose", c.id)):
        queues[candidate.row.subject if candidate.row.family == "mmmu" else ""].append(candidate)
    return {subject: queues[subject] for subject in sorted(queues, key=lambda name: rank_key(seed, "subject", name))}


def _first(queue: deque[Candidate], pairing: _Pairing, left_out: list[SkippedRow]) -> ConstructedExample | None:
    while queue:
        candidate = queue.popleft()
        pair = pairing.example(candidate)
        if isinstance(pair, ConstructedExample):
            return pair
        left_out.append(SkippedRow(candidate.row.source, candidate.row.row, pair))
    return None


@dataclass(frozen=True)
class _Pool:
    members: Sequence[Candidate]

    @cached_property
    def normals(self) -> int:
        return len({c.normal for c in self.members})

    @cached_property
    def pictures(self) -> int:
        return len({c.pixels for c in self.members})

    def walk(self, seed: int, purpose: str, start: str) -> Iterator[Candidate]:
        """Yield the members once, cyclically, from a position that ``start`` decides."""
        first = int(rank_key(seed, purpose, start), 16) % len(self.members)
        for step in range(len(self.members)):
            yield self.members[(first + step) % len(self.members)]


class _Pairing:
    """The choice of an example's contradicting value and wrong image, so that all rules hold jointly."""

    def __init__(self, candidates: Sequence[Candidate], seed: int) -> None:
        self._seed = seed
        members: defaultdict[tuple[str, ...], list[Candidate]] = defaultdict(list)
        for candidate in sorted(candidates, key=lambda c: rank_key(seed, "pool", c.id)):
            for key in {*_value_pools(candidate), *_image_pools(candidate)}:
                members[key].append(candidate)
        self._pools = {key: _Pool(pool) for key, pool in members.items()}

    def example(self, candidate: Candidate) -> ConstructedExample | str:
        """Return the example, or the reason why there is none."""
        reason = NO_VALUE
        for value, origin in self._values(candidate):
            if candidate.row.passage and states(candidate.row.passage, value):
                continue  # which value it then states could not be told
            reason = NO_WRONG_IMAGE
            donor = self._donor(candidate, value)
            if donor is not None:
                return ConstructedExample(candidate, value, donor, origin)
        return reason

    def _values(self, candidate: Candidate) -> Iterator[tuple[str, str]]:
        gold = candidate.row.answer
        if candidate.row.conflict:
            yield candidate.row.conflict, "the row's own"
            return
        for option in sorted(
            set(candidate.row.options), key=lambda o: rank_key(self._seed, f"option|{candidate.id}", o)
        ):
            if answer_problem(option) is None and not same_value(option, gold):
                yield option, "own option"
        pools = [self._pools[key] for key in _value_pools(candidate)]
        if candidate.type == "temporal":
            for pool in pools:
                yield from ((y, "year within 10") for y in self._others(pool, candidate) if _near(y, gold))
        for pool in pools:
            yield from ((value, "same coarse type") for value in self._others(pool, candidate))

    def _others(self, pool: _Pool, candidate: Candidate) -> Iterator[str]:
        """Yield each answer of the pool that differs from the candidate's, once."""
        seen = {candidate.normal}
        for other in pool.walk(self._seed, "value", candidate.id):
            if len(seen) == pool.normals:
                return
            if other.normal not in seen:
                seen.add(other.normal)
                if not same_value(other.row.answer, candidate.row.answer) and not _within_tolerance(
                    other.row.answer, candidate
                ):
                    yield other.row.answer

    def _donor(self, candidate: Candidate, value: str) -> Candidate | None:
        taken_values = (candidate.row.answer, value)
        for pool in (self._pools[key] for key in _image_pools(candidate)):
            refused: set[str] = set()
            if pool.pictures == 1:
                continue
            for other in pool.walk(self._seed, "image", candidate.id):
                if other.normal in refused:
                    continue
                if any(same_value(other.row.answer, answer) for answer in taken_values):
                    refused.add(other.normal)
                    if len(refused) == pool.normals:
                        break
                elif other.pixels != candidate.pixels:
                    return other
        return None


def _value_pools(candidate: Candidate) -> list[tuple[str, ...]]:
    """Return the pools of other values, the preferred first: answers of the same coarse type."""
    return _pools(("value", candidate.coarse), candidate.row)


def _image_pools(candidate: Candidate) -> list[tuple[str, ...]]:
    """Return the pools of wrong images, the preferred first: for ChartQA, those of the same conflict type."""
    return _pools(("image", candidate.type if candidate.row.family == "chartqa" else ""), candidate.row)


def _pools(kind: tuple[str, ...], row: SourceRow) -> list[tuple[str, ...]]:
    """Return pool keys: the same subfield, then the same subject, then (ChartQA) the same source."""
    corpus = (*kind, row.source, row.family)
    keys = []
    if row.subfield:
        keys.append((*corpus, "subfield", row.subject, row.subfield))
    if row.subject or row.family == "mmmu":
        keys.append((*corpus, "subject", row.subject))
    return keys if row.family == "mmmu" else [*keys, corpus]


def _within_tolerance(value: str, candidate: Candidate) -> bool:
    """Return whether the task that the row comes from counts ``value`` as its gold answer.

    ChartQA's relaxed accuracy accepts numbers within 5% of the gold (Masry et al. 2022, section 5). Years are held to be
    exact: within 5% every year near a gold one would be it. A user's own rows come with no tolerance.
    """
    row, gold = candidate.row, number(candidate.row.answer)
    if row.family != "chartqa" or row.source == "rows" or candidate.coarse == "year" or gold is None:
        return False
    other = number(value)
    return other is not None and abs(other - gold) <= _TOLERANCE * abs(gold)


def _near(year: str, gold: str) -> bool:
    return abs((number(year) or 0) - (number(gold) or 0)) <= _NEAR_YEARS
