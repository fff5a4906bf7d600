"""Agreement of ``match`` with people: answers labelled by hand, the paper's own four, and constructed frames."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from benchmarks.text.answer_equality import same_value
from judges.cmc_rules.judge import HELD_OUT, LABELS, Match
from judges.registry import get_judge, judge_names
from tests.support.records import label

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "data" / "cmc_bench"


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


LABELLED = rows(ROOT / "tests" / "data" / "match_answers.jsonl")
UNSEEN = rows(ROOT / "tests" / "data" / "match_answers_unseen.jsonl")
"""Written and labelled by someone who never saw the rules."""
SMALL_MODELS = rows(ROOT / "tests" / "data" / "match_answers_small_models.jsonl")
"""In the manner of small models, written by one language model and labelled by two; none of them saw the rules."""


def is_seen(row: dict[str, Any]) -> bool:
    """Return whether a row of the newest set is in the half whose errors were looked at for version 3: by a hash of its id."""
    return int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 2 == 0


def test_match_is_registered_with_name_and_version() -> None:
    assert "match" in judge_names()
    judge = get_judge("match")
    assert isinstance(judge, Match)
    assert judge.id == "match@3"


def confused(labelled: list[dict[str, Any]]) -> Counter[tuple[str, str | None]]:
    """Return the confusion counts of human labels and the labels of ``match``."""
    return Counter((r["label"], label(r["answer"], r["image"], r["text"], r["question"])) for r in labelled)


def test_unused_judge_compiles_no_rules() -> None:
    code = "import sys; from judges.registry import get_judge; get_judge('match'); print('judges.cmc_rules.cues' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture(scope="module")
def confusion() -> Counter[tuple[str, str | None]]:
    return confused(LABELLED)


@pytest.fixture(scope="module")
def unseen() -> Counter[tuple[str, str | None]]:
    return confused(UNSEEN)


def agreed(confusion: Counter[tuple[str, str | None]]) -> int:
    return sum(n for (human, own), n in confusion.items() if human == own)


def table(confusion: Counter[tuple[str, str | None]]) -> str:
    lines = [f"{human:8}" + "".join(f"{confusion[human, own]:8}" for own in LABELS) for human in LABELS]
    return "\n".join(["by hand \\ match  " + "  ".join(LABELS), *lines])


def test_match_agrees_with_hand_labels(confusion: Counter[tuple[str, str | None]]) -> None:
    assert len(LABELLED) == 260
    assert agreed(confusion) / len(LABELLED) >= 0.98, table(confusion)


def test_match_agrees_with_labels_by_an_independent_person(
    unseen: Counter[tuple[str, str | None]],
) -> None:
    assert len(UNSEEN) == 120
    assert agreed(unseen) / len(UNSEEN) >= 0.9, table(unseen)


def test_match_agrees_over_both_sets(
    confusion: Counter[tuple[str, str | None]], unseen: Counter[tuple[str, str | None]]
) -> None:
    both = confusion + unseen
    assert both.total() == 380
    assert agreed(both) / both.total() >= 0.95, table(both)


def test_note_gives_the_agreement_on_answers_of_its_kind() -> None:
    assert len(SMALL_MODELS) == 240
    assert sum(row["label"] == row["second_label"] for row in SMALL_MODELS) == 235
    for kind, (agreed_labels, count) in HELD_OUT.items():
        answers = [row for row in SMALL_MODELS if row["kind"] == kind and not is_seen(row)]
        assert (agreed(confused(answers)), len(answers)) == (agreed_labels, count)
    assert agreed(confused([row for row in SMALL_MODELS if is_seen(row)])) >= 114
    charts, own, both = (Match().measured_agreement(sources) for sources in (["chartqa"], ["my table"], ["mmmu", ""]))
    assert "46 of 58 on charts (67% to 88%)" in charts
    assert "charts" not in own + both
    assert "diagrams" in both
    assert "19 of 31 on own rows (44% to 76%)" in own


def test_labelled_sets_are_disjoint() -> None:
    def questions(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(r["question"], r["answer"]) for r in rows}

    assert not questions(LABELLED) & questions(UNSEEN)


@pytest.mark.parametrize("human", LABELS)
def test_every_label_is_recalled(human: str, confusion: Counter[tuple[str, str | None]]) -> None:
    total = sum(n for (labels, _), n in confusion.items() if labels == human)
    assert total >= 35
    assert confusion[human, human] / total >= 0.95, table(confusion)


TABLE_4 = [
    ("2008", "IMAGE"),
    ("... according to the provided evidence, is 2015.", "TEXT"),
    ("... the highest native-born employment in Slovenia occurred in 2004 .", "NEITHER"),
    (
        "However, the chart shows data from 2004–2012, and the text mentions ‘2015’—which is outside the chart’s range...",
        "ABSTAIN",
    ),
]


@pytest.mark.parametrize(("answer", "expected"), TABLE_4)
def test_answers_of_table_4_get_the_papers_labels(answer: str, expected: str) -> None:
    question = "Which year recorded the highest native born employment in Slovenia?"
    assert label(answer, "2008", "2015", question) == expected


FRAMES = [
    ("{own}", "IMAGE"),
    ("**{own}**", "IMAGE"),
    ("Answer: {own}", "IMAGE"),
    ("It is {own}.", "IMAGE"),
    ("The image shows {own}.", "IMAGE"),
    ("The correct answer is (B) {own}.", "IMAGE"),
    ("Based on the provided evidence, the answer is **{own}**.", "IMAGE"),
    ("The text says {other}, but the image shows {own}. Therefore, the answer is {own}.", "IMAGE"),
    ("The image shows {own} and the text says {other}. These conflict, so I cannot determine the answer.", "ABSTAIN"),
]


def framed(pairs: list[tuple[str, str, str]]) -> list[tuple[str, str, str, str | None]]:
    """The frames whose label comes out wrong for real answers: (frame, image, text, label)."""
    wrong = []
    for question, own, other in pairs:
        for frame, expected in FRAMES:
            got = label(frame.format(own=own, other=other), own, other, question)
            if got != expected:
                wrong.append((frame, own, other, got))
    return wrong


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the real ChartQA and MMMU rows are not here")
def test_real_chartqa_answers_are_found_in_every_frame() -> None:
    real = rows(SHARED / "chartqa" / "qa_test_all.jsonl")
    pairs = [(r["question"], str(r["answer"]), str(o["answer"])) for r, o in zip(real, real[7:], strict=False)][::9]
    pairs = [(q, own, other) for q, own, other in pairs if not same_value(own, other)]
    assert len(pairs) > 200
    assert framed(pairs) == []


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the real ChartQA and MMMU rows are not here")
def test_real_mmmu_options_are_found_in_nearly_every_frame() -> None:
    pairs = []
    for i, row in enumerate(rows(SHARED / "mmmu" / "mmmu_pro_1730_rows_text_only.jsonl")[::7]):
        options = [str(o).strip(" .;") for o in ast.literal_eval(row["options"])]
        own, other = options[i % len(options)], options[(i + 1) % len(options)]
        if not same_value(own, other) and "<image" not in own + other:
            pairs.append((row["question"], own, other))
    assert len(pairs) > 200
    assert len(framed(pairs)) <= 0.005 * len(pairs) * len(FRAMES)


THIRD_FRAMES = ("The answer is {}.", "{}")
REFUSAL = re.compile(r"(?i)determin|can't tell|cannot|not know|enough (?:information|evidence)|insufficient")
"""Options that say that there is no answer; stating one is an abstention."""
SIX_SUBJECTS = {"Physics", "History", "Psychology", "Computer_Science", "Art", "Economics"}
"""The subjects of MMMU that CMC-Bench takes (section 3.1)."""
Triple = tuple[str, str, str, str]


def told_apart(triples: list[Triple]) -> tuple[Counter[str | None], Counter[bool]]:
    """The labels of answers that state a third value, and how often a reference that is stated has its own label."""
    third: Counter[str | None] = Counter()
    right: Counter[bool] = Counter()
    for question, image, text, other in triples:
        for frame in THIRD_FRAMES:
            third[label(frame.format(other), image, text, question)] += 1
            right[label(frame.format(image), image, text, question) == "IMAGE"] += 1
            right[label(frame.format(text), image, text, question) == "TEXT"] += 1
    return third, right


def distinct(*values: str) -> bool:
    return not any(same_value(a, b) for a, b in combinations(values, 2))


@pytest.mark.skipif(not SHARED.exists(), reason="the real ChartQA and MMMU rows are not here")
@pytest.mark.slow
def test_a_third_mmmu_option_is_neither() -> None:
    triples: list[Triple] = []
    for row in rows(SHARED / "mmmu" / "mmmu_pro_1730_rows_text_only.jsonl"):
        options = [str(o).strip(" .;") for o in ast.literal_eval(row["options"])]
        options = [o for o in options if o and "<image" not in o]
        if row["subject"] in SIX_SUBJECTS and len(options) > 2:
            following = zip(options, options[1:] + options[:1], options[2:] + options[:2], strict=True)
            triples += [(row["question"], *t) for t in following if distinct(*t) and not REFUSAL.search(t[2])]
    assert len(triples) > 2_500
    third, right = told_apart(triples)
    assert third["NEITHER"] / third.total() >= 0.97, third
    assert right[True] / right.total() >= 0.99, right


@pytest.mark.skipif(not SHARED.exists(), reason="the real ChartQA and MMMU rows are not here")
@pytest.mark.slow
def test_a_third_chartqa_answer_is_neither() -> None:
    real = rows(SHARED / "chartqa" / "qa_test_all.jsonl")
    answers = [str(r["answer"]) for r in real]
    following = zip(real, answers, answers[7:], answers[13:], strict=False)
    triples = [(r["question"], *t) for r, *t in following if distinct(*t)]
    assert len(triples) > 1_500
    third, right = told_apart(triples)
    assert third["NEITHER"] / third.total() >= 0.97, third
    assert right[True] / right.total() >= 0.99, right
