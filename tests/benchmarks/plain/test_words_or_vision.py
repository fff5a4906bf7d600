"""Words or Vision: the rows of its repository, COCO's images by a question's id, and the ratio of the model's own answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.papers.published_results import published_rows
from benchmarks.build import BuildOptions
from benchmarks.errors import NothingUsableError
from benchmarks.plain.plain_build import NOT_TEXT
from benchmarks.plain.words_or_vision import NAMES_NO_IMAGE
from benchmarks.rows.files import MISSING_IMAGE
from benchmarks.vocabulary import Estimate, Text
from judges.judge_registry import get_judge
from tests.support.data.plain import answers_of, data_set_of
from tests.support.data.small import write_lines, write_picture

WORDS = data_set_of("words-or-vision")
JUDGE = get_judge("match").id
ROW = {
    "question_id": 112372001,
    "question": "Why does this vehicle have an extra level?",
    "instruct": "contradict_stat",
    "original": ["A large double decker bus."],
    "response": ["It has an extra level to carry more cargo."],
    "original_ans": ["for more passengers"],
    "changed_ans": ["to carry more cargo"],
    "supp_stat": ["It has an extra level to accommodate more passengers."],
}
PROMPT = """\
Here are some additional information which are text descriptions based on the image to assist you for answering the later \
question. Note, the information could be irrelevant, missing some information or inaccurate, please use it with caution: \
It has an extra level to carry more cargo.
----------
Why does this vehicle have an extra level? Please only output the answer with a single word or phrase."""


def test_the_rows_of_the_repository_are_read_with_cocos_images(tmp_path: Path) -> None:
    write_picture(tmp_path / "val2014" / "COCO_val2014_000000112372.jpg", 1)
    rows = [ROW, {**ROW, "question_id": "6001/['table/list']"}, {**ROW, "question_id": 125051034}]
    rows += [{**ROW, "changed_ans": ["a", "b"]}, {**ROW, "question_id": None}, {**ROW, "response": []}]
    write_lines(tmp_path / "contradict_stat.jsonl", rows)
    build = WORDS.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    skipped = [json.loads(line)["reason"] for line in (build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert skipped[0] == NAMES_NO_IMAGE
    assert skipped[1:3] == [MISSING_IMAGE, f"the answer {NOT_TEXT}: it is a list"]
    assert len(skipped) == len(rows) - 1
    both, _, alone = WORDS.instances(build, "paper")
    assert both.references == {"image": ("for more passengers",), "text": ("to carry more cargo",)}
    assert (both.parts[1], alone.parts) == (Text(PROMPT), (Text(PROMPT),))


@pytest.mark.parametrize("number", [112372001, 112372001.0, "112372001", "112372001.0"])
def test_a_question_id_is_read_as_pandas_writes_it(number: object, tmp_path: Path) -> None:
    write_picture(tmp_path / "val2014" / "COCO_val2014_000000112372.jpg", 1)
    write_lines(tmp_path / "rows.jsonl", [{**ROW, "question_id": number}])
    build = WORDS.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    assert build.manifest["examples"] == {"rows": 1}


def test_missing_images_are_one_reason(tmp_path: Path) -> None:
    rows = [{**ROW, "question_id": number} for number in (99999001, 88888001.0, 77777001.5)]
    write_lines(tmp_path / "rows.jsonl", rows)
    with pytest.raises(NothingUsableError, match=f"3 times: {MISSING_IMAGE}; first: ") as error:
        WORDS.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    assert "rows.jsonl:1, val2014/COCO_val2014_000000099999.jpg)" in str(error.value)
    write_picture(tmp_path / "val2014" / "COCO_val2014_000000112372.jpg", 1)
    write_lines(tmp_path / "rows.jsonl", [ROW, *rows])
    build = WORDS.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    skipped = [json.loads(line) for line in (build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert {line["reason"] for line in skipped} == {MISSING_IMAGE}
    files = ("000000099999", "000000088888", "77777001.5")
    assert [line["detail"] for line in skipped] == [f"val2014/COCO_val2014_{file}.jpg" for file in files]


def test_the_papers_ratios_stand_beside_ours() -> None:
    _, own, *_ = WORDS.tables({"m": answers_of("words-or-vision", ["TEXT"])}, JUDGE, resamples=20, seed=0)
    published = dict(published_rows(own, "words-or-vision"))
    assert len(published) == 10
    cells = dict(zip(own.columns, published["LLaVA-NeXT-7B (paper)"], strict=True))
    assert {name for name, cell in cells.items() if cell} == {"TPR"}
    assert cells["TPR"] == Estimate(pytest.approx(0.8552))  # type: ignore[arg-type]
