"""Words or Vision: the rows of its repository, COCO's images by a question's id, and the ratio of the model's own answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.report.published import published_rows
from benchmarks.answers import Answers
from benchmarks.build import BuildOptions
from benchmarks.plain import DATA_SETS
from benchmarks.plain.own_answers import OWN
from benchmarks.plain.words_or_vision import NAMES_NO_IMAGE
from benchmarks.repeats import REPEAT, in_repeat
from benchmarks.vocabulary import Estimate, Instance, Text
from judges.registry import get_judge
from tests.support.data.plain import data_set_of
from tests.support.data.small import write_lines, write_picture
from tests.support.labelled import labelled

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
    assert skipped[1].endswith("000000125051")
    assert len(skipped) == len(rows) - 1
    both, _, alone = WORDS.instances(build, "paper")
    assert both.references == {"image": ("for more passengers",), "text": ("to carry more cargo",)}
    assert (both.parts[1], alone.parts) == (Text(PROMPT), (Text(PROMPT),))


def answers_of(*examples: tuple[str | None, ...], repeats: int = 1) -> Answers:
    """The answers to examples: under conflict, to the image and to the text; None for an error."""
    records = [
        labelled(
            {JUDGE: "NEITHER"},
            id=in_repeat(f"{number}/{condition}", repeat),
            group=in_repeat(f"{number}", repeat),
            condition=condition,
            answer=answer or "",
            error=answer is None,
            strata={"type": "VQAv2"} | ({REPEAT: str(repeat)} if repeats > 1 else {}),
        )
        for number, answers in enumerate(examples)
        for repeat in range(1, repeats + 1)
        for condition, answer in zip(("conflict", "image-only", "text-only"), answers, strict=False)
    ]
    return Answers.of(records, WORDS)


def own_row(answers: Answers) -> dict[str, int | tuple[float | None, int]]:
    """The row of a run in the table of own answers."""
    tables = WORDS.tables({"m": answers}, JUDGE, resamples=20, seed=0)
    (table,) = (table for table in tables if table.name == "own-answers")
    cells = zip(table.columns, table.rows[0][1], strict=True)
    return {name: (cell.value, cell.n) if isinstance(cell, Estimate) else int(str(cell)) for name, cell in cells}


def test_the_ratio_counts_answers_that_equal_one_of_the_models_own() -> None:
    row = own_row(
        answers_of(
            ("Red.", "Red", "Blue"),
            ("Blue", "Red", "Blue."),
            ("blue", "Red", "Blue"),
            ("Blue", "Red", "<think>Red or blue?</think>Blue"),
            ("Red", "Red", "Red"),
            ("Green", "Red", "Blue"),
            ("Red", None, "Blue"),
            ("Red", "Red"),
            ("", "Red", "Blue"),
            (None, "Red", "Blue"),
        )
    )
    assert row["TPR"] == (2 / 3, 3)
    assert (row["answers"], row["compared"]) == (8, 6)
    assert [row[name] for name in OWN] == [(1 / 6, 6), (2 / 6, 6), (1 / 6, 6), (2 / 6, 6)]


def test_the_ratio_of_no_answer_and_of_repeats() -> None:
    row = own_row(answers_of(("Red", "Red")))
    assert (row["answers"], row["compared"], row["TPR"]) == (1, 0, (None, 0))
    assert own_row(answers_of(("Red", "Red", "Blue"), ("Blue", "Red", "Blue"), repeats=3))["TPR"] == (0.5, 6)


def test_the_papers_ratios_stand_beside_ours() -> None:
    _, own, *_ = WORDS.tables({"m": answers_of(("Red", "Red", "Blue"))}, JUDGE, resamples=20, seed=0)
    published = dict(published_rows(own, "words-or-vision"))
    assert len(published) == 10
    cells = dict(zip(own.columns, published["LLaVA-NeXT-7B (paper)"], strict=True))
    assert {name for name, cell in cells.items() if cell} == {"TPR"}
    assert cells["TPR"] == Estimate(pytest.approx(0.8552))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DATA_SETS)
def test_examples_with_own_metrics_have_groups_of_their_own(name: str) -> None:
    data_set = data_set_of(name)
    assert not (data_set.own_metrics and "group" in data_set.optional_columns)
    instance = Instance("a/conflict", "a", "conflict", "?", (), {}, {})
    assert not data_set.own_metrics or {*data_set.sources_alone(instance)} == {"image", "text"}
