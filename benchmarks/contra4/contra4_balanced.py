"""Balanced samples: neither the right scene's modality nor the length of its caption gives the answer away.

In the published test rows the modality that is right most often in the validation rows has 56%, and the longest caption 50%,
where chance is 37%.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

from benchmarks.contra4.contra4_sample import Contra4Sample
from benchmarks.vocabulary import Modality


@lru_cache(maxsize=1)
def balanced_test() -> frozenset[str]:
    """Return the ids of the balanced subset (ours) of the published test rows: :func:`balanced` of them."""
    return frozenset(files("benchmarks.contra4").joinpath("balanced_test.txt").read_text("utf-8").split())


def balanced(samples: Sequence[Contra4Sample], target: int | None = None) -> list[Contra4Sample]:
    """Return a subset in which each modality of a combination is right equally often, in the order of ``samples``.

    It has all that can be balanced, or about ``target`` samples: the first multiple of their number of scenes that is not
    smaller. A combination with a modality that is never right, or twice there, is left out. Among samples that are alike in
    both, those are chosen that spread the right scene evenly over the ranks of caption length and over positions; ties are
    broken by id, a digest of the content.
    """
    cells: defaultdict[tuple[str, Modality], list[Contra4Sample]] = defaultdict(list)
    ids = {sample.id: sample for sample in samples}
    for _, sample in sorted(ids.items()):
        cells[sample.modalities, sample.scenes[sample.answer].modality].append(sample)
    sizes = {sample.modalities: len(sample.scenes) for sample in samples}
    quotas = {name: _complete(name, size, cells) for name, size in sorted(sizes.items())}
    while target is not None and any(quotas.values()):
        largest = max(quotas, key=lambda name: quotas[name])
        if sum(n * sizes[name] for name, n in quotas.items()) - sizes[largest] < target:
            break
        quotas[largest] -= 1
    chosen: list[Contra4Sample] = []
    counts: Counter[tuple[int, str, int]] = Counter()
    for (name, _), cell in sorted(cells.items(), key=lambda item: (len(item[1]) - quotas[item[0][0]], item[0])):
        for _ in range(quotas[name]):  # the cells with the least choice come first
            best = min(cell, key=lambda sample: sum(counts[trait] for trait in _traits(sample)))
            cell.remove(best)
            counts.update(_traits(best))
            chosen.append(best)
    places = {id(sample): place for place, sample in enumerate(samples)}
    return sorted(chosen, key=lambda sample: places[id(sample)])


def _complete(name: str, size: int, cells: dict[tuple[str, Modality], list[Contra4Sample]]) -> int:
    """Return how many samples each modality of a combination can give, if all are to give equally many."""
    numbers = [len(cell) for (combination, _), cell in cells.items() if combination == name]
    return min(numbers) if len(numbers) == size else 0


def _traits(sample: Contra4Sample) -> list[tuple[int, str, int]]:
    size = len(sample.scenes)
    longest_first = sorted(range(size), key=lambda place: (-len(sample.scenes[place].caption), place))
    return [(size, "length", longest_first.index(sample.answer)), (size, "position", sample.answer)]
