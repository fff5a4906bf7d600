"""The review of CLASH's samples (Appendix G): the conflicting caption, the question and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.clash.clash_sample import ClashSample
from benchmarks.review_guide import ReviewField, ReviewGuide, ReviewMedium, Row
from benchmarks.vocabulary import Media


class ClashGuide(ReviewGuide):
    """The instructions to annotators of Appendix G, shortened; the reasons are those of Figure 10, and the image."""

    checks = (
        "Conflicting caption: did it change only one clear attribute or object (the change is marked)? Is the change plausible "
        "and objective (e.g., color, number, shape, material, texture)?",
        "Question: is it clear and unambiguous? Does it focus on the changed attribute or object? Can it be answered using the "
        "given options?",
        "Answers: are they distinct and not synonyms? Are they objective and visual (e.g., colors, numbers, objects)?",
    )
    checks_from = "CLASH, Appendix G"
    reasons = ("conflicting caption", "question", "answers", "image")

    def fields(self, row: Row) -> tuple[ReviewField, ...]:
        return (
            ReviewField(
                "original_caption", "Original caption", row["original_caption"], False, emphasis=row["changed_original"]
            ),
            ReviewField(
                "conflicting_caption",
                "Conflicting caption",
                row["conflicting_caption"],
                emphasis=row["changed_conflicting"],
            ),
            ReviewField("changed_original", "Changed", row["changed_original"]),
            ReviewField("changed_conflicting", "Changed to", row["changed_conflicting"]),
            ReviewField("change_type", "Kind of change", row["change_type"], False),
            ReviewField("question", "Question", row["question"]),
            ReviewField("image_only", "Answer of the image", row["image_only"]),
            ReviewField("text_only", "Answer of the caption", row["text_only"]),
            ReviewField("distractor", "Distractor", row["distractor"]),
        )

    def media(self, row: Row) -> tuple[ReviewMedium, ...]:
        image = row["image"]
        if image is None:
            return (ReviewMedium("image", None, "the build has no image of this sample"),)
        return (ReviewMedium("image", Media(image["sha256"], image["suffix"])),)

    def complete(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"id": ClashSample.from_row(row).id} for row in rows]
