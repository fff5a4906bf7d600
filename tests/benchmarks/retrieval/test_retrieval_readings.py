"""The short answer in a reply to one source alone, and what two readings amount to."""

from __future__ import annotations

import pytest

from benchmarks.retrieval.retrieval_readings import answer_of
from benchmarks.source_agreement import AGREE_ON_WRONG, UNCLEAR, Decision, decide

QUESTION = "What was the value of kale in 2015?"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("43", "43"),
        ("kale: 43", "43"),
        ("43%.", "43%"),
        ("<think>the bar says 12</think>The value of kale in 2015 is 43.", "43"),
        ("The value was about 1,204 million.", "1,204 million"),
        (
            "According to the chart, in 2015 it had gone up to 43 after several years of slow growth in the region.",
            "43",
        ),
        ("Light blue", "Light blue"),
        ("The value is **43**.", "43"),
        ("Yes, since the bar is 43.", "Yes"),
        ("No.", "No"),
        (".5", ".5"),
        ("Norway", "Norway"),
        ("kale:", ""),
        ("", ""),
        ("The passage does not mention kale.", ""),
        ("I cannot answer: the evidence does not provide it.", ""),
        ("It grew from 12 to 43 over a period that the authors of the report describe at great length here.", ""),
    ],
)
def test_the_short_answer_of_a_reply(reply: str, answer: str) -> None:
    assert answer_of(reply, QUESTION) == answer


@pytest.mark.parametrize(
    ("answer", "image", "text", "condition", "correct"),
    [
        ("43", "43", "43.0", "aligned", "both"),
        ("12,500", "12 500", "12,500", "aligned", "both"),
        ("", "$43", "€43", "undecided", "both"),
        ("43 miles", "43 km", "43 miles", "text-correct", "text"),
        ("43", "43", "12", "image-correct", "image"),
        ("43", "12", "43", "text-correct", "text"),
        ("43", "12", "13", "both-wrong", "none"),
        ("", "12", "13", "undecided", "both"),
        ("", "12", "12.0", "aligned", "both"),
    ],
)
def test_the_condition_of_two_readings(answer: str, image: str, text: str, condition: str, correct: str) -> None:
    decision = decide(answer, image, text)
    assert isinstance(decision, Decision)
    assert (decision.condition, decision.correct) == (condition, correct)


@pytest.mark.parametrize(
    ("answer", "image", "text"),
    [
        ("43", "43", "43%"),
        ("", "43", "43%"),
        ("12", "43", "43 km"),
        ("12", "12 million", "43"),
        ("blue", "navy blue", "blue"),
    ],
)
def test_nothing_is_decided_if_more_context_is_needed(answer: str, image: str, text: str) -> None:
    problem = decide(answer, image, text)
    assert isinstance(problem, str)
    assert problem.startswith(UNCLEAR)


def test_what_the_question_settles_is_decided() -> None:
    decision = decide("", "43", "43%", "What percentage of sales is kale?")
    assert isinstance(decision, Decision)
    assert decision.condition == "aligned"


def test_sources_that_agree_on_a_wrong_answer_are_no_conflict() -> None:
    assert decide("43", "12", "12") == AGREE_ON_WRONG
