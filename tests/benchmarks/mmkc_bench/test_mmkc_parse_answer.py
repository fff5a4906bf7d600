"""The option that an answer chooses, strictly and as the published code reads it, and its own-answer label."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mmkc_bench.mmkc_parse_answer import (
    chosen_letter,
    is_counter,
    label_answer,
    label_of_letters,
    official_letter,
)

# --- strict letters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("A", "A"),
        ("b", "B"),
        (" (C) ", "C"),
        ("**D**", "D"),
        ("[b].", "B"),
        ("`A`", "A"),
        ("B. 1972", "B"),
        ("C) a red one", "C"),
        ("(D) Albert", "D"),
        ("D: because of the text", "D"),
        ("Looking at the image.\nB. 1972", "B"),
        ("The answer is C", "C"),
        ("The answer is C.", "C"),
        ("Answer: B", "B"),
        ("The correct answer is **B. 1972**", "B"),
        ("the correct option is (b)", "B"),
        ("Option D, as the document says", "D"),
        ("I choose B because it fits", "B"),
        ("It must be 1972, so (B).", "B"),
        ("It is C.", "C"),
        ("(A), and again (A)", "A"),
        ("B 1972", "B"),
        ("C, as it says", "C"),
        ("A, since it is red", "A"),
        ("A 1972", "A"),
        ("A is correct", "A"),
        ("D is what the document says", "D"),
        ("D - blue", "D"),
        ("The answer is \\boxed{B}", "B"),
        ("<answer>C</answer>", "C"),
        ("It may be red or blue. " * 200 + "\nAnswer: B", "B"),
        ("The answer is C. Option D is wrong: (D)", "C"),
    ],
)
def test_option_letter_is_read(answer: str, chosen: str) -> None:
    assert chosen_letter(answer)[0] == chosen


@pytest.mark.parametrize(
    "answer",
    [
        "According to the image, it is red.",
        "A man was born in 1985.",
        "An answer: a cat",
        "The answer is a musician.",
        "Answer: A man",
        "Answer: A's",
        "It is a",
        "Canadian",
        "Dad",
        "vitamin C is in it",
        "A red one",
        "b it is",
        "1972",
        "I do not know",
        "The answer is not A",
        "It isn't (B)",
        "",
        "()",
    ],
)
def test_articles_and_letters_in_words_are_no_answers(answer: str) -> None:
    assert chosen_letter(answer) == (None, "no letter of an option")


@pytest.mark.parametrize(
    "answer", ["A. Red\nB. Green", "(A) or (B)", "B or C", "B and D", "A, B", "Option A is right. Option B is correct."]
)
def test_several_letters_are_no_choice(answer: str) -> None:
    chosen, rule = chosen_letter(answer)
    assert chosen is None
    assert rule.startswith("several letters (")


@given(st.text(max_size=300))
def test_any_answer_is_parsed(answer: str) -> None:
    assert chosen_letter(answer)[0] in ("A", "B", "C", "D", None)
    assert official_letter(answer) in ("A", "B", "C", "D", None)


@given(
    st.sampled_from("ABCD"), st.sampled_from(["{}", "({})", "{}.", "{}) that one", "The answer is {}.", "Answer: {}"])
)
def test_plain_answers_are_read_correctly(chosen: str, form: str) -> None:
    assert chosen_letter(form.format(chosen))[0] == chosen


# --- the published evaluation, rule by rule --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prediction", "chosen"),
    [
        ("C", "C"),
        ("c", "C"),
        ("(B)", "B"),
        ("The answer is C", "A"),  # the a of answer
        ("I think it is d", "D"),
        ("Option D", "D"),
        ("According to it, D", "A"),
        ("Musk", None),
        ("no", None),
        ("1972", None),
        ("", None),
        ("É", None),
    ],
)
def test_official_rule_takes_the_first_character_a_to_d(prediction: str, chosen: str | None) -> None:
    assert official_letter(prediction) == chosen


@pytest.mark.parametrize(
    ("before", "after", "counters", "counted"),
    [
        ("A", "A", ("B",), "ORIGINAL"),
        ("A", "a.", ("B",), "ORIGINAL"),
        ("A", "B", ("B",), "COUNTER"),
        ("A", "C", ("B",), "IRRELEVANT"),
        ("A", "C", ("B", "C"), "COUNTER"),
        ("A", "D", ("B", "C"), "IRRELEVANT"),
        # The filter, which comes before, is on the raw string: "(B)" and "B." pass it, and then keeping to them is keeping to
        # the own answer.
        ("C", "A", ("B",), "IRRELEVANT"),
        ("(B)", "B", ("B",), "ORIGINAL"),
        ("B.", "A", ("B",), "IRRELEVANT"),
        ("b", "B", ("B",), "ORIGINAL"),
        ("The answer is B", "B", ("B",), "COUNTER"),  # read as A before
        # A pair of which one has no letter is skipped.
        ("1972", "A", ("B",), None),
        ("A", "1972", ("B",), None),
        ("A", "", ("B",), None),
    ],
)
def test_official_rule_classifies_pairs(
    before: str, after: str, counters: tuple[str, ...], counted: str | None
) -> None:
    assert label_of_letters(official_letter(after), official_letter(before), counters) == counted


# --- whose answer ----------------------------------------------------------------------------------------------

WHEN = "When was it?"

MC = {"text letter": ("B",), "text": ("1988",)}
BOTH = {"text letter": ("B", "C"), "text": ("1988", "1990")}


def test_a_multiple_choice_is_own_counter_or_neither() -> None:
    assert label_answer("The answer is D", "D", "context-memory-mc", MC, WHEN)[0] == "ORIGINAL"
    assert label_answer("(B)", "D", "context-memory-mc", MC, WHEN)[0] == "COUNTER"
    assert label_answer("C", "D", "context-memory-mc", MC, WHEN)[0] == "IRRELEVANT"
    assert label_answer("C", "D", "inter-context-mc", BOTH, WHEN)[0] == "COUNTER"
    assert label_answer("1988", "D", "context-memory-mc", MC, WHEN) == (None, "no letter of an option")


@pytest.mark.parametrize(
    ("answer", "own", "counters", "expected"),
    [
        ("1989", "1989", ("1988",), "ORIGINAL"),
        ("She was born in 1989.", "1989", ("1988",), "ORIGINAL"),
        ("1989", "Taylor Swift was born in 1989", ("1988",), "ORIGINAL"),
        ("The American", "american.", ("Canadian",), "ORIGINAL"),
        ("1988", "1989", ("1988",), "COUNTER"),
        ("It says 1988!", "1989", ("1988",), "COUNTER"),
        ("1990", "1989", ("1988",), "IRRELEVANT"),
        ("1990", "1989", ("1988", "1990"), "COUNTER"),
        ("1989, but the document says 1988", "1989", ("1988",), "ORIGINAL"),
        ("1989 or 1988", "1989", ("1988",), "IRRELEVANT"),
        ("carbonated soft drinks", "soft drinks", ("carbonated soft drinks",), "COUNTER"),
        ("It is a carbonated soft drink", "soft drink", ("carbonated soft drink",), "COUNTER"),
        ("a carbonated soft drink, I believe", "carbonated soft drink", ("soft drink",), "ORIGINAL"),
        ("curfewaringsign", "danger zone", ("stop", "left turn"), "IRRELEVANT"),
        ("1,200.0", "1200", ("13",), "ORIGINAL"),
        ("1 200", "1,200", ("13",), "ORIGINAL"),
        ("nineteen eighty-eight", "1989", ("1988",), "COUNTER"),
        ("USA", "Canada", ("United States",), "COUNTER"),
        ("198", "1989", ("1988",), "IRRELEVANT"),
        ("...", "1989", ("1988",), "IRRELEVANT"),
    ],
)
def test_an_open_answer_is_own_counter_or_neither(
    answer: str, own: str, counters: tuple[str, ...], expected: str
) -> None:
    assert label_answer(answer, own, "inter-context-open", {"text": counters}, WHEN)[0] == expected


def test_the_own_answer_may_already_be_the_counter_answer() -> None:
    assert is_counter("B", "context-memory-mc", MC, WHEN)
    assert not is_counter("C", "context-memory-mc", MC, WHEN)
    assert is_counter("C", "inter-context-mc", BOTH, WHEN)
    assert is_counter("in 1988", "context-memory-open", MC, WHEN)
    assert not is_counter("1989", "inter-context-open", BOTH, WHEN)


@given(st.text(max_size=40), st.text(max_size=40), st.lists(st.text(max_size=20), max_size=2))
def test_any_open_answer_gets_one_label(answer: str, own: str, counters: list[str]) -> None:
    label, rule = label_answer(answer, own, "inter-context-open", {"text": tuple(counters)}, WHEN)
    assert label in ("ORIGINAL", "COUNTER", "IRRELEVANT")
    assert rule
    if answer == own:
        assert label == "ORIGINAL"
