"""What a construction asks, handed to it ready; a benchmark never makes one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from benchmarks.base import Generation, Request
from benchmarks.errors import ModelError

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


_MANY = 8
"""A model that answers none of so many requests, or more, is itself what is to be mended."""


def ask_all(model: TextModel, requests: Collection[Request]) -> dict[str, Generation]:
    """The replies to ``requests`` by their ids. Raises ModelError where the model answers none of many."""
    replies = {reply.request_id: reply for reply in model.ask(requests)} if requests else {}
    if error := mute(replies.values(), len(requests)):
        raise ModelError(
            f"{model.name} answered none of {len(requests)} requests ({error}); mend that and build again: what was answered "
            "before is not asked again."
        )
    return replies


def mute(replies: Iterable[Generation], asked: int) -> str:
    """The first error, where the ``replies`` to many requests are nothing but errors; else empty."""
    failed = [reply for reply in replies if reply.finish_reason == "error"]
    return str(failed[0].error) if len(failed) == asked >= _MANY else ""


class Embedder(ABC):
    """Gives texts as vectors whose cosine says how near they are in meaning. ``name`` says which one it is."""

    name: str

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The texts as vectors of length 1, shape (texts, dimensions)."""
