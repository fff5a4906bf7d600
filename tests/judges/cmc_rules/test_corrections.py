"""Answers that correct themselves, and their look-alikes, as people label them.

Each set was written and labelled before the rules for it. The wordings of the self-corrections are divided: none stands in
both halves, and nobody looked at what goes wrong in the one held out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.cmc_rules.judge import LABELS
from tests.judges.cmc_rules.test_agreement import ROOT, agreed, confused, rows, table
from tests.support.records import label, verdict


def answers(name: str) -> list[dict[str, Any]]:
    return rows(ROOT / "tests" / "data" / f"match_{name}.jsonl")


CORRECTIONS = answers("self_corrections")


def test_self_corrections_cover_many_forms() -> None:
    assert len(CORRECTIONS) == 300
    assert len({r["category"] for r in CORRECTIONS}) >= 15
    assert Counter(r["part"] for r in CORRECTIONS) == {"development": 150, "held out": 150}
    assert {r["label"] for r in CORRECTIONS} == set(LABELS)


@pytest.mark.parametrize("part", ["development", "held out"])
def test_the_last_statement_of_a_self_correction_counts(part: str) -> None:
    confusion = confused([r for r in CORRECTIONS if r["part"] == part])
    assert agreed(confusion) / confusion.total() >= 0.95, table(confusion)


@pytest.mark.parametrize(
    ("name", "size", "least"),
    [
        ("look_alikes", 45, 0.95),
        ("determiners", 42, 0.95),
        ("roundings", 34, 0.95),
        ("calculations_asides", 45, 0.95),
        ("named_sources", 47, 0.95),
        ("unusual_corrections", 60, 0.6),
    ],
)
def test_lookalikes_of_corrections_are_distinguished(name: str, size: int, least: float) -> None:
    confusion = confused(answers(name))
    assert confusion.total() == size
    assert agreed(confusion) / size >= least, table(confusion)


CUES = [
    ". Actually, ",
    ". Sorry, I meant ",
    ". Wait, no, ",
    ". Correction: ",
    ". Scratch that. It is ",
    ", or rather ",
    " -> ",
]
VALUES = [("12", "15", "18"), ("1908", "1915", "1911"), ("64%", "46%", "52%"), ("3.5 km", "5.3 km", "4.1 km")]


@given(
    st.sampled_from(VALUES),
    st.lists(st.sampled_from([0, 1, 2]), min_size=2, max_size=5),
    st.sampled_from(CUES),
)
def test_a_chain_of_corrections_ends_at_its_last_value(
    values: tuple[str, str, str], chain: list[int], cue: str
) -> None:
    expected = ("IMAGE", "TEXT", "NEITHER")[chain[-1]]
    assert label(f"The answer is {cue.join(values[i] for i in chain)}.", *values[:2]) == expected
    struck = " ".join(f"~~{values[i]}~~" for i in chain[:-1])
    assert label(f"{struck} {values[chain[-1]]}", *values[:2]) == expected


DRESSES = [
    ("spaces doubled", lambda s: s.replace(" ", "  ")),
    ("no-break spaces", lambda s: s.replace(" ", "\u00a0")),
    ("blank around", lambda s: f"\n\n {s} \t\n"),
    ("curly apostrophes", lambda s: s.replace("'", "’")),
    ("zero-width around", lambda s: f"\u200b{s}\ufeff"),
    ("a quotation", lambda s: "> " + s.replace("\n", "\n> ")),
    ("reasoning before", lambda s: f"<think>Is it 12 or 15? Wait, no.</think>\n{s}"),
    ("lines ended as on Windows", lambda s: s.replace("\n", "\r\n")),
]


@given(st.sampled_from(CORRECTIONS + answers("look_alikes")), st.sampled_from(DRESSES))
def test_white_space_and_typography_do_not_change_a_label(row: dict[str, Any], dress: tuple[str, Any]) -> None:
    given_as = dress[1](row["answer"])
    inputs = (row["image"], row["text"], row["question"])
    assert label(given_as, *inputs) == label(row["answer"], *inputs), dress[0]


def test_retracted_value_without_replacement_is_no_answer() -> None:
    got = verdict("The answer is 12. Scratch that.")
    assert (got.label, "takes its answer back" in got.reason) == ("ABSTAIN", True)


def test_correction_of_one_source_leaves_the_other() -> None:
    assert label("The chart shows 12. The text says 18. Sorry, the text says 15.") == "BOTH"


@pytest.mark.parametrize(
    "answer", ["That is incorrect.", "The red bar is taller. That is false.", "Actually, no.", "Sorry, no."]
)
def test_denial_is_an_answer_and_no_retraction(answer: str) -> None:
    assert label(answer, "Yes", "No", "Is the red bar taller than the blue bar?") == "TEXT"


def test_rejected_report_retracts_only_itself() -> None:
    assert label("The chart shows 12. The text says 15. That is wrong.") == "IMAGE"
    assert label("The text says 15. That's wrong. The chart shows 12.") == "IMAGE"


@pytest.mark.parametrize("answer", ["Sorry.", "I'm sorry, but I can't determine the answer."])
def test_regret_alone_is_no_answer(answer: str) -> None:
    assert label(answer) == "ABSTAIN"


def test_a_thought_before_the_answer_is_not_the_answer() -> None:
    assert label("I first thought 15.") == "TEXT"
    assert label("I first thought 15. It is 12.") == "IMAGE"
    assert label("12, as I said before; 15 would be line 5.") == "IMAGE"
