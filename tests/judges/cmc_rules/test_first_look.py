"""The judges that read option letters, and open answers in sentences, on sets that were written before their rules."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

import pytest

from benchmarks.vocabulary import Generation, Instance, Record
from judges.judge_registry import get_judge
from tests.support.option_forms import CHOSEN, NOT_CHOSEN
from tests.support.own_answer_sentences import ROWS

LETTERS = ("A", "B", "C", "D")
OPTIONS = ("1972", "1980", "1990", "1999")


def ask(judge: str, condition: str, answer: str, references: Mapping[str, tuple[str, ...]], **more: str) -> Record:
    strata = {"form": "option"} if judge == "extracted" else {}
    return Record(
        Instance("i/c", "i", condition, more.get("question", "When?"), (), references, strata),
        (Generation("i#0", answer, "stop"),),
        basis=Generation("i#1", more["own"], "stop") if "own" in more else None,
    )


def chosen(judge: str, answer: str) -> list[str]:
    """Return the letters that the judge takes an answer to choose: those it calls right where they are."""
    letters = []
    for letter in LETTERS:
        match judge:
            case "own-answer":
                references = {"text letter": ("Z",), "text": ("Z",)}
                verdict = get_judge(judge).judge(ask(judge, "context-memory-mc", answer, references, own=letter))
            case "choice":
                verdict = get_judge(judge).judge(ask(judge, "x", answer, {"options": LETTERS, "answer": (letter,)}))
            case _:
                verdict = get_judge(judge).judge(ask(judge, "x", answer, {"options": OPTIONS, "answer": (letter,)}))
        if verdict.label in ("ORIGINAL", "CORRECT"):
            letters.append(letter)
    return letters


@pytest.mark.parametrize("judge", ["own-answer", "choice", "extracted"])
def test_chosen_letter_is_read_in_every_form(judge: str) -> None:
    answers = [*CHOSEN, *((answer, "") for answer in NOT_CHOSEN)]
    wrong = {answer: chosen(judge, answer) for answer, letter in answers if chosen(judge, answer) != list(letter)}
    assert wrong == {}


def test_yes_and_no_in_a_structure_are_read() -> None:
    judge = get_judge("yes-no")
    for answer, label in (
        ('{"answer": "Yes"}', "CORRECT"),
        ('{"reason": "there is no dog but a cat", "answer": "yes"}', "CORRECT"),
        ('```json\n{"reason": "yes, nearly", "answer": "No"}\n```', "WRONG"),
    ):
        assert judge.judge(ask("yes-no", "x", answer, {"answer": ("yes",)})).label == label


def test_open_answers_are_compared_by_their_assertions() -> None:
    judge = get_judge("own-answer")
    right, total = Counter[str](), Counter[str]()
    for question, own, answer, counter, label in ROWS:
        record = ask("own-answer", "context-memory-open", answer, {"text": (counter,)}, question=question, own=own)
        total[label] += 1
        right[label] += judge.judge(record).label == label
    assert (right["COUNTER"], right["IRRELEVANT"]) == (total["COUNTER"], total["IRRELEVANT"])
    assert right["ORIGINAL"] >= total["ORIGINAL"] - 2  # "Adi" for Adolf, "prohibited" for no


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["not ", "The answer is A or ", "(", "A. ", "the text says ", "is wrong ", "\n", "nor,", "[{"]
)
def test_long_answers_are_judged_quickly(piece: str) -> None:
    answer = piece * (40_000 // len(piece))
    start = time.perf_counter()
    for condition in ("context-memory-mc", "context-memory-open"):
        get_judge("own-answer").judge(ask("own-answer", condition, answer, {"text": ("1988",)}, own=answer))
    for judge in ("choice", "extracted"):
        chosen(judge, answer)
    assert time.perf_counter() - start < 4
