"""The judge ``match`` as runs use it: its name, its verdicts, what it loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cmc_bench.cmc_constants import LABELS
from benchmarks.vocabulary import FinishReason, Generation, Instance, Record, Text
from judges.cmc_rules import Match, answer_decision
from judges.judge_registry import get_judge, judge_names
from tests.support.records import QUESTION, record, verdict

ROOT = Path(__file__).resolve().parents[3]


def test_match_is_registered_with_name_and_version() -> None:
    assert "match" in judge_names()
    judge = get_judge("match")
    assert isinstance(judge, Match)
    assert judge.id == "match@4"


def test_unused_judge_compiles_no_rules() -> None:
    code = "import sys; from judges.judge_registry import get_judge; get_judge('match')\n"
    code += "print('judges.cmc_rules.cue_words' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    code = code.replace("get_judge('match')", "get_judge('match').prepare()")
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True"


@pytest.mark.parametrize("answer", ["", "   \n\t "])
def test_an_empty_answer_has_no_label(answer: str) -> None:
    got = verdict(answer)
    assert (got.status, got.label, got.reason) == ("unparsed", None, "the answer is empty")


@pytest.mark.parametrize("answer", ["<think>It is 12.</think>", "<think>The chart shows 12, so", "so 12.</think>\n"])
def test_answer_of_pure_reasoning_has_no_label(answer: str) -> None:
    got = verdict(answer)
    assert (got.status, got.label, got.reason) == ("unparsed", None, "the answer is nothing but reasoning")


def test_record_without_an_answer_has_no_label() -> None:
    assert Match().judge(Record(record("", "12", "15").instance)).status == "unparsed"


def test_verdict_has_a_label_and_a_reason() -> None:
    got = verdict("The answer is 12.")
    assert (got.judge, got.status, got.label) == ("match@4", "labelled", "IMAGE")
    assert got.reason == "given as the answer: the answer is the value and nothing else"


def test_undecided_has_a_reason_and_no_label() -> None:
    got = verdict("The chart shows 12 and the text says 15.")
    assert (got.judge, got.status, got.label) == ("match@4", "undecided", None)
    assert "chooses neither" in got.reason
    assert record("", "12", "15").outcome("match@4") == "pending"


def test_behaviours_have_the_labels_of_the_benchmark() -> None:
    assert set(answer_decision.LABELS.values()) == set(LABELS)
    assert answer_decision.undecided("").label not in LABELS


@pytest.mark.parametrize(("finish_reason", "status"), [("stop", "labelled"), ("length", "undecided")])
def test_answer_that_ends_at_the_limit_of_tokens_is_cut_off(finish_reason: FinishReason, status: str) -> None:
    answer = "The chart shows trams by line. Line 4 has 12 trams."
    cut = Record(record(answer, "12", "15").instance, (Generation("i#0", answer, finish_reason),))
    assert Match().judge(cut).status == status


def test_several_acceptable_answers_of_a_source_all_count() -> None:
    instance = Instance("i", "g", "c", QUESTION, (Text(QUESTION),), {"image": ("Dog", "Hound"), "text": ("Cat",)})
    for answer, label in (("Hound.", "IMAGE"), ("The answer is: dog", "IMAGE"), ("Cat", "TEXT")):
        assert Match().judge(Record(instance, (Generation("i#0", answer, "stop"),))).label == label
