"""Collections of 64-bit hashes that take 8 to 16 bytes an entry, for passes over more instances than memory holds."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from operator import itemgetter

_BUCKETS = 256
"""The number of parts that are sorted, or searched for duplicates, one at a time. Only one is ever unpacked."""

_AT_ONCE = 1 << 16
"""The number of hashes that are counted without parts."""


def hash64(text: str) -> int:
    """Return the first 64 bits of a text's sha256. Sorting by them is sorting by the sha256."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


class HashOrder:
    """Numbers sorted by a 64-bit hash; numbers with equal hashes keep the order in which they were added."""

    def __init__(self) -> None:
        self._hashes = [array("Q") for _ in range(_BUCKETS)]
        self._numbers = [array("Q") for _ in range(_BUCKETS)]

    def add(self, hash_: int, number: int) -> None:
        """Add a number, which is not negative."""
        bucket = hash_ >> 56
        self._hashes[bucket].append(hash_)
        self._numbers[bucket].append(number)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of hash and number, in order."""
        for hashes, numbers in zip(self._hashes, self._numbers, strict=True):
            yield from sorted(zip(hashes, numbers, strict=True), key=itemgetter(0))


class DuplicateHashes:
    """Search for texts that may occur more than once. Python's hash is used, since a hit is only a suspicion."""

    def __init__(self) -> None:
        self._hashes = [array("q") for _ in range(_BUCKETS)]

    def add(self, text: str) -> None:
        """Add a text."""
        self._hashes[hash(text) % _BUCKETS].append(hash(text))

    def repeated(self) -> set[int]:
        """Return the hashes that were added more than once."""
        repeated: set[int] = set()
        for hashes in self._hashes:
            distinct = set(hashes)
            if len(distinct) < len(hashes):
                for value in hashes:
                    if value in distinct:
                        distinct.remove(value)
                    else:
                        repeated.add(value)
        return repeated


def count_distinct(hashes: Iterable[int]) -> int:
    """Return the number of distinct hashes, holding 8 bytes of each."""
    values = array("Q", hashes)
    if len(values) <= _AT_ONCE:
        return len(set(values))
    buckets = [array("Q") for _ in range(_BUCKETS)]
    for value in values:
        buckets[value >> 56].append(value)
    return sum(len(set(bucket)) for bucket in buckets)
