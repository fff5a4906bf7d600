"""The order of asking: what begins alike is adjacent, nothing is lost, and siblings stay together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, groupby

from hypothesis import given
from hypothesis import strategies as st

from app.engine.request_order import WINDOW, PendingRequest, order_by_prefix
from app.store.data_types import PendingInstance
from benchmarks.vocabulary import Decoding, Instance, Media, Message, Part, Request, Text

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
    result = list(order_by_prefix(requests))
    assert sorted(pending.ordinal for pending, _ in result) == list(range(len(drawn)))
    assert result == list(order_by_prefix(iter(requests)))


@given(st.permutations(range(12)))
def test_siblings_and_examples_of_one_image_stand_together(order: list[int]) -> None:
    shows = {"a": 0, "b": 1, "c": 0, "d": 2}  # a and c show the same image
    kinds: list[tuple[str, tuple[Part, ...]]] = [
        (group, parts)
        for group, image in shows.items()
        for parts in (
            (Text(f"{group}: only text."),),
            (IMAGES[image], Text(f"{group}: one.")),
            (IMAGES[image], Text(f"{group}: two.")),
        )
    ]
    items = [kinds[pending.ordinal] for pending, _ in order_by_prefix(asked(n, *kinds[n]) for n in order)]
    clusters = [image for image, _ in groupby(shows[group] for group, _ in items)]
    assert sorted(clusters) == [0, 1, 2], "examples of one image are adjacent"
    beginnings = [first for first, _ in groupby(parts[0] for _, parts in items)]
    assert len(beginnings) == 3 + len(kinds) // 3, "and so are the requests that begin with it"


def test_no_more_than_two_windows_are_held() -> None:
    read = []

    def endless() -> Iterator[PendingRequest]:
        for number in count():
            read.append(number)
            yield asked(number, str(number), (Text("What?"),))

    waiting = order_by_prefix(endless())
    for _ in range(WINDOW + 1):
        next(waiting)
    assert len(read) == 2 * WINDOW
