"""A second judge by rule, for measurements of judging again."""

from __future__ import annotations

from benchmarks.vocabulary import Record


class FirstWord:
    """IMAGE where an answer begins as the image's value does, else NEITHER."""

    name = "first-word"
    version = "1"
    benchmarks = ("cmc-bench",)

    def label(self, record: Record) -> str | None:
        """Return the label of ``record.answer``."""
        words = record.answer.text.split() if record.answer else []
        if not words:
            return None
        return "IMAGE" if any(words[0] in value for value in record.instance.references.get("image", ())) else "NEITHER"
