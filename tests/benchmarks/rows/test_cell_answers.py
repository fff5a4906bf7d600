"""Cells of answers and options: lists, spellings, scales, letters, numbers and objects; and what a judge makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import BuildOptions
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.registry import get_benchmark
from benchmarks.rows import cell_answers
from benchmarks.rows.cell_answers import answer_text, option_texts
from benchmarks.rows.reader_types import RowProblem
from benchmarks.vocabulary import Generation, Record
from judges.cmc_rules.cmc_match_judge import Match
from tests.support.data.small import picture

WHICH = "Which two crops tie?"


@pytest.mark.parametrize(
    ("value", "question", "text"),
    [
        ("['kale', 'rye']", WHICH, "kale, rye"),
        ("['kale', 'rye']", "Who ties?", "kale, rye"),
        ('["Red", "Green"]', WHICH, "Red, Green"),
        ("[Blue, Gray]", WHICH, "Blue, Gray"),
        ("[Blue; Gray]", WHICH, "Blue, Gray"),
        ("['kale' 'rye']", WHICH, "kale, rye"),
        ("['kale'\n 'rye']", WHICH, "kale, rye"),
        ("('kale', 'rye')", WHICH, "kale, rye"),
        ("{'rye', 'kale'}", WHICH, "kale, rye"),
        (["kale", "rye"], WHICH, "kale, rye"),
        ("oats; barley", WHICH, "oats, barley"),
        ("oats\nbarley", WHICH, "oats, barley"),
        ("oats; barley", "What does the label say?", "oats; barley"),
        (["Smith, Jane", "Doe, John"], "Who are the authors?", "Smith, Jane; Doe, John"),
        ([1204, 3500.0], "Name both values.", "1204, 3500"),
        (["7,4", "8,2"], "Welche zwei Werte?", "7,4; 8,2"),
        (["kale", "kale", "rye"], "List all crops in order.", "kale, kale, rye"),
        (["43", "43.0"], "How much?", "43"),
        (["43"], "How much?", "43"),
        (["net", "net", "a net", "rope"], "What is it?", "net"),
        ([{"answer": "net"}, {"answer": "net"}, {"answer": "rope"}], "What is it?", "net"),
        ([0, 5], "What range does the axis cover?", "0 to 5"),
        ("[“Blue”, “Gray”]", WHICH, "Blue, Gray"),
        ('"kale", "rye"', WHICH, "kale, rye"),
        ('"No", said Ann', "Who said no?", '"No", said Ann'),
        ('"kale"', "Which?", '"kale"'),
        ("{kale,rye}", WHICH, "kale, rye"),
        ("{kale}", "Which?", "{kale}"),
        ("- kale\n- rye", WHICH, "kale, rye"),
        ("These tie:\n- kale\n- rye", WHICH, "These tie:\n- kale\n- rye"),
        ("1. kale\n2. rye", "Rank the two.", "kale, rye"),
        ("[12,5; 13,4]", "Welche Werte?", "12,5; 13,4"),
        ("['O''Brien', 'Smith']", WHICH, "O'Brien, Smith"),
        ("{}", "Q?", ""),
        ("4/5", "What is the rating?", "4/5"),
        ("1-5", "What scale is used?", "1-5"),
        ("[unreadable]", "What does it say?", "unreadable"),
        ("(3, 4)", "At which point?", "(3, 4)"),
        ("[1] and [2]", "Which notes?", "[1] and [2]"),
        (43, "Q?", "43"),
        (67.5, "Q?", "67.5"),
        (1000000.0, "Q?", "1000000"),
        (1e-7, "Q?", "0.0000001"),
        (True, "Q?", "Yes"),
        (False, "Q?", "No"),
        ("1.204,5", "Q?", "1.204,5"),
        ("1e6", "Q?", "1e6"),
        (None, "Q?", ""),
        (float("nan"), "Q?", ""),
        ([], "Q?", ""),
        ([None, ""], "Q?", ""),
    ],
)
def test_the_text_of_an_answer(value: object, question: str, text: str) -> None:
    assert answer_text(value, question) == text


@pytest.mark.parametrize(
    ("value", "question", "reason"),
    [
        ({"value": 43}, "Q?", cell_answers.OBJECT),
        ('{"value": 43}', "Q?", cell_answers.OBJECT),
        ("{value: 43}", "Q?", cell_answers.OBJECT),
        ("['kale', 'rye'", WHICH, cell_answers.OPEN_LIST),
        ("[12,5, 13,4]", "Welche zwei Werte?", cell_answers.UNCLEAR_COMMAS),
        ([["a"], ["b"]], WHICH, cell_answers.NESTED),
        (["43", "44"], "How many were sold?", cell_answers.ONE_ASKED),
        ("[1,204]", "How many were sold?", cell_answers.ONE_ASKED),
        (["net", "net", "rope", "rope"], "What is it?", cell_answers.NO_MAJORITY),
        (["ITC", "ITC Limited"], "Who is it?", cell_answers.UNCLEAR_LIST),
        ([str(n) for n in range(41)], WHICH, cell_answers.LONG_LIST),
        ("#REF!", "Q?", cell_answers.FORMULA_ERROR),
        ("#NV", "Q?", cell_answers.FORMULA_ERROR),
    ],
)
def test_what_has_no_single_meaning_is_left_out(value: object, question: str, reason: str) -> None:
    with pytest.raises(RowProblem) as problem:
        answer_text(value, question)
    assert str(problem.value) == reason


@pytest.mark.parametrize("value", [["ITC", "ITC Limited"], '["ITC", "ITC Limited"]'])
def test_a_column_of_answers_holds_spellings_of_one(value: object) -> None:
    assert answer_text(value, "Who is it?", column="answers") == "ITC"
    with pytest.raises(RowProblem):
        answer_text(["ITC", "Tata"], "Who is it?", column="answers")
    assert answer_text(["ITC", "Tata"], "Which two are named?", column="answers") == "ITC, Tata"


EGGS = ("Egg", "Larva", "Adult")


@pytest.mark.parametrize(
    "fields",
    [
        {"options": "Egg|Larva | Adult"},
        {"options": "A. Egg|B. Larva|C. Adult"},
        {"options": "Egg; Larva; Adult"},
        {"options": "Egg, Larva, Adult"},
        {"options": "A) Egg\nB) Larva\nC) Adult"},
        {"options": "['Egg', 'Larva', 'Adult']"},
        {"options": '{"A": "Egg", "B": "Larva", "C": "Adult"}'},
        {"options": {"C": "Adult", "A": "Egg", "B": "Larva"}},
        {"options": {"text": ["Egg", "Larva", "Adult"], "label": ["A", "B", "C"]}},
        {"options": ["Egg", "Larva", "Adult"]},
        {"options": "", "a": "Egg", "b": "Larva", "c": "Adult", "d": ""},
    ],
)
def test_options_in_every_form(fields: dict[str, Any]) -> None:
    assert option_texts(fields) == EGGS


def test_no_options() -> None:
    assert option_texts({"options": "none"}) == option_texts({"a": "only one"}) == option_texts({}) == ()
    assert option_texts({"options": "low|medium|high"}) == ("low", "medium", "high")
    assert option_texts({"options": [43.0, 44.5, True]}) == ("43", "44.5", "Yes")


def rows(folder: Path, *lines: dict[str, Any]) -> Path:
    for number in range(12):
        (folder / f"{number}.png").write_bytes(picture(number))
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps({"image": f"{n}.png", **line}) + "\n" for n, line in enumerate(lines)))
    return file


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "B.", "B)", "Larva", "larva", ["B"], "Option B"])
def test_a_letter_is_its_option(tmp_path: Path, answer: object) -> None:
    file = rows(tmp_path, {"question": "Which?", "answer": answer, "options": list(EGGS)})
    (row,) = read_source("rows", str(file))
    assert isinstance(row, SourceRow)
    assert (row.options, row.answer) == (EGGS, "Larva")


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        ("A, C", EGGS),
        ("AC", EGGS),
        (["A", "C"], EGGS),
        ("A and B", EGGS),
        ("D", EGGS),
        ("Pupa", EGGS),
        ("A", ("B", "A")),
    ],
)
def test_an_answer_that_is_not_one_option_is_left_out(tmp_path: Path, answer: object, options: tuple[str, ...]) -> None:
    file = rows(tmp_path, {"question": "Which?", "answer": answer, "options": list(options)})
    (row,) = read_source("rows", str(file))
    assert not isinstance(row, SourceRow)


def test_match_labels_a_list_in_any_order_and_not_by_one_of_its_values(tmp_path: Path) -> None:
    pairs = [("kale", "rye"), ("oats", "beet"), ("wheat", "corn"), ("barley", "hops")]
    lines = [
        {"question": f"Which two crops tie in plot {n}?", "answer": str(list(pair))} for n, pair in enumerate(pairs)
    ]
    lines[0]["conflict"] = "['oats', 'beet']"
    build = get_benchmark("cmc-bench").build(
        [("rows", str(rows(tmp_path, *lines)))], tmp_path / "built", BuildOptions()
    )
    instance = next(
        item
        for item in get_benchmark("cmc-bench").instances(build, "paper")
        if item.condition == "image-correct" and item.references.get("image") == ("kale, rye",)
    )
    assert instance.references["text"] == ("oats, beet",)

    def label(answer: str) -> str | None:
        return Match().judge(Record(instance, (Generation(f"{instance.id}#0", answer, "stop"),))).label

    assert label("rye and kale") == label("Kale, rye") == label("['rye', 'kale']") == "IMAGE"
    assert label("beet and oats") == "TEXT"
    assert label("kale") not in ("IMAGE", "TEXT", "BOTH")
    assert label("kale and beet") != "IMAGE"


def test_match_minds_the_order_that_a_question_asks_for(tmp_path: Path) -> None:
    pairs = [("kale", "rye", "oats"), ("oats", "beet", "corn"), ("wheat", "corn", "rye"), ("barley", "hops", "flax")]
    lines = [{"question": "Rank the crops in descending order.", "answer": list(p)} for p in pairs]
    build = get_benchmark("cmc-bench").build(
        [("rows", str(rows(tmp_path, *lines)))], tmp_path / "built", BuildOptions()
    )
    instance = next(
        item
        for item in get_benchmark("cmc-bench").instances(build, "paper")
        if item.condition == "image-only" and item.references["image"] == ("kale, rye, oats",)
    )

    def label(answer: str) -> str | None:
        return Match().judge(Record(instance, (Generation(f"{instance.id}#0", answer, "stop"),))).label

    assert label("kale, rye, oats") == "IMAGE"
    assert label("oats, rye, kale") != "IMAGE"
