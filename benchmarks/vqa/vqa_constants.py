"""The constants of OK-VQA and GQA: the condition, and the labels with their scores."""

from __future__ import annotations

from collections.abc import Mapping

CONDITION = "image"
"""The condition with the image and the question."""

OKVQA_SCORES: Mapping[str, float] = {"CORRECT": 1.0, "NEARLY": 0.9, "PARTLY": 0.6, "BARELY": 0.3, "WRONG": 0.0}
"""The values that VQA accuracy can take with ten answers: those of 4 or more, 3, 2, 1 and 0 people who gave the answer."""

GQA_SCORES: Mapping[str, float] = {"CORRECT": 1.0, "WRONG": 0.0}

ANSWERS = 10
"""The number of people's answers to a question of OK-VQA (five people's, each twice)."""
