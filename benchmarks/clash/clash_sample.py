"""A sample: an image, its caption, the caption with one element changed, a question about that element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.vocabulary import Media, digest

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

    ``image_id`` identifies the image in its source and can repeat. ``image`` is None only if a sample is read
    without its image. ``change_type`` is object, attribute or spatial; ``relation`` is one of ``RELATIONS`` for a spatial
    change, else empty. ``image_only``, ``text_only`` and ``distractor`` are the three answers. ``category`` is ours
    (Appendices D and E), ``published_category`` the published field where there is one; several are joined by ``+``.
    ``rejected`` is the check that rejected a sample of a build of rejected samples, else "".
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
    rejected: str = ""

    @property
    def id(self) -> str:
        """The sample's id, derived from its content: equal on every machine, and equal for a repeated row.

        The kind of change, categories, distractor, source and image bytes are excluded: published predictions name the
        same sample without them.
        """
        content = [
            self.image_id,
            self.original_caption,
            self.conflicting_caption,
            self.question,
            self.image_only,
            self.text_only,
        ]
        return f"clash-{digest(content)[:16]}"

    def to_row(self) -> dict[str, Any]:
        """Return the sample as a JSON object with these field names; the inverse of :meth:`from_row`."""
        row: dict[str, Any] = {name: getattr(self, name) for name in _TEXTS}
        row["published_category"] = self.published_category
        if self.rejected:
            row["rejected"] = self.rejected
        row["image"] = None if self.image is None else {"sha256": self.image.sha256, "suffix": self.image.suffix}
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ClashSample:
        """Return the sample of a row that :meth:`to_row` wrote."""
        image = None if row["image"] is None else Media(row["image"]["sha256"], row["image"]["suffix"])
        published = row["published_category"]
        texts = {name: row[name] for name in _TEXTS}
        return cls(image=image, published_category=published, rejected=row.get("rejected", ""), **texts)
