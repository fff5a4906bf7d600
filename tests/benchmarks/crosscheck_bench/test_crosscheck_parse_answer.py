"""The answer in a reply: the paper's exact match, and the final answer in a reasoned reply."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.crosscheck_bench.crosscheck_parse_answer import equals_whole_reply, extract_answer, normalise, same_text
from judges.judge_registry import get_judge
from tests.support.data.crosscheck_bench import make_sample, records

OPTIONS = ("Main item for sale", "Partial item for sale", "Item not for sale")


@pytest.mark.parametrize(
    ("reply", "gold", "same"),
    [
        ("Yes", "Yes", True),
        ("  yES\n", "Yes", True),
        ("ＹＥＳ", "Yes", True),  # full width
        ("b", "B", True),
        ("Yes.", "Yes", False),
        ("(B)", "B", False),
        ("<thinking>hm</thinking>B", "B", False),
        ("ÉCLAT", "éclat", True),
        ("E\u0301clat", "Éclat", True),
        ("", "B", False),
    ],
)
def test_exact_match_compares_the_full_reply(reply: str, gold: str, same: bool) -> None:
    assert equals_whole_reply(reply, gold) is same


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("b.", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("[B] Partial item for sale", "B"),
        ("B: Partial item for sale", "B"),
        ("Option B", "B"),
        ("Partial item for sale.", "B"),
        ("Answer: B", "B"),
        ("**Answer:** (B) because of the box", "B"),
        ("The correct option is B.", "B"),
        ("Answer: A, no, wait. Answer: B", "B"),
        ("The final answer is $\\boxed{B}$.", "B"),
        ("\\boxed{\\text{B}}", "B"),
        ("Answer: A\n<answer>B</answer>", "B"),
        ("<thinking>Answer: A. It is (C).</thinking>\nB", "B"),
        ("<think>It is A", None),
        ("A red box is in front of it. So it must be (B).", "B"),
        ("A: it is whole.\nC: it is there.\nB", "B"),
        ("B because the shoe is cut off", "B"),
        ("A because it is the main item", "A"),
        ("The answer:\n\nB", "B"),
        ("A red shoe", None),
        ("As it stands, nothing", None),
        ("I think it is A or C", None),
        ("(A) or (B)", None),
        ("It is either (A) or (B).", None),
        ("D", None),
        ("None of them", None),
        ("Answer: unclear", None),
    ],
)
def test_the_letter_of_a_reply(reply: str, letter: str | None) -> None:
    assert extract_answer(reply, "option", OPTIONS)[0] == letter


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("Yes", "Yes"),
        ("no.", "No"),
        ("**No**, because it is hidden", "No"),
        ("The logos differ in the stem. Answer: No", "No"),
        ("No brand is hidden on the left.\nThe right one is covered.\n\nYes", "Yes"),
        ("The two logos differ.\nNo, they are not the same.", "No"),
        ("<thinking>yes? no?</thinking> Yes", "Yes"),
        ("not sure", None),
        ("nothing to see", None),
        ("yesterday", None),
    ],
)
def test_yes_or_no_of_a_reply(reply: str, word: str | None) -> None:
    assert extract_answer(reply, "yes/no")[0] == word


@pytest.mark.parametrize(
    ("reply", "gold", "same"),
    [
        ("Cetaphil", "Cetaphil", True),
        ('"CETAPHIL".', "Cetaphil", True),
        ("I read it on the label.\nAnswer: Cetaphil", "Cetaphil", True),
        ("The brand is Cetaphil", "Cetaphil", False),
        ("Unknown", "Cetaphil", False),
        ("Cetaphil Baby", "Cetaphil", False),
    ],
)
def test_open_answers_are_matched_as_a_whole(reply: str, gold: str, same: bool) -> None:
    answer, _ = extract_answer(reply, "open")
    assert answer is not None
    assert same_text(answer, gold) is same


@given(st.text(max_size=300), st.sampled_from(["option", "yes/no", "open"]))
def test_any_text_is_read(text: str, form: str) -> None:
    answer, rule = extract_answer(text, form, OPTIONS if form == "option" else ())
    assert rule
    if answer is not None:
        assert answer in "ABC" if form == "option" else True
        assert answer in ("Yes", "No") if form == "yes/no" else True
    assert normalise(normalise(text)) == normalise(text)


@given(
    st.sampled_from("ABC"),
    st.text(alphabet="abcdefghij \n.,;:'", max_size=80),
    st.sampled_from(
        ["Answer: {}", "Final answer: ({})", "The answer is {}.", "\\boxed{{{}}}", "<answer>{}</answer>", "\n{}"]
    ),
)
def test_a_marked_letter_is_found_after_any_reasoning(letter: str, reasoning: str, form: str) -> None:
    assert extract_answer(f"{reasoning} {form.format(letter)}", "option", OPTIONS)[0] == letter


@pytest.mark.parametrize("unit", ["answer: ", "\\boxed{", "<answer>", "(A) ", "**", "\n", "[[[[", "answer is"])
def test_hostile_reply_is_parsed_quickly(unit: str) -> None:
    started = time.process_time()
    for form in ("option", "yes/no", "open"):
        extract_answer(unit * 20_000, form, OPTIONS)
    assert time.process_time() - started < 2


def test_printed_and_extracted_judges_differ_on_reasoned_replies() -> None:
    answer = records(
        [make_sample("PI", 1), make_sample("LD", 1), make_sample("BR", 1)],
        lambda sample, _: f"I looked.\nAnswer: {sample.answer}",
    )
    assert [record.verdicts["extracted@2"].label for record in answer] == ["CORRECT"] * 3
    assert [record.verdicts["printed@1"].label for record in answer] == ["INCORRECT"] * 3
    alone = records(
        [make_sample("PI", 1), make_sample("LD", 1), make_sample("BR", 1)], lambda sample, _: sample.answer.lower()
    )
    assert [record.verdicts["printed@1"].label for record in alone] == ["CORRECT"] * 3


@pytest.mark.parametrize("reply", ["", "  \n", "<think>Yes, it is", "<thinking>B</thinking>"])
def test_missing_answer_is_unparsed(reply: str) -> None:
    (record,) = records([make_sample("LD")], lambda *_: reply)
    assert {record.verdicts[judge].status for judge in ("extracted@2", "printed@1")} == {"unparsed"}


def test_matching_judges_belong_to_this_benchmark() -> None:
    assert {get_judge(name).benchmarks for name in ("extracted", "printed")} == {("crosscheck-bench",)}
