"""Reading yes and no in answers, ours and POPE's own way."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.base import Generation, Instance, Record, Text, Verdict
from benchmarks.pope.reading import official, read_yes_no
from judges.yes_no import YesNo


def verdict(answer: str, right: str = "yes") -> Verdict:
    instance = Instance("i", "g", "random", "Is there a dog in the image?", (Text("?"),), {"answer": (right,)})
    return YesNo().judge(Record(instance, (Generation("i#0", answer, "stop"),)))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Yes", "yes"),
        ("no.", "no"),
        ("**Yes**, there is a dog.", "yes"),
        ("YES!", "yes"),
        ("Yes, but not a big one. No, wait.", "yes"),
        ("No, there is no dog in the image. Yes is wrong.", "no"),
        ("No, I am not sure of much, but there is none.", "no"),
        ("The answer is no.", "no"),
        ("Answer: Yes", "yes"),
        ("There is a dog in the image.", "yes"),
        ("There are two dogs. They do not bark.", "yes"),
        ("There is not a dog in the image.", "no"),
        ("There isn’t a dog here", "no"),
        ("There are no dogs.", "no"),
        ("I can see a dog next to the tree.", "yes"),
        ("The image does not show a dog.", "no"),
        ("I cannot see a dog.", "no"),
        ("yes\n\nno", "yes"),
    ],
)
def test_what_an_answer_says(answer: str, said: str) -> None:
    assert read_yes_no(answer)[0] == said
    other = {"yes": "no", "no": "yes"}[said]
    assert verdict(answer, said).label == "CORRECT"
    assert verdict(answer, other).label == "WRONG"
    assert verdict(answer, said).reason.startswith(f"{said}: ")


@pytest.mark.parametrize(
    "answer",
    [
        "A dog.",
        "Snowboard",
        "It could be yes or no.",
        "Either yes or no",
        "I don't know.",
        "I do not know whether there is a dog.",
        "No idea",
        "I'm not sure if there is a dog.",
        "It is unclear; yes perhaps.",
        "I cannot tell.",
        "Maybe there is one.",
        "Nobody eats yesterday's nougat",
        "...",
        "🐕",
    ],
)
def test_an_answer_that_says_neither_is_unparsed_not_wrong(answer: str) -> None:
    found = verdict(answer)
    assert (found.status, found.label) == ("unparsed", None)
    assert found.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("", "empty"), ("  \n", "empty"), ("<think>Yes, a dog</think>", "reasoning"), ("<think>Yes", "reasoning")],
)
def test_no_answer_is_unparsed(answer: str, reason: str) -> None:
    assert verdict(answer).status == "unparsed"
    assert reason in verdict(answer).reason


def test_reasoning_is_not_read() -> None:
    assert verdict("<think>No, I see nothing.</think>Yes").label == "CORRECT"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Yes", "yes"),
        ("No, there is none.", "no"),
        ("There is not a dog.", "no"),
        ("A dog.", "yes"),
        ("NO", "yes"),
        ("no!", "yes"),
        ("I have no idea", "no"),
        ("Yes. There is no cat.", "yes"),
        ("", "yes"),
    ],
)
def test_popes_own_rule_reads_a_yes_wherever_it_finds_no_no(answer: str, said: str) -> None:
    assert official(answer) == said


@given(st.text())
def test_any_text_gives_a_verdict(answer: str) -> None:
    found = verdict(answer)
    assert found.status in ("labelled", "unparsed")
    assert (found.label is None) == (found.status == "unparsed")
    assert official(answer) in ("yes", "no")


def test_a_megabyte_is_read_in_no_time() -> None:
    start = time.perf_counter()
    for text in ("yes no " * 150_000, "a" * 10**6, "n't" * 300_000, ". " * 500_000):
        verdict(text)
    assert time.perf_counter() - start < 2
