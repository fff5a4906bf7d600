"""Record of a training's data: the test data that a model has seen is recognised, whatever the build."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.training import trained_on as module
from benchmarks.training.prompt_texts import instance_text
from benchmarks.training.trained_on import TrainingRecord
from benchmarks.training.training_set import TrainingSet
from benchmarks.training.write_training_set import write_training_set
from benchmarks.training_rows import TrainingOptions
from benchmarks.varied_names import in_cell
from benchmarks.vocabulary import Instance, Media
from tests.support.data.small import own_rows, picture


def build(folder: Path, values: list[str]) -> Build:
    source = own_rows(folder / "source", values)
    return get_benchmark("cmc-bench").build([("rows", str(source))], folder / "build", BuildOptions())


def instances(build: Build) -> list[Instance]:
    return list(get_benchmark("cmc-bench").instances(build, "paper"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return build(tmp_path_factory.mktemp("trained"), [str(100 + 7 * n) for n in range(6)])


@pytest.fixture(scope="module")
def training_set(trained: Build, tmp_path_factory: pytest.TempPathFactory) -> TrainingSet:
    out = tmp_path_factory.mktemp("set") / "set"
    return write_training_set(get_benchmark("cmc-bench"), [trained], out, TrainingOptions(), 0.3).put_in_place()


def test_examples_are_recognised_in_their_build_in_a_part_of_it_and_under_factors(
    trained: Build, training_set: TrainingSet
) -> None:
    record = TrainingRecord.of(training_set)
    assert record.builds == {trained.digest}
    every = instances(trained)
    assert record.count_examples(trained.digest, every) == (6, 6)
    part = [instance for instance in every if instance.group == every[0].group]
    assert record.count_examples("another build", part) == (1, 1)
    varied = [replace(instance, group=in_cell(instance.group, 3)) for instance in part]
    assert record.count_examples("another build", varied) == (1, 1)


def test_other_examples_are_not(training_set: TrainingSet, tmp_path: Path) -> None:
    other = build(tmp_path, [str(900 + 7 * n) for n in range(4)])
    strange = [
        replace(instance, parts=tuple(p for p in instance.parts if hasattr(p, "text"))) for instance in instances(other)
    ]
    assert TrainingRecord.of(training_set).count_examples(other.digest, strange) == (0, 4)


def test_an_example_of_another_name_is_recognised_by_its_image(trained: Build, training_set: TrainingSet) -> None:
    renamed = [replace(instance, group=f"new {instance.group}") for instance in instances(trained)]
    assert TrainingRecord.of(training_set).count_examples("another build", renamed) == (6, 6)


def test_sets_made_elsewhere_are_recognised_by_image_and_prompt(tmp_path: Path, trained: Build) -> None:
    every = instances(trained)
    media = next(part for instance in every for part in instance.parts if isinstance(part, Media))
    (tmp_path / "1.png").write_bytes(trained.media_path(media).read_bytes())
    texts = Counter(map(instance_text, every))
    text_only = [i for i in every if i.condition == "text-only" and texts[instance_text(i)] == 1][-1]
    rows = [("1.png", "What is it?"), ("2.png", instance_text(text_only))]
    (tmp_path / "2.png").write_bytes(picture(2))
    lines = [
        {"images": [name], "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "It is."}]}
        for name, text in rows
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, lines)))
    record = TrainingRecord.of(TrainingSet.open(tmp_path))
    shown = {instance.group for instance in every if media in instance.parts}
    assert record.count_examples(trained.digest, every) == (len(shown | {text_only.group}), 6)
    repeated = [replace(text_only, group=f"again {n}") for n in range(2)]
    assert record.count_examples(trained.digest, repeated) == (0, 2), "a template"


def test_a_record_is_read_again_and_joined(training_set: TrainingSet, trained: Build, tmp_path: Path) -> None:
    record = TrainingRecord.of(training_set)
    (tmp_path / "1.png").write_bytes(picture(1))
    turns = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": "A chart"}]
    (tmp_path / "train.jsonl").write_text(json.dumps({"images": ["1.png"], "messages": turns}))
    other = TrainingRecord.of(TrainingSet.open(tmp_path))
    stored = [json.loads(json.dumps(part.to_json())) for part in (record, other)]
    joined = TrainingRecord.read(stored)
    assert joined.hashes is not None
    assert record.hashes is not None
    assert other.hashes is not None
    assert joined == TrainingRecord(record.builds, record.hashes | other.hashes)
    assert not TrainingRecord.read([{"training": "an older one"}, {}])


def test_too_many_rows_leave_the_builds(
    training_set: TrainingSet, trained: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_HASHES", 3)
    record = TrainingRecord.read([TrainingRecord.of(training_set).to_json()])
    assert record.count_examples(trained.digest, instances(trained)[:5]) == (1, 1)
    assert record.count_examples("another build", instances(trained)) == (0, 6)


@pytest.mark.parametrize("stored", [5, "not base64!", "AAAA", ["a"], {}])
def test_values_of_another_kind_are_passed_over(stored: Any) -> None:
    record = TrainingRecord.read([{"builds": stored, "examples, images and prompts": stored}])
    assert record.count_examples("build", []) == (0, 0)
