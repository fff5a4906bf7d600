"""Reading yes and no in answers, ours and POPE's own way."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.text.answer_text import visible_answer
from benchmarks.text.yes_no_answer import parse_official, read_yes_no
from benchmarks.vocabulary import Generation, Instance, Record, Text, Verdict
from judges.yes_no_judge import YesNo
from mlx_backends.policy_engine import ABSTAIN


def verdict(answer: str, right: str = "yes") -> Verdict:
    instance = Instance("i", "g", "random", "Is there a dog in the image?", (Text("?"),), {"answer": (right,)})
    return YesNo().judge(Record(instance, (Generation("i#0", answer, "stop"),)))


@pytest.mark.parametrize(
    ("answer", "word"),
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
        ("1. Yes", "yes"),
        ("1) no", "no"),
        ("Yeah", "yes"),
        ("Yep, there is.", "yes"),
        ("nope", "no"),
        ("Nah.", "no"),
        ("\\boxed{yes}", "yes"),
        ("<answer>no</answer>", "no"),
        ("Let me look. Yes, there is a dog.", "yes"),
        ("Let me look at the picture. No.", "no"),
        ("Sure! Yes.", "yes"),
        ("Okay.\nNo, there isn't.", "no"),
        ("I looked at the picture closely. The answer is no.", "no"),
        ("Is there a dog in the image? No", "no"),
        ("Is there a dog in the image? There is a dog.", "yes"),
        ("Question: Is there a dog? Answer: Yes", "yes"),
        ("Q: Is there no dog here?\nA: yes", "yes"),
        ("No doubt, there is a dog.", "yes"),
        ("Without a doubt, yes.", "yes"),
        ("There is no doubt that there is a dog.", "yes"),
        ("Not only a dog is there: yes, two.", "yes"),
        ("There is nothing but a dog.", "yes"),
        ("In the image, there is a snowboard.", "yes"),
        ("You can see a chair.", "yes"),
        ("There appears to be a chair.", "yes"),
        ("A dog is visible.", "yes"),
        ("Of course there is a dog.", "yes"),
        ("The dog is clearly visible.", "yes"),
        ("The image contains neither.", "no"),
        ("There is hardly any.", "no"),
        ("None.", "no"),
        ("Nothing.", "no"),
        ("The image lacks a chair.", "no"),
        ("A chair is absent.", "no"),
        ("A dog cannot be seen.", "no"),
        ("It doesn't appear so.", "no"),
        ("I don't think so.", "no"),
        ("Not that I can see.", "no"),
        ("I could not see a dog.", "no"),
        ("I was unable to find a dog.", "no"),
        ("I am sorry, but there is no dog in the image.", "no"),
        ("I'm sure there is no dog.", "no"),
        ("It is clear that there is no dog.", "no"),
        ("I can tell that there are no dogs.", "no"),
        ("I cannot see a dog in the image.", "no"),
        ("I do not see an image of a dog, so no.", "no"),
        ("There is no dog in the picture.", "no"),
        ("No, it cannot be determined.", "no"),
        ("No picture of a dog hangs there, so no.", "no"),
    ],
)
def test_yes_and_no_are_read(answer: str, word: str) -> None:
    assert read_yes_no(answer)[0] == word
    other = {"yes": "no", "no": "yes"}[word]
    assert verdict(answer, word).label == "CORRECT"
    assert verdict(answer, other).label == "WRONG"
    assert verdict(answer, word).reason.startswith(f"{word}: ")


@pytest.mark.parametrize(
    "answer",
    [
        "It cannot be determined from the image.",
        "The image does not provide enough information to answer.",
        "There is not enough information.",
        "There isn't sufficient context to say.",
        "The image gives no information about that.",
        "Insufficient information",
        "I can't see the image.",
        "I cannot see any image.",
        "I am sorry, I cannot view images.",
        "I'm sorry, but I can't help with that.",
        "I do not have access to the picture.",
        "No image was provided.",
        "There is no image to look at.",
        ABSTAIN,
        "The description and the picture contradict each other.",
        "The two conflict, so I will not answer.",
        "I can't determine that.",
        "I'm unable to determine whether there is a dog.",
        "Unable to tell.",
        "It is impossible to say.",
        "It isn't possible to tell.",
        "It can not be definitively determined.",
        "It's not entirely clear from here.",
        "It's hard to tell.",
        "There is no way to know.",
        "There is no way of telling.",
        "Without more context, it is hard to say.",
        "As an AI, I cannot see images.",
        "The image isn't clear enough to determine that.",
        "There is too little light to tell.",
        "I do not really know.",
        "I cannot answer this question.",
        "The question cannot be answered.",
        "I cannot confirm that there is a dog.",
        "Not applicable.",
        "It is undetermined.",
        "There might be one, there might not.",
        "There are no signs of a dog, but there might be one.",
        "I don't know.",
        "I do not know whether there is a dog.",
        "No idea",
        "I have no clue.",
        "I'm not sure if there is a dog.",
        "It is unclear; yes perhaps.",
        "I cannot tell.",
        "I cannot tell. No.",
        "Let me look. I cannot tell. Yes.",
        "Maybe there is one.",
    ],
)
def test_an_abstention_is_neither(answer: str) -> None:
    assert read_yes_no(answer) == (None, "it is unsure")
    for right in ("yes", "no"):
        result = verdict(answer, right)
        assert (result.status, result.label, result.reason) == ("labelled", "WRONG", "neither: it is unsure")


@pytest.mark.parametrize(
    "answer",
    [
        "A dog.",
        "Snowboard",
        "A dog. No cats.",
        "It could be yes or no.",
        "Either yes or no",
        "Yes or no?",
        "Yes or no",
        "yes/no",
        "Is there a dog in the image?",
        "Nobody eats yesterday's nougat",
        "Sì",
        "N/A",
        "1.",
        "...",
        "🐕",
    ],
)
def test_answer_without_yes_or_no_is_not_correct(answer: str) -> None:
    assert read_yes_no(answer)[0] is None
    for right in ("yes", "no"):
        result = verdict(answer, right)
        assert (result.status, result.label) == ("labelled", "WRONG")
        assert result.reason.startswith("neither: ")


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
    ("answer", "word"),
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
def test_official_rule_reads_yes_unless_it_finds_no(answer: str, word: str) -> None:
    assert parse_official(answer) == word


@given(st.text())
def test_any_text_gives_a_verdict(answer: str) -> None:
    result = verdict(answer)
    assert result.status in ("labelled", "unparsed")
    assert (result.label is None) == (result.status == "unparsed")
    assert (result.status == "unparsed") == (not visible_answer(answer))
    assert parse_official(answer) in ("yes", "no")


def test_megabyte_is_read_quickly() -> None:
    start = time.process_time()
    for text in (
        "yes no " * 150_000,
        "a" * 10**6,
        "n't" * 300_000,
        ". " * 500_000,
        "not be " * 150_000,
        "no the " * 150_000,
    ):
        verdict(text)
    assert time.process_time() - start < 2
