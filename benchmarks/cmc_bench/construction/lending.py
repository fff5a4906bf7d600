"""Answers that rows lend each other as wrong values.

A row whose answer is lent takes another's in return, so that each value of a picture or column is right once and wrong once:
nothing about a value says which it is.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.build import Difficulty
from benchmarks.cmc_bench.construction.candidate_file import CandidateFile
from benchmarks.cmc_bench.construction.candidates import Candidate
from benchmarks.cmc_bench.construction.near_numbers import BANDS
from benchmarks.cmc_bench.construction.passages import spells_answer
from benchmarks.cmc_bench.construction.plausible import alternatives, fits, may_contradict, value_kind
from benchmarks.hashed import hash64

SCOPES = ("same picture", "same document", "same group", "same column")
"""The places that values come from, the preferred first."""

_STEPS = 48
"""The number of rows on either side of the wanted value that are tried as a partner."""

_NOBODY = 2**32 - 1
_KINDS = 4096


@dataclass(frozen=True, slots=True)
class _Member:
    number: int
    place: float
    rank: int


class Lending:
    """Who lends an answer to whom, for the candidates that ``takes_part`` names; memory holds 13 bytes of each candidate.

    The choice depends on the seed and the rows, not on their order.
    """

    def __init__(
        self, candidates: CandidateFile, seed: int, difficulty: Difficulty, takes_part: Callable[[Candidate], bool]
    ) -> None:
        self._candidates, self._seed, self._difficulty = candidates, seed, difficulty
        self.kind = lru_cache(_KINDS)(lambda number: value_kind(candidates[number].row))
        self._lenders = array("I", [_NOBODY]) * len(candidates)
        self._scopes = bytearray(len(candidates))
        waiting = array("I", (number for number, c in enumerate(candidates) if takes_part(c) and _may_lend(c)))
        for scope in range(len(SCOPES)):
            if waiting:
                self._match(waiting, scope)
                waiting = array("I", (number for number in waiting if self._lenders[number] == _NOBODY))

    def lender(self, number: int) -> tuple[int, str] | None:
        """Return the candidate whose answer is the wrong value of another, and where it stands; None if there is none."""
        lender = self._lenders[number]
        return None if lender == _NOBODY else (lender, SCOPES[self._scopes[number]])

    def _match(self, waiting: array[int], scope: int) -> None:
        import numpy as np

        numbers, keys, places, ranks = array("I"), array("Q"), array("d"), array("Q")
        for number in waiting:
            candidate, kind = self._candidates[number], self.kind(number)
            where = _where(candidate, scope)
            is_summary = scope == 0 and kind.summary  # the largest value of a picture is no other's wrong one
            if not where or is_summary or (not kind.is_specific and scope == len(SCOPES) - 1):
                continue
            numbers.append(number)
            keys.append(hash64("\0".join((candidate.row.source, where, *kind.key))))
            places.append(0.0 if math.isnan(kind.place) else kind.place)
            ranks.append(hash64(f"{self._seed}|lend|{candidate.id}"))
        order = np.lexsort((np.asarray(ranks), np.asarray(places), np.asarray(keys)))
        members: list[_Member] = []
        key = None
        for place in order.tolist():
            if keys[place] != key:
                self._match_members(members, scope)
                members, key = [], keys[place]
            members.append(_Member(numbers[place], places[place], ranks[place]))
        self._match_members(members, scope)

    def _match_members(self, members: list[_Member], scope: int) -> None:
        """Match members of one kind, sorted by place, in pairs; put one that is left over between two others."""
        from bisect import bisect_left

        if len(members) < 2:
            return
        places = [member.place for member in members]
        left = []
        for at in sorted(range(len(members)), key=lambda i: members[i].rank):
            member = members[at]
            if self._lenders[member.number] != _NOBODY:
                continue
            wanted = bisect_left(places, self._wanted_place(member)) if places[0] != places[-1] else at
            free = (m for m in _around(members, wanted) if self._lenders[m.number] == _NOBODY)
            partner = next((m for m in free if self._suit(member, m) and self._suit(m, member)), None)
            if partner is None:
                left.append((at, member))
            else:
                self._lend(member, partner.number, scope)
                self._lend(partner, member.number, scope)
        for at, member in left:
            for other in _around(members, at):
                lender = self._lenders[other.number]
                if lender != _NOBODY and self._suit(other, member) and self._suits(member.number, lender):
                    self._lend(member, lender, scope)
                    self._lend(other, member.number, scope)
                    break

    def _wanted_place(self, member: _Member) -> float:
        """Return a place within reach of a member's, as probably above as below."""
        draw = hash64(f"{self._seed}|distance|{member.rank}")
        share, sign = (draw >> 1) / 2**63, 1 if draw & 1 else -1
        kind = self.kind(member.number)
        least, most = map(math.log, BANDS[self._difficulty]) if kind.number else (1, 5)
        return member.place + sign * least * float((most / least) ** share**2)

    def _suit(self, borrower: _Member, lender: _Member) -> bool:
        return self._suits(borrower.number, lender.number)

    def _suits(self, borrower: int, lender: int) -> bool:
        if borrower == lender or self._candidates.answers[borrower] == self._candidates.answers[lender]:
            return False
        kind, lent = self.kind(borrower), self.kind(lender)
        if not may_contradict(kind, lent, self._difficulty):
            return False
        return fits(self._candidates[borrower].row, kind, self._candidates[lender].row.answer, lent=lent)

    def _lend(self, borrower: _Member, lender: int, scope: int) -> None:
        self._lenders[borrower.number] = lender
        self._scopes[borrower.number] = scope


def _around(members: list[_Member], at: int) -> Iterator[_Member]:
    """Yield members from a position on, outwards."""
    for step in range(_STEPS):
        if at + step < len(members):
            yield members[at + step]
        if 0 <= at - step - 1 < len(members):
            yield members[at - step - 1]


def _may_lend(candidate: Candidate) -> bool:
    """Return whether a row's wrong value may be another's answer: not if the row, or its question, names what it may be."""
    row = candidate.row
    is_settled = candidate.is_conflict or row.conflict or row.options or not spells_answer(row)
    return not is_settled and not alternatives(row)


def _where(candidate: Candidate, scope: int) -> str:
    """Return the picture, document or group of a row, or the column that all of them share."""
    row = candidate.row
    return (candidate.image.pixels, row.document, row.subject, "column")[scope]
