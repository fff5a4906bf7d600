"""Gains over rules that look at no source: their intervals, and what they say of a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.answers import Answers
from benchmarks.audit.blind_rule_scores import BlindScores
from benchmarks.registry import get_benchmark
from benchmarks.tables.blind_rule_tables import Gain, gain_over_blind
from benchmarks.vocabulary import Generation, Instance, Record, Verdict

BENCHMARK = get_benchmark("crosscheck-bench")
NOT_SHOWN = "is not shown to use its sources"


def gain_of(
    answers: Sequence[tuple[str, str]], *, chance: float = 0.25, blind: Sequence[float] | None = None, pages: int = 0
) -> Gain:
    """Return the gain of answers: their tasks, and "right", "wrong" or "none"; each is on a page of its own, or on ``pages``."""
    records = [
        Record(
            Instance(
                f"{number}/vanilla",
                str(number % pages if pages else number),
                "vanilla",
                "Which?",
                (),
                {"answer": ("a",), "options": ("a", "b", "c", "d")},
                {"task": task, "form": "option"},
            ),
            (Generation("x", {"right": "A", "wrong": "B", "none": "I cannot say."}[answer], "stop"),),
            {"extracted": Verdict("extracted", "labelled", "CORRECT" if answer == "right" else "INCORRECT")},
        )
        for number, (task, answer) in enumerate(answers)
    ]
    tasks = [*dict.fromkeys(task for task, _ in answers)]
    scores = BlindScores(
        np.full(len(answers), chance) if blind is None else np.array(blind, np.float64),
        np.full(len(answers), chance),
        np.array([tasks.index(task) for task, _ in answers]),
        tuple((task, "the place") for task in tasks),
    )
    own = Answers.of(records, BENCHMARK)
    gain = gain_over_blind(BENCHMARK, Answers(**(vars(own) | {"blind": scores})), "extracted")
    assert gain is not None
    return gain


def results(task: str, right: int, of: int, none: int = 0) -> list[tuple[str, str]]:
    return [(task, "right" if n < right else "none" if n < right + none else "wrong") for n in range(of)]


def test_guessing_has_no_variance_of_its_own() -> None:
    gain = gain_of(results("SPU", 40, 100))
    assert gain.gain.value == pytest.approx(0.15)
    assert gain.gain.low == pytest.approx(0.06, abs=0.01)
    assert gain.gain.high == pytest.approx(0.25, abs=0.01)
    assert gain.p == pytest.approx(0.0007, abs=0.0003)
    assert gain.doubt("x") == ""


@pytest.mark.parametrize("kind", ["chance", "shares"])
def test_intervals_cover_the_true_gain_in_95_of_100_studies(kind: str) -> None:
    draw = np.random.default_rng(1)
    studies, covered = 300, 0
    for _ in range(studies):
        right = draw.random(60) < 0.5
        blind = None if kind == "chance" else np.where(draw.random(60) < 0.5, draw.random(60) < 0.4, 0.5)
        truth = 0.25 if blind is None else 0.5 - 0.45
        gain = gain_of(
            [("SPU", "right" if hit else "wrong") for hit in right], blind=None if blind is None else [*blind]
        )
        assert gain.gain.low is not None
        assert gain.gain.high is not None
        covered += gain.gain.low <= truth <= gain.gain.high
    assert 0.92 <= covered / studies <= 0.98


def test_a_model_that_uses_its_sources_in_one_task_is_said_to_use_them_there() -> None:
    gain = gain_of([*results("SPU", 20, 24), *results("LD", 40, 200), *results("SP", 40, 200)])
    sentence = gain.doubt("x")
    assert gain.shown_in == ["SPU"]
    assert "only in SPU" in sentence
    assert NOT_SHOWN not in sentence


def test_tasks_are_corrected_for_their_number() -> None:
    tasks = [result for number in range(20) for result in results(f"task {number}", 6 if number else 11, 24)]
    gain = gain_of(tasks)
    assert min(of.p for of in gain.by_task.values()) < 0.05
    assert gain.shown_in == []
    assert NOT_SHOWN in gain.doubt("x")


def test_abstentions_are_no_evidence_of_blindness() -> None:
    few = gain_of(results("SPU", 10, 100, none=70))
    assert (few.silent, few.answers) == (70, 100)
    assert "30 of 100" in few.doubt("x")
    assert NOT_SHOWN not in few.doubt("x")
    several = gain_of(results("SPU", 25, 100, none=20))
    assert NOT_SHOWN in several.doubt("x")
    assert "20 of 100" in several.doubt("x")


def test_a_result_below_guessing_is_said_to_be() -> None:
    assert "below guessing" in gain_of(results("SPU", 5, 100)).doubt("x")
    assert "below guessing" not in gain_of(results("SPU", 24, 100)).doubt("x")


def test_of_one_page_no_rule_is_the_best() -> None:
    sentence = gain_of(results("SPU", 8, 20), pages=1).doubt("x")
    assert "best rule" not in sentence
    assert "one page" in sentence
    assert "closed questions" in sentence
