"""The review of a log's questions: no text can be corrected, since nothing of a log is rewritten."""

from __future__ import annotations

from benchmarks.review_guide import ReviewField, ReviewGuide, Row

_NAMES = {"image": "The images alone answer", "text": "The passages alone answer"}


class RetrievalGuide(ReviewGuide):
    """Reviewers check what the readers read."""

    checks = (
        "Images: do they give the answer that was read in them?",
        "Passages: do they give the answer that was read in them?",
        "Conflict: are the two answers really different where they should differ?",
        "Question: does it have one answer?",
    )
    reasons = ("image misread", "passage misread", "no conflict", "question")

    def fields(self, row: Row) -> tuple[ReviewField, ...]:
        fields = [
            ReviewField("condition", "Condition", row["condition"], False),
            ReviewField("question", "Question", row["question"], False),
        ]
        fields += [
            ReviewField(f"passages.{i}", f"Passage {i + 1}", passage, False, row["references"].get("text", ""))
            for i, passage in enumerate(row["passages"])
        ]
        fields += [
            ReviewField(f"references.{source}", _NAMES[source], answer, False)
            for source, answer in row["references"].items()
            if source in _NAMES
        ]
        return tuple(fields)

    def example(self, row: Row) -> str:
        return str(row["group"])
