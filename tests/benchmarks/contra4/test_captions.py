"""Captions of other programs: what is read, what is reported, and what a captioner is still asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.errors import SourceError
from benchmarks.registry import get_benchmark
from tests.support.data.contra4 import PLAIN, Scripted, row, write_source

CONTRA4 = get_benchmark("contra4")


def build(folder: Path, captions: list[Any], **options: Any) -> Build:
    source = write_source(folder / "source", [row("r", PLAIN)])
    file = folder / "captions.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in captions), "utf-8")
    return CONTRA4.build([("published", str(source))], folder / "out", BuildOptions(captions=file, **options))


def predicted(built: Build) -> list[str]:
    return [scene.get("predicted", "") for sample in built.rows() for scene in sample["scenes"]]


def reasons(built: Build) -> list[str]:
    lines = map(json.loads, (built.path / "skipped.jsonl").read_text("utf-8").splitlines())
    return [line["reason"] for line in lines if line["source"] == "captions"]


def test_captions_are_joined_by_id_and_modality_in_either_form(tmp_path: Path) -> None:
    rows = [
        {"id": 139, "modality": "image", "caption": "an empty  room"},
        {"index": "bark.wav", "modality": "Audio", "generated_text": ["barking", "another"]},
        {"image_id": "abc", "modality": "pc", "caption": "a pot"},
        {"id": "abc", "modality": "video", "caption": "of another modality"},
    ]
    built = build(tmp_path, rows, captioners={"video": (model := Scripted("describer", lambda prompt: "drums"))})
    assert predicted(built) == ["an empty room", "barking", "a pot", "drums"]
    assert len(model.asked) == 1
    assert built.manifest["captions"] == {"read": 4, "used": 3}
    assert {"captions"} <= {instance.condition for instance in CONTRA4.instances(built, "official")}


def test_rows_that_cannot_be_used_are_reported_and_a_repeated_one_does_not_decide(tmp_path: Path) -> None:
    first = {"id": "abc", "modality": "pc", "caption": "the first"}
    rows = [
        first,
        first,
        first | {"caption": "of another split"},
        {"id": "x", "caption": "c"},
        {"modality": "pc", "caption": "c"},
    ]
    built = build(tmp_path, [*rows, {"id": "x", "modality": "smell", "caption": "c"}, {"id": "y", "modality": "pc"}])
    assert predicted(built)[2] == "the first"
    assert sorted(reasons(built)) == [
        "another row has another caption for this medium; the first counts",
        "the row has no caption",
        "the row has no id",
        *["the row has no modality that is one of audio, image, pc and video"] * 2,
    ]


def test_a_file_without_a_caption_is_an_error_that_shows_the_form(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"captions\.jsonl has no usable caption .*no modality.*expected a file of rows"
    ):
        build(tmp_path, [{"name": "abc", "text": "renamed columns"}])
    source = write_source(tmp_path / "other", [row("r", PLAIN)])
    options = BuildOptions(captions=tmp_path / "none.jsonl")
    with pytest.raises(SourceError, match="does not exist"):
        CONTRA4.build([("published", str(source))], tmp_path / "out", options)
