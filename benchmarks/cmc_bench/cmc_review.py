"""The review of CMC-Bench's instances: the 20% that section 3.2 reserves for manual quality checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.review_guide import ReviewField, ReviewGuide, ReviewMedium, Row
from benchmarks.vocabulary import RIGHT_VALUE, Media, digest

_SOURCES = {
    "both": "the image and the passage",
    "image": "the image alone",
    "text": "the passage alone",
    "none": "neither",
}


class CMCGuide(ReviewGuide):
    """Section 3.2 does not say what is checked; the checks are the rules of the construction."""

    checks = (
        "Image: is it readable, and does it give the answer that is stated for it?",
        "Passage: does it state the answer that is stated for it, as a fact about this question?",
        "Conflict: are the two answers really different where they should differ, and equal where they should agree?",
        "Question: does it have one answer?",
    )
    checks_from = "CMC-Bench, section 3.2; the wording is ours"
    reasons = ("image", "passage", "no conflict", "question")

    def fields(self, row: Row) -> tuple[ReviewField, ...]:
        fields = [
            ReviewField("condition", "Condition", row["condition"], False),
            ReviewField("strata.correct", "Right is", _SOURCES[row["strata"]["correct"]], False),
            ReviewField("question", "Question", row["question"]),
        ]
        if row["passage"] is not None:
            stated = row["references"].get("text", "")
            fields.append(ReviewField("passage", "Passage", row["passage"], emphasis=stated))
        names = {"image": "Answer of the image", "text": "Answer of the passage", RIGHT_VALUE: "Right answer"}
        fields += [
            ReviewField(f"references.{source}", names.get(source, f"Answer of {source}"), answer)
            for source, answer in row["references"].items()
            if "." not in source
        ]
        return tuple(fields)

    def media(self, row: Row) -> tuple[ReviewMedium, ...]:
        image = row["image"]
        return () if image is None else (ReviewMedium("image", Media(image["sha256"], image["suffix"])),)

    def example(self, row: Row) -> str:
        return str(row["group"])

    def is_reserved(self, row: Row) -> bool:
        return bool(row["strata"].get("manual_check", "yes") == "yes")

    def complete(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows under a group of their own, since they are no longer the example that the construction named."""
        content = digest(
            [{key: row[key] for key in ("condition", "question", "passage", "references")} for row in rows]
        )
        group = str(rows[0]["group"])
        corrected = f"{group}-fixed-{content[:8]}"
        return [row | {"group": corrected, "id": corrected + str(row["id"]).removeprefix(group)} for row in rows]
