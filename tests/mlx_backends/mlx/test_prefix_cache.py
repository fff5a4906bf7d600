"""Cached prefixes: the memory that they take, and what they hold while prompts go on from them."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mlx_vlm.models.cache import KVCache

from mlx_backends.core.saved_work import shared_prefix_length
from mlx_backends.mlx.prefix_cache import PrefixCache, compact_copy

HEADS, WIDTH, LAYERS, FLOAT = 2, 8, 3, 4
TOKEN_BYTES = 2 * HEADS * WIDTH * LAYERS * FLOAT


def read(cache: list[KVCache], count: int, value: float) -> None:
    """Let each layer take ``count`` positions."""
    for entry in cache:
        entry.update_and_fetch(*[mx.full((1, HEADS, count, WIDTH), value)] * 2)


def cache_of(count: int) -> list[KVCache]:
    cache = [KVCache() for _ in range(LAYERS)]
    read(cache, count, 1.0)
    return cache


def test_cached_prefix_takes_the_memory_of_its_positions() -> None:
    assert sum(entry.nbytes for entry in cache_of(10)) > 10 * TOKEN_BYTES, "the cache has room to grow"
    assert sum(entry.nbytes for entry in compact_copy(cache_of(10))) == 10 * TOKEN_BYTES


def test_as_many_prefixes_are_cached_as_their_positions_have_room() -> None:
    prefixes = PrefixCache(20 * 10 * TOKEN_BYTES)
    contents = [np.full(10, number) for number in range(21)]
    for content in contents:
        prefixes.put(content, compact_copy(cache_of(10)))
    lengths = [prefixes.longest(np.append(content, -1))[0] for content in contents]
    assert lengths == [0] + [10] * 20


def test_cached_prefix_stays_as_it_was_while_two_prompts_go_on_from_it() -> None:
    prefixes, cache = PrefixCache(1 << 20), cache_of(10)
    prefixes.put(np.arange(10), compact_copy(cache))
    read(cache, 5, 2.0)
    for value in (3.0, 4.0):
        length, continued = prefixes.longest(np.arange(12))
        assert continued is not None
        read(continued, 2, value)
        keys, _ = continued[0].state
        assert (length, keys[0, 0, :, 0].tolist()) == (10, [1.0] * 10 + [value] * 2)


class Numbered:
    """A layer's cache that knows how many positions it holds."""

    nbytes = 1

    def __init__(self, offset: int, trimmable: bool) -> None:
        self.offset, self._trimmable = offset, trimmable

    def is_trimmable(self) -> bool:
        return self._trimmable

    def trim(self, count: int) -> None:
        assert self._trimmable
        self.offset -= count


CONTENTS = st.lists(st.integers(-1, 1), min_size=1, max_size=6).map(lambda tokens: np.array(tokens, np.int64))


@given(st.lists(st.tuples(CONTENTS, st.booleans(), st.booleans()), max_size=12), st.integers(1, 8), CONTENTS)
def test_longest_usable_prefix_is_taken(
    stored: list[tuple[np.ndarray, bool, bool]], size: int, content: np.ndarray
) -> None:
    prefixes = PrefixCache(size)
    newest: dict[bytes, tuple[np.ndarray, bool]] = {}
    for prefix, trimmable, likely in stored:
        prefixes.put(prefix, [Numbered(len(prefix), trimmable)], likely=likely)
        newest.pop(prefix.tobytes(), None)
        newest[prefix.tobytes()] = prefix, trimmable
    assert len(prefixes._prefixes) == min(size, len(newest))
    best = 0
    for prefix, trimmable in map(newest.__getitem__, prefixes._prefixes):
        shared = min(shared_prefix_length(prefix, content), len(content) - 1)
        if trimmable or shared == len(prefix):
            best = max(best, shared)
    assert prefixes.longest_length(content) == best
    length, cache = prefixes.longest(content)
    assert length == best
    assert [entry.offset for entry in cache or ()] == [best] * bool(best)
