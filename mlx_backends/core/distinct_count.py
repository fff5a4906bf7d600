"""Number of distinct hashes, counted in constant memory."""

from __future__ import annotations

import math
from typing import Any, Self

POSITIONS = 1 << 24
"""The bits of a counter, which take 2 MiB."""

_BYTES = POSITIONS // 8
_SHIFT = 64 - 24
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

Changes = tuple[Any, Any]
"""The words of a counter's bits that have changed: their places, and the words."""


class DistinctCount:
    """Counter of distinct 64-bit hashes (linear counting: Whang, Vander-Zanden and Taylor, 1990).

    Each hash sets a bit, and the count follows from how many bits are set. Its standard error is 0.02% up to 30 million
    distinct hashes and 0.1% up to 100 million. Counters can be merged, so that several processes count together.
    """

    def __init__(self) -> None:
        import numpy as np

        self._words = np.zeros(POSITIONS // 64, np.uint64)

    def add(self, hashes: Any) -> None:
        """Count an array of uint64."""
        import numpy as np

        places = hashes >> np.uint64(_SHIFT)
        np.bitwise_or.at(self._words, places >> np.uint64(6), np.uint64(1) << (places & np.uint64(63)))

    def count(self) -> int:
        """Return the number of distinct hashes."""
        import numpy as np

        unset = POSITIONS - int(np.bitwise_count(self._words).sum(dtype=np.int64))
        return round(POSITIONS * math.log(POSITIONS / max(1, unset)))

    def merged(self, other: DistinctCount) -> DistinctCount:
        """Return the counter of what this one or the ``other`` has counted."""
        both = DistinctCount()
        both._words = self._words | other._words
        return both

    def take_changes(self, known: DistinctCount) -> Changes:
        """Return what is counted here and not in ``known``, and count it there too."""
        import numpy as np

        places = np.flatnonzero(self._words != known._words).astype(np.uint32)
        known.apply((places, self._words[places]))
        return places, self._words[places]

    def apply(self, changes: Changes) -> None:
        """Count what another counter has."""
        places, words = changes
        self._words[places] |= words

    def to_bytes(self) -> bytes:
        """Return the bits."""
        return bytes(self._words.astype("<u8").tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the counter with these bits. Raises ValueError if they are too few or too many."""
        import numpy as np

        if len(data) != _BYTES:
            raise ValueError(f"it has {len(data)} bytes, not {_BYTES}")
        counter = cls()
        counter._words = np.frombuffer(data, "<u8").astype(np.uint64)
        return counter


def prefix_hashes(content: Any) -> Any:
    """Return a hash of each prefix of ``content``, an array of int64: one for each position, as an array of uint64."""
    import numpy as np

    numbers = np.arange(1, len(content) + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    return _mixed(np.cumsum(_mixed(_mixed(content.astype(np.int64).view(np.uint64)) ^ numbers), dtype=np.uint64))


def _mixed(values: Any) -> Any:
    """Return uint64 hashes of uint64 values (the finaliser of SplitMix64)."""
    import numpy as np

    values = (values ^ (values >> np.uint64(30))) * np.uint64(_FIRST)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(_SECOND)
    return values ^ (values >> np.uint64(31))
