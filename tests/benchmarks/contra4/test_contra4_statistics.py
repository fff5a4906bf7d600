"""Contra4's samples by category (Figure 6) and by their modalities (Figure 7)."""

from __future__ import annotations

import json

from benchmarks.contra4.contra4_constants import CATEGORIES, COMBINATIONS
from benchmarks.contra4.contra4_sample import Contra4Sample, parse_sample
from benchmarks.contra4.contra4_statistics import statistics_tables
from tests.support.data.contra4 import DATA, PLAIN, real_rows, row


def sample(split: str, scenes: list[tuple[str, str, str | int, str]], **more: str) -> Contra4Sample:
    return parse_sample(row("x", scenes, **more), split)


def test_each_split_is_a_panel_and_one_without_categories_is_left_out_of_them() -> None:
    samples = [
        sample("test", PLAIN[:2], category="Other"),
        sample("test", PLAIN[:2], category="Audio, Sound & Music"),
        sample("test", [PLAIN[0], ("image", "coco_val", 140, "A bed"), PLAIN[2]], category="Other"),
        sample("val", PLAIN),
    ]
    categories, modalities = statistics_tables(samples)
    assert categories.rows == (("test, 3 samples / Other", (2,)), ("test, 3 samples / Audio, Sound & Music", (1,)))
    assert len(modalities.rows) == 2 * len(COMBINATIONS) + 1
    assert {label: cells for label, cells in modalities.rows if cells != (0,)} == {
        "test, 3 samples / audio+image": (2,),
        "test, 3 samples / 3d+image+image": (1,),
        "val, 1 samples / audio+3d+image+video": (1,),
    }


def test_many_files_are_counted_together() -> None:
    categories, modalities = statistics_tables([sample(f"file-{n}", PLAIN[:2]) for n in range(9)])
    assert categories.rows == ()
    assert modalities.rows[1] == ("9 files, 9 samples / audio+image", (9,))


def test_rare_categories_are_counted_together() -> None:
    categories, _ = statistics_tables([sample("mine", PLAIN[:2], category=f"topic {n}") for n in range(500)])
    assert len(categories.rows) == 21
    assert categories.rows[-1] == ("mine, 500 samples / 480 others", (480,))


@real_rows
def test_the_published_test_rows_have_the_papers_nine_categories() -> None:
    rows = json.loads((DATA / "test.json").read_text("utf-8"))
    categories, _ = statistics_tables([parse_sample(fields, "test") for fields in rows])
    counts = {label.partition(" / ")[2]: cells[0] for label, cells in categories.rows}
    assert set(counts) == set(CATEGORIES)
    assert sum(count for count in counts.values() if isinstance(count, int)) == 2335
