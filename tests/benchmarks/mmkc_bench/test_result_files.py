"""Import of the authors' result files: their answers, the pairs they form, and unusable rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.base import ImportedAnswer
from benchmarks.build import BuildOptions
from benchmarks.errors import SourceError
from benchmarks.mmkc_bench.sources.mmkc_result_files import result_files
from benchmarks.registry import get_benchmark
from tests.support.data.mmkc_bench import MMKC_DATA, er_row, knowledge_row, whole_folder
from tests.support.data.small import write_lines

MMKC = get_benchmark("mmkc-bench")


def read(path: Path) -> tuple[list[ImportedAnswer], list[str]]:
    problems: list[str] = []
    answers = list(MMKC.read_answers(path, "published", lambda row, reason: problems.append(f"{row} {reason}")))
    return answers, problems


def predicted(rows: Sequence[Mapping[str, Any]], answers: Sequence[Any]) -> list[dict[str, Any]]:
    return [{**row, "success": True, "prediction": prediction} for row, prediction in zip(rows, answers, strict=True)]


def test_file_and_folder_names_determine_the_setting(tmp_path: Path) -> None:
    names = {
        "original/ER/mcq_Qwen2.5-VL-7B_ee.jsonl": ("ER", "original-mc"),
        "output/ER/mcq_Qwen2.5-VL-7B_ie.jsonl": ("ER", "context-memory-mc"),
        "output/ER/mcq_Qwen2.5-VL-7B_ee.jsonl": ("ER", "inter-context-mc"),
        "output/IS/openqa_Qwen2.5-VL-7B_ie.jsonl": ("VS", "context-memory-open"),
        "original/people_knowledge/mcq_Qwen2.5-VL-7B_Career_ee.jsonl": ("PC", "original-mc"),
        "output/logo_knowledge/mcq_Qwen2.5-VL-7B_time_ie.jsonl": ("LT", "context-memory-mc"),
    }
    for name in (*names, "output/ER/readme.jsonl", "output/elsewhere/mcq_Qwen2.5-VL-7B_ie.jsonl"):
        write_lines(tmp_path / name, [])
    answers = result_files(tmp_path)
    assert {
        answer.path.relative_to(tmp_path).as_posix(): (answer.kind, answer.condition) for answer in answers
    } == names
    assert {answer.model for answer in answers} == {"Qwen2.5-VL-7B"}
    assert [answer.condition.startswith("original") for answer in answers] == [True] * 2 + [False] * 4
    # One file stands for those that the published evaluation joins with it.
    joined = result_files(tmp_path / "output/ER/mcq_Qwen2.5-VL-7B_ie.jsonl")
    assert [answer.condition for answer in joined] == ["original-mc", "context-memory-mc", "inter-context-mc"]
    assert MMKC.answer_files(tmp_path, "published") == tuple(answer.path for answer in answers)


def test_other_files_report_the_expected_format(tmp_path: Path) -> None:
    write_lines(tmp_path / "x" / "answers.jsonl", [])
    for place in (tmp_path / "x", tmp_path / "x" / "answers.jsonl", tmp_path / "nothing"):
        with pytest.raises(SourceError, match="mcq_<model>"):
            read(place)
    for model in ("one", "two"):
        write_lines(tmp_path / "two" / "output" / "ER" / f"mcq_{model}_ie.jsonl", [])
    with pytest.raises(SourceError, match=r"several models \(one, two\)"):
        read(tmp_path / "two")


def test_answers_match_the_examples_of_a_build(tmp_path: Path) -> None:
    record = MMKC.build([("published", str(whole_folder(tmp_path / "src", 2)))], tmp_path / "built", BuildOptions())
    known = {answer.id: answer for answer in MMKC.instances(record, "official")}
    rows = [er_row(1), er_row(2)]
    write_lines(tmp_path / "r" / "original" / "ER" / "mcq_m_ee.jsonl", predicted(rows, ["A", "B"]))
    write_lines(tmp_path / "r" / "output" / "ER" / "openqa_m_ie.jsonl", predicted(rows, ["Tower 1", None]))
    people = [knowledge_row(1), knowledge_row(2)]
    write_lines(tmp_path / "r" / "output" / "people" / "mcq_m_location_ee.jsonl", predicted(people, ["A", "B"]))
    answers, problems = read(tmp_path / "r")
    assert problems == []
    assert [answer.answer for answer in answers] == ["A", "B", "Tower 1", "", "A", "B"]
    for answer in answers:
        built = known[answer.instance.id]
        assert answer.instance.references == built.references
        assert answer.instance.strata == built.strata
        assert [part for part in built.parts if part in answer.instance.parts] == list(answer.instance.parts)


def test_repeated_row_is_paired_with_its_own_original(tmp_path: Path) -> None:
    rows = [er_row(1), er_row(1, ID=9)]
    write_lines(tmp_path / "original" / "ER" / "mcq_m_ee.jsonl", predicted(rows, ["A", "D"]))
    write_lines(tmp_path / "output" / "ER" / "mcq_m_ie.jsonl", predicted(rows, ["B", "D"]))
    answers, _ = read(tmp_path)
    groups = [answer.instance.group for answer in answers]
    assert groups[0] == groups[2]
    assert groups[1] == groups[3] == f"{groups[0]}~2"
    assert len({answer.instance.id for answer in answers}) == 4


def test_unusable_rows_are_reported_and_others_read(tmp_path: Path) -> None:
    file = tmp_path / "output" / "ER" / "mcq_m_ie.jsonl"
    rows = [
        *predicted([er_row(1)], ["A"]),
        er_row(2),
        {**er_row(3), "prediction": 4},
        {"prediction": "A"},
        {**er_row(5, mcq_disanswer1=None), "prediction": "A"},
        {**er_row(6), "prediction": "A" * 1_000_001},
    ]
    write_lines(file, rows)
    with file.open("a", encoding="utf-8") as more:
        more.write("not JSON\n[]\n\n")
    answers, problems = read(file)
    assert len(answers) == 1
    assert [answer.split(" ", 1)[0] for answer in problems] == [f"mcq_m_ie.jsonl:{n}" for n in (2, 3, 4, 5, 6, 7, 8)]
    for answer, reason in zip(
        problems,
        ("no prediction", "no prediction", "no wrong texts", "two letters", "longer than", "JSON", "JSON"),
        strict=True,
    ):
        assert reason in answer


@pytest.mark.skipif(not MMKC_DATA.is_dir(), reason="the authors' sample is not beside the project")
def test_the_authors_sample_result_is_read(tmp_path: Path) -> None:
    sample = (MMKC_DATA / "upstream_sample_result.jsonl").read_bytes()
    file = tmp_path / "output" / "ER" / "mcq_llava_v1.5_7b_ie.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(sample)
    answers, problems = read(file)
    assert problems == []
    assert [answer.answer for answer in answers] == ["C", "C"]
    first = answers[0].instance
    assert first.strata == {"dataset": "ER", "type": "ER", "instance": "visual_entity_1"}
    # The wrong texts are of a green and a yellow apple.
    assert first.references["text letter"] == ("B",)
    assert first.references["text"] == ("Green",)
    assert first.references["image letter"] == ("A",)
    assert result_files(file)[0].model == "llava_v1.5_7b"


def test_any_json_is_read_or_reported(tmp_path: Path) -> None:
    odd: list[Any] = [
        None,
        1,
        [],
        {},
        {"prediction": {}},
        {"prediction": "A", "incorrect_description": [1, None, {"incorrect_description_1": 5}]},
        {"prediction": "A", "mis_description": {"incorrect_description_1": ["x"]}},
        {"prediction": "A", "instance": "\ud800", "mis_description": {}},
        {"prediction": "A", "incorrect_description": {"a": 1}},
    ]
    file = tmp_path / "output" / "ER" / "mcq_m_ie.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(answer) + "\n" for answer in odd))
    answers, problems = read(file)
    assert answers == []
    assert len(problems) == len(odd)
