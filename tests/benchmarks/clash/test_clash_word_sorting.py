"""Sorting of changed words that the printed lists lack: by a model, by people, and in neither way."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.clash.clash_word_sorting import FILE
from benchmarks.errors import SourceError
from benchmarks.registry import get_benchmark
from tests.support.data.clash import own_folder, own_sample
from tests.support.data.contra4 import Scripted


def source(folder: Path) -> Path:
    pairs = [("dog", "okapi"), ("kazoo", "okapi"), ("dog", "cat")]
    changes = [
        own_sample(
            number,
            change_type="object",
            original_caption=f"A {before} by the tree.",
            conflicting_caption=f"A {after} by the tree.",
            question="What is by the tree?",
            image_only=before,
            text_only=after,
            changed_original=before,
            changed_conflicting=after,
        )
        for number, (before, after) in enumerate(pairs, 1)
    ]
    for change in changes:
        del change["relation"]
    return own_folder(folder, changes)


def build(place: Path, out: Path, model: Scripted | None = None) -> Build:
    options = BuildOptions(readers=() if model is None else (model,))
    return get_benchmark("clash").build([("rows", str(place))], out, options)


def categories(built: Build) -> list[str]:
    return [row["category"] for row in built.rows()]


def test_a_model_sorts_the_words_that_no_list_has_and_people_correct_it(tmp_path: Path) -> None:
    place = source(tmp_path / "source")
    plain = build(place, tmp_path / "plain")
    assert categories(plain) == ["other", "other", "animals"]
    assert not (plain.path / FILE).exists()
    model = Scripted("sorter", lambda prompt: "Animals." if "okapi" in prompt else "It makes a noise")
    by_model = build(place, tmp_path / "model", model)
    assert categories(by_model) == ["animals", "other", "animals"]
    assert by_model.manifest["sorted_words"] == {"sorter": 1}  # the other reply names no category
    assert len(model.asked) == 2  # each word once, and none that a list has
    with (by_model.path / FILE).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [{"change_type": "object", "word": "okapi", "category": "animals", "by": "sorter"}]
    corrected = [*rows, {"change_type": "object", "word": "Kazoo", "category": "animals", "by": "ann"}]
    with ((place if place.is_dir() else place.parent) / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(corrected)
    by_people = build(place, tmp_path / "people")
    assert categories(by_people) == ["animals", "animals", "animals"]
    assert by_people.manifest["sorted_words"] == {"people": 2}


def test_a_category_that_there_is_not_is_an_error_with_its_line(tmp_path: Path) -> None:
    place = source(tmp_path / "source")
    folder = place if place.is_dir() else place.parent
    (folder / FILE).write_text("change_type,word,category\nobject,okapi,colors\n", "utf-8")
    with pytest.raises(SourceError, match=r"word-categories\.csv:\d+ has no word with a category of its change_type"):
        build(place, tmp_path / "out")
