"""CLASH's training split: its questions and its targets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.build import Build
from benchmarks.clash.clash_instances import instances
from benchmarks.clash.clash_prompts import instruction
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.clash_training import CONFLICT_ANSWER, training_rows
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Media, Text
from tests.support.command import Rashomon
from tests.support.data.clash import finetune_files


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


def rows(samples: Iterable[ClashSample], seed: int = 0) -> list[TrainingRow]:
    every = [instance for sample in samples for instance in instances(sample, "official", 0)]
    return list(training_rows(every, TrainingOptions(seed=seed)))


def test_half_of_the_rows_are_conflicts_with_matching_targets() -> None:
    pairs = rows(map(sample, range(2000)))
    conflicts = 0
    for number, row in enumerate(pairs):
        image, text = row.instance.parts
        assert image == Media(f"{number:064x}", ".jpg")
        assert isinstance(text, Text)
        assert text.text.startswith(instruction("official", "open"))
        assert text.text.endswith("\nWhat color is the kite?")
        if f"A blue kite over field {number}." in text.text:
            conflicts += 1
            assert (row.target, row.kind, row.rejected) == (CONFLICT_ANSWER, "conflict", "Blue")
        else:
            assert f"A red kite over field {number}." in text.text
            assert (row.target, row.kind, row.rejected) == ("Red", "no conflict", CONFLICT_ANSWER)
    assert CONFLICT_ANSWER == "Conflicting information – cannot answer"
    assert len(pairs) == 2000
    assert 0.46 < conflicts / 2000 < 0.54  # 3.6 standard deviations


def test_caption_choice_depends_on_sample_and_seed() -> None:
    every = [sample(number) for number in range(200)]
    first = rows(every)
    assert rows(reversed(every)) == first[::-1]
    assert 60 < sum(a == b for a, b in zip(first, rows(every, seed=1), strict=True)) < 140


@pytest.mark.parametrize(
    ("filtered", "merged"), [(60, 180), pytest.param(18_097, 31_676, marks=pytest.mark.slow)], ids=["few", "published"]
)
def test_the_authors_files_are_two_training_sets(filtered: int, merged: int, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    counts = finetune_files(tmp_path / "data", filtered, merged)
    build = ("build", "clash", "--source")
    assert "merged_data_finetune.json" in rashomon.run(*build, f"published={tmp_path / 'data'}", code=2).stderr
    for name in ("filtered", "merged"):
        place = tmp_path / "data" / f"{name}_data_finetune.json"
        rashomon.run(*build, f"published={place}", "--out", tmp_path / name)

    def rows(name: str, *options: str) -> tuple[str, int, Counter[str]]:
        out = tmp_path / f"{name}-set"
        written = rashomon.run("training", "clash", "--data", tmp_path / name, "--out", out, "--json", *options).stdout
        manifest = json.loads(written)["result"]["manifest"]
        kinds = {kind: manifest["rows"][kind] for kind in ("conflict", "no conflict")}
        return manifest["options"]["filter"], sum(kinds.values()), Counter(kinds)

    assert rows("filtered")[:2] == ("filtered", filtered)
    unusable = counts.pop("unusable") + counts.pop("no image")
    name, count, kinds = rows("merged")
    assert (name, count) == ("unfiltered", merged - unusable)
    assert min(kinds.values()) > 0.3 * count
    rashomon.run("training", "clash", "--data", tmp_path / "merged", "--filter", "filtered", "--out", "x", code=2)
    manifest = Build.open(tmp_path / "merged").manifest
    assert manifest["samples"] == filtered + counts.pop("")
    assert Build.open(tmp_path / "merged-rejected").manifest["rejected"] == counts
    skipped = Counter(
        {reason.partition(":")[0]: count for reason, count in manifest["sources"]["published"]["skipped"].items()}
    )
    assert {check: skipped[check] for check in counts} == counts
    assert skipped.total() == sum(counts.values()) + unusable
