"""Sequence whose items are made as they are read, for what is stored in files or arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

_Item = TypeVar("_Item", covariant=True)


class LazySequence(Sequence[_Item]):
    """A sequence by the method :meth:`item`; a slice of it is a list."""

    @abstractmethod
    def item(self, place: int) -> _Item:
        """Return the item at a place from 0 on."""

    @overload
    def __getitem__(self, place: int) -> _Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[_Item]: ...
    def __getitem__(self, place: int | slice) -> _Item | Sequence[_Item]:
        places = range(len(self))[place]
        return self.item(places) if isinstance(places, int) else [self.item(number) for number in places]

    def __iter__(self) -> Iterator[_Item]:
        return map(self.item, range(len(self)))
