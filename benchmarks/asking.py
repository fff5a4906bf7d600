"""What a construction asks, handed to it ready; a benchmark never makes one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from benchmarks.base import Generation, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TextModel(ABC):
    """Answers requests about text. ``name`` says which model it is, for a build's manifest."""

    name: str

    @abstractmethod
    def ask(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """The generations, each as soon as it is there, in any order; several are under way at once where that is possible.

        Replies are kept by content, so that asking again after an interrupt costs nothing for what was answered. A request
        that fails gives a Generation with an error. Raises RashomonError where no more can be asked at all.
        """


class Embedder(ABC):
    """Gives texts as vectors whose cosine says how near they are in meaning. ``name`` says which one it is."""

    name: str

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The texts as vectors of length 1, shape (texts, dimensions)."""
