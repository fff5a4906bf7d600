"""The demo model answers correctly through every engine, so each request reaches it intact."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assets.demo.recipe import evaluate_demo_model
from benchmarks.vocabulary import Decoding, Generation, Instance, Media, Message, Part, Record, Request, Text
from judges.cmc_rules import Match
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend
from mlx_backends.options import RemoteOptions
from tests.support.demo import BF16, FOUR_BIT, HeldOutSet
from tests.support.fault_server import FaultServer
from tests.support.remote import KEYS, run
from tests.support.sampled import some_fast

GREEDY = Decoding(max_tokens=16)


@pytest.fixture(scope="module")
def loaded(charts: HeldOutSet) -> Iterator[Backend]:
    backend = charts.load(FOUR_BIT)
    yield backend
    backend.close()


def asking(instance: Instance, decoding: Decoding = GREEDY) -> Request:
    return Request(instance.id, 0, (Message("user", instance.parts),), decoding)


def right(instances: list[Instance], generations: list[Generation]) -> float:
    """Return the share of answers with the value in the chart of their own question."""
    by_id = {generation.request_id.rpartition("#")[0]: generation for generation in generations}
    verdicts = [Match().judge(Record(instance, (by_id[instance.id],))) for instance in instances]
    return [verdict.label for verdict in verdicts].count("IMAGE") / len(instances)


@pytest.mark.slow
def test_answers_belong_to_their_questions(charts: HeldOutSet, loaded: Backend) -> None:
    instances = charts.under("image-only")
    forth = run(loaded, [asking(instance) for instance in instances])
    back = run(loaded, [asking(instance) for instance in reversed(instances)])
    assert right(instances, forth) >= 0.9
    assert {generation.request_id: generation.tokens for generation in forth} == {
        generation.request_id: generation.tokens for generation in back
    }


@pytest.mark.slow
def test_cancelled_request_leaves_nothing_behind(charts: HeldOutSet, loaded: Backend) -> None:
    instances = charts.under("image-only", 8)
    generations = []
    for given_up, instance in zip([*instances[1:], instances[0]], instances, strict=True):
        request = asking(given_up)
        loaded.submit(request)
        loaded.step()
        loaded.cancel(request.id)
        generations += run(loaded, [asking(instance)])
    assert right(instances, generations) >= 0.8


@pytest.mark.slow
def test_sampling_rarely_changes_confident_answers(charts: HeldOutSet, loaded: Backend) -> None:
    instances = charts.under("image-only", 12)
    sampled = [asking(instance, Decoding(max_tokens=16, temperature=0.7, top_p=0.9)) for instance in instances]
    assert right(instances, run(loaded, sampled)) >= 0.8
    hot = [asking(instance, Decoding(max_tokens=16, temperature=8.0)) for instance in instances]
    assert right(instances, run(loaded, hot)) <= 0.3


@pytest.mark.slow
def test_tiny_pictures_cannot_be_read(charts: HeldOutSet, loaded: Backend) -> None:
    instances = charts.under("image-only", 12)
    small = [asking(instance, Decoding(max_tokens=16, max_pixels=24 * 24)) for instance in instances]
    assert right(instances, run(loaded, small)) <= 0.3


@pytest.mark.slow
def test_both_precisions_read_the_same_charts(charts: HeldOutSet, loaded: Backend) -> None:
    instances = charts.under("image-only", 12)
    full = charts.load(BF16)
    assert right(instances, run(full, [asking(instance) for instance in instances])) >= 0.8
    full.close()
    assert right(instances, run(loaded, [asking(instance) for instance in instances])) >= 0.8


# --- through a server ----------------------------------------------------------------------------


def parts_of(value: Any) -> Iterator[Part | bytes]:
    """The texts and pictures of a request's body in order, whichever API it is for."""
    if isinstance(value, list):
        for item in value:
            yield from parts_of(item)
    elif isinstance(value, dict):
        data = value.get("data") or (value.get("url") or "").partition("base64,")[2]
        if isinstance(value.get("text"), str):
            yield Text(value["text"])
        elif data:
            yield base64.b64decode(data, altchars=b"-_" if "-" in data or "_" in data else None)  # Gemini's library
        else:
            for item in value.values():
                yield from parts_of(item)
    elif isinstance(value, str) and len(value) > 20:
        yield Text(value)


class Served:
    """Server that answers request bodies with the demo model."""

    def __init__(self, server: FaultServer, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._backend = load_backend(str(FOUR_BIT), lambda media: folder / media.name)

    def reply(self, prompt: str, times: int) -> str:
        body = self._server.received[-1].body
        parts: list[Part] = []
        for image in parts_of(body.get("messages") or body.get("contents")):
            if isinstance(image, bytes):
                media = Media(hashlib.sha256(image).hexdigest(), ".png")
                (self._folder / media.name).write_bytes(image)
                parts.append(media)
            elif isinstance(image, Text):
                parts.append(image)
        return evaluate_demo_model.answer(self._backend, Instance("served", "", "", prompt, tuple(parts))).text


@pytest.mark.slow
@pytest.mark.parametrize("model", some_fast(["endpoint:m@{}", "openai:m", "anthropic:m", "gemini:m"], 1))
def test_remote_request_keeps_the_place_of_the_chart(
    charts: HeldOutSet, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer() as server:
        server.reply = Served(server, tmp_path).reply
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.setenv(name, server.url)
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
        instances = charts.under("image-only", 5)
        terms = RemoteOptions(replies=tmp_path / "replies.sqlite", scope="test", concurrency=1)
        for _ in range(2):  # the second time from the response cache
            backend = load_backend(model.format(server.url), charts.path, remote=terms)
            generations = run(backend, [asking(instance) for instance in instances])
            backend.close()
            assert right(instances, generations) >= 0.8
        assert server.requests == len(instances)
        assert {generation.calls for generation in generations} == {0}
