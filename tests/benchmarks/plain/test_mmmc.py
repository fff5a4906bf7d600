"""MMMC: a question against its image, in pairs of conflict and clean rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.build import BuildOptions
from benchmarks.scorecard import scorecard_table
from benchmarks.vocabulary import Estimate, Generation, Instance, Record
from judges.registry import get_judge
from tests.support.data.plain import answers_of, data_set_of, main_table, rows_of, write_rows_of
from tests.support.data.small import write_lines

MMMC = data_set_of("mmmc")
JUDGE = get_judge("premise")


def test_rows_without_a_type_are_clean_and_pairs_are_one_example(tmp_path: Path) -> None:
    write_rows_of("mmmc", tmp_path, 6)
    rows = rows_of("mmmc", 6)
    for row, empty in zip(rows[1::2], (None, "null", ""), strict=True):
        row["conflict_type"] = empty
    for number, row in enumerate(rows):
        row["image_id"] = f"pair {number // 2}"
    write_lines(tmp_path / "rows.jsonl", rows)
    build = MMMC.build([("published", str(tmp_path / "rows.jsonl"))], tmp_path / "out", BuildOptions())
    assert build.manifest["types"] == {"attribute": 1, "not named": 3, "object": 1, "relation": 1}
    instances = list(MMMC.instances(build, "plain"))
    assert [instance.condition for instance in instances] == ["conflict", "clean"] * 3
    assert len({instance.group for instance in instances}) == 3
    assert len({instance.id for instance in instances}) == 6


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
    card = scorecard_table(MMMC, runs, JUDGE.id, rule=None, resamples=20, seed=0)
    assert card is not None
    shares = {name: (cells[0].value, cells[0].n) for name, cells in card.rows if isinstance(cells[0], Estimate)}
    assert shares == {
        "conflict: flags the conflict or abstains": (0.25, 4),
        "conflict: invents a value": (0.5, 4),
        "conflict: gives no answer": (0.25, 4),
    }
    assert any("no second source" in note for note in card.notes)
    _, values = main_table("mmmc", outcomes)
    assert values == {"Right": (1 / 3, 3), "Hallu-Rate": (2 / 3, 3)}
