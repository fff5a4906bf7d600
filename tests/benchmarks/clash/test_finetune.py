"""The training split: its questions, its targets, and the format that the trainer reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildWriter
from benchmarks.clash.finetune import CONFLICT_ANSWER, training_rows, write_training
from benchmarks.clash.prompts import instruction
from benchmarks.clash.sample import ClashSample
from benchmarks.errors import SourceError, SpecError
from benchmarks.vocabulary import Media
from tests.support.data.small import picture


def sample(number: int, image: Media | None = None) -> ClashSample:
    return ClashSample(
        image_id=str(number),
        image=image or Media(f"{number:064x}", ".jpg"),
        original_caption=f"A red kite over field {number}.",
        conflicting_caption=f"A blue kite over field {number}.",
        question="What color is the kite?",
        change_type="attribute",
        image_only="Red",
        text_only="Blue",
        distractor="Green",
        changed_original="red",
        changed_conflicting="blue",
        category="colors",
        source="rows",
    )


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Forty samples, two an image."""
    with BuildWriter(tmp_path / "build") as writer:
        for number in range(40):
            item = sample(number, writer.add_media(picture(number // 2, "JPEG"), ".jpg"))
            writer.add_row({"id": item.id, **item.to_row()})
        return writer.finish({"benchmark": "clash", "seed": 0})


def rows(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text("utf-8").splitlines():
        yield json.loads(line)


def test_half_of_the_rows_are_conflicts_with_matching_targets() -> None:
    pairs = list(training_rows(map(sample, range(2000)), seed=0))
    conflicts = 0
    for number, row in enumerate(pairs):
        (user, assistant) = row["messages"]
        image, text = user["content"]
        assert image == {"type": "image"}
        assert text["text"].startswith(instruction("official", "open"))
        assert text["text"].endswith("\nWhat color is the kite?")
        assert row["images"] == [f"{number:064x}.jpg"]
        target = assistant["content"][0]["text"]
        if f"A blue kite over field {number}." in text["text"]:
            conflicts += 1
            assert target == CONFLICT_ANSWER == "Conflicting information – cannot answer"
        else:
            assert f"A red kite over field {number}." in text["text"]
            assert target == "Red"
    assert len(pairs) == 2000
    assert 0.46 < conflicts / 2000 < 0.54  # 3.6 standard deviations


def test_caption_choice_depends_on_sample_and_seed() -> None:
    every = [sample(number) for number in range(200)]
    first = list(training_rows(every, seed=0))
    assert list(training_rows(reversed(every), seed=0)) == first[::-1]
    second = list(training_rows(every, seed=1))
    assert 60 < sum(a == b for a, b in zip(first, second, strict=True)) < 140


def test_split_keeps_samples_of_an_image_together(build: Build, tmp_path: Path) -> None:
    counts = write_training(build, tmp_path / "training", seed=0, validation_share=0.25)
    assert counts == {"train": 30, "validation": 10}
    images: dict[str, set[str]] = {}
    for name, count in counts.items():
        pairs = list(rows(tmp_path / "training" / f"{name}.jsonl"))
        assert len(pairs) == count
        images[name] = {image for row in pairs for image in row["images"]}
    assert not images["train"] & images["validation"]
    assert all(Path(image).is_absolute() and Path(image).is_file() for image in images["train"] | images["validation"])
    write_training(build, tmp_path / "again", seed=0, validation_share=0.25)
    for name in counts:
        assert (tmp_path / "again" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "training" / f"{name}.jsonl"
        ).read_bytes()


def test_failed_write_is_reported_and_leaves_nothing(build: Build, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="validation share"):
        write_training(build, tmp_path / "training", 0, 1.0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(SourceError, match="not empty"):
        write_training(build, tmp_path / "full", 0)
    assert (tmp_path / "full" / "notes.txt").read_text() == "mine"
    next((build.path / "media").iterdir()).unlink()
    with pytest.raises(SourceError, match="is missing"):
        write_training(build, tmp_path / "training", 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["build", "full"]


def test_another_benchmarks_build_is_refused(tmp_path: Path) -> None:
    with BuildWriter(tmp_path / "build") as writer:
        other = writer.finish({"benchmark": "cmc-bench", "seed": 0})
    with pytest.raises(SourceError, match="not of clash"):
        write_training(other, tmp_path / "training", 0)
