"""``parse_choice`` and ``official``: the scene that a reply chooses, and the published evaluation's reading."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.contra4.contra4_parse_answer import parse_choice
from benchmarks.vocabulary import Generation, Instance, Record, Verdict
from judges.judge_registry import get_judge


def verdict(judge: str, reply: str, answer: str = "B", gold: str = "", options: str = "ABC") -> Verdict:
    references = {"answer": (answer,), "gold": (gold or answer,), "options": tuple(options)}
    instance = Instance("one/media", "one", "media", "Which scene is louder?", (), references)
    return get_judge(judge).judge(Record(instance, (Generation("one/media#0", reply, "stop"),)))


@pytest.mark.parametrize(
    "reply",
    [
        "Scene B",
        "B",
        "b.",
        "(B)",
        "**Scene B**",
        "the second",
        "The second scene.",
        "Second scene",
        "Option 2",
        "2",
        "B: the city",
        "B because it is louder than A",
        "Scene B. Scene B is louder than Scene A.",
        "Scene B, since Scene A is calm and Scene C is a room",
        "The answer is Scene B, not Scene A",
        "Answer: B",
        "The correct answer is:\n\nScene B",
        "Scene A has trees, Scene B a city. Therefore the answer is B.",
        "not Scene A but Scene B",
        "A scene with a dog, so Scene B",
        "I think scene b is it",
        "First, I look at all of them. Scene B.",
        "<think>Scene A? Or Scene C?</think>Scene B",
    ],
)
def test_reply_with_one_scene_is_a_choice(reply: str) -> None:
    assert verdict("choice", reply).label == "CORRECT"
    assert verdict("choice", reply, answer="C").label == "INCORRECT"


@pytest.mark.parametrize(
    "reply",
    [
        "Scene A or Scene B",
        "Scene A, Scene B",
        "A, B",
        "A or B",
        "Answer: Scene A and Scene B",
        "Scene A is calm. Scene B is loud.",
        "The first one is calm, while the second one is not",
        "Both scenes",
        "According to the scenes, a red car",
        "Answer",
        "A red car",
        "the scene a man is in",
        "not Scene A",
        "Scene D",
        "None of them",
        "Another one",
        "",
        "<think>Scene B",
    ],
)
def test_hedge_or_missing_choice_is_unparsed(reply: str) -> None:
    result = verdict("choice", reply)
    assert (result.status, result.label) == ("unparsed", None)
    assert result.reason


def test_official_checks_for_the_gold_string() -> None:
    assert verdict("official", "Answer: it cannot be told", answer="A").label == "CORRECT"
    assert verdict("official", "Scene A or Scene B", answer="A").label == "CORRECT"
    assert verdict("official", "scene b").label == "INCORRECT"
    # Validation rows are answered "Scene B": a letter alone is then never right.
    assert verdict("official", "B", gold="Scene B").label == "INCORRECT"
    assert verdict("official", "It is Scene B.", gold="Scene B").label == "CORRECT"
    assert verdict("official", " ").status == "unparsed"


@given(st.text(st.sampled_from("ABD abcscenothr1st.,:()[]*\n'’<>/"), max_size=60))
def test_any_choice_is_an_option_with_a_reason(reply: str) -> None:
    scene, why = parse_choice(reply, "ABC")
    assert why
    assert scene is None or scene in "ABC"


def test_long_reply_takes_linear_time() -> None:
    began = time.process_time()
    for piece in ("Scene A not ", "((((", "the first ", "answer is answer is ", "not a b c "):
        parse_choice(piece * 20_000, "ABCD")
    assert time.process_time() - began < 5
