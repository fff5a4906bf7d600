"""Questions against their image: the rule of ``premise``, and a scorecard without a second source."""

from __future__ import annotations

import pytest

from benchmarks.tables.scorecard import scorecard_table
from benchmarks.vocabulary import Estimate, Generation, Instance, Record
from judges.judge_registry import get_judge
from tests.support.data.plain import answers_of, data_set_of

JUDGE = get_judge("premise")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("There is no umbrella in the image.", "ABSTAIN"),
        ("The umbrella is not visible, so its colour cannot be told.", "ABSTAIN"),
        ("The image does not show a dog.", "ABSTAIN"),
        ("I can't see any umbrella.", "ABSTAIN"),
        ("This cannot be determined.", "ABSTAIN"),
        ("Red.", "NEITHER"),
        ("It is red and white.", "NEITHER"),
        ("The man holds a red umbrella while he waits for the bus.", None),
        ("The umbrella is not open.", None),
        ("No.", None),
    ],
)
def test_the_rule_decides_only_plain_objections_and_bare_values(answer: str, label: str | None) -> None:
    instance = Instance("a/conflict", "a", "conflict", "What colour is the umbrella?", (), {}, {})
    verdict = JUDGE.judge(Record(instance, (Generation("a", answer, "stop"),), {}))
    assert (verdict.label, verdict.status) == (label, "labelled" if label else "undecided")


def test_the_scorecard_says_what_it_cannot_tell() -> None:
    outcomes = ["ABSTAIN", "NEITHER", "NEITHER", "unparsed", "undecided"]
    runs = {"m": answers_of("mmmc", outcomes), "clean": answers_of("mmmc", ["NEITHER"], "clean")}
    card = scorecard_table(data_set_of("mmmc"), runs, JUDGE.id, rule=None, resamples=20, seed=0)
    assert card is not None
    shares = {name: (cells[0].value, cells[0].n) for name, cells in card.rows if isinstance(cells[0], Estimate)}
    assert shares == {
        "conflict: flags the conflict or abstains": (0.25, 4),
        "conflict: invents a value": (0.5, 4),
        "conflict: gives no answer": (0.25, 4),
    }
    assert any("no second source" in note for note in card.notes)
