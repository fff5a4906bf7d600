"""Instances of the page: those of all runs, in order of first appearance, with what they are filtered by.

The repeats of an instance in a run with ``--repeats`` are no instances of the page: they belong to the first one's answer.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.store.run_store import RunStore
from app.store.sample_lists import displayable
from app.text.text_escaping import clean
from app.view.contents.page_json import column
from app.view.contents.page_types import StratumColumn
from benchmarks.protocols.repeats import REPEAT, split_repeat
from benchmarks.varied_names import example_of

_MOST_CONDITIONS = 250
"""The number of conditions that have a code; no benchmark has as many."""


class Places(NamedTuple):
    """The places of a run's instances: the ordinal of each instance of the page, -1 where the run lacks it, and its repeats.

    ``repeats`` has the ordinal of each repeat, ``repeated`` the number of the instance that it repeats.
    """

    ordinals: NDArray[np.int64]
    repeats: NDArray[np.int64]
    repeated: NDArray[np.int64]


class Instances:
    """The instances of several runs, numbered in order of first appearance.

    Attributes:
        ids: The id of each instance, as stored.
        numbers: The number of each id.
        conditions: The names of the conditions.
        condition: The index in ``conditions`` of each instance.
        group: The number of each instance's example; that of its repetition in a varied build.
        places: For each run, the places of its instances.
    """

    def __init__(self, stores: Sequence[RunStore], known_conditions: Sequence[str]) -> None:
        """Read the instances of each run; ``known_conditions`` come first."""
        self.numbers: dict[str, int] = {}
        conditions, groups, strata = _Codes(), _Codes(), _Codes()
        places = []
        for store in stores:
            ordinals, numbers, repeats, repeated = array("q"), array("q"), array("q"), array("q")
            firsts: set[str] = set()
            for ordinal, *texts in store.sample_keys():
                id_, group, condition, strata_text = map(_text, texts)
                if "~" in id_ and (first := split_repeat(id_)[0]) in firsts:
                    repeats.append(ordinal)
                    repeated.append(self.numbers[first])
                    continue
                firsts.add(id_)
                number = self.numbers.setdefault(id_, len(self.numbers))
                if number == len(groups.of_instances):
                    conditions.add(condition)
                    groups.add(group)
                    strata.add(strata_text)
                ordinals.append(ordinal)
                numbers.append(number)
            places.append([np.array(column, np.int64) for column in (ordinals, numbers, repeats, repeated)])
        self.ids = tuple(self.numbers)
        self.group = groups.array()
        names = [*conditions.values]
        order = sorted(names, key=lambda name: _place(known_conditions, name))[:_MOST_CONDITIONS]
        self.conditions = tuple(map(clean, order))
        recoded = np.array([min(_place(order, name), len(order) - 1) for name in names], np.uint8)
        self.condition = recoded[conditions.array()] if names else np.zeros(0, np.uint8)
        self._examples = _Members(self.group)
        self._questions = _Members(_questions(self.ids) * np.int64(len(order) or 1) + self.condition)
        self.places = tuple(Places(self._placed(*columns[:2]), *columns[2:]) for columns in places)
        self.strata = _strata_columns([*map(_strata_of, strata.values)], strata.array())

    def __len__(self) -> int:
        return len(self.ids)

    def number_of(self, id_: str) -> int:
        """Return the number of an instance, or of the one that it repeats, by its id. Raises KeyError."""
        number = self.numbers.get(id_)
        return self.numbers[split_repeat(id_)[0]] if number is None else number

    def siblings(self, number: int) -> list[int]:
        """Return the numbers of the instances of the same example, the instance itself included."""
        return self._examples.of(number)

    def repeats(self, number: int) -> list[int]:
        """Return the numbers of the page's other instances that ask the same question under the same condition."""
        return [other for other in self._questions.of(number) if other != number]

    def _placed(self, ordinals: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        placed = np.full(len(self.ids), -1, np.int64)
        placed[numbers] = ordinals
        return placed


class _Members:
    """The instances of each value of a column."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values, self._order = values, np.argsort(values, kind="stable")
        self._sorted = values[self._order]

    def of(self, number: int) -> list[int]:
        """Return the numbers of the instances with the same value as this one, in order."""
        value = self._values[number]
        first, last = (np.searchsorted(self._sorted, value, side) for side in ("left", "right"))
        return [int(other) for other in self._order[first:last]]


class _Codes:
    """Values by number, in order of first appearance, and the number for each instance."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.of_instances = array("L")

    def add(self, value: str) -> None:
        """Add the value of the next instance."""
        self.of_instances.append(self.values.setdefault(value, len(self.values)))

    def array(self) -> NDArray[np.uint32]:
        """Return the numbers."""
        return np.array(self.of_instances, np.uint32)


def _text(value: object) -> str:
    return value if isinstance(value, str) and value.isascii() else displayable(value)


def _questions(ids: Sequence[str]) -> NDArray[np.uint32]:
    """Return the number of the question of each id, which repetitions of an example share."""
    if not any("~" in id_ for id_ in ids):
        return np.arange(len(ids), dtype=np.uint32)
    codes = _Codes()
    for id_ in ids:
        codes.add(example_of(id_))
    return codes.array()


def _strata_columns(strata: Sequence[Mapping[str, str]], places: NDArray[np.uint32]) -> dict[str, StratumColumn]:
    """Return the columns of strata, of which each instance has those at its place."""
    columns = {}
    for key in sorted({key for values in strata for key in values}):
        codes: dict[str, int] = {}
        numbers = [codes.setdefault(values[key], len(codes) + 1) if key in values else 0 for values in strata]
        columns[clean(key)] = StratumColumn(values=tuple(codes), codes=column(np.array(numbers)[places], "u4"))
    return columns


def _strata_of(text: str) -> dict[str, str]:
    """Return the strata of stored JSON, which is not verified here; values are ready for display."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return {}
    items = value.items() if isinstance(value, dict) else ()
    return {str(key): clean(str(item)) for key, item in items if key != REPEAT}


def _place(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)
