"""The review of CrossCheck-Bench's samples: adversarial validation and levels (section "Quality Verification", Appendix E)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS, LEVELS, TASKS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.review_guide import ReviewField, ReviewGuide, ReviewMedium, Row
from benchmarks.rows.reader_types import RowProblem

LEVEL_VOTES = "level_votes"
"""The key of a row with the models' votes on its level, in a build with voters; "" is a vote for none."""


class CrossCheckGuide(ReviewGuide):
    """Reviewers assess ambiguity and shortcuts, and verify integrity, capabilities and realism; the wording is ours."""

    checks = (
        "Ambiguity: does the question have exactly one right answer, the one given?",
        "Shortcuts: is it impossible to answer without the pictures, or from the wording alone?",
        "Realism: could the contradiction, if there is one, occur in a real product listing?",
        "Level: is it L1 (perception), L2 (integration) or L3 (reasoning)?",
    )
    checks_from = 'CrossCheck-Bench, "Quality Verification" and Appendix E; the wording is ours'
    reasons = ("ambiguous", "shortcut", "wrong answer", "unrealistic", "picture")
    grades = tuple(LEVELS)

    def fields(self, row: Row) -> tuple[ReviewField, ...]:
        fields = [
            ReviewField("task", "Task", row["task"], False),
            ReviewField("question", "Question", row["question"]),
            ReviewField("text", "Text", row["text"]),
            *(
                ReviewField(f"options.{number}", f"Option {letter}", option)
                for number, (letter, option) in enumerate(zip(LETTERS, row["options"], strict=False))
            ),
            ReviewField("answer", "Answer", row["answer"]),
            ReviewField("conflict_type", "Contradiction", row["conflict_type"], False),
            ReviewField("reasoning", "Reasoning", row["reasoning"]),
            ReviewField(
                LEVEL_VOTES, "Levels by models", ", ".join(vote or "none" for vote in row.get(LEVEL_VOTES, ())), False
            ),
        ]
        return tuple(field for field in fields if field.text)

    def media(self, row: Row) -> tuple[ReviewMedium, ...]:
        frames = CrossCheckSample.from_row(row).frames
        return tuple(ReviewMedium(f"picture {number}", frame) for number, frame in enumerate(frames, 1))

    def grade(self, row: Row) -> str:
        """Return the level that most of the models voted for, or else that of the task."""
        votes: list[str] = row.get(LEVEL_VOTES, [])
        for level, count in Counter(votes).items():
            if level in LEVELS and 2 * count > len(votes):
                return level
        return TASKS[row["task"]].level if row["task"] in TASKS else ""

    def complete(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in rows:
            if row["options"] and row["answer"] not in LETTERS[: len(row["options"])]:
                raise RowProblem("the answer is not the letter of one of the options")
        return [row | {"id": CrossCheckSample.from_row(row).id} for row in rows]
