"""The review of Contra4's samples (Table 1, Appendix K): the question and its answer, with the media and their captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.contra4.contra4_constants import LETTERS
from benchmarks.contra4.contra4_sample import Contra4Sample
from benchmarks.review_guide import ReviewField, ReviewGuide, ReviewMedium, Row
from benchmarks.rows.reader_types import RowProblem


class Contra4Guide(ReviewGuide):
    """The paper counts questions that apply to no choice (N/A) and to more than one (O/A); it prints no instructions."""

    checks = (
        "Look at and listen to the media themselves; the captions alone are not enough.",
        "Question: does it apply to the scenes, and to exactly one of them?",
        "Answer: is it the scene that the question asks for?",
    )
    checks_from = "Contra4, Table 1 and Appendix K; the wording is ours"
    reasons = ("applies to none (N/A)", "applies to several (O/A)", "another scene is right", "medium")

    def fields(self, row: Row) -> tuple[ReviewField, ...]:
        return (
            ReviewField("question", "Question", row["question"]),
            ReviewField("gold", "Answer", row["gold"]),
            *(
                ReviewField(f"scenes.{number}.caption", f"Scene {letter}, caption", scene["caption"], False)
                for number, (letter, scene) in enumerate(zip(LETTERS, row["scenes"], strict=False))
            ),
        )

    def media(self, row: Row) -> tuple[ReviewMedium, ...]:
        return tuple(
            ReviewMedium(
                f"Scene {letter}, {scene.modality.replace('point_cloud', '3D model')}", scene.media, scene.problem
            )
            for letter, scene in zip(LETTERS, Contra4Sample.from_row(row).scenes, strict=False)
        )

    def complete(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [_completed(row) for row in rows]


def _completed(row: dict[str, Any]) -> dict[str, Any]:
    letter = row["gold"].strip().upper().removeprefix("SCENE").strip().removesuffix(".")
    if len(letter) != 1 or letter not in LETTERS[: len(row["scenes"])]:
        raise RowProblem(f"the answer is not one of {', '.join(LETTERS[: len(row['scenes'])])}")
    row = row | {"answer": LETTERS.index(letter), "gold": letter, "question": " ".join(row["question"].split())}
    sample = Contra4Sample.from_row(row)
    return row | {"id": sample.id, "row_id": row["row_id"]}
