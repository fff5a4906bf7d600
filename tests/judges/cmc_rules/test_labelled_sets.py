"""Answers that people labelled: what is decided is right, and most is decided."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.records import label, verdict

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT.parent / "shared" / "cases" / "answers.jsonl"
SETS = sorted((ROOT / "tests" / "data").glob("match_*.jsonl"))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@dataclass(frozen=True)
class Judged:
    """Answers by the label that people gave: all, the decided ones, and (answer, label, verdict) of each that is wrong."""

    total: Counter[str]
    decided: Counter[str]
    wrong: list[tuple[str, str, str]]


def judged(answers: list[dict[str, Any]]) -> Judged:
    result = Judged(Counter(row["label"] for row in answers), Counter(), [])
    for row in answers:
        got = verdict(row["answer"], row["image"], row["text"], row["question"])
        result.decided[row["label"]] += got.status == "labelled"
        if got.label not in (None, row["label"]):
            result.wrong.append((row["answer"], row["label"], f"{got.label}: {got.reason}"))
    return result


@pytest.fixture(scope="module")
def by_set() -> dict[str, Judged]:
    """The decided answers of each set."""
    return {path.stem: judged(rows(path)) for path in SETS}


def test_sets_are_large_and_hold_every_label() -> None:
    answers = [row for path in SETS for row in rows(path)]
    assert len(SETS) == 10
    assert len(answers) == 1193
    assert min(Counter(row["label"] for row in answers).values()) >= 90


def test_decided_labels_are_right(by_set: dict[str, Judged]) -> None:
    decided = sum(answers.decided.total() for answers in by_set.values())
    wrong = [case for answers in by_set.values() for case in answers.wrong]
    assert len(wrong) <= 0.01 * decided, wrong


def test_most_answers_are_decided(by_set: dict[str, Judged]) -> None:
    decided = sum(answers.decided.total() for answers in by_set.values())
    assert decided >= 0.7 * sum(answers.total.total() for answers in by_set.values())
    assert all(answers.decided.total() >= 0.45 * answers.total.total() for answers in by_set.values())


def test_answers_of_every_label_are_decided(by_set: dict[str, Judged]) -> None:
    decided, total = Counter[str](), Counter[str]()
    for answers in by_set.values():
        decided += answers.decided
        total += answers.total
    assert all(decided[name] >= 0.4 * n for name, n in total.items()), decided


@pytest.mark.skipif(not CASES.is_file(), reason="needs the cases")
def test_no_decided_label_of_the_cases_is_wrong() -> None:
    answers = judged(rows(CASES))
    assert answers.wrong == []
    assert answers.decided.total() >= 0.75 * answers.total.total()


DRESSES = [
    ("spaces doubled", lambda s: s.replace(" ", "  ")),
    ("no-break spaces", lambda s: s.replace(" ", "\u00a0")),
    ("blank around", lambda s: f"\n\n {s} \t\n"),
    ("curly apostrophes", lambda s: s.replace("'", "’")),
    ("zero-width around", lambda s: f"\u200b{s}\ufeff"),
    ("reasoning before", lambda s: f"<think>Is it 12 or 15? Wait, no.</think>\n{s}"),
    ("lines ended as on Windows", lambda s: s.replace("\n", "\r\n")),
]


@given(st.sampled_from([row for path in SETS for row in rows(path)]), st.sampled_from(DRESSES))
def test_white_space_and_typography_do_not_change_a_label(row: dict[str, Any], dress: tuple[str, Any]) -> None:
    references = (row["image"], row["text"], row["question"])
    assert label(dress[1](row["answer"]), *references) == label(row["answer"], *references), dress[0]


@given(
    st.sampled_from([row for path in SETS for row in rows(path)]), st.sampled_from(["\\boxed{%s}", '{"answer": "%s"}'])
)
def test_marked_answer_counts_whatever_stands_around_it(row: dict[str, Any], form: str) -> None:
    if (
        row["image"]
        and row["text"]
        and '"' not in row["image"] + row["text"]
        and "\\" not in row["image"] + row["text"]
    ):
        bare = label(row["image"], row["image"], row["text"], row["question"])
        assert label(form % row["image"], row["image"], row["text"], row["question"]) == bare
