"""Example: three images of one thing, a question about it, and two texts that give a wrong answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.mmkc_bench.mmkc_constants import Dataset, dataset_of
from benchmarks.vocabulary import Media, digest

Pair = tuple[str, str]

_PAIRS = ("wrong", "counter_answers", "counter_letters", "sentences")


@dataclass(frozen=True, slots=True)
class Example:
    """One of the paper's instances: a row of ER or VS, or one fact of a row of people or logos.

    ``paths`` and ``images`` are the question's image and the two of the external evidence; ``images`` is empty only if
    the example is read without them. ``wrong`` holds the two conflicting texts, ``right`` the true one. Anything a
    source neither states nor implies is empty: the true text, ``own_answer`` and its letter, the counter answers in
    words. ``sentences`` are the one sentence that the first wrong text alters and its original, or empty.
    ``constructed_options`` marks a row that had no multiple choice and got one here. ``control`` marks the example that
    asks about the true text, which the three facts of a row share. ``entity_type`` is the kind of entity, such as building, as
    far as the source names it. The fields are those of a row of the build.
    """

    kind: str
    instance: str
    paths: tuple[str, ...]
    images: tuple[Media, ...]
    open_query: str
    mcq_query: str
    wrong: Pair
    right: str
    own_answer: str
    counter_answers: Pair
    distractor: str
    own_letter: str
    counter_letters: Pair
    distractor_letter: str
    sentences: Pair
    constructed_options: bool
    control: bool
    entity_type: str = ""

    @property
    def dataset(self) -> Dataset:
        return dataset_of(self.kind)

    @property
    def id(self) -> str:
        """An id derived from the row's own content: the same on every machine, and equal for a repeated row.

        It excludes constructed options and the images' bytes, since published answers refer to an example without them.
        """
        options = "" if self.constructed_options else self.mcq_query
        content = [self.kind, self.instance, list(self.paths), self.open_query, options, list(self.wrong)]
        return f"mmkc-{digest(content)[:16]}"

    def to_row(self) -> dict[str, Any]:
        """Return the example as a JSON object with the names of these fields; the inverse of :meth:`from_row`."""
        row = asdict(self)
        row["images"] = [{"sha256": image.sha256, "suffix": image.suffix} for image in self.images]
        if not self.entity_type:
            del row["entity_type"]  # as in builds of before it existed, so that their runs resume
        return {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Example:
        """Return the example of a row that :meth:`to_row` wrote."""
        pairs: dict[str, Any] = {name: (row[name][0], row[name][1]) for name in _PAIRS}
        images = tuple(Media(image["sha256"], image["suffix"]) for image in row["images"])
        rest = {name: row[name] for name in cls.__slots__ if name in row and name not in (*_PAIRS, "paths", "images")}
        return cls(paths=tuple(row["paths"]), images=images, **pairs, **rest)
