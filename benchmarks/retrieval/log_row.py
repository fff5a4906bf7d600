"""A question of a retrieval log, with what was retrieved for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.rows.files import Loader, SkippedRow


@dataclass(frozen=True, slots=True)
class LogRow:
    """A question with its retrieved passages and images.

    ``answer`` is the right answer, empty if the log has none. ``image_answer`` and ``text_answer`` are what the images alone and
    the passages alone answer, empty if a model has yet to read them. ``trust`` is what should win, a key of ``RULES``.
    """

    source: str
    row: str
    question: str
    passages: tuple[str, ...]
    images: tuple[Loader, ...]
    answer: str = ""
    group: str = ""
    image_answer: str = ""
    text_answer: str = ""
    document: str = ""
    trust: str = ""


Reader = Callable[[str], Iterator[LogRow | SkippedRow]]
