"""The order of requests: those that show the same image are adjacent, then those that begin alike, and nothing is lost."""

from __future__ import annotations

from array import array
from itertools import chain, groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.request_order import MOST, WINDOW, PendingRequest, _windows, order_by_prefix, ordered_requests
from app.store.run_store import RunStore
from app.store.store_types import PendingInstance
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.vocabulary import Decoding, Instance, Media, Message, Part, Request, Text
from tests.app.store.test_run_store import META

IMAGES = [Media(f"{number:064x}", ".png") for number in range(4)]


def asked(number: int, group: str, parts: tuple[Part, ...]) -> PendingRequest:
    instance = Instance(f"i{number}", group, "c", "q", parts)
    return PendingInstance(number, instance, ()), Request(instance.id, 0, (Message("user", parts),), Decoding())


part = st.one_of(st.sampled_from(IMAGES), st.builds(Text, st.sampled_from(["Is it?", "Is it so?", "What?", "\0", ""])))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(part, max_size=4).map(tuple)), max_size=40))
def test_each_is_asked_once_and_the_same_order_comes_from_the_same_requests(
    drawn: list[tuple[str, tuple[Part, ...]]],
) -> None:
    requests = [asked(number, group, parts) for number, (group, parts) in enumerate(drawn)]
    result = order_by_prefix(requests)
    assert sorted(pending.ordinal for pending, _ in result) == list(range(len(drawn)))
    assert result == order_by_prefix(iter(requests))


@given(st.permutations(range(12)))
def test_requests_that_show_an_image_stand_together(order: list[int]) -> None:
    shows = {"a": 0, "b": 1, "c": 0, "d": 2}  # a and c show the same image
    kinds: list[tuple[str, tuple[Part, ...]]] = [
        (group, parts)
        for group, image in shows.items()
        for parts in (
            (Text(f"{group}: only text."),),
            (IMAGES[image], Text(f"{group}: one.")),
            (Text("Look."), IMAGES[image], Text(f"{group}: two.")),
        )
    ]
    items = [kinds[pending.ordinal] for pending, _ in order_by_prefix(asked(n, *kinds[n]) for n in order)]
    shown = [next((part for part in parts if part in IMAGES), group) for group, parts in items]
    assert len(list(groupby(shown))) == len(set(shown)), (
        "each image once, and the examples' texts beside none of another"
    )
    beginnings = [first for first, _ in groupby(parts[0] for _, parts in items)]
    assert len(beginnings) == len(shows) + 2 * 3, "and so are the requests that begin alike"


@pytest.mark.slow
@given(st.lists(st.integers(0, 5), max_size=60), st.sets(st.integers(0, 59)))
def test_the_order_of_a_whole_run_shows_each_image_once(shown: list[int], only: set[int]) -> None:
    """An image comes back at the end of the run in vain: its requests are asked where it stands first."""
    with TemporaryDirectory() as folder:
        instances = [
            Instance(
                f"i{n}", f"g{n // 3}", "c", "q", (IMAGES[image],) if image < len(IMAGES) else (Text('"sha256":"no'),)
            )
            for n, image in enumerate(shown)
        ]
        with RunStore.create(Path(folder), META, instances) as store:
            asked = [item.ordinal for item, _ in ordered_requests(store, DirectProtocol(Decoding()))]
            part = [item.ordinal for item, _ in ordered_requests(store, DirectProtocol(Decoding()), only=sorted(only))]
        assert sorted(asked) == list(range(len(shown)))
        assert sorted(part) == sorted(only & set(asked))
        clusters = [shown[n] if shown[n] < len(IMAGES) else f"g{n // 3}" for n in asked]
        firsts = [cluster for cluster, _ in groupby(clusters)]
        assert len(firsts) == len(set(firsts))
        assert firsts == sorted(
            firsts, key=lambda cluster: min(n for n, c in zip(asked, clusters, strict=True) if c == cluster)
        )


def test_a_window_ends_with_an_image_unless_that_has_too_many_requests() -> None:
    clusters = array("I", [0] * (WINDOW - 1) + [1] * 2 + [2] * (MOST + WINDOW) + [3] * 9)
    windows = list(_windows(array("I", range(len(clusters))), clusters))
    assert [len(window) for window in windows] == [WINDOW + 1, MOST, WINDOW, 9]
    assert list(chain(*windows)) == list(range(len(clusters)))
