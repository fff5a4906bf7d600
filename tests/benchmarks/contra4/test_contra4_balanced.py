"""Balanced samples of Contra4: the published subset, and what balance means for any samples."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.contra4.contra4_balanced import balanced, balanced_test
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene, parse_sample
from benchmarks.stats.intervals import wilson
from benchmarks.vocabulary import Modality
from tests.support.data.contra4 import DATA, real_rows

KINDS: tuple[Modality, ...] = ("audio", "image", "point_cloud", "video")


@st.composite
def questions(draw: st.DrawFn) -> list[Contra4Sample]:
    """Samples of two to four scenes, of which some repeat a modality."""
    drawn = []
    for number in range(draw(st.integers(0, 40))):
        kinds = draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4))
        scenes = tuple(
            Scene("s", f"{number}-{place}", kind, "x" * draw(st.integers(1, 9))) for place, kind in enumerate(kinds)
        )
        answer = draw(st.integers(0, len(kinds) - 1))
        drawn.append(Contra4Sample(str(number), "Which?", scenes, answer, "ABCD"[answer], "random"))
    return drawn


def by_combination(samples: list[Contra4Sample]) -> dict[str, Counter[Modality]]:
    counts: defaultdict[str, Counter[Modality]] = defaultdict(Counter)
    for sample in samples:
        counts[sample.modalities][sample.scenes[sample.answer].modality] += 1
    return counts


@given(questions(), st.none() | st.integers(1, 20))
def test_modalities_are_equally_often_right_and_the_order_does_not_matter(
    samples: list[Contra4Sample], target: int | None
) -> None:
    subset = balanced(samples, target)
    for combination, counts in by_combination(subset).items():
        assert len(counts) == combination.count("+") + 1, "every modality, and none twice"
        assert len(set(counts.values())) == 1
    assert subset == [sample for sample in samples if sample in subset]
    shuffled = random.Random(0).sample(samples, len(samples))
    assert {sample.id for sample in balanced(shuffled, target)} == {sample.id for sample in subset}
    everything = balanced(samples)
    assert len(subset) >= min(len(everything), target or len(samples))
    assert target is None or len(subset) < target + 4


@real_rows
def test_published_subset_gives_nothing_away() -> None:
    def read(split: str) -> list[Contra4Sample]:
        return [parse_sample(row, split) for row in json.loads((DATA / f"{split}.json").read_text("utf-8"))]

    test = read("test")
    subset = balanced(test)
    assert {sample.id for sample in subset} == balanced_test()
    assert len(subset) == 1133
    right: Counter[tuple[int, Modality]] = Counter()
    shown: Counter[tuple[int, Modality]] = Counter()
    for sample in read("val"):
        size = len(sample.scenes)
        right[size, sample.scenes[sample.answer].modality] += 1
        shown.update((size, scene.modality) for scene in sample.scenes)

    def prior(sample: Contra4Sample) -> int:
        kinds = [(len(sample.scenes), scene.modality) for scene in sample.scenes]
        return max(range(len(kinds)), key=lambda place: right[kinds[place]] / shown[kinds[place]])

    def length(sample: Contra4Sample) -> int:
        return max(range(len(sample.scenes)), key=lambda place: len(sample.scenes[place].caption))

    def last(sample: Contra4Sample) -> int:
        return len(sample.scenes) - 1

    def share(samples: list[Contra4Sample], rule: Callable[[Contra4Sample], int]) -> tuple[float, float]:
        """The lower end of the rule's interval, and its share."""
        rate = wilson(sum(rule(sample) == sample.answer for sample in samples), len(samples))
        assert rate.value is not None
        assert rate.low is not None
        return rate.low, rate.value

    whole = {size: [sample for sample in test if len(sample.scenes) == size] for size in (2, 3, 4)}
    assert [round(share(whole[size], prior)[1], 3) for size in (2, 3, 4)] == [0.671, 0.479, 0.513]
    assert all(share(whole[size], length)[0] > 1 / size for size in (2, 3, 4))
    for size in (2, 3, 4):
        members = [sample for sample in subset if len(sample.scenes) == size]
        for rule in (prior, length, last):
            low, value = share(members, rule)
            assert low < 1 / size
            assert value == pytest.approx(1 / size, abs=0.03)
