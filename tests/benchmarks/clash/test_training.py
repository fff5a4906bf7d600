"""CLASH's training split: its questions and its targets."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.clash.instances import instances
from benchmarks.clash.prompts import instruction
from benchmarks.clash.sample import ClashSample
from benchmarks.clash.training import CONFLICT_ANSWER, training_rows
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Media, Text


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
