"""PhD: two questions a row, images by their ids, rows that are left out, and the PhD Index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.answers import Answers
from benchmarks.build import BuildOptions
from benchmarks.plain.phd import COUNTER_COMMON_SENSE
from benchmarks.vocabulary import Estimate, Text
from judges.judge_registry import get_judge
from tests.support.data.plain import data_set_of
from tests.support.data.small import write_picture
from tests.support.labelled import labelled

PHD = data_set_of("phd")
ASK = "In case there is an inconsistency between the context and the image content, you should follow the image."
CCS = {
    "task": "attribute",
    "yes_question": "Green?",
    "no_question": "Black?",
    "ccs_description": "odd",
    "image_id": "3",
}


def row(number: int, icc: str = "The table is glass.") -> dict[str, object]:
    """A row of data.json."""
    questions = {"yes_question": f"Is table {number} wooden?", "no_question": f"Is table {number} of glass?"}
    return {**questions, "task": "attribute", "image_id": f"{number}", "context": {"icc": icc, "iac": "Tables differ."}}


def test_a_row_asks_two_questions_about_the_image_with_its_id(tmp_path: Path) -> None:
    for number, part in ((1, "train2014"), (2, "val2014")):
        write_picture(tmp_path / "images" / part / f"COCO_{part}_{number:012}.jpg", number)
    rows = [CCS, row(1), row(2), row(3), row(1, icc=""), {**row(1), "image_id": "../1"}]
    (tmp_path / "data.json").write_text(json.dumps(rows), "utf-8")
    build = PHD.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    skipped = [json.loads(line) for line in (build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert skipped[0]["reason"] == COUNTER_COMMON_SENSE
    assert [line["row"] for line in skipped[1:]] == [f"data.json:{number}" for number in (4, 4, 5, 5, 6, 6)]
    first, second, *_ = (instance for instance in PHD.instances(build, "paper") if instance.condition == "conflict")
    assert build.manifest["conditions"] == {"conflict": 4, "image-only": 4, "text-only": 4}
    assert (first.references, second.references) == (
        {"image": ("yes",), "text": ("no",)},
        {"image": ("no",), "text": ("yes",)},
    )
    assert (first.strata, second.strata) == (
        {"type": "attribute", "asked": "yes"},
        {"type": "attribute", "asked": "no"},
    )
    assert first.parts[1] == Text(f"The table is glass. {ASK} Is table 1 wooden?")


@pytest.mark.parametrize(
    ("yes", "no", "index"),
    [
        ("IMAGE", "IMAGE", 1.0),
        ("IMAGE", "TEXT", 0.0),
        ("TEXT", "TEXT", 0.0),
        ("IMAGE", "", 0.8),
        ("undecided", "IMAGE", None),
    ],
)
def test_the_phd_index_is_the_harmonic_mean_of_both_recalls(yes: str, no: str, index: float | None) -> None:
    judge = get_judge("match").id
    records = [
        labelled({judge: label}, id=f"{asked}{n}/conflict", group=f"{asked}{n}", condition="conflict", strata=strata)
        for asked, labels in (("yes", [yes] * 3), ("no", [no or "IMAGE"] * 2 + [no or "NEITHER"]))
        for strata in ({"type": "object", "asked": asked},)
        for n, label in enumerate(labels)
    ]
    _, table, *_ = PHD.tables({"m": Answers.of(records, PHD)}, judge, resamples=20, seed=0)
    cells = dict(zip(table.columns, table.rows[0][1], strict=True))
    assert [name for name, _ in table.rows] == ["m / conflict", "m / conflict / object"]
    assert isinstance(cells["PhD Index"], Estimate)
    assert cells["PhD Index"].value == (None if index is None else pytest.approx(index))


@pytest.mark.parametrize("number", [7, 7.0, "7.0"])
def test_an_id_that_is_a_number_names_its_image(number: object, tmp_path: Path) -> None:
    write_picture(tmp_path / "images" / "val2014" / "COCO_val2014_000000000007.jpg", 1)
    (tmp_path / "data.json").write_text(json.dumps([{**row(7), "image_id": number}]), "utf-8")
    assert PHD.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions()).manifest["examples"] == {
        "rows": 2
    }
