"""Answers that rows lend each other as wrong values.

A row whose answer is lent takes another's in return, so that each value of a picture or column is right once and wrong once:
nothing about a value says which it is.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from benchmarks.build import Difficulty
from benchmarks.cmc_bench.construction.candidate_file import CandidateFile
from benchmarks.cmc_bench.construction.cmc_candidates import Candidate
from benchmarks.cmc_bench.construction.cmc_passages import spells_answer
from benchmarks.cmc_bench.construction.near_numbers import BANDS
from benchmarks.cmc_bench.construction.plausible_values import (
    EXTREME,
    YEARS,
    ValueKind,
    alternatives,
    fits,
    in_style,
    may_contradict,
    value_kind,
)
from benchmarks.hash_collections import hash64

SCOPES = ("same picture", "same document", "same group", "same column")
"""The places that values come from, the preferred first."""

_STEPS = 48
"""The number of rows on either side of the wanted value that are tried as a partner."""

_NTH = re.compile(r"\b(?:second|third|fourth|fifth|2nd|3rd|[45]th|zweit\w*|dritt\w*)\b", re.IGNORECASE)

_NOBODY = 2**32 - 1
_KINDS = 65_536
"""The number of kinds that are kept: a smaller cache loses each before it is matched."""


@dataclass(frozen=True, slots=True)
class _Member:
    number: int
    place: float
    rank: int


class Lending:
    """The answers that candidates named by ``takes_part`` lend each other; memory holds 43 bytes of each, and some kinds.

    The choice depends on the seed and the rows, not on their order.
    """

    def __init__(
        self, candidates: CandidateFile, seed: int, difficulty: Difficulty, takes_part: Callable[[Candidate], bool]
    ) -> None:
        self._candidates, self._seed, self._difficulty = candidates, seed, difficulty
        self.kind = lru_cache(_KINDS)(lambda number: value_kind(candidates[number].row))
        self._lenders = array("I", [_NOBODY]) * len(candidates)
        self._scopes = bytearray(len(candidates))
        self._numbers, self._kinds, self._places, self._ranks = array("I"), array("Q"), array("d"), array("Q")
        wheres = [array("Q") for _ in SCOPES]  # the hashes of each candidate's places, 0 where it has none
        for number, candidate in enumerate(candidates):
            if takes_part(candidate) and _may_lend(candidate):
                kind = self.kind(number)
                self._numbers.append(number)
                self._kinds.append(hash64("\0".join((candidate.row.source, *kind.key))))
                self._places.append(0.0 if math.isnan(kind.place) else kind.place)
                self._ranks.append(hash64(f"{seed}|lend|{candidate.id}"))
                for where, text in zip(wheres, _where(candidate, kind), strict=True):
                    where.append(hash64(text) if text else 0)
        for scope, where in enumerate(wheres):
            self._match(where, scope)

    def lent(self, number: int) -> tuple[str, str] | None:
        """Return the answer of another candidate that is a candidate's wrong value, and its scope; None if there is none."""
        lender = self._lenders[number]
        if lender == _NOBODY:
            return None
        answer, own = self._candidates[lender].row.answer, self._candidates[number].row.answer
        return in_style(self.kind(number), answer, own), SCOPES[self._scopes[number]]

    def _match(self, where: array[int], scope: int) -> None:
        """Match the members that still have no lender with others at the same place."""
        import numpy as np

        waiting = [at for at, number in enumerate(self._numbers) if where[at] and self._lenders[number] == _NOBODY]
        columns = (self._ranks, self._places, self._kinds, where)
        order = np.lexsort([np.asarray(column)[waiting] for column in columns]) if waiting else np.array([], dtype=int)
        for _, group in groupby((waiting[i] for i in order.tolist()), key=lambda at: (where[at], self._kinds[at])):
            self._match_members([_Member(self._numbers[a], self._places[a], self._ranks[a]) for a in group], scope)

    def _match_members(self, members: list[_Member], scope: int) -> None:
        """Match members of one kind, sorted by place, in pairs; put one that is left over between two others."""
        if len(members) < 2:
            return
        places = [member.place for member in members]
        left = []
        for at in sorted(range(len(members)), key=lambda i: members[i].rank):
            member = members[at]
            if self._lenders[member.number] != _NOBODY:
                continue
            wanted = bisect_left(places, self._wanted_place(member)) if places[0] != places[-1] else at
            free = (m.number for m in _around(members, wanted) if self._lenders[m.number] == _NOBODY)
            number = member.number
            partner = next((n for n in free if self._suits(number, n) and self._suits(n, number)), None)
            if partner is None:
                left.append((at, number))
            else:
                self._lend(number, partner, scope)
                self._lend(partner, number, scope)
        for at, number in left:
            for other in _around(members, at):
                lender = self._lenders[other.number]
                if lender != _NOBODY and self._suits(other.number, number) and self._suits(number, lender):
                    self._lend(number, lender, scope)
                    self._lend(other.number, number, scope)
                    break

    def _wanted_place(self, member: _Member) -> float:
        """Return a place within reach of a member's, as probably above as below."""
        draw = hash64(f"{self._seed}|distance|{member.rank}")
        share, sign = (draw >> 1) / 2**63, 1 if draw & 1 else -1
        kind = self.kind(member.number)
        near: tuple[float, float] = YEARS[self._difficulty] if kind.is_year else (1, 5)
        least, most = map(math.log, BANDS[self._difficulty]) if kind.number else near
        return member.place + sign * least * float((most / least) ** share**2)

    def _suits(self, borrower: int, lender: int) -> bool:
        if borrower == lender or self._candidates.answers[borrower] == self._candidates.answers[lender]:
            return False
        row, other = self._candidates[borrower].row, self._candidates[lender].row
        kind, lent = self.kind(borrower), self.kind(lender)
        if self._candidates.pictures[borrower] == self._candidates.pictures[lender] and (
            kind.summary or lent.summary or _is_second(row.question, other.question)
        ):
            return False  # the picture's largest value is no answer about another value, nor its largest bar the second
        if not may_contradict(kind, lent, self._difficulty):
            return False
        return fits(row, kind, in_style(kind, other.answer, row.answer), lent=lent)

    def _lend(self, borrower: int, lender: int, scope: int) -> None:
        self._lenders[borrower] = lender
        self._scopes[borrower] = scope


