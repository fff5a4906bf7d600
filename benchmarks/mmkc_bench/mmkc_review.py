"""The review of MMKC-Bench's examples (section 4.4): the images, the edited texts, the questions and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.mmkc_bench.mmkc_example import Example
from benchmarks.mmkc_bench.sources.altered_text import altered_sentence
from benchmarks.review_guide import ReviewField, ReviewGuide, ReviewMedium, Row
from benchmarks.vocabulary import Media

_CAPTIONS = ("the question's image", "evidence, first image", "evidence, second image")


class MMKCGuide(ReviewGuide):
    """The paper verifies images, counterfactual edits, questions and answers by hand; it prints no instructions."""

    checks = (
        "Images: do all of them show the entity, the action or the logo?",
        "Edited texts: does each contradict the true text in what the question asks about, and in nothing else? Do the two edits "
        "differ from each other?",
        "Question: is it clear, and can it be answered from the images or the texts?",
        "Answers: is the true one right, does each edited text give its own, and is the other option none of these?",
    )
    checks_from = "MMKC-Bench, section 4.4; the wording is ours"
    reasons = ("image", "edited text", "question", "answers")

    def fields(self, row: Row) -> tuple[ReviewField, ...]:
        fields = [
            ReviewField("kind", "Type", row["kind"], False),
            ReviewField("instance", "Entity", row["instance"], False),
            ReviewField("right", "True text", row["right"]),
            ReviewField("wrong.0", "Edited text 1", row["wrong"][0], emphasis=row["sentences"][0]),
            ReviewField("wrong.1", "Edited text 2", row["wrong"][1]),
            ReviewField("open_query", "Open question", row["open_query"]),
            ReviewField("mcq_query", "Multiple choice", row["mcq_query"]),
            ReviewField("own_answer", "True answer", row["own_answer"]),
            ReviewField("counter_answers.0", "Answer of edited text 1", row["counter_answers"][0]),
            ReviewField("counter_answers.1", "Answer of edited text 2", row["counter_answers"][1]),
            ReviewField("distractor", "Other option", row["distractor"]),
        ]
        return tuple(field for field in fields if field.text)

    def media(self, row: Row) -> tuple[ReviewMedium, ...]:
        images = [Media(image["sha256"], image["suffix"]) for image in row["images"]]
        if not images:
            return (ReviewMedium("images", None, "the build has no images of this example"),)
        return tuple(ReviewMedium(caption, image) for caption, image in zip(_CAPTIONS, images, strict=False))

    def complete(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [_completed(row) for row in rows]


def _completed(row: dict[str, Any]) -> dict[str, Any]:
    if any(row["sentences"]):  # the one sentence that the first edit alters follows from the texts
        row = row | {"sentences": list(altered_sentence(row["wrong"][0], row["right"]))}
    return row | {"id": Example.from_row(row).id}
