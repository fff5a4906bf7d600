"""Counts of distinct tokens and images in constant memory."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np
import pytest

from mlx_backends.core.distinct_count import DistinctCount, prefix_hashes
from mlx_backends.core.saved_work import Reuse, Seen
from tests.support.distinct_tokens import count_distinct_tokens

RNG = np.random.default_rng(0)


def hashes(count: int) -> np.ndarray:
    return RNG.integers(0, 2**64, count, dtype=np.uint64)


def digest(value: object) -> str:
    return hashlib.sha256(str(value).encode()).hexdigest()


@pytest.mark.parametrize("count", [0, 1, 20_000, 300_000])
def test_repeated_hashes_count_once_however_many_there_are(count: int) -> None:
    counter, values = DistinctCount(), hashes(count)
    counter.add(values)
    counter.add(values[::-1])
    assert counter.count() == pytest.approx(count, rel=0.001)
    assert len(counter.to_bytes()) == 2 << 20


def test_tokens_are_distinct_where_the_prefix_they_end_is() -> None:
    trunk = RNG.integers(0, 9, 20)
    prompts = [np.concatenate([trunk[: 5 * (n % 4)], RNG.integers(0, 2, 4 + n % 3)]) for n in range(60)]
    reuse = Reuse()
    for prompt in prompts:
        reuse.read(prefix_hashes(prompt), [digest("an image"), digest(len(prompt))])
    assert reuse.distinct_tokens == count_distinct_tokens(prompts)
    assert (reuse.prompts, reuse.prompt_tokens, reuse.images) == (60, sum(map(len, prompts)), 120)
    assert reuse.distinct_images == 1 + len({len(prompt) for prompt in prompts})


def test_a_prefix_is_recognised_after_a_thousand_other_prompts() -> None:
    reuse, prompt = Reuse(), np.arange(50)
    reuse.read(prefix_hashes(prompt), [])
    for number in range(1000):
        reuse.read(prefix_hashes(np.array([1000 + number, 7])), [])
    before = reuse.distinct_tokens
    reuse.read(prefix_hashes(np.concatenate([prompt, [1, 2, 3]])), [])
    assert reuse.distinct_tokens == before + 3


def test_processes_that_count_together_count_nothing_twice() -> None:
    total, nodes, known = Seen(), [Seen(), Seen()], [Seen(), Seen()]
    values = hashes(6000)
    for start in range(0, 5000, 1000):
        for number, node in enumerate(nodes):
            node.tokens.add(values[start : start + 1000 + 1000 * number])
            node.images.add(values[:10])
            total.apply(node.take_changes(known[number]))
    assert total.counts() == nodes[1].counts() == nodes[0].merged(nodes[1]).counts()
    assert total.counts() == {"tokens": pytest.approx(6000, rel=0.001), "images": 10}
    assert [len(places) for places, _ in nodes[0].take_changes(known[0])] == [0, 0]


def test_only_what_was_counted_is_read_back() -> None:
    seen = Seen()
    seen.tokens.add(hashes(1000))
    seen.images.add(hashes(10))
    data = seen.to_bytes()
    assert Seen.from_bytes(data).counts() == seen.counts()
    for wrong in (b"", b"no zlib", data[:-9], zlib.compress(b"\0" * 100), zlib.compress(bytes(9 << 20))):
        with pytest.raises(ValueError, match=r".+"):
            Seen.from_bytes(wrong)
