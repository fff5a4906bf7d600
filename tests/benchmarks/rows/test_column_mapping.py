"""Tables and logs of other tools, keys that a user maps, and pictures in cells."""

from __future__ import annotations

import csv
import io
import json
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.build import BuildOptions
from benchmarks.cmc_bench.sources import read_source as read_table
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.errors import RashomonError, SourceError, SpecError, UnknownKeysError
from benchmarks.registry import get_benchmark
from benchmarks.retrieval.retrieval_log_row import LogRow
from benchmarks.retrieval.sources import read_source as read_log
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.row_checks import TableCheck
from tests.support.command import ROOT
from tests.support.data.small import picture
from tests.support.pdf_files import picture_pdf

CASES = ROOT.parent / "shared" / "cases" / "tables"
BASE64 = [b64encode(picture(number)).decode() for number in range(6)]
ASKED = "What is the value of kale?"
Fields = Mapping[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    return tmp_path


def lines(folder: Path, *rows: Fields, name: str = "t.jsonl") -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder / name


def tsv(folder: Path, header: Sequence[str], *rows: Sequence[object]) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t").writerows([header, *rows])
    (folder / "t.tsv").write_text(text.getvalue(), "utf-8", newline="")
    return folder / "t.tsv"


def table(file: Path, mapping: str = "") -> list[SourceRow | SkippedRow]:
    return list(read_table("rows", str(file), "", mapping))


def rows(file: Path, mapping: str = "") -> list[SourceRow]:
    result = table(file, mapping)
    assert all(isinstance(row, SourceRow) for row in result), result
    return [row for row in result if isinstance(row, SourceRow)]


def log(file: Path, mapping: str = "") -> list[LogRow]:
    result = list(read_log("log", str(file), "", mapping))
    assert all(isinstance(row, LogRow) for row in result), result
    return [row for row in result if isinstance(row, LogRow)]


def check(file: Path, mapping: str = "", benchmark: str = "cmc-bench") -> TableCheck:
    return get_benchmark(benchmark).check_rows(file, BuildOptions(mapping=mapping))


def reasons(file: Path, mapping: str = "") -> list[str]:
    return [row.reason for row in table(file, mapping) if isinstance(row, SkippedRow)]


# --- the mapping of a user ---------------------------------------------------------------------------


def test_mapped_keys_are_read_nested_ones_included(folder: Path) -> None:
    row = {"Doc": {"Page": "0.png"}, "in": {"query": ASKED}, "ref.value": 43, "trust": "image"}
    (mapped,) = rows(lines(folder, row), "image=doc.page, question=in.query,answer=ref.value")
    assert (mapped.question, mapped.answer, mapped.trust, mapped.image()) == (ASKED, "43", "image", picture(0))


def test_an_object_in_a_cell_is_reached_into(folder: Path) -> None:
    file = tsv(folder, ("file", "fields"), ("0.png", json.dumps({"q": ASKED, "a": "43"})))
    assert rows(file, "image=file,question=fields.q,answer=fields.a")[0].answer == "43"


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("question", ("preset", "vlmevalkit")),
        ("ragas,langsmith", ("two presets",)),
        ("colour=x", ("known are",)),
        ("query=question", ("question=query",)),
        ("question=", ("COLUMN=KEY",)),
        ("question=a,question=b", ("a and b",)),
        ("anwser=x", ("answer",)),
    ],
)
def test_a_wrong_mapping_is_one_sentence(folder: Path, mapping: str, words: Sequence[str]) -> None:
    with pytest.raises(SpecError) as caught:
        table(lines(folder, {"image": "0.png", "question": ASKED, "answer": "43"}), mapping)
    assert all(word in str(caught.value) for word in words)


def test_a_mapped_key_that_is_missing_names_those_that_are_there(folder: Path) -> None:
    file = lines(folder, {"page": "0.png", "query": ASKED, "target": "43"})
    with pytest.raises(UnknownKeysError) as caught:
        table(file, "image=pagge,answer=target")
    message = str(caught.value)
    assert "pagge" in message
    assert "page, query, target" in message
    assert caught.value.guess["image"] == "page"
    assert "--map image=page,answer=target" in message or "--map answer=target,image=page" in message


