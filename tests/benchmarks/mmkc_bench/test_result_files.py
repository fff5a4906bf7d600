"""The authors' result files: what they become, which belong together, and what cannot be used."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.base import ImportedAnswer, get_benchmark
from benchmarks.build import BuildOptions
from benchmarks.errors import SourceError
from benchmarks.mmkc_bench.sources.result_files import result_files
from tests.support.data.mmkc_bench import MMKC_DATA, er_row, knowledge_row, whole_folder
from tests.support.data.small import write_lines

MMKC = get_benchmark("mmkc-bench")


def read(path: Path) -> tuple[list[ImportedAnswer], list[str]]:
    told: list[str] = []
    found = list(MMKC.read_answers(path, "published", lambda row, reason: told.append(f"{row} {reason}")))
    return found, told


def predicted(rows: Sequence[Mapping[str, Any]], answers: Sequence[Any]) -> list[dict[str, Any]]:
    return [{**row, "success": True, "prediction": said} for row, said in zip(rows, answers, strict=True)]


def test_names_and_folders_say_what_was_asked(tmp_path: Path) -> None:
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
    found = result_files(tmp_path)
    assert {each.path.relative_to(tmp_path).as_posix(): (each.kind, each.condition) for each in found} == names
    assert {each.model for each in found} == {"Qwen2.5-VL-7B"}
    assert [each.condition.startswith("original") for each in found] == [True] * 2 + [False] * 4
    # One file stands for those that the published evaluation joins with it.
    joined = result_files(tmp_path / "output/ER/mcq_Qwen2.5-VL-7B_ie.jsonl")
    assert [each.condition for each in joined] == ["original-mc", "context-memory-mc", "inter-context-mc"]
    assert MMKC.answer_files(tmp_path, "published") == tuple(each.path for each in found)


def test_what_is_no_result_file_says_what_was_expected(tmp_path: Path) -> None:
    write_lines(tmp_path / "x" / "answers.jsonl", [])
    for place in (tmp_path / "x", tmp_path / "x" / "answers.jsonl", tmp_path / "nothing"):
        with pytest.raises(SourceError, match="mcq_<model>"):
            read(place)
    for model in ("one", "two"):
        write_lines(tmp_path / "two" / "output" / "ER" / f"mcq_{model}_ie.jsonl", [])
    with pytest.raises(SourceError, match=r"several models \(one, two\)"):
        read(tmp_path / "two")


def test_answers_name_the_examples_that_a_build_has(tmp_path: Path) -> None:
    made = MMKC.build([("published", str(whole_folder(tmp_path / "src", 2)))], tmp_path / "built", BuildOptions())
    known = {each.id: each for each in MMKC.instances(made, "official")}
    rows = [er_row(1), er_row(2)]
    write_lines(tmp_path / "r" / "original" / "ER" / "mcq_m_ee.jsonl", predicted(rows, ["A", "B"]))
    write_lines(tmp_path / "r" / "output" / "ER" / "openqa_m_ie.jsonl", predicted(rows, ["Tower 1", None]))
    people = [knowledge_row(1), knowledge_row(2)]
    write_lines(tmp_path / "r" / "output" / "people" / "mcq_m_location_ee.jsonl", predicted(people, ["A", "B"]))
    found, told = read(tmp_path / "r")
    assert told == []
    assert [each.answer for each in found] == ["A", "B", "Tower 1", "", "A", "B"]
    for each in found:
        built = known[each.instance.id]
        assert each.instance.references == built.references
        assert each.instance.strata == built.strata
        assert [part for part in built.parts if part in each.instance.parts] == list(each.instance.parts)


def test_a_repeated_row_is_an_answer_of_its_own_beside_its_own_original(tmp_path: Path) -> None:
    rows = [er_row(1), er_row(1, ID=9)]
    write_lines(tmp_path / "original" / "ER" / "mcq_m_ee.jsonl", predicted(rows, ["A", "D"]))
    write_lines(tmp_path / "output" / "ER" / "mcq_m_ie.jsonl", predicted(rows, ["B", "D"]))
    found, _ = read(tmp_path)
    groups = [each.instance.group for each in found]
    assert groups[0] == groups[2]
    assert groups[1] == groups[3] == f"{groups[0]}~2"
    assert len({each.instance.id for each in found}) == 4


def test_rows_that_cannot_be_used_are_told_and_the_others_read(tmp_path: Path) -> None:
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
    found, told = read(file)
    assert len(found) == 1
    assert [one.split(" ", 1)[0] for one in told] == [f"mcq_m_ie.jsonl:{n}" for n in (2, 3, 4, 5, 6, 7, 8)]
    for one, reason in zip(
        told,
        ("no prediction", "no prediction", "no wrong texts", "two letters", "longer than", "JSON", "JSON"),
        strict=True,
    ):
        assert reason in one


@pytest.mark.skipif(not MMKC_DATA.is_dir(), reason="the authors' sample is not beside the project")
def test_the_authors_sample_result_is_read(tmp_path: Path) -> None:
    sample = (MMKC_DATA / "upstream_sample_result.jsonl").read_bytes()
    file = tmp_path / "output" / "ER" / "mcq_llava_v1.5_7b_ie.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(sample)
    found, told = read(file)
    assert told == []
    assert [each.answer for each in found] == ["C", "C"]
    first = found[0].instance
    assert first.strata == {"dataset": "ER", "type": "ER", "instance": "visual_entity_1"}
    # The wrong texts are of a green and a yellow apple.
    assert first.references["text letter"] == ("B",)
    assert first.references["text"] == ("Green",)
    assert first.references["image letter"] == ("A",)
    assert result_files(file)[0].model == "llava_v1.5_7b"


def test_any_json_is_read_or_told(tmp_path: Path) -> None:
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
    file.write_text("".join(json.dumps(each) + "\n" for each in odd))
    found, told = read(file)
    assert found == []
    assert len(told) == len(odd)
