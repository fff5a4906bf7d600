"""Counts of what sharing work saved: prompt tokens and images that a run needed, and those that it computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.hashed import HashSet

_RECENT = 256
"""The prompts that a new one is compared with. A run's requests come ordered by image and prefix, so no more are needed."""


def shared_prefix_length(content: Any, other: Any) -> int:
    """Return the number of first positions that two prompts' ``content`` share."""
    import numpy as np

    length = min(len(content), len(other))
    is_different = content[:length] != other[:length]
    return int(np.argmax(is_different)) if is_different.any() else length


@dataclass
class Reuse:
    """Counts since the answering began, or began again.

    Attributes:
        prompts: The prompts that were read, of ``prompt_tokens`` in all.
        distinct_tokens: Those of them that no earlier prompt shared: what perfect sharing would compute.
        computed_tokens: The prompt tokens that the language model computed.
        images: How often prompts showed an image, or a set of images that the processor does not keep apart.
        distinct_images: How many different ones there are.
        encoded: How often the vision encoder worked.
        from_disk: How many features of images came from the disk.
    """

    prompts: int = 0
    prompt_tokens: int = 0
    distinct_tokens: int = 0
    computed_tokens: int = 0
    images: int = 0
    distinct_images: int = 0
    encoded: int = 0
    from_disk: int = 0
    _recent: deque[Any] = field(default_factory=lambda: deque(maxlen=_RECENT), repr=False)
    _images: HashSet = field(default_factory=HashSet, repr=False)

    def read(self, content: Any, images: Sequence[str]) -> None:
        """Count a prompt by its ``content``, and the sha256 of each of its images."""
        shared = max((shared_prefix_length(content, other) for other in self._recent), default=0)
        self._recent.append(content)
        self.prompts += 1
        self.prompt_tokens += len(content)
        self.distinct_tokens += len(content) - shared
        self.images += len(images)
        for image in images:
            self._images.add(int(image[:16], 16))
        self.distinct_images = len(self._images)

    def counts(self) -> dict[str, int]:
        """Return the counts by name."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}