def test_a_mapped_key_may_come_late(folder: Path) -> None:
    first = [{"image": f"{n % 6}.png", "question": ASKED, "answer": n} for n in range(40)]
    read = rows(lines(folder, *first, {**first[0], "wrong": "7"}), "conflict=wrong")
    assert [row.conflict for row in read[-2:]] == ["", "7"]


def test_two_keys_for_a_column_have_to_be_chosen_from(folder: Path) -> None:
    file = lines(folder, {"image": "0.png", "question": ASKED, "label": "43", "gold": "44"})
    with pytest.raises(SourceError, match="label and gold"):
        table(file)
    assert rows(file, "answer=gold")[0].answer == "44"


def test_unknown_keys_are_one_error_for_a_file_of_many_rows(folder: Path) -> None:
    file = lines(folder, *({"page": "0.png", "query": f"{n}?", "reference": n} for n in range(149)))
    with pytest.raises(UnknownKeysError, match="no column image, answer; it has page, query, reference") as caught:
        table(file)
    mapping = str(caught.value).rpartition("--map ")[2]
    assert len(rows(file, mapping)) == 149


def test_long_and_hostile_keys_and_cells_make_no_long_message(folder: Path) -> None:
    row = {"\x1b[31m" + "k" * 5000: "v" * 100_000, **{f"key{n}": n for n in range(500)}}
    with pytest.raises(UnknownKeysError) as caught:
        table(lines(folder, row))
    assert len(str(caught.value)) < 2000


# --- the forms of other tools ------------------------------------------------------------------------


def test_a_vlmevalkit_table_is_read(folder: Path) -> None:
    file = tsv(
        folder,
        ("index", "image", "question", "hint", "A", "B", "C", "answer", "category"),
        (0, BASE64[0], "Which?", "Look at the bars.", "Egg", "Larva", "Adult", "B", "x"),
        (1, "0", "Which one?", "", "Egg", "Larva", "", "A", "x"),
        (2, "3", "Which other?", "", "North", "South", "", "A", "x"),
        (3, BASE64[1], "Which last?", "", "", "", "", "43", "x"),
    )
    first, second, third, last = rows(file)
    assert (first.question, first.options) == ("Look at the bars.\nWhich?", ("Egg", "Larva", "Adult"))
    assert [row.answer for row in (first, second, third, last)] == ["Larva", "Egg", "North", "43"]
    assert [row.image() for row in (first, second, third)] == [picture(0), picture(0), picture(1)]
    assert check(file).remarks[:2] == ["read as a VLMEvalKit table", "nothing is read from the column category"]


def test_a_vlmevalkit_table_may_name_files(folder: Path) -> None:
    (folder / "images").mkdir()
    (folder / "images" / "7.jpg").write_bytes(picture(3))
    file = tsv(folder, ("index", "image_path", "question", "answer"), (7, "7.jpg", ASKED, "43"))
    assert rows(file)[0].image() == picture(3)
    two = tsv(folder, ("index", "image", "question", "A", "B", "answer"), (0, str(BASE64[:2]), ASKED, "x", "y", "A"))
    assert "several images" in reasons(two)[0]


def test_an_answer_beside_the_options_is_not_called_a_letter(folder: Path) -> None:
    file = tsv(folder, ("index", "image", "question", "A", "B", "answer"), (0, BASE64[0], "Which?", "x", "y", "40"))
    assert reasons(file) == ["the answer is none of the options; write one of them, or its letter"]


def test_a_chartqa_file_is_read(folder: Path) -> None:
    (folder / "png").mkdir()
    (folder / "png" / "two_col_1.png").write_bytes(picture(4))
    (folder / "t.json").write_text(json.dumps([{"imgname": "two_col_1.png", "query": ASKED, "label": "43"}]), "utf-8")
    assert rows(folder / "t.json")[0].image() == picture(4)


def test_an_mmlongbench_file_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    (folder / "documents").mkdir()
    (folder / "documents" / "report.pdf").write_bytes(picture_pdf(3))
    row = {
        "doc_id": "report.pdf",
        "question": ASKED,
        "answer": "18.29%",
        "evidence_pages": "[2]",
        "answer_format": "Float",
    }
    pages = [row, {**row, "evidence_pages": "[2, 3]"}, {**row, "evidence_pages": "[]"}, {**row, "doc_id": "gone.pdf"}]
    good, *bad = table(lines(folder, *pages))
    assert isinstance(good, SourceRow)
    assert (good.answer, good.document) == ("18.29%", "report.pdf")
    assert good.image().startswith(b"\x89PNG")
    assert [row.reason.partition(";")[0] for row in bad if isinstance(row, SkippedRow)] == [
        "the row has several images",
        "the row has no image",
        "the image is missing",
    ]


