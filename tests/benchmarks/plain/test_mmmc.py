"""MMMC: a question against its image, in pairs of conflict and clean rows."""

from __future__ import annotations

from pathlib import Path

from benchmarks.build import BuildOptions
from tests.support.data.plain import data_set_of, main_table, rows_of, write_rows_of
from tests.support.data.small import write_lines

MMMC = data_set_of("mmmc")


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


def test_the_hallu_rate_is_over_answers_with_a_label() -> None:
    _, values = main_table("mmmc", ["ABSTAIN", "NEITHER", "NEITHER", "unparsed", "undecided"])
    assert values == {"Right": (1 / 3, 3), "Hallu-Rate": (2 / 3, 3)}
