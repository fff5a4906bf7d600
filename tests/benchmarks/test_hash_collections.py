"""Collections of hashes: the same order, duplicates and counts as with the texts themselves."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hash_collections import DuplicateHashes, HashOrder, count_distinct, hash64

hashes = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3))


@given(hashes)
def test_the_order_is_stable(values: list[int]) -> None:
    order = HashOrder()
    for number, value in enumerate(values):
        order.add(value, number)
    assert list(order) == sorted(((value, number) for number, value in enumerate(values)), key=lambda pair: pair[0])


@given(st.lists(st.text()))
def test_texts_are_sorted_as_by_their_sha256(texts: list[str]) -> None:
    order = HashOrder()
    for number, text in enumerate(texts):
        order.add(hash64(text), number)
    by_sha256 = sorted(texts, key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
    assert [texts[number] for _, number in order] == by_sha256


@given(st.lists(st.text(max_size=2)))
def test_every_repeated_text_is_suspected(texts: list[str]) -> None:
    duplicates = DuplicateHashes()
    for text in texts:
        duplicates.add(text)
    assert {hash(text) for text in texts if texts.count(text) > 1} == duplicates.repeated()


@given(hashes)
def test_distinct_hashes_are_counted(values: list[int]) -> None:
    assert count_distinct(values) == len(set(values))


@pytest.mark.slow
def test_an_entry_takes_few_bytes() -> None:
    tracemalloc.start()
    order, duplicates = HashOrder(), DuplicateHashes()
    for number in range(50_000):
        order.add(hash64(str(number)), number)
        duplicates.add(str(number))
    list(zip(order, range(3), strict=False))
    assert not duplicates.repeated()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000 * 40
