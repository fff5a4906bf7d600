"""Interfaces of the models that a construction uses; the application passes them in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from benchmarks.errors import NoAnswerError
from benchmarks.vocabulary import Generation, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TextModel(ABC):
    """A model that answers text requests. ``name`` identifies it in a build's manifest."""

    name: str

    @abstractmethod
    def generate(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Yield a generation for each request as soon as it is available, in any order; requests may run concurrently.

        Replies are cached by the content of their request, so repeating a request after an interruption costs nothing. A
        failed request yields a Generation with an error. Raises RashomonError if no more requests can be sent at all.
        """


_MIN_FAILURES = 8
"""The number of requests from which failures of all of them count as a failure of the model."""


def generate_all(model: TextModel, requests: Collection[Request]) -> dict[str, Generation]:
    """Return the replies to ``requests`` by request id. Raises NoAnswerError if the model answers none of many requests."""
    replies = {reply.request_id: reply for reply in model.generate(requests)} if requests else {}
    if error := common_failure(replies.values(), len(requests)):
        raise NoAnswerError(
            f"{model.name} answered none of {len(requests)} requests ({error}). Fix this and build again; earlier answers are "
            "reused."
        )
    return replies


def common_failure(replies: Iterable[Generation], n_requests: int) -> str:
    """Return the first error if all of many requests failed, else an empty string."""
    failed = [reply for reply in replies if reply.finish_reason == "error"]
    return str(failed[0].error) if len(failed) == n_requests >= _MIN_FAILURES else ""


class Embedder(ABC):
    """A model that embeds texts as vectors whose cosine measures similarity. ``name`` identifies it."""

    name: str

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the texts as unit vectors, shape (texts, dimensions)."""