RAGAS = {"user_input": ASKED, "retrieved_contexts": ["Kale came to 40."], "response": "40", "reference": "43"}
OLD_RAGAS = {"question": ASKED, "contexts": ["Kale came to 40."], "answer": "40", "ground_truth": "43"}
LANGSMITH = {
    "inputs": {"question": ASKED},
    "outputs": {"answer": "40"},
    "reference_outputs": {"answer": "43"},
    "metadata": {"contexts": ["Kale came to 40."]},
}
LANGFUSE = {"input": {"question": ASKED}, "expectedOutput": "43", "metadata": {"contexts": ["Kale came to 40."]}}
TRACE = {"input": ASKED, "output": "40", "metadata": {"contexts": ["Kale came to 40."]}}


@pytest.mark.parametrize(
    ("row", "image", "mapping", "answer"),
    [
        (RAGAS, {"page": "0.png"}, "ragas,image=page", "43"),
        ({**RAGAS, "reference": None}, {"images": ["0.png"]}, "", ""),
        (OLD_RAGAS, {"images": ["0.png"]}, "", "43"),
        ({k: v for k, v in OLD_RAGAS.items() if k != "ground_truth"}, {"images": ["0.png"]}, "", ""),
        ({**OLD_RAGAS, "ground_truth": None}, {"images": ["0.png"]}, "answer=answer", "40"),
        (LANGSMITH, {"inputs": {"question": ASKED, "image": "0.png"}}, "", "43"),
        ({k: v for k, v in LANGSMITH.items() if k != "reference_outputs"}, {"image": "0.png"}, "", ""),
        (LANGSMITH, {"image": "0.png"}, "langsmith,answer=outputs.answer", "40"),
        (LANGFUSE, {"image": "0.png"}, "", "43"),
        ({**LANGFUSE, "expectedOutput": {"answer": 43}}, {"image": "0.png"}, "", "43"),
        (TRACE, {"image": {"url": f"data:image/png;base64,{BASE64[0]}"}}, "", ""),
    ],
)
def test_a_model_s_answer_is_never_the_right_one(
    folder: Path, row: Fields, image: Fields, mapping: str, answer: str
) -> None:
    (read,) = log(lines(folder, {**row, **image}), mapping)
    assert (read.question, read.passages, read.answer) == (ASKED, ("Kale came to 40.",), answer)
    assert read.images[0]() == picture(0)


def test_messages_of_a_conversation_hold_the_question_and_the_picture(folder: Path) -> None:
    parts = [
        {"type": "text", "text": ASKED},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64[2]}"}},
    ]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    row = {"input": messages, "output": "40", "expectedOutput": "43", "metadata": {"contexts": ["It is 40."]}}
    (read,) = log(lines(folder, row))
    assert (read.question, read.images[0](), read.answer) == (ASKED, picture(2), "43")


YAML = f"""
prompts: [file://prompt.txt]
tests:
  - vars: {{question: "{ASKED}", image: "file://0.png"}}
    assert:
      - {{type: llm-rubric, value: polite}}
      - {{type: contains, value: 4}}
      - {{type: equals, value: 43.0}}
  - vars: {{question: "When?", image: 1.png}}
    assert: [{{type: icontains, value: 2008-01-01}}]
"""


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_promptfoo_tests_are_read(folder: Path, kind: str) -> None:
    import yaml

    file = folder / f"t.{kind}"
    file.write_text(YAML if kind == "yaml" else json.dumps(yaml.load(YAML, yaml.BaseLoader)), "utf-8")
    first, second = rows(file)
    assert (first.question, first.answer, first.image()) == (ASKED, "43.0", picture(0))
    assert second.answer == "2008-01-01"
    assert "read as promptfoo tests" in check(file).remarks


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\ntests: [*a, *a]",
        "tests: [",
        "tests: file://other.csv",
        "- {a: [",
        "!!python/x []",
        "- {vars: {a: 1, A: 2}}",
    ],
)
def test_other_yaml_is_refused_in_one_sentence(folder: Path, text: str) -> None:
    (folder / "t.yaml").write_text(text, "utf-8")
    with pytest.raises(SourceError):
        table(folder / "t.yaml")


