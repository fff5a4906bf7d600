"""Plain data sets: each is fetched, built, run and shown; and rows that no data set should have."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from app.fetch.benchmark_downloads import NOT_FETCHED, RECIPES
from benchmarks.build import Build, BuildOptions
from benchmarks.errors import NothingUsableError, SourceError
from benchmarks.plain import DATA_SETS
from benchmarks.plain.plain_build import NO_CONFLICT, NOT_TEXT, OTHER_FILE, REPEATED, SEVERAL_IMAGES, UNSTATED
from benchmarks.plain.plain_data_set import PlainDataSet
from benchmarks.rows.cell_images import DATA_ADDRESS, NOT_BASE64
from benchmarks.rows.files import ADDRESS, MISSING_IMAGE, NO_IMAGE, OUTSIDE
from benchmarks.source_licences import LICENCES
from benchmarks.vocabulary import Media, Text
from tests.support.command import Rashomon
from tests.support.data.plain import as_parquet, data_set_of, hub_repo, rows_of, write_rows_of
from tests.support.data.small import picture, write_lines
from tests.support.fake_hub import FakeHub

ONE = "chart-conflicts"
DOCUMENTED = (Path(__file__).parents[3] / "docs/plain-data-sets.md").read_text("utf-8")


def built(tmp_path: Path, rows: list[dict[str, Any]], name: str = ONE) -> Build:
    """The build of rows whose images are 0.png to 9.png."""
    write_rows_of(name, tmp_path, 10)
    write_lines(tmp_path / "rows.jsonl", rows)
    return data_set_of(name).build([("published", str(tmp_path / "rows.jsonl"))], tmp_path / "out", BuildOptions())


def reasons(build: Build) -> dict[str, str]:
    """The reason for each row that was left out."""
    lines = (build.path / "skipped.jsonl").read_text("utf-8").splitlines()
    return {row["row"]: row["reason"] for row in map(json.loads, lines)}


def fetch(data_set: PlainDataSet, workspace: Path) -> None:
    """Fetch a data set from a hub that has it."""
    with FakeHub().running() as hub:
        hub.repos[data_set.hub_id] = hub_repo(data_set.name)
        rashomon = Rashomon(workspace, variables=hub.variables)
        plan = rashomon.run("data", "get", data_set.name, "--dry-run").stdout
        assert data_set.hub_id in plan
        assert LICENCES[data_set.name]["published"].terms[0].split(":")[0] in " ".join(plan.split())
        rashomon.run("data", "get", data_set.name, "--yes")
        assert not hub.gets("README.md")


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA_SETS)
def test_a_data_set_is_fetched_built_run_and_shown(name: str, tmp_path: Path) -> None:
    data_set = data_set_of(name)
    assert name in (RECIPES if data_set.hub_id else NOT_FETCHED)
    if data_set.hub_id:
        fetch(data_set, tmp_path)
    rashomon = Rashomon(tmp_path)
    source = () if data_set.hub_id else ("--source", f"published={write_rows_of(name, tmp_path / 'rows', 8)}")
    manifest = rashomon.json("build", name, *source)["manifest"]
    assert manifest["examples"] == {"rows": 8 * (1 + ("no_question" in data_set.columns))}
    model = ("--model", "policy:always-image", "--name", "run", "--display", "none")
    rashomon.run("--batch", "--benchmark", name, *model)
    tables = {table["name"]: table for table in rashomon.json("show", "run", "--all")["tables"]}
    assert {"main", "by-type", "labels", "scorecard", "failures"} <= set(tables)
    assert {column["title"] for column in tables["main"]["columns"]} == {"Right", *data_set.metrics}


@pytest.mark.parametrize("name", DATA_SETS)
def test_every_prompt_shows_what_its_condition_has(name: str, tmp_path: Path) -> None:
    data_set = data_set_of(name)
    build = built(tmp_path, rows_of(name, 8), name)
    for prompt_set in data_set.prompt_sets:
        instances = list(data_set.all_instances(build, prompt_set))
        assert {instance.condition for instance in instances} == set(data_set.conditions)
        for instance in instances:
            texts = "".join(part.text for part in instance.parts if isinstance(part, Text))
            pictures = [part for part in instance.parts if isinstance(part, Media)]
            assert texts.count(instance.question) == 1
            assert len(pictures) == (instance.condition not in ("text-only", "closed-book"))
            number = instance.question.rpartition(" ")[2].rstrip("?")
            own_text = f"Crop {number} is" if number.isdigit() else "Crop "  # one question may be that of all rows
            shows_text = data_set.has_text and instance.condition in ("conflict", "text-only")
            assert (own_text in texts) == shows_text
            assert "{" not in texts


@pytest.mark.parametrize("name", DATA_SETS)
def test_a_renamed_column_is_named_with_the_closest_one(name: str, tmp_path: Path) -> None:
    question, image = (data_set_of(name).columns[role][0] for role in ("question", "image"))
    rows = [
        {f"{key}_v2" if key in (question, image) else key: value for key, value in row.items()}
        for row in rows_of(name, 2)
    ]
    with pytest.raises(SourceError) as error:
        built(tmp_path, rows, name)
    message = str(error.value)
    assert f"{question} (closest: {question}_v2)" in message
    assert f"(closest: {image}_v2)" in message
    with pytest.raises(SourceError, match="has no column"):
        built(tmp_path, [{"a": 1}], name)
    with pytest.raises(SourceError, match=r"which .* reads; it has no columns\."):
        built(tmp_path, [{}], name)


def test_images_are_bytes_or_files_and_never_addresses(tmp_path: Path) -> None:
    rows = rows_of(ONE, 6)
    places = [
        "images/0.png",
        {"path": "images/1.png"},
        "https://example.org/2.png",
        None,
        "../3.png",
        "images/none.png",
    ]
    for row, place in zip(rows, places, strict=True):
        row["chart_image"] = place
    build = built(tmp_path, rows)
    assert build.manifest["examples"] == {"rows": 2}
    assert [*reasons(build).values()] == [ADDRESS, NO_IMAGE, OUTSIDE, MISSING_IMAGE]
    parquet = tmp_path / "hub" / "data"
    parquet.mkdir(parents=True)
    (parquet / "test-00000-of-00001.parquet").write_bytes(as_parquet(ONE, rows_of(ONE, 3)))
    other = data_set_of(ONE).build([("published", str(parquet.parent))], tmp_path / "other", BuildOptions())
    assert other.manifest["examples"] == {"rows": 3}


def test_images_as_text_are_read_and_several_are_counted(tmp_path: Path) -> None:
    encoded = [base64.b64encode(picture(number)).decode() for number in range(3)]
    rows = rows_of(ONE, 8)
    images: list[object] = [f"data:image/png;base64,{encoded[0]}", encoded[1], {"bytes": encoded[2]}, ["images/3.png"]]
    images += [["images/4.png", "images/5.png"], "data:image/svg+xml,<svg/>", "A" * 69, 77]
    for row, image in zip(rows, images, strict=True):
        row["chart_image"] = image
    build = built(tmp_path, rows)
    assert build.manifest["examples"] == {"rows": 4}
    assert [*reasons(build).values()] == [
        f"{SEVERAL_IMAGES}: it has 2",
        DATA_ADDRESS,
        NOT_BASE64,
        MISSING_IMAGE,
    ]


def test_a_value_that_is_no_text_is_not_called_missing(tmp_path: Path) -> None:
    rows = rows_of(ONE, 8)
    rows[0]["chart_answer"] = True
    rows[1]["question"] = ["a", "b"]
    rows[2]["text_report"] = {"a": "b"}
    rows[3]["report_answer"] = []
    rows[4]["chart_answer"] = None
    rows[5]["chart_image"] = True
    rows[6]["chart_image"] = float("nan")
    assert [*reasons(built(tmp_path, rows)).values()] == [
        f"the answer {NOT_TEXT}: it is true, without quotes",
        f"the question {NOT_TEXT}: it is a list",
        f"the text {NOT_TEXT}: it is an object",
        *["the row has no answer"] * 2,
        f"the image {NOT_TEXT}: it is true, without quotes",
        NO_IMAGE,
    ]


@pytest.mark.parametrize("name", DATA_SETS)
def test_the_documented_forms_have_every_needed_column(name: str) -> None:
    _, _, section = DOCUMENTED.partition(f"\n## {name}\n")
    (forms,) = (line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| forms |"))
    assert not [key for keys in data_set_of(name).columns.values() for key in keys if f"`{key}`" not in forms]


def test_a_row_of_two_splits_counts_once_and_other_files_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_rows_of(ONE, folder, 4)
    write_lines(folder / "test.jsonl", rows_of(ONE, 6)[2:4])
    (folder / "summary.json").write_text('[{"rows": 4}]', "utf-8")
    build = data_set_of(ONE).build([("published", str(folder))], tmp_path / "out", BuildOptions())
    assert build.manifest["examples"] == {"rows": 4}
    assert reasons(build) == {"summary.json": OTHER_FILE, "test.jsonl:1": REPEATED, "test.jsonl:2": REPEATED}


def test_an_unknown_type_is_kept_under_its_own_name(tmp_path: Path) -> None:
    rows = rows_of(ONE, 7)
    kinds = ["rank_swap", "Rank_Swap", "new", "new", "", "\x1b[31m" + "x" * 90, "\x1b[31m" + "x" * 91]
    for row, kind in zip(rows, kinds, strict=True):
        row["counterfactual_strategy"] = kind
    build = built(tmp_path, rows)
    types = build.manifest["types"]
    assert {types[name] for name in ("rank_swap", "unknown: Rank_Swap", "not named")} == {1}
    assert types["unknown: new"] == 2
    assert len(types) == 6, "the two long ones are not merged"
    assert all(name.isprintable() and len(name) < 90 for name in types)
    assert {row["strata"]["type"] for row in build.rows()} == set(types)


def test_rows_that_cannot_be_used_are_left_out_with_the_reason(tmp_path: Path) -> None:
    rows = rows_of(ONE, 5)
    rows[0]["report_answer"] = rows[0]["chart_answer"]
    rows[1]["question"] = " "
    rows[2]["text_report"] = None
    rows[3]["chart_answer"] = "x" * 3000
    build = built(tmp_path, rows)
    assert build.manifest["examples"] == {"rows": 1}
    first, *others = reasons(build).values()
    assert first == NO_CONFLICT
    assert others == [
        "the row has no question",
        "the row has no text",
        "the answer is longer than 2000 characters",
    ]
    with pytest.raises(NothingUsableError, match=f"no row of {ONE} can be used"):
        built(tmp_path / "none", rows[:2])


def test_a_text_that_does_not_state_its_value_is_used_and_named(tmp_path: Path) -> None:
    rows = rows_of(ONE, 3)
    rows[1] = {**rows[1], "text_report": "The report was withdrawn."}
    build = built(tmp_path, rows)
    assert build.manifest["examples"] == {"rows": 3}
    (warning,) = map(json.loads, (build.path / "warnings.jsonl").read_text("utf-8").splitlines())
    assert warning == {"row": "rows.jsonl:2", "warning": f"{UNSTATED}, {rows[1]['report_answer']!r}"}
