"""Counts of what sharing work saved: prompt tokens and images that a run needed, and those that it computed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from mlx_backends.core.distinct_count import Changes, DistinctCount

SEEN_BYTES = 1 << 23
"""The most bytes of :meth:`Seen.to_bytes`."""


def shared_prefix_length(content: Any, other: Any) -> int:
    """Return the number of first positions that two prompts' ``content`` share."""
    import numpy as np

    length = min(len(content), len(other))
    is_different = content[:length] != other[:length]
    return int(np.argmax(is_different)) if is_different.any() else length


@dataclass
class Seen:
    """The distinct prefixes and images of prompts: a prompt's token is distinct if the prefix that it ends is."""

    tokens: DistinctCount = field(default_factory=DistinctCount)
    images: DistinctCount = field(default_factory=DistinctCount)

    def counts(self) -> dict[str, int]:
        """Return the numbers of both."""
        return {"tokens": self.tokens.count(), "images": self.images.count()}

    def merged(self, other: Seen) -> Seen:
        """Return what is in this one or in the ``other``."""
        return Seen(self.tokens.merged(other.tokens), self.images.merged(other.images))

    def take_changes(self, known: Seen) -> tuple[Changes, Changes]:
        """Return what is not in ``known``, and add it there."""
        return self.tokens.take_changes(known.tokens), self.images.take_changes(known.images)

    def apply(self, changes: tuple[Changes, Changes]) -> None:
        """Add what another has."""
        self.tokens.apply(changes[0])
        self.images.apply(changes[1])

    def to_bytes(self) -> bytes:
        """Return a form for a file."""
        return zlib.compress(self.tokens.to_bytes() + self.images.to_bytes(), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return what a file holds. Raises ValueError for other bytes."""
        unpacker = zlib.decompressobj()
        try:
            bits = unpacker.decompress(data, SEEN_BYTES)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        half = len(bits) // 2
        return cls(DistinctCount.from_bytes(bits[:half]), DistinctCount.from_bytes(bits[half:]))


@dataclass
class Reuse:
    """Counts since the answering began, or began again.

    Attributes:
        answers: The answers that are counted, without errors.
        prompts: The prompts that were read, of ``prompt_tokens`` in all. A prompt that is read again counts again.
        computed_tokens: The prompt tokens that the language model computed.
        images: How often prompts showed an image, or a set of images that the processor does not keep apart.
        encoded: How often the vision encoder worked.
        from_disk: How many features of images came from the disk.
        seen: The distinct ones of the tokens and images: what perfect sharing would compute.
    """

    answers: int = 0
    prompts: int = 0
    prompt_tokens: int = 0
    computed_tokens: int = 0
    images: int = 0
    encoded: int = 0
    from_disk: int = 0
    seen: Seen = field(default_factory=Seen, repr=False)

    def read(self, prefixes: Any, images: Sequence[str]) -> None:
        """Count a prompt by the hashes of its prefixes, and the sha256 of each of its images."""
        import numpy as np

        self.prompts += 1
        self.prompt_tokens += len(prefixes)
        self.images += len(images)
        self.seen.tokens.add(prefixes)
        self.seen.images.add(np.array([int(image[:16], 16) for image in images], np.uint64))

    def read_alone(self, prefixes: Any, images: Sequence[str]) -> None:
        """Count a prompt that is computed without what others share with it."""
        self.read(prefixes, images)
        self.computed_tokens += len(prefixes)
        self.encoded += len(images)

    @property
    def distinct_tokens(self) -> int:
        return self.seen.tokens.count()

    @property
    def distinct_images(self) -> int:
        return self.seen.images.count()

    def sums(self) -> dict[str, int]:
        """Return by name the counts that can be added to those of others, unlike the distinct ones."""
        return {name: value for name, value in vars(self).items() if name != "seen"}

    def counts(self) -> dict[str, int]:
        """Return all counts by name."""
        return {**self.sums(), "distinct_tokens": self.distinct_tokens, "distinct_images": self.distinct_images}


NO_WORK = {
    **{item.name: 0 for item in fields(Reuse) if item.name != "seen"},
    "distinct_tokens": 0,
    "distinct_images": 0,
}
"""The :meth:`Reuse.counts` of an engine that counts nothing."""