def test_a_log_without_images_says_what_is_missing_and_how_to_add_it(folder: Path) -> None:
    for row, preset in ((RAGAS, "ragas"), (LANGSMITH, "langsmith"), (OLD_RAGAS, "ragas-0.1"), (LANGFUSE, "langfuse")):
        with pytest.raises(UnknownKeysError) as caught:
            log(lines(folder, row))
        assert f"--map {preset},image=IMAGE" in str(caught.value)
        assert str(caught.value).count(". ") == 1
    with pytest.raises(UnknownKeysError, match="image, answer"):
        table(lines(folder, {**LANGSMITH, "reference_outputs": None}))


MODEL = {"image": "0.png", "question": ASKED, "answer": "99"}


@pytest.mark.parametrize("contexts", ["contexts", "retrieved_contexts"])
@pytest.mark.parametrize("right", [{"ground_truth": "43"}, {"ground_truths": ["43"]}, {"reference": "43"}])
def test_a_log_with_pictures_is_no_table_whose_answers_are_right(folder: Path, contexts: str, right: Fields) -> None:
    row = {**MODEL, contexts: ["Kale came to 44."], **right}
    (read,) = rows(lines(folder, row))
    assert (read.answer, read.passage) == ("43", "Kale came to 44.")
    assert any("whose answer is not the right one" in remark for remark in check(lines(folder, row)).remarks)


def test_a_log_without_right_answers_never_proposes_the_model_s(folder: Path) -> None:
    file = lines(folder, {**MODEL, "contexts": ["Kale came to 44."], "response": "98"})
    for mapping in ("", "ragas-0.1"):
        with pytest.raises(UnknownKeysError) as caught:
            table(file, mapping)
        assert "answer" not in caught.value.guess
        assert "=answer" not in str(caught.value)
    assert rows(file, "answer=answer")[0].answer == "99"


@pytest.mark.parametrize("key", ["label", "gold", "ground_truth", "reference_answer", "correct_answer"])
def test_answers_beside_other_right_answers_have_to_be_chosen_from(folder: Path, key: str) -> None:
    file = lines(folder, {**MODEL, key: "99"}, {**MODEL, "image": "1.png", key: "43"})
    with pytest.raises(UnknownKeysError, match=f"answer={key}") as caught:
        table(file)
    assert caught.value.known["question"] == "question"
    assert rows(file, f"answer={key}")[1].answer == "43"
    assert rows(lines(folder, {**MODEL, key: "99"}))[0].answer == "99"


def test_label_is_the_answer_only_where_no_other_column_is(folder: Path) -> None:
    row = {"image": "0.png", "question": ASKED, "label": "43"}
    assert "the answers are in the column label" in check(lines(folder, row)).remarks
    for other in ({"answers": ["44"]}, {"ground_truth": "44"}):
        with pytest.raises(SourceError, match="label and"):
            table(lines(folder, {**row, **other}))
    read = lines(folder, {**row, "answer": "43"})
    assert "label is read only where answer is empty" in check(read).remarks


def test_a_second_column_that_is_read_only_sometimes_is_named(folder: Path) -> None:
    file = lines(folder, {**MODEL, "query": "Another?"}, {"image": "1.png", "query": "What?", "answer": "4"})
    assert [row.question for row in rows(file)] == [ASKED, "What?"]
    assert "query is read only where question is empty" in check(file).remarks


def test_a_row_with_two_numbered_images_has_two_images(folder: Path) -> None:
    row = {"question": ASKED, "answer": "43", "image_1": "0.png", "image_2": None}
    alone, both = table(lines(folder, row, {**row, "image_2": "1.png"}))
    assert isinstance(alone, SourceRow)
    assert isinstance(both, SkippedRow)
    assert "several images" in both.reason


