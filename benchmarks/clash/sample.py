"""Sample: an image, a caption that fits it, the same caption with one element changed, a question about that element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.base import Media, digest

_TEXTS = (
    "image_id",
    "original_caption",
    "conflicting_caption",
    "question",
    "change_type",
    "image_only",
    "text_only",
    "distractor",
    "changed_original",
    "changed_conflicting",
    "category",
    "source",
    "relation",
)


@dataclass(frozen=True, slots=True)
class ClashSample:
    """One row of CLASH (section 3).

    ``image_id`` says which picture of its source it is and can repeat. ``image`` is None only where a sample is read
    without its picture. ``change_type`` is object, attribute or spatial; ``relation`` is one of ``RELATIONS`` for a spatial
    change, else empty. ``image_only``, ``text_only`` and ``distractor`` are the three answers. ``category`` is ours
    (Appendices D and E), ``published_category`` the published field where there is one; several are joined by ``+``.
    """

    image_id: str
    image: Media | None
    original_caption: str
    conflicting_caption: str
    question: str
    change_type: str
    image_only: str
    text_only: str
    distractor: str
    changed_original: str
    changed_conflicting: str
    category: str
    source: str
    relation: str = ""
    published_category: str | None = None

    @property
    def id(self) -> str:
        """Made from what is asked and about which picture: the same on every machine, and equal for a row that is repeated.

        The kind of change, categories, distractor, source and the picture's bytes stay out: published predictions name the
        same sample without them.
        """
        asked = [
            self.image_id,
            self.original_caption,
            self.conflicting_caption,
            self.question,
            self.image_only,
            self.text_only,
        ]
        return f"clash-{digest(asked)[:16]}"

    def to_row(self) -> dict[str, Any]:
        """The sample as a JSON object with these fields' names; the inverse of :meth:`from_row`."""
        row: dict[str, Any] = {name: getattr(self, name) for name in _TEXTS}
        row["published_category"] = self.published_category
        row["image"] = None if self.image is None else {"sha256": self.image.sha256, "suffix": self.image.suffix}
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ClashSample:
        """The sample of a row that :meth:`to_row` made."""
        image = None if row["image"] is None else Media(row["image"]["sha256"], row["image"]["suffix"])
        published = row["published_category"]
        return cls(image=image, published_category=published, **{name: row[name] for name in _TEXTS})
