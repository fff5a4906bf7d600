"""CrossCheck-Bench's rows: the documented layout, refusals with their reasons, and builds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchmarks.crosscheck_bench as package
from app.papers.published_results import published_cells
from benchmarks.build import Build, BuildOptions
from benchmarks.crosscheck_bench import crosscheck_sample as layout
from benchmarks.crosscheck_bench.crosscheck_constants import CAPABILITIES, LEVELS, TASKS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample, parse_sample
from benchmarks.errors import SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.rows.reader_types import RowProblem
from benchmarks.vocabulary import Media
from tests.support.data.crosscheck_bench import make_sample, row, write_rows

SCHEMA = json.loads((Path(package.__file__).parent / "sample.schema.json").read_text("utf-8"))
PAPER = Path(__file__).resolve().parents[4] / "shared" / "papers" / "crosscheck-bench.txt"
DOCS = Path(__file__).resolve().parents[3] / "docs" / "crosscheck-bench.md"


def built(sources: list[tuple[str, Path]], out: Path) -> Build:
    return get_benchmark("crosscheck-bench").build([(n, str(p)) for n, p in sources], out, BuildOptions())


def reasons(build: Build) -> dict[str, str]:
    lines = (build.path / "skipped.jsonl").read_text("utf-8").splitlines()
    return {item["row"]: item["reason"] for item in map(json.loads, lines)}


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper is not beside the project")
def test_tasks_match_tables_4_to_6_in_the_order_of_table_1() -> None:
    text = PAPER.read_text("utf-8")
    (order,) = re.findall(r"^\t\tLD\tBR\t.*$", text, re.MULTILINE)
    assert list(TASKS) == order.split()
    rows = re.findall(r"^\d+\t(.+?)\t(.+?)\t(A\d(?: \+ A\d)*)$", text, re.MULTILINE)
    assert len(rows) == 15
    result = {}
    for name, what, needed in rows:
        key = re.sub(r".*\((.+)\)$", r"\1", name)
        full = re.sub(r" \(.+\)$", "", name)
        result[key] = (full, what, tuple(needed.split(" + ")))
    assert result == {key: (task.name, task.description, task.capabilities) for key, task in TASKS.items()}
    named = dict(re.findall(r"^(A\d)\t([^\t]+)\t[^\t]+\t", text, re.MULTILINE))
    assert named == dict(CAPABILITIES)


def test_published_tables_4_to_7_are_those_of_the_tasks() -> None:
    cells = [cell for cell in published_cells("crosscheck-bench") if cell["table"] in ("Table 4", "Table 5", "Table 6")]
    assert [cell["value"] for cell in cells if cell["column"] == "Task"] == [
        task.description for task in TASKS.values()
    ]
    needed = [tuple(cell["value"].split(" + ")) for cell in cells if cell["column"] == "Capabilities"]
    assert needed == [task.capabilities for task in TASKS.values()]
    seventh = [cell for cell in published_cells("crosscheck-bench") if cell["table"] == "Table 7"]
    assert {cell["row"]: cell["value"] for cell in seventh if cell["column"] == "Capability"} == CAPABILITIES


def test_levels_and_frames_are_the_papers() -> None:
    assert [task.level for task in TASKS.values()] == ["L1"] * 6 + ["L2"] * 4 + ["L3"] * 5
    assert list(LEVELS.values()) == ["Perception", "Integration", "Reasoning"]
    assert {key for key, task in TASKS.items() if task.multi_frame} == {key for key in TASKS if key.endswith("*")}


def test_every_valid_row_becomes_a_sample(tmp_path: Path) -> None:
    rows = [row(task, number) for task in TASKS for number in range(2)]
    build = built([("rows", write_rows(tmp_path / "rows", rows))], tmp_path / "out")
    assert build.manifest["samples"] == 30
    assert build.manifest["tasks"] == dict.fromkeys(TASKS, 2)
    assert (build.manifest["open"], build.manifest["with_boxes"]) == (4, 30)
    assert reasons(build) == {}
    result = [CrossCheckSample.from_row(item) for item in build.rows()]
    for fields, item in zip(rows, result, strict=True):
        same = {k: v for k, v in fields.items() if k not in ("frames", "id", "options", "boxes")}
        assert {k: getattr(item, k) for k in same} == same
        assert item.row_id == fields["id"]
        assert list(item.options) == fields.get("options", [])
        assert all(build.media_path(frame).is_file() for frame in item.frames)
        assert item.sizes == ((160, 120),) * len(fields["frames"])
        assert [[{"label": m.label, "box": list(m.box)} for m in marks] for marks in item.boxes] == fields["boxes"]
    instances = list(get_benchmark("crosscheck-bench").instances(build, "paper"))
    assert len(instances) == 150
    assert len({item.id for item in instances}) == 150


def test_the_same_rows_give_the_same_build(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", [row("LD", 0), row("PI", 1)])
    assert built([("rows", folder)], tmp_path / "a").digest == built([("", tmp_path)], tmp_path / "b").digest


def test_ids_do_not_reveal_the_answer() -> None:
    sample = make_sample("LD", 0)
    assert replace(sample, answer="No", conflict_type="brand", row_id="x", reasoning="Because.").id == sample.id
    assert replace(sample, question="Another?").id != sample.id


def changed(**fields: Any) -> dict[str, Any]:
    return {**row("PI", 0), **fields}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "task": (changed(task="XX"), "the task is not one of"),
    "no task": (changed(task=None), "the task is not one of"),
    "task list": (changed(task=["LD"]), "the task is not one of"),
    "question": (changed(question=" "), "the row has no question"),
    "long question": (changed(question="x" * 8001), "the question is longer than 8000"),
    "surrogate": (changed(question="\ud800"), "the text is not valid Unicode"),
    "frames": (changed(frames=[]), "the frames are not a list of file names"),
    "frame": (changed(frames="a.png"), "the frames are not a list of file names"),
    "many frames": (changed(frames=["PI-0-0.png"] * 33, boxes=None), "the row has no frames, or more than 32"),
    "outside": (changed(frames=["../rows.jsonl"]), "the image's path leaves the folder"),
    "missing": (changed(frames=["gone.png"]), "the image is missing"),
    "no picture": (changed(frames=["rows.jsonl"]), "a picture is text"),
    "places": (changed(question="<image> and <image>"), "the question has <image> more or less often"),
    "answer": (changed(answer="D"), "the answer is not the letter of one of the options"),
    "answer text": (changed(answer="Main item for sale"), "the answer is not the letter of one of the options"),
    "one option": (changed(options=["x"], answer="A"), "the row has 1 option, or more than 10"),
    "same options": (changed(options=["x", "X "], answer="A"), "two of the options are the same"),
    "same prices": (changed(options=["12 500 SEK", "12,500 SEK"], answer="A"), "two of the options are the same"),
    "two lines": (changed(options=["x", "y\nC: z"], answer="A"), "an option has more than one line"),
    "options text": (changed(options="AB", answer="A"), "the options are not a list of texts"),
    "boxes": (changed(boxes=[]), "the boxes are not one list for each frame"),
    "inverted": (changed(boxes=[[{"label": "x", "box": [9, 1, 3, 5]}]]), "a box has no area"),
    "no area": (changed(boxes=[[{"label": "x", "box": [3, 1, 3, 5]}]]), "a box has no area"),
    "negative": (changed(boxes=[[{"label": "x", "box": [-3, 1, 3, 5]}]]), "a box has no area"),
    "outside box": (changed(boxes=[[{"label": "x", "box": [0, 0, 161, 5]}]]), "a box is not within its picture"),
    "box text": (changed(boxes=[[{"label": "x", "box": "0,0,1,1"}]]), "a box is not four numbers"),
    "box true": (changed(boxes=[[{"label": "x", "box": [False, 0, True, 1]}]]), "a box is not four numbers"),
    "no label": (changed(boxes=[[{"box": [0, 0, 1, 1]}]]), "a box has no label"),
    "told": (
        changed(boxes=[[{"label": "the main item for sale!", "box": [0, 0, 1, 1]}]]),
        "the label of a box gives the answer away",
    ),
    "told brand": (
        {**row("BR", 3), "boxes": [[{"label": "logo of brand 3", "box": [0, 0, 1, 1]}]]},
        "the label of a box gives the answer away",
    ),
}


def test_invalid_row_is_skipped_with_the_reason(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", [row("PI", 0), row("BR", 3)])
    wrong = [json.dumps(fields) for fields, _ in WRONG.values()]
    lines = [json.dumps(row("PI", 0)), *wrong, "not JSON", '{"frames": NaN}', json.dumps(row("PI", 0))]
    (folder / "rows.jsonl").write_text("\n".join(lines), "utf-8")
    build = built([("rows", folder)], tmp_path / "out")
    rows = reasons(build)
    for number, (name, (_, reason)) in enumerate(WRONG.items(), 2):
        assert rows[f"rows.jsonl:{number}"].startswith(reason), name
    last = len(WRONG) + 2
    assert rows[f"rows.jsonl:{last}"] == "the line is not a JSON object"
    assert rows[f"rows.jsonl:{last + 1}"] == "the frames are not a list of file names"
    assert rows[f"rows.jsonl:{last + 2}"].startswith("repeated")
    assert len(rows) == len(WRONG) + 3
    assert build.manifest["samples"] == 1
    assert build.manifest["media"] == 1, "nothing of a row that is left out stays in the build"
    assert sum(build.manifest["sources"]["rows"]["skipped"].values()) == len(rows)


def test_wrong_folder_or_source_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(SourceError, match="does not exist"):
        built([("rows", tmp_path / "gone")], tmp_path / "out")
    for wrong in (tmp_path / "empty", tmp_path / "x.txt"):
        with pytest.raises(SourceError, match="expected a folder with rows"):
            built([("rows", wrong)], tmp_path / "out")
    with pytest.raises(SpecError, match="did you mean 'rows'"):
        built([("row", tmp_path)], tmp_path / "out")
    with pytest.raises(SourceError, match="no subfolder named after a source"):
        built([("", tmp_path)], tmp_path / "out")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "rows.jsonl").write_text('{"task": "XX", "frames": ["a"]}\n')
    with pytest.raises(SourceError, match="once: the task is not one of"):
        built([("rows", tmp_path / "bad")], tmp_path / "out")
    assert not (tmp_path / "out").exists()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["label", "box"]), inner, max_size=2),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(SCHEMA["properties"])), _JSON), st.integers(0, 3))
def test_any_json_row_is_a_sample_or_refused(fields: Mapping[str, Any], frames: int) -> None:
    try:
        rows = parse_sample({**row("PI", 0), **fields}, frames)
    except RowProblem:
        return
    media = [(Media("0" * 64, ".png"), (10**9, 10**9))] * frames
    sample = layout.with_frames(rows, media)
    assert CrossCheckSample.from_row(json.loads(json.dumps(sample.to_row(), allow_nan=False))) == sample


def test_schema_page_and_reader_agree() -> None:
    properties = SCHEMA["properties"]
    assert properties["task"]["enum"] == list(TASKS)
    assert set(properties) == {"id", "frames", *layout._FIELDS, "options", "boxes"} - {"row_id", "source"}
    assert set(SCHEMA["required"]) == {"task", "question", "frames", "answer"}
    assert properties["question"]["maxLength"] == layout.MAX_TEXT_LENGTH
    assert properties["answer"]["maxLength"] == layout.MAX_SHORT_TEXT_LENGTH
    assert properties["frames"]["maxItems"] == layout.MAX_FRAMES
    assert properties["boxes"]["items"]["maxItems"] == layout.MAX_BOXES
    page = DOCS.read_text("utf-8")
    assert all(f"`{name}`" in page for name in properties)
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert parse_sample(json.loads(example), 1).task == "BDC"