def _around(members: list[_Member], at: int) -> Iterator[_Member]:
    """Yield members from a position on, outwards."""
    for step in range(_STEPS):
        if at + step < len(members):
            yield members[at + step]
        if 0 <= at - step - 1 < len(members):
            yield members[at - step - 1]


def _is_second(question: str, other: str) -> bool:
    """Return whether a question asks for the second of what the other one asks for the first of."""
    return bool(_NTH.search(question) and EXTREME.search(other) and not _NTH.search(other))


def _may_lend(candidate: Candidate) -> bool:
    """Return whether a row's wrong value may be another's answer: not if the row, or its question, names what it may be."""
    row = candidate.row
    is_settled = candidate.is_conflict or row.conflict or row.options or not spells_answer(row)
    return not is_settled and not alternatives(row)


def _where(candidate: Candidate, kind: ValueKind) -> tuple[str, str, str, str]:
    """Return the picture, document and group of a row, and the column of all rows; "" where it takes no value from there.

    Beyond the picture, a tech company is no answer to a question about a copper mining company, nor Benin one where China is.
    """
    row = candidate.row
    kinds = f"\0{kind.words.narrower}" if kind.words and kind.words.narrower else ""
    document, subject = (place and place + kinds for place in (row.document, row.subject))
    return candidate.image.pixels, document, subject, f"column{kinds}" if kind.is_specific else ""
