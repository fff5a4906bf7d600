"""CMC-Bench's sources: each layout, row by row, and whatever is wrong with a row."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cmc_bench.candidates import Candidate, candidates, conflict_type
from benchmarks.cmc_bench.files import RowProblem, Skipped
from benchmarks.cmc_bench.hub import hub_rows
from benchmarks.cmc_bench.source import Row, is_hub_id, read, resolved
from benchmarks.cmc_bench.source_mmmu import gold_of, options_of
from benchmarks.errors import SourceError, SpecError
from tests.benchmarks.small_data import (
    REAL_DATA,
    bomb,
    mmmu_rows,
    original_chartqa,
    own_rows,
    picture,
    write_lines,
    write_picture,
)


def _rows(name: str, place: Path) -> list[Row]:
    return [row for row in read(name, str(place)) if isinstance(row, Row)]


def _reasons(name: str, place: Path) -> Counter[str]:
    return Counter(found.reason for found in candidates(read(name, str(place))) if isinstance(found, Skipped))


def _usable(name: str, place: Path) -> list[Candidate]:
    return [found for found in candidates(read(name, str(place))) if isinstance(found, Candidate)]


# --- ChartQA -------------------------------------------------------------------------------------


def test_the_original_layout_is_read_without_its_training_data(tmp_path: Path) -> None:
    rows = _rows("chartqa", original_chartqa(tmp_path))
    assert len(rows) == 24
    assert {row.question.split()[0] for row in rows} == {"val", "test"}
    assert rows[0].row == "val/val_augmented.json:1"
    by_question = {row.question: row for row in rows}
    assert by_question["test question 4?"].image() == picture(1004)
    assert by_question["test question 4?"].answer == "1004.5"


def test_one_split_folder_of_the_original_layout_is_enough(tmp_path: Path) -> None:
    original_chartqa(tmp_path)
    assert len(_rows("chartqa", tmp_path / "test")) == 12
    with pytest.raises(SourceError, match="expected a folder with png/"):
        _rows("chartqa", tmp_path / "train")


def _chartqa_parquet(folder: Path, prefix: str = "") -> None:
    for split, numbers in (("train", (1,)), ("val", (2, 3)), ("test", (4,))):
        rows = [
            {
                "image": {"bytes": picture(n), "path": None},
                "query": f"{split} {n}?",
                "label": [str(n)],
                "human_or_machine": 0,
            }
            for n in numbers
        ]
        (folder / prefix).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / prefix / f"{split}-00000-of-00001.parquet")


@pytest.mark.parametrize("prefix", ["", "data"])
def test_the_hub_layout_is_read_from_a_folder(tmp_path: Path, prefix: str) -> None:
    _chartqa_parquet(tmp_path, prefix)
    rows = _rows("chartqa", tmp_path)
    assert sorted((row.question, row.answer) for row in rows) == [("test 4?", "4"), ("val 2?", "2"), ("val 3?", "3")]
    assert all(row.image() == picture(int(row.answer)) for row in rows)


def test_the_hub_itself_is_read_through_datasets_with_the_original_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    _chartqa_parquet(tmp_path / "hub", "data")
    found = list(hub_rows(str(tmp_path / "hub"), None, "val", "another layout"))
    assert [raw.fields["query"] for raw in found] == ["val 2?", "val 3?"]
    assert found[0].fields["image"]["bytes"] == picture(2)
    assert found[1].where == "val:1"
    with pytest.raises(SourceError, match="another layout"):
        list(hub_rows(str(tmp_path / "hub"), None, "no-such-split", "another layout"))


def test_mmmu_is_read_through_datasets_by_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    configs = ""
    for subject, number in (("Physics", 1), ("Art", 2)):
        _mmmu_parquet(tmp_path / "hub" / subject, "validation", number)
        configs += f"- config_name: {subject}\n  data_files:\n  - split: validation\n    path: {subject}/validation-*\n"
    (tmp_path / "hub" / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", "utf-8")
    (found,) = hub_rows(str(tmp_path / "hub"), "Art", "validation", "")
    assert (found.where, found.fields["answer"], found.fields["image_1"]["bytes"]) == (
        "Art/validation:0",
        "B",
        picture(2),
    )


def test_offline_the_error_names_a_layout_that_would_do(tmp_path: Path) -> None:
    code = (
        "from benchmarks.cmc_bench.source import read\n"
        "from benchmarks.errors import SourceError\n"
        "try: list(read('chartqa', 'HuggingFaceM4/ChartQA'))\n"
        "except SourceError as error: print(error)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "HF_DATASETS_OFFLINE": "1"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "HuggingFaceM4/ChartQA (val) cannot be loaded from the Hub or its cache" in told.stdout
    assert "png/ and *_human.json" in told.stdout


def test_a_path_that_exists_is_never_taken_for_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_hub_id("HuggingFaceM4/ChartQA")
    (tmp_path / "HuggingFaceM4" / "ChartQA").mkdir(parents=True)
    assert not is_hub_id("HuggingFaceM4/ChartQA")
    assert not any(map(is_hub_id, ("/MMMU/MMMU", "a/b/c", "../MMMU", "MMMU", "a b/c", "~/x")))


# --- MMMU ----------------------------------------------------------------------------------------


def _mmmu_parquet(folder: Path, split: str, number: int, answer: str = "B") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    row = {
        "id": f"{split}_{folder.name}_{number}",
        "question": f"What is <image 1>, {number}?",
        "options": f"['first {number}', 'second {number}']",
        "answer": answer,
        "image_1": {"bytes": picture(number), "path": "x.png"},
        "subfield": "Optics",
    }
    pq.write_table(pa.Table.from_pylist([row]), folder / f"{split}-00000-of-00001.parquet")


def test_a_folder_for_each_subject_is_read_without_dev(tmp_path: Path) -> None:
    _mmmu_parquet(tmp_path / "Physics", "validation", 1)
    _mmmu_parquet(tmp_path / "Physics", "dev", 2)
    _mmmu_parquet(tmp_path / "Computer_Science", "validation", 3)
    _mmmu_parquet(tmp_path / "Computer_Science", "test", 4, "?")
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
    assert options_of(value) == options


@given(st.text(max_size=60))
def test_any_text_of_options_is_survived(value: str) -> None:
    assert all(isinstance(option, str) for option in options_of(value))


def test_letters_become_options_and_open_answers_stay() -> None:
    options = ("red", "green")
    assert gold_of("B", options) == gold_of("b", options) == gold_of("Green.", options) == "green"
    assert gold_of("12.5", ()) == "12.5"
    assert gold_of("['24/7', '3.429']", ()) == "24/7"
    for wrong in ("C", "Z", "blue"):
        with pytest.raises(RowProblem, match="has no option"):
            gold_of(wrong, options)
    with pytest.raises(RowProblem, match="unknown"):
        gold_of("?", options)


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


def test_own_rows_go_by_the_rules_their_fields_ask_for(tmp_path: Path) -> None:
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
    found = _usable("rows", tmp_path)
    assert [(c.type, c.row.answer, c.row.subject, c.suffix) for c in found] == [
        ("temporal", "2008", "", ".jpg"),
        ("entity", "y", "g", ".jpg"),
        ("entity", "Ada", "s", ".jpg"),
    ]


def test_a_nameless_folder_is_read_by_its_sub_folders(tmp_path: Path) -> None:
    for name in ("rows", "mmmu", "misleading", ".hidden"):
        (tmp_path / name).mkdir()
    assert list(resolved([("", str(tmp_path))])) == [
        ("mmmu", str(tmp_path / "mmmu")),
        ("rows", str(tmp_path / "rows")),
        Skipped("misleading", "misleading/", "the folder is not named after a source"),
    ]


def test_wrong_places_say_what_was_expected_and_found(tmp_path: Path) -> None:
    (tmp_path / "stuff").mkdir()
    (tmp_path / "notes.txt").touch()
    for name, expected in (("chartqa", "png/"), ("mmmu", "parquet"), ("rows", "rows.jsonl")):
        with pytest.raises(SourceError, match=rf"{expected}.*'notes\.txt', 'stuff/'"):
            list(read(name, str(tmp_path)))
        with pytest.raises(SourceError, match=r"does not exist.*read from"):
            list(read(name, str(tmp_path / "nowhere" / "at" / "all")))
    with pytest.raises(SourceError, match="sub-folders named after sources"):
        list(resolved([("", str(tmp_path))]))
    with pytest.raises(SourceError, match="is not a folder"):
        list(resolved([("", str(tmp_path / "notes.txt"))]))
    with pytest.raises(SpecError, match="did you mean 'chartqa'"):
        list(resolved([("chartq", str(tmp_path))]))


@pytest.mark.parametrize("name", ["broken.parquet", "broken_human.json", "broken2_human.json"])
def test_a_file_that_is_broken_as_a_whole_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes({"broken2_human.json": b'{"a": 1}'}.get(name, b"PAR1 [{"))
    with pytest.raises(SourceError, match=name):
        list(read("chartqa", str(tmp_path)))


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
    no_answer: list[Any] = [None, "", [], {}, True, float("nan")]
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
        {**good, "image": "copy.bmp", "question": "own question 0?", "answer": "1"},
        ["not", "an", "object"],
        {**good, "question": "Ünïcödé \u202e 日本 \x00\x1b[31m?", "answer": "é"},
    ]
    with (folder / "rows.jsonl").open("ab") as file:
        file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
        file.write(b"{not json\n\xff\xfe\n\n" + b"[" * 100_000 + b"\n")
    assert _reasons("rows", folder) == {
        "the image's path leaves the folder": 7,
        "the image is missing; put the file in its place": 4,
        "the row has no image": 5,
        "the image is truncated or damaged; replace the file": 1,
        "the image is not a PNG, JPEG, GIF, WebP, BMP or TIFF image; convert it to one of them": 1,
        "the image has more than 64 megapixels or 256 MiB; scale it down": 1,
        "the row has no question": 4,
        "the row has no answer": 6,
        "the answer is unknown": 1,
        "the answer is itself an image": 1,
        "the answer is longer than 2000 characters": 1,
        "the question is longer than 20000 characters": 1,
        "the text is not valid Unicode": 1,
        "the answer's letter has no option": 1,
        "repeated: another row has this picture, question and answer": 1,
        "the line is not a JSON object": 4,
    }
    usable = _usable("rows", folder)
    assert [c.row.answer for c in usable] == ["1", "2", "3", "é"]
    assert len({c.id for c in usable}) == 4


def test_ids_are_content_and_not_the_sources_ids(tmp_path: Path) -> None:
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


@pytest.mark.skipif(not REAL_DATA.exists(), reason="the real rows are not here")
def test_real_mmmu_rows_of_both_spellings_of_options_are_read() -> None:
    rows = _rows("mmmu", REAL_DATA / "mmmu")
    assert {type(row.options) for row in rows} == {tuple}
    assert all(len(row.options) >= 2 for row in rows)
    assert _reasons("mmmu", REAL_DATA / "mmmu") == {
        "the row has no image": 1729,
        "the answer's letter has no option": 1,
        "the answer is itself an image": 3,
    }