def test_promptfoo_s_csv_names_answers_by_assertions(folder: Path) -> None:
    values = ["equals: 43", "44", "contains:45", "llm-rubric: is 46", "{{right}}", "not-equals: 7", "14:30"]
    cells = "".join(f'{number % 6}.png,"{ASKED}","{value}"\n' for number, value in enumerate(values))
    (folder / "t.csv").write_text(f"image,question,__expected\n{cells}", "utf-8")
    for mapping in ("", "promptfoo", "answer=__expected"):
        assert [row.answer for row in rows(folder / "t.csv", mapping)] == ["43", "44", "45", "", "", "", "14:30"]


def test_a_table_without_a_header_is_told_so(folder: Path) -> None:
    (folder / "t.csv").write_text(f"0.png,{ASKED},43\n1.png,{ASKED},44\n", "utf-8")
    with pytest.raises(SourceError, match="first row") as caught:
        table(folder / "t.csv")
    assert "--map" not in str(caught.value)


def test_a_reversed_mapping_to_another_name_is_corrected_without_a_guess(folder: Path) -> None:
    with pytest.raises(SpecError, match="COLUMN=KEY") as caught:
        table(lines(folder, MODEL), "picture=image")
    assert "did you mean" not in str(caught.value)


def test_values_that_pandas_wrote_as_missing_are_no_options_or_hints(folder: Path) -> None:
    header = ["index", "image_path", "question", "hint", "A", "B", "C", "answer"]
    (read,) = rows(tsv(folder, header, [1, "0.png", "Which?", "nan", "Egg", "Larva", "NaN", "B"]))
    assert (read.question, read.options) == ("Which?", ("Egg", "Larva"))


def test_a_table_with_our_names_and_others_is_ours(folder: Path) -> None:
    row = {"image": "0.png", "question": ASKED, "answer": "43", "input": "x", "output": "y", "metadata": {}, "vars": {}}
    assert rows(lines(folder, row))[0].question == ASKED


def test_a_folder_may_hold_a_file_with_other_keys(folder: Path) -> None:
    lines(folder, {"image": "0.png", "question": ASKED, "answer": "43"}, name="a.jsonl")
    lines(folder, {"page": "0.png", "asked": ASKED}, name="b.jsonl")
    row, other = table(folder)
    assert isinstance(row, SourceRow)
    assert isinstance(other, SkippedRow)
    assert other.row == "b.jsonl"


def test_presets_are_those_that_the_help_names() -> None:
    from click.testing import CliRunner

    from app.cli.data_commands import build
    from benchmarks.rows.table_presets import PRESETS

    text = " ".join(CliRunner().invoke(build, ["--help"]).output.split())
    assert ", ".join(PRESETS) in text


# --- pictures in cells -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [BASE64[5], f"data:image/png;base64,{BASE64[5]}", {"bytes": None, "path": "5.png"}, ["5.png"], "['5.png']", "5", 5],
)
def test_pictures_are_found_in_every_form(folder: Path, cell: object) -> None:
    (row,) = rows(lines(folder, {"image": cell, "question": ASKED, "answer": "43"}))
    assert row.image() == picture(5)


def test_a_file_s_address_and_src_name_pictures(folder: Path) -> None:
    (folder / "a b.png").write_bytes(picture(5))
    for image in ((folder / "a b.png").as_uri(), {"src": "a b.png"}):
        (read,) = rows(lines(folder, {**MODEL, "image": image}))
        assert read.image() == picture(5)
    assert len(reasons(lines(folder, {**MODEL, "image": "file://host/5.png"}))) == 1


def test_the_rows_of_a_list_are_told_to_be_numbered_by_place(folder: Path) -> None:
    row = {**MODEL, "answer": 43}
    (folder / "t.json").write_text(json.dumps([row], indent=2), "utf-8")
    assert any("numbered by their places" in remark for remark in check(folder / "t.json").remarks)
    assert not any("numbered by" in remark for remark in check(lines(folder, row)).remarks)


def test_a_picture_named_without_its_ending_is_found_beside_the_table_and_in_images(folder: Path) -> None:
    (folder / "images").mkdir()
    (folder / "images" / "chart_12.JPG").write_bytes(picture(3))
    (folder / "1.jpg").write_bytes(picture(3))
    file = lines(
        folder, *({"image": name, "question": ASKED, "answer": "43"} for name in ("chart_12", "0", "1", "chart_13"))
    )
    first, second, double, gone = table(file)
    assert isinstance(first, SourceRow)
    assert isinstance(second, SourceRow)
    assert (first.image(), second.image()) == (picture(3), picture(0))
    assert isinstance(double, SkippedRow)
    assert isinstance(gone, SkippedRow)
    assert ("several files" in double.reason, "missing" in gone.reason) == (True, True)


