"""CMC-Bench's sources: each layout, row by row, and whatever is wrong with a row."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cmc_bench.construction.cmc_candidates import Candidate, candidates, conflict_type
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow, resolve_sources
from benchmarks.cmc_bench.sources.mmmu import parse_options, resolve_gold
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from tests.benchmarks.cmc_bench.test_hub import chartqa_parquet, mmmu_parquet
from tests.support.data.small import (
    REAL_DATA,
    bomb,
    mmmu_rows,
    original_chartqa,
    own_rows,
    picture,
    write_lines,
    write_picture,
)


def _rows(name: str, place: Path) -> list[SourceRow]:
    return [row for row in read_source(name, str(place)) if isinstance(row, SourceRow)]


def _reasons(name: str, place: Path) -> Counter[str]:
    return Counter(row.reason for row in candidates(read_source(name, str(place))) if isinstance(row, SkippedRow))


def _usable(name: str, place: Path) -> list[Candidate]:
    return [candidate for candidate in candidates(read_source(name, str(place))) if isinstance(candidate, Candidate)]


# --- ChartQA -------------------------------------------------------------------------------------


def test_original_layout_is_read_without_training_data(tmp_path: Path) -> None:
    rows = _rows("chartqa", original_chartqa(tmp_path))
    assert len(rows) == 24
    assert {row.question.split()[0] for row in rows} == {"val", "test"}
    assert rows[0].row == "val/val_augmented.json:1"
    by_question = {row.question: row for row in rows}
    assert by_question["test question 4?"].image() == picture(1004)
    assert by_question["test question 4?"].answer == "1004.5"


def test_single_split_folder_is_enough(tmp_path: Path) -> None:
    original_chartqa(tmp_path)
    assert len(_rows("chartqa", tmp_path / "test")) == 12
    with pytest.raises(SourceError, match="expected a folder with png/"):
        _rows("chartqa", tmp_path / "train")


def test_one_file_of_the_original_layout_finds_its_images(tmp_path: Path) -> None:
    original_chartqa(tmp_path)
    file = tmp_path / "test" / "test_human.json"
    images = [picture(1000 + i) for i in range(6)]
    assert [row.image() for row in _rows("chartqa", file)] == images
    assert _rows("chartqa", file)[1].row == "test_human.json:2"
    for image in (tmp_path / "test" / "png").iterdir():
        image.rename(tmp_path / "test" / image.name)
    assert [row.image() for row in _rows("chartqa", file)] == images


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("chartqa", "train_human.json"),
        ("chartqa", "train_augmented.json"),
        ("chartqa", "train-00000-of-00003.parquet"),
        ("chartqa", "train.jsonl"),
        ("mmmu", "dev.json"),
        ("mmmu", "dev-00000-of-00001.parquet"),
        ("mmmu", "dev_rows.jsonl"),
        ("mmmu", "train.jsonl"),
    ],
)
def test_a_file_of_training_data_is_refused(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).write_text('[{"image": "0.png", "query": "q?", "label": "1"}]', "utf-8")
    with pytest.raises(SourceError, match=r"is training data.*never read"):
        list(read_source(name, str(tmp_path / file)))


def test_one_file_of_mmmu_is_read(tmp_path: Path) -> None:
    mmmu_rows(tmp_path, ("Physics",))
    (tmp_path / "rows.jsonl").rename(tmp_path / "development.jsonl")
    assert [row.subject for row in _rows("mmmu", tmp_path / "development.jsonl")] == ["Physics"] * 4


@pytest.mark.parametrize("prefix", ["", "data"])
def test_the_hub_layout_is_read_from_a_folder(tmp_path: Path, prefix: str) -> None:
    chartqa_parquet(tmp_path, prefix)
    rows = _rows("chartqa", tmp_path)
    assert sorted((row.question, row.answer) for row in rows) == [("test 4?", "4"), ("val 2?", "2"), ("val 3?", "3")]
    assert all(row.image() == picture(int(row.answer)) for row in rows)


# --- MMMU ----------------------------------------------------------------------------------------


def test_subject_folders_are_read_without_dev(tmp_path: Path) -> None:
    mmmu_parquet(tmp_path / "Physics", "validation", 1)
    mmmu_parquet(tmp_path / "Physics", "dev", 2)
    mmmu_parquet(tmp_path / "Computer_Science", "validation", 3)
    mmmu_parquet(tmp_path / "Computer_Science", "test", 4, "?")
    rows = _rows("mmmu", tmp_path)
    assert [(row.subject, row.subfield, row.answer) for row in rows] == [
        ("Computer_Science", "Optics", "second 3"),
        ("Physics", "Optics", "second 1"),
    ]
    assert _reasons("mmmu", tmp_path) == {"the answer is unknown": 1}


def test_json_rows_keep_every_subject(tmp_path: Path) -> None:
    rows = _rows("mmmu", mmmu_rows(tmp_path, ("Physics", "Clinical_Medicine")))
    assert Counter(row.subject for row in rows) == {"Physics": 4, "Clinical_Medicine": 4}
    assert {row.answer for row in rows} >= {"entity 0 a", "11"}


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (["a", "b"], ("a", "b")),
        ("['a', 'b']", ("a", "b")),
        ("['it''s', \"it's\"]", ("its", "it's")),
        ({"B": "b", "A": "a"}, ("a", "b")),
        ([1, None, " c "], ("1", "", "c")),
        ("[]", ()),
        (None, ()),
        (7, ()),
        ("not a list", ()),
        ("__import__('os').system('true')", ()),
        ("[" * 50_000, ()),
        ("-" * 90_000 + "1", ()),
        ("['a'," * 20_000, ()),
        ("9" * 200_000, ()),
    ],
)
def test_options_are_parsed_and_never_executed(value: Any, options: tuple[str, ...]) -> None:
    assert parse_options(value) == options


@given(st.text(max_size=60))
def test_any_options_text_is_handled(value: str) -> None:
    assert all(isinstance(option, str) for option in parse_options(value))


def test_letters_become_options_and_open_answers_stay() -> None:
    options = ("red", "green")
    assert resolve_gold("B", options) == resolve_gold("b", options) == resolve_gold("Green.", options) == "green"
    assert resolve_gold("12.5", ()) == "12.5"
    assert resolve_gold("['24/7', '3.429']", ()) == "24/7"
    for wrong in ("C", "Z", "blue"):
        with pytest.raises(RowProblem, match="has no option"):
            resolve_gold(wrong, options)
    with pytest.raises(RowProblem, match="unknown"):
        resolve_gold("?", options)


@pytest.mark.parametrize(
    ("family", "answer", "kind"),
    [
        ("chartqa", "2008", "temporal"),
        ("chartqa", "1899", "factual"),
        ("chartqa", "Navy blue", "factual"),
        ("mmmu", "The Battle of Hastings", "entity"),
        ("mmmu", "x" * 79, "entity"),
        ("mmmu", "x" * 80, "granularity"),
        ("mmmu", "$12,000", "granularity"),
        ("mmmu", "2008", "granularity"),
    ],
)
def test_routing_follows_section_3_2(family: Any, answer: str, kind: str) -> None:
    assert conflict_type(family, answer) == kind


# --- rows of one's own, several sources ------------------------------------------------------------


def test_own_rows_are_routed_by_their_fields(tmp_path: Path) -> None:
    for i in range(3):
        write_picture(tmp_path / "pictures" / f"{i}.jpg", i, "JPEG")
    write_lines(
        tmp_path / "mine.jsonl",
        [
            {"image": "pictures/0.jpg", "question": "When?", "answer": 2008},
            {"image_1": "pictures/1.jpg", "question": "Which?", "options": ["x", "y"], "answer": "B", "group": "g"},
            {"image": "pictures/2.jpg", "question": "Who?", "answer": "Ada", "family": "mmmu", "subject": "s"},
        ],
    )
    usable = _usable("rows", tmp_path)
    assert [(c.type, c.row.answer, c.row.subject, c.image.suffix) for c in usable] == [
        ("temporal", "2008", "", ".jpg"),
        ("entity", "y", "g", ".jpg"),
        ("entity", "Ada", "s", ".jpg"),
    ]


def test_true_and_false_answer_with_yes_and_no(tmp_path: Path) -> None:
    write_picture(tmp_path / "0.png", 0)
    answers: list[dict[str, Any]] = [
        {"answer": True},
        {"answer": False},
        {"label": False},
        {"answer": True, "options": ["No", "Yes"]},
        {"answer": "true"},
    ]
    write_lines(tmp_path / "rows.jsonl", [{"image": "0.png", "question": f"{i}?", **a} for i, a in enumerate(answers)])
    assert [row.answer for row in _rows("rows", tmp_path)] == ["Yes", "No", "No", "Yes", "true"]


def test_folder_without_name_is_read_by_sub_folder(tmp_path: Path) -> None:
    for name in ("rows", "mmmu", "misleading", ".hidden"):
        (tmp_path / name).mkdir()
    assert list(resolve_sources([("", str(tmp_path))])) == [
        ("mmmu", str(tmp_path / "mmmu")),
        ("rows", str(tmp_path / "rows")),
        SkippedRow("misleading", "misleading/", "the folder is not named after a source"),
    ]


def test_wrong_paths_report_expected_and_actual_layout(tmp_path: Path) -> None:
    (tmp_path / "stuff").mkdir()
    (tmp_path / "notes.txt").touch()
    for name, expected in (("chartqa", "png/"), ("mmmu", "parquet"), ("rows", "rows.jsonl")):
        with pytest.raises(SourceError, match=rf"{expected}.*'notes\.txt', 'stuff/'"):
            list(read_source(name, str(tmp_path)))
        with pytest.raises(SourceError, match=r"nowhere.*; .*read from"):
            list(read_source(name, str(tmp_path / "nowhere" / "at" / "all")))
    with pytest.raises(SourceError, match="sub-folders named after sources"):
        list(resolve_sources([("", str(tmp_path))]))
    with pytest.raises(SourceError, match="is not a folder"):
        list(resolve_sources([("", str(tmp_path / "notes.txt"))]))
    with pytest.raises(SpecError, match="did you mean 'chartqa'"):
        list(resolve_sources([("chartq", str(tmp_path))]))


@pytest.mark.parametrize("name", ["broken.parquet", "broken_human.json", "broken2_human.json"])
def test_broken_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes({"broken2_human.json": b'{"a": 1}'}.get(name, b"PAR1 [{"))
    with pytest.raises(SourceError, match=name):
        list(read_source("chartqa", str(tmp_path)))


# --- hostile rows ----------------------------------------------------------------------------------


def test_hostile_rows_are_counted_by_reason_and_never_fatal(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    own_rows(folder, ["1", "2", "3"])
    (tmp_path / "secret.png").write_bytes(picture(1))
    (folder / "half.png").write_bytes(picture(1)[:60])
    (folder / "text.png").write_text("not an image")
    (folder / "bomb.png").write_bytes(bomb(60_000, 60_000))
    (folder / "copy.bmp").write_bytes(picture(9000, "BMP"))
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "circle.png").symlink_to(folder / "circle.png")
    good = {"image": "0.png", "question": "?q", "answer": "4"}
    outside = [
        "../secret.png",
        "/etc/passwd",
        str(tmp_path / "secret.png"),
        "a/../../secret.png",
        "C:\\x.png",
        "out.png",
    ]
    no_image: list[Any] = [None, "", 7, [], {"bytes": None, "path": None}]
    no_question: list[Any] = [None, "", "  ", ["q"]]
    no_answer: list[Any] = [None, "", [], {}, float("nan")]
    lines: list[Any] = [
        *({**good, "image": path} for path in [*outside, "0.png\0.png"]),
        *({**good, "image": path} for path in ("gone.png", "x" * 5000, "circle.png", ".")),
        *({**good, "image": value} for value in no_image),
        {**good, "image": "half.png"},
        {**good, "image": "text.png"},
        {**good, "image": "bomb.png"},
        *({**good, "question": value} for value in no_question),
        *({**good, "answer": value} for value in no_answer),
        {**good, "answer": "?"},
        {**good, "answer": "<image 2>"},
        {**good, "answer": "x" * 3000},
        {**good, "question": "q" * 1_000_000},
        {**good, "question": "lone \ud800"},
        {**good, "answer": "D", "options": ["a", "b"]},
        {**good, "image": "copy.bmp", "question": "own question?", "answer": "1"},
        ["not", "an", "object"],
        {**good, "question": "Ünïcödé \u202e 日本 \x00\x1b[31m?", "answer": "é"},
    ]
    with (folder / "rows.jsonl").open("ab") as file:
        file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
        file.write(b"{not json\n\xff\xfe\n\n" + b"[" * 100_000 + b"\n")
    assert _reasons("rows", folder) == {
        "the image's path leaves the folder": 7,
        "the image is missing; put the file in its place": 3,
        "the row has no image": 5,
        "the image is not a PNG, JPEG, GIF, WebP, BMP or TIFF image; convert it to one of them": 1,  # read as base64
        "the image is truncated or damaged; replace the file": 1,
        "the image is text, not a picture; download or save the picture again": 1,
        "the image has more than 64 megapixels or 256 MiB; scale it down": 1,
        "the row has no question": 4,
        "the row has no answer": 5,
        "the answer is a placeholder; write the right answer": 1,
        "the answer is itself an image": 1,
        "the answer is longer than 2000 characters": 1,
        "the question is longer than 20000 characters": 1,
        "the text is not valid Unicode": 1,
        "the answer's letter has no option": 1,
        "repeated: rows.jsonl:1 is the same row; remove one of them": 1,
        "the line is not a JSON object": 4,
    }
    usable = _usable("rows", folder)
    assert [c.row.answer for c in usable] == ["1", "2", "3", "é"]
    assert len({c.id for c in usable}) == 4


def test_ids_derive_from_content_not_source_ids(tmp_path: Path) -> None:
    same_id = {"id": "7", "image": "0.png"}
    own_rows(tmp_path, ["1"])
    write_lines(
        tmp_path / "rows.jsonl", [{**same_id, "question": q, "answer": a} for q, a in (("a?", "1"), ("b?", "2"))]
    )
    first, second = _usable("rows", tmp_path)
    assert first.id != second.id
    content = ["chartqa", hashlib.sha256(picture(9000)).hexdigest(), "a?", "1"]
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    assert first.id == f"factual-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@pytest.mark.slow
@pytest.mark.skipif(not REAL_DATA.exists(), reason="the real rows are not here")
def test_both_option_spellings_of_real_mmmu_rows_are_read() -> None:
    rows = _rows("mmmu", REAL_DATA / "mmmu")
    assert {type(row.options) for row in rows} == {tuple}
    assert all(len(row.options) >= 2 for row in rows)
    assert _reasons("mmmu", REAL_DATA / "mmmu") == {
        "the row has no image": 1729,
        "the answer's letter has no option": 1,
        "the answer is itself an image": 3,
    }
