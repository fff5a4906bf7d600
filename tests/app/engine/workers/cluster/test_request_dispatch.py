"""Dispatch of requests to nodes: images stay together, idle nodes get work, and nothing is lost or given twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.engine.workers.cluster.request_dispatch import (
    CHUNK_OF_TEXT,
    DEATHS_ALONE,
    DEATHS_TOGETHER,
    OPENING,
    Dispatcher,
)
from benchmarks.vocabulary import Decoding, Media, Message, Request, Text


def request(number: int, image: int | None = None) -> Request:
    parts = (Text(f"question {number}"),) if image is None else (Media(f"{image:064x}", ".png"), Text(f"q {number}"))
    return Request(f"instance-{number}", 0, (Message("user", parts),), Decoding())


def filled(images: int, each: int) -> Dispatcher:
    dispatcher = Dispatcher()
    for number in range(images * each):
        dispatcher.add(request(number, number // each))
    return dispatcher


def image_of(item: Request) -> str:
    media = item.messages[0].parts[0]
    assert isinstance(media, Media)
    return media.sha256


def test_an_image_stays_with_the_node_that_took_it_first() -> None:
    dispatcher = filled(images=2, each=6)
    first, second = dispatcher.take("a", 2), dispatcher.take("b", 2)
    assert len({image_of(item) for item in first}) == 1
    assert {image_of(item) for item in first} != {image_of(item) for item in second}
    assert {image_of(item) for item in dispatcher.take("a", 4)} == {image_of(item) for item in first}
    later = request(100, 0)
    dispatcher.add(later)
    taken = dispatcher.take("a", 1)
    assert taken == [later], "also a request of the image that comes later, such as a second step"


def test_an_idle_node_takes_half_of_what_waits_for_a_busy_one() -> None:
    dispatcher = filled(images=1, each=9)
    assert len(dispatcher.take("a", 1)) == 1
    assert len(dispatcher.take("b", 8)) + len(dispatcher.take("a", 8)) == 8
    assert dispatcher.held("b") >= 4
    assert dispatcher.waiting == 0


def test_requests_without_images_are_spread() -> None:
    dispatcher = Dispatcher()
    for number in range(4 * CHUNK_OF_TEXT):
        dispatcher.add(request(number))
    taken = [dispatcher.take(node, CHUNK_OF_TEXT) for node in "abcd"]
    assert [len(items) for items in taken] == [CHUNK_OF_TEXT] * 4
    assert taken[0] == [request(number) for number in range(CHUNK_OF_TEXT)], "those that come together stay together"


def test_equal_texts_and_those_with_the_same_long_opening_go_to_the_same_node() -> None:
    dispatcher = Dispatcher()
    texts = ["Which is it?", "What is it?", "p" * OPENING + " 1", "p" * OPENING + " 2"]
    asked: dict[str, list[Request]] = {name: [] for name in "ab"}
    for number, text in enumerate(texts * 3):
        dispatcher.add(Request(f"{number}", 0, (Message("user", (Text(text),)),), Decoding()))
        if number % 4 == 3:
            for name, items in asked.items():
                items += dispatcher.take(name, 2)
    for opening in ("Which", "What", "p"):
        assert len({name for name, items in asked.items() for item in items if text_of(item).startswith(opening)}) == 1


def text_of(item: Request) -> str:
    (text,) = item.messages[0].parts
    assert isinstance(text, Text)
    return text.text


def test_what_kills_every_worker_is_asked_alone_and_becomes_one_error() -> None:
    dispatcher = filled(images=1, each=4)
    deaths, failed = 0, list[Request]()
    answered: list[str] = []
    while dispatcher:
        items = dispatcher.take("a", 2)
        if any(item.instance_id == "instance-1" for item in items):
            deaths += 1
            failed += dispatcher.lose("a", [item.id for item in items])
            continue
        for item in items:
            assert dispatcher.finish("a", item.id)
            answered.append(item.instance_id)
    assert [item.instance_id for item in failed] == ["instance-1"]
    assert sorted(answered) == ["instance-0", "instance-2", "instance-3"]
    assert deaths == DEATHS_TOGETHER + DEATHS_ALONE


def test_what_ended_workers_before_it_was_given_to_any_is_asked_alone() -> None:
    dispatcher = filled(images=1, each=4)
    assert [dispatcher.blame("instance-1#0") for _ in range(DEATHS_TOGETHER)] == [1, 2]
    assert [item.instance_id for item in dispatcher.take("a", 9)] == ["instance-0", "instance-2", "instance-3"]
    for item in ("instance-0#0", "instance-2#0", "instance-3#0"):
        assert dispatcher.take("a", 9) == []
        assert dispatcher.finish("a", item)
    assert [item.instance_id for item in dispatcher.take("a", 9)] == ["instance-1"]
    for death in range(DEATHS_ALONE - 1):
        assert dispatcher.lose("a", ["instance-1#0"]) == []
        assert len(dispatcher.take("a", 9)) == 1, death
    assert [item.instance_id for item in dispatcher.lose("a", ["instance-1#0"])] == ["instance-1"]


def test_a_cancelled_request_is_given_to_nobody() -> None:
    dispatcher = filled(images=1, each=3)
    (held,) = dispatcher.take("a", 1)
    assert dispatcher.cancel(held.id) == "a"
    assert dispatcher.cancel("instance-2#0") is None
    assert dispatcher.cancel("unknown#0") is None
    assert [item.instance_id for item in dispatcher.take("a", 9)] == ["instance-1"]
    assert not dispatcher.finish("a", held.id)


Step = tuple[str, str, int]


@settings(max_examples=200, deadline=None)
@example(images=[0] * 8 + [1] + [0] * 3, steps=[("take", "a", 1)] * 9 + [("lose", "a", 1), ("take", "a", 1)])
@given(
    images=st.lists(st.integers(0, 4), min_size=1, max_size=40),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["take", "finish", "lose", "back", "cancel"]), st.sampled_from("abc"), st.integers(1, 9)
        ),
        max_size=60,
    ),
)
def test_whatever_happens_every_request_is_finished_once(images: list[int], steps: list[Step]) -> None:
    dispatcher = Dispatcher()
    held: dict[str, list[str]] = {node: [] for node in "abc"}
    ended: Counter[str] = Counter()
    waiting = [request(number, image or None) for number, image in enumerate(images)]
    for kind, node, number in [*steps, *[("take", "a", 9), ("finish", "a", 9)] * 200]:
        if waiting:
            dispatcher.add(waiting.pop(0))
        if kind == "take":
            held[node] += [item.id for item in dispatcher.take(node, number)]
        elif kind == "finish":
            for name in held[node][:number]:
                assert dispatcher.finish(node, name)
                ended[name] += 1
            held[node] = held[node][number:]
        elif kind == "lose":
            ended.update(item.id for item in dispatcher.lose(node, held[node]))
            held[node] = []
        elif kind == "back":
            dispatcher.give_back(node, held[node][-number:])
            held[node] = held[node][:-number]
        elif held[node]:
            assert dispatcher.cancel(held[node][0]) == node
            ended[held[node].pop(0)] += 1
    for node in "bc":
        ended.update(item.id for item in dispatcher.lose(node))
    for _ in range(200):
        for item in dispatcher.take("a", 9):
            assert dispatcher.finish("a", item.id)
            ended[item.id] += 1
    assert ended == Counter(f"instance-{number}#0" for number in range(len(images)))
    assert len(dispatcher) == dispatcher.waiting == 0