def test_what_is_no_picture_is_left_out_with_a_short_reason(folder: Path) -> None:
    text = b64encode(b"no picture at all " * 60_000).decode()
    cells = [
        text,
        text[:-3] + "=",
        f"data:image/png;base64,{text[:800]}",
        "data:image/svg+xml,<svg>",
        "https://x.org/a.png",
    ]
    file = lines(folder, *({"image": cell, "question": ASKED, "answer": "43"} for cell in cells))
    began = time.process_time()
    checked = check(file).rows
    assert [row.usable for row in checked] == [False] * len(cells)
    assert all(row.fix or row.message for row in checked)
    assert max(len(row.message) + len(row.fix) for row in checked) < 1000
    assert "address" in checked[4].message
    assert time.process_time() - began < 5


def test_a_list_of_many_gaps_is_read_in_no_time(folder: Path) -> None:
    cell = "[" + "'a'  " * 2000 + "x"
    began = time.process_time()
    assert reasons(lines(folder, {"image": cell, "question": ASKED, "answer": "43"}))
    assert time.process_time() - began < 2


# --- the cases ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here")
@pytest.mark.parametrize(
    ("name", "benchmark", "usable"),
    [
        ("langsmith.jsonl", "cmc-bench", None),
        ("langsmith.jsonl", "retrieval", None),
        ("ragas.jsonl", "cmc-bench", None),
        ("ragas.jsonl", "retrieval", None),
        ("t_hdr.csv", "cmc-bench", 0),
        ("t_num.jsonl", "cmc-bench", 4),
        ("t_vlmeval.tsv", "cmc-bench", 0),
    ],
)
def test_each_case_ends_in_rows_or_in_a_reason(tmp_path: Path, name: str, benchmark: str, usable: int | None) -> None:
    (tmp_path / "charts").mkdir()
    for number in range(8):
        (tmp_path / "charts" / f"{number:03}.png").write_bytes(picture(number))
    (tmp_path / name).write_bytes((CASES / name).read_bytes())
    if usable is None:
        with pytest.raises(RashomonError) as caught:
            check(tmp_path / name, benchmark=benchmark)
        assert len(str(caught.value)) < 500
    else:
        checked = check(tmp_path / name, benchmark=benchmark)
        assert checked.usable >= usable
        assert all(row.fix and len(row.fix) < 300 for row in checked.rows if not row.usable)


# --- what a file may hold ----------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["0.png", ASKED, BASE64[0]]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["question", "answer", "image", "contexts", "a.b", "role", "content", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
NAMES = (
    "image question answer query inputs outputs metadata input output vars assert index a b hint image_path doc_id "
    "evidence_pages user_input response contexts reference_outputs expectedOutput imgname label messages"
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES.split()), json_values, max_size=7), max_size=3),
    st.sampled_from(
        ["", "langsmith", "langfuse", "promptfoo", "vlmevalkit", "mmlongbench-doc", "image=a.b,answer=x", "ragas"]
    ),
)
def test_any_json_is_rows_or_one_error(folder: Path, content: list[dict[str, Any]], mapping: str) -> None:
    (folder / "any.json").write_text(json.dumps(content), "utf-8")
    for benchmark in ("cmc-bench", "retrieval"):
        try:
            described = f"{len(check(folder / 'any.json', mapping, benchmark).rows)} rows"
        except RashomonError as error:
            described = str(error)
        assert described == f"{len(content)} rows" or 10 < len(described) < 2000


def test_yaml_that_nests_without_end_is_refused(folder: Path) -> None:
    """The loader is recursive in C: without a limit, this would end the process."""
    (folder / "t.yaml").write_text("- " + "[" * 30_000 + "]" * 30_000, "utf-8")
    with pytest.raises(SourceError):
        table(folder / "t.yaml")


def test_advice_on_a_missing_key_does_not_repeat_it(folder: Path) -> None:
    file = lines(folder, {"image": "0.png", "question": "a?", "answer": "5"})
    with pytest.raises(UnknownKeysError) as caught:
        table(file, "group=nope")
    assert "--map" not in str(caught.value)
