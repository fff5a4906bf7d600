"""MC²: COCO's images by their ids, both answers as options, and the paper's metric."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.build import BuildOptions
from benchmarks.rows.files import MISSING_IMAGE, OUTSIDE
from benchmarks.vocabulary import Text
from tests.support.data.plain import data_set_of, main_table, rows_of
from tests.support.data.small import write_lines, write_picture

MC2 = data_set_of("mc2")
FILES = ("val2014/COCO_val2014_000000000000.jpg", "train2014/COCO_train2014_000000000001.jpg")


def test_an_image_is_found_by_its_id_in_the_folders_of_coco(tmp_path: Path) -> None:
    for number, file in enumerate(FILES):
        write_picture(tmp_path / file, number)
    rows = [{**row, "image_id": f"{number:012d}"} for number, row in enumerate(rows_of("mc2", 3))]
    rows.append({**rows[0], "image_id": "/../../val2014/COCO_val2014_000000000000"})
    (tmp_path / "evaluate_final.json").write_text(json.dumps(rows), "utf-8")
    build = MC2.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    assert build.manifest["examples"] == {"rows": 2}
    missing, outside = map(json.loads, (build.path / "skipped.jsonl").read_text("utf-8").splitlines())
    places = "val2014/COCO_val2014_000000000002.jpg or train2014/COCO_train2014_000000000002.jpg"
    assert (missing["reason"], missing["detail"]) == (MISSING_IMAGE, places)
    assert outside["reason"] == OUTSIDE


def test_both_answers_are_options_in_an_order_of_the_row(tmp_path: Path) -> None:
    rows = rows_of("mc2", 20)
    for number, row in enumerate(rows):
        row |= {"answer_vision": f"{{a}} {number}", "answer_text": f"b{{{number}"}
        write_picture(tmp_path / row["image_id"], number)
    write_lines(tmp_path / "rows.jsonl", rows)
    build = MC2.build([("published", str(tmp_path / "rows.jsonl"))], tmp_path / "out", BuildOptions())
    firsts = set()
    for instance in MC2.instances(build, "choice"):
        text = "".join(part.text for part in instance.parts if isinstance(part, Text))
        options = text.rpartition("nothing else: ")[2].split(" | ")
        firsts.add((instance.group, options[0][0]))
        own = instance.question.rpartition(" ")[2].rstrip("?")
        assert sorted(options) == sorted([f"{{a}} {own}", f"b{{{own}"])
    assert len(firsts) == 20, "one order in all conditions of a row"
    assert {first for _, first in firsts} == {"{", "b"}


def test_the_vision_ratio_is_over_answers_that_follow_a_source() -> None:
    _, values = main_table("mc2", ["IMAGE", *["TEXT"] * 3, "BOTH", "NEITHER", "ABSTAIN", "undecided"])
    assert values == {"Right": (2 / 7, 7), "Vision Ratio": (0.25, 4)}
