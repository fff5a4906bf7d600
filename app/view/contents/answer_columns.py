"""Columns of a run's answers, a value for each instance of the page, and then for each repeat of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.store.sample_lists import SAMPLE_OUTCOMES, AnswerFacts, SampleOutcome
from app.text.text_escaping import clean
from app.view.contents.page_instances import Places
from app.view.contents.page_json import column
from app.view.contents.page_types import DISPUTED, LACKING, OVERRIDDEN, TRUNCATED, Change, RunColumns

_OUTCOME_CODES = {outcome: code for code, outcome in enumerate(SAMPLE_OUTCOMES)}
_LABELLED = ("right", "wrong")
"""The outcomes of an answer that has a label."""
_MOST_TOKENS = 0xFFFFFFFF


class AnswerColumns:
    """The answers of a run as arrays, in the order of the page's instances, which the repeats of instances follow.

    The place of an instance is its number; a repeat's is a higher one.

    Attributes:
        changed: The revision in which each instance changed last, or a repeat of it.
    """

    def __init__(self, places: Places, labels: Sequence[str]) -> None:
        """Start without any answer. ``labels`` are those with a code."""
        ordinals = np.concatenate((places.ordinals, places.repeats))
        count, self._size, self._repeated = len(ordinals), len(places.ordinals), places.repeated
        self._ordinals, self._order, self._labels = ordinals, np.argsort(ordinals, kind="stable"), tuple(labels)
        self._label_codes: dict[str | None, int] = {label: code for code, label in enumerate(labels)}
        self._outcome = np.where(ordinals < 0, LACKING, _OUTCOME_CODES["pending"]).astype(np.uint8)
        self._label = np.full(count, LACKING, np.uint8)
        self._flags = np.zeros(count, np.uint8)
        self._tokens = np.zeros(count, np.uint32)
        self._seconds = np.zeros(count, np.float32)
        self.changed = np.zeros(self._size, np.uint32)

    def encoded(self) -> RunColumns:
        """Return the columns of the index."""
        return RunColumns(
            outcome=column(self._outcome[: self._size], "u1"),
            label=column(self._label[: self._size], "u1"),
            flags=column(self._flags[: self._size], "u1"),
            tokens=column(self._tokens[: self._size], "u4"),
            seconds=column(self._seconds[: self._size], "f4"),
        )

    def changes(self, run: int, since: int) -> list[Change]:
        """Return the changes after a revision; ``run`` is the place of the run on the page."""
        return [
            Change(
                number=int(number),
                run=run,
                outcome=int(self._outcome[number]),
                label=int(self._label[number]),
                flags=int(self._flags[number]),
                tokens=int(self._tokens[number]),
                seconds=float(self._seconds[number]),
            )
            for number in np.flatnonzero(self.changed > since)
        ]

    def ordinal(self, place: int) -> int | None:
        """Return the ordinal of an instance or a repeat; None if the run lacks it."""
        ordinal = int(self._ordinals[place])
        return None if ordinal < 0 else ordinal

    def numbers(self, ordinals: Sequence[int]) -> NDArray[np.int64]:
        """Return the number of the instance at each ordinal; those that the page does not have are left out."""
        return self._numbers(self._places(ordinals))

    def repeats(self, number: int) -> list[int]:
        """Return the places of the repeats of an instance."""
        return [self._size + int(place) for place in np.flatnonzero(self._repeated == number)]

    def _places(self, ordinals: Sequence[int]) -> NDArray[np.int64]:
        wanted = np.array(ordinals, np.int64)
        if not len(wanted):
            return wanted
        positions = np.searchsorted(self._ordinals, wanted, sorter=self._order)
        places = self._order[np.minimum(positions, len(self._order) - 1)]
        return np.asarray(places[self._ordinals[places] == wanted], np.int64)

    def _numbers(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the instance at each place, of a repeat that of the instance it repeats."""
        if not len(self._repeated):
            return places
        return np.concatenate((np.arange(self._size), self._repeated))[places]

    def outcome(self, place: int) -> SampleOutcome:
        """Return the outcome of an instance or a repeat that the run has."""
        outcome: SampleOutcome = SAMPLE_OUTCOMES[int(self._outcome[place])]
        return outcome

    def label(self, place: int) -> str | None:
        """Return the label of an instance or a repeat for display; None where its outcome is no label."""
        code = int(self._label[place])
        return None if code == LACKING else clean(self._labels[code])

    def write(self, facts: Sequence[AnswerFacts], revision: int) -> bool:
        """Write answers as of a revision; return whether any differs. Raises ValueError for an unknown instance."""
        places = self._places([item.ordinal for item in facts])
        if len(places) != len(facts):
            raise ValueError("an instance that the run did not have")
        differs = np.zeros(len(facts), np.bool_)
        codes, label_codes = _OUTCOME_CODES, self._label_codes
        for old, values in (
            (self._outcome, [codes.get(item.outcome, LACKING) for item in facts]),
            (
                self._label,
                [label_codes.get(item.label, LACKING) if item.outcome in _LABELLED else LACKING for item in facts],
            ),
            (self._flags, [_flags(item) for item in facts]),
            (self._tokens, [_tokens(item.tokens) for item in facts]),
            (self._seconds, [_seconds(item.seconds) for item in facts]),
        ):
            new = np.array(values, old.dtype)
            differs |= old[places] != new
            old[places] = new
        self.changed[self._numbers(places[differs])] = revision
        return bool(differs.any())


def _flags(item: AnswerFacts) -> int:
    return (
        (OVERRIDDEN if item.overridden else 0)
        | (DISPUTED if item.disputed else 0)
        | (TRUNCATED if item.truncated else 0)
    )


def _tokens(tokens: object) -> int:
    return min(max(tokens, 0), _MOST_TOKENS) if isinstance(tokens, int) else 0


def _seconds(seconds: float) -> float:
    return float(seconds) if 0 <= seconds < 1e9 else 0.0
