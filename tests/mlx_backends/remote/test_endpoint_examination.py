"""The examination of endpoints: servers that drop pictures are found, and good ones of any habit pass."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.vocabulary import Message, Request, Text, digest
from mlx_backends.engine_registry import load_backend
from mlx_backends.options import RemoteOptions
from mlx_backends.remote.endpoint_examination import EndpointCheck
from mlx_backends.remote.remote_backend import RemoteBackend
from mlx_backends.remote.remote_errors import EndpointChangedError
from tests.mlx_backends.conftest import Pictures
from tests.support import tiny_models
from tests.support.remote import ask, generate_one, run
from tests.support.seeing_server import Eyes, SeeingServer, Usage, seeing
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("client")

MAX_CALLS = 10
"""Most calls of an examination before the first answer, without retries; three suffice where the number is read."""


def backend_of(server: SeeingServer, pictures: Pictures, tmp_path: Path) -> RemoteBackend:
    options = RemoteOptions(replies=tmp_path / "replies.sqlite", concurrency=2)
    backend = load_backend(f"endpoint:m@{server.url}", pictures.path, remote=options)
    assert isinstance(backend, RemoteBackend)
    return backend


def question(pictures: Pictures, number: int = 1) -> Request:
    """A request of a run: a passage that states 43, and a chart."""
    passage = (
        f"Passage {number}: in the year {1900 + number} the value was 43{' indeed' * number}. What does the chart show?"
    )
    return ask(number, Text(passage), pictures.noise(number % 7))


def examined(server: SeeingServer, pictures: Pictures, tmp_path: Path) -> EndpointCheck:
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        check = backend.examine(question(pictures))
        backend.close()
    assert check is not None
    assert check.calls == len(server.calls) <= MAX_CALLS
    return check


def think(response: dict[str, Any]) -> Any:
    response["choices"][0]["message"]["reasoning_content"] = "A picture of a number, I think."
    return response


def parts(response: dict[str, Any]) -> Any:
    message = response["choices"][0]["message"]
    message["content"] = [{"type": "text", "text": message["content"]}]
    return response


def unfinished(response: dict[str, Any]) -> Any:
    response["choices"][0]["finish_reason"] = None
    return response


def chatty(response: dict[str, Any]) -> Any:
    message = response["choices"][0]["message"]
    message["content"] = f"Sure! The picture shows **{message['content']}**. Can you share more pictures?"
    return response


HABITS: list[Callable[[dict[str, Any]], Any]] = [lambda response: response, think, parts, unfinished, chatty]
GOOD_EYES: list[Eyes] = ["reads", "misreads", "colours", "constant"]
USAGES: list[Usage] = ["all", "text", "mark", "fixed", "zero", "strings", "none"]
# A text-only count with answers that never differ is what a server without pictures sends.
GOOD = [
    (eyes, usage, habit)
    for eyes, usage, habit in itertools.product(GOOD_EYES, USAGES, HABITS)
    if not (eyes == "constant" and (usage == "text" or habit is chatty))
]


@pytest.mark.slow
def test_good_servers_of_any_habit_pass(pictures: Pictures, tmp_path: Path) -> None:
    """130 servers; a false alarm would refuse a model that sees."""
    assert len(GOOD) >= 100
    for number, (eyes, usage, habit) in enumerate(GOOD):
        folder = tmp_path / str(number)
        folder.mkdir()
        check = examined(SeeingServer(eyes, usage, habit), pictures, folder)
        assert check.problem == "", (eyes, usage, habit)
        assert (check.evidence == "") == bool(check.remark)
        if eyes == "reads":
            assert (check.evidence, check.calls) == ("number", 3)


@pytest.mark.parametrize("usage", ["all", "none", "fixed"])
def test_model_that_reads_the_number_is_shown_to_see_in_three_calls(
    usage: Usage, pictures: Pictures, tmp_path: Path
) -> None:
    check = examined(SeeingServer("reads", usage), pictures, tmp_path)
    assert (check.problem, check.remark, check.evidence, check.calls) == ("", "", "number", 3)
    assert check.seconds > 0


@pytest.mark.parametrize(
    ("eyes", "usage", "habit"),
    [
        *((eyes, usage, HABITS[0]) for eyes in ("blind", "says so") for usage in ("all", "text", "strings")),
        *(("says so", usage, HABITS[0]) for usage in ("none", "zero", "fixed", "mark")),
        ("blind", "text", chatty),
    ],
)
def test_server_that_drops_pictures_is_refused(
    eyes: Eyes, usage: Usage, habit: Any, pictures: Pictures, tmp_path: Path
) -> None:
    check = examined(SeeingServer(eyes, usage, habit), pictures, tmp_path)
    assert "drops pictures" in check.problem


@pytest.mark.parametrize("usage", ["none", "zero", "fixed", "mark"])
def test_what_cannot_be_shown_is_a_remark(usage: Usage, pictures: Pictures, tmp_path: Path) -> None:
    check = examined(SeeingServer("blind", usage), pictures, tmp_path)
    assert check.problem == ""
    assert check.remark


def test_message_of_a_server_that_refuses_pictures_is_the_reason(pictures: Pictures, tmp_path: Path) -> None:
    check = examined(SeeingServer("refuses"), pictures, tmp_path)
    assert "this model reads no pictures" in check.problem


def test_prompts_that_stand_at_the_context_length_are_refused(pictures: Pictures, tmp_path: Path) -> None:
    def truncated(response: dict[str, Any]) -> Any:
        response["usage"] = {"prompt_tokens": 4091, "completion_tokens": 5, "total_tokens": 4096}
        return response

    check = examined(SeeingServer("constant", habit=truncated), pictures, tmp_path)
    assert "4,096" in check.problem


def answers(server: SeeingServer, pictures: Pictures, tmp_path: Path, count: int) -> RemoteBackend:
    """Examine a server, then ask a run's questions and confirm the answers."""
    backend = backend_of(server, pictures, tmp_path)
    check = backend.examine(question(pictures))
    assert check is not None
    assert check.problem == ""
    try:
        run(backend, [question(pictures, number) for number in range(1, count + 1)])
        backend.confirm()
    finally:
        backend.close()
    return backend


@pytest.mark.parametrize(
    ("eyes", "later", "usage"),
    [
        *(("reads", later, usage) for later in ("blind", "says so") for usage in ("all", "none", "fixed")),
        *((eyes, "blind", "all") for eyes in ("misreads", "colours", "constant")),
        ("colours", "blind", "none"),
    ],
)
@pytest.mark.parametrize("after", [3 + 5, 3 + 20])
def test_server_that_drops_pictures_later_is_found(
    eyes: Eyes, later: Eyes, usage: Usage, after: int, pictures: Pictures, tmp_path: Path
) -> None:
    """The last answers before it was found are named, so that they do not count."""
    server = SeeingServer(eyes, usage, later=later, after=after + (3 if eyes != "reads" else 0))
    with seeing(server), pytest.raises(EndpointChangedError) as caught:
        answers(server, pictures, tmp_path, 30)
    assert caught.value.unconfirmed
    dropped = [body for body in server.calls[server.after :] if "Passage" in str(body)[:400]]
    assert dropped
    numbers = {str(body).partition("Passage ")[2].partition(":")[0] for body in dropped}
    assert numbers <= {instance.removeprefix("r") for instance in caught.value.unconfirmed} | in_flight(numbers)


def in_flight(numbers: set[str]) -> set[str]:
    """The last questions, whose answers the backend had not handed out yet."""
    return set(sorted(numbers, key=int)[-6:])


@pytest.mark.parametrize("eyes", GOOD_EYES)
def test_spot_checks_of_a_good_server_are_few_and_raise_no_alarm(
    eyes: Eyes, pictures: Pictures, tmp_path: Path
) -> None:
    server = SeeingServer(eyes)
    with seeing(server):
        backend = answers(server, pictures, tmp_path, 60)
    check = backend.endpoint_check
    assert check is not None
    assert check.problem == ""
    assert 2 <= check.spot_checks <= 6
    assert check.calls <= MAX_CALLS + 3 * check.spot_checks
    assert len(server.calls) == check.calls + 60, "the first question is not paid for twice"


def test_answer_of_another_model_is_an_error(pictures: Pictures, tmp_path: Path) -> None:
    server = SeeingServer(model=lambda call: "m" if call < 8 else "other")
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        backend.examine(question(pictures))
        done = run(backend, [question(pictures, number) for number in range(1, 9)])
        backend.close()
    failed = [generation for generation in done if generation.finish_reason == "error"]
    assert len(failed) == 8 - 5
    assert all("'other'" in (generation.error or "") for generation in failed)


def test_requested_model_counts_although_another_answers_first(pictures: Pictures, tmp_path: Path) -> None:
    """The impostor's answer to the first question is requested again, and its other answers are errors."""
    server = SeeingServer(model=lambda call: "m" if call != 1 and call % 4 else "other")
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        check = backend.examine(question(pictures))
        assert check is not None
        assert (check.problem, check.model) == ("", digest("m"))
        run(backend, [question(pictures, number) for number in range(1, 5)])
        backend.close()
    assert sum("Passage 1:" in str(body) for body in server.calls) == 2


def test_answers_before_the_requested_model_came_are_set_aside(pictures: Pictures, tmp_path: Path) -> None:
    server = SeeingServer(model=lambda call: "other" if call < 7 else "m")
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        backend.examine(question(pictures))
        with pytest.raises(EndpointChangedError) as caught:
            run(backend, [question(pictures, number) for number in range(1, 9)])
        backend.close()
    assert {"r1", "r2", "r3"} <= set(caught.value.unconfirmed)


def test_answers_to_text_are_set_aside_too(pictures: Pictures, tmp_path: Path) -> None:
    server = SeeingServer("reads", "none", later="constant", after=3 + 8)
    mixed = [question(pictures, n) if n % 2 else ask(n, Text(f"{n}?")) for n in range(1, 60)]
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        backend.examine(mixed[0])
        with pytest.raises(EndpointChangedError) as caught:
            run(backend, mixed)
        backend.close()
    assert {"r2", "r4"} <= set(caught.value.unconfirmed)


@pytest.mark.parametrize(
    "message",
    [
        "I cannot see the image clearly enough to read it.",
        "I am unable to view the image details; there is no text included.",
        "The number is not visible in the image provided.",
        "Please provide a clearer image.",
    ],
)
def test_answer_about_a_picture_that_came_is_no_sign_that_none_did(
    message: str, pictures: Pictures, tmp_path: Path
) -> None:
    def says(response: dict[str, Any]) -> Any:
        response["choices"][0]["message"]["content"] = message
        return response

    assert examined(SeeingServer("constant", "none", says), pictures, tmp_path).problem == ""


def test_server_that_answers_nothing_is_refused_with_its_message(pictures: Pictures, tmp_path: Path) -> None:
    page = "<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>"
    check = examined(SeeingServer("blind", habit=lambda response: page), pictures, tmp_path)
    assert "Sign in to continue" in check.problem


def test_prompts_that_come_to_stand_at_a_limit_end_the_run(pictures: Pictures, tmp_path: Path) -> None:
    long = " very" * 4000
    server = SeeingServer("reads", truncates_at=4096)
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        check = backend.examine(question(pictures))
        assert check is not None
        assert check.problem == ""
        with pytest.raises(EndpointChangedError, match="4,096"):
            run(backend, [ask(n, Text(f"{n}{long * n}?"), pictures.noise(1)) for n in range(1, 6)])
        backend.close()


def test_resumed_run_is_checked_without_another_examination(pictures: Pictures, tmp_path: Path) -> None:
    server = SeeingServer()
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        backend.resume_examination(EndpointCheck(evidence="number", model=digest("m")))
        generate_one(backend, question(pictures))
        backend.confirm()
        backend.close()
    assert len(server.calls) == 2
    assert backend.endpoint_check is not None
    assert backend.endpoint_check.calls == 1


@pytest.mark.parametrize(
    ("eyes", "usage"), [("blind", "none"), ("numbers", "none"), ("blind", "all"), ("constant", "all")]
)
def test_after_a_problem_a_server_must_show_again_what_it_showed(
    eyes: Eyes, usage: Usage, pictures: Pictures, tmp_path: Path
) -> None:
    for repaired, server in ((False, SeeingServer(eyes, usage)), (True, SeeingServer("reads", usage))):
        with seeing(server):
            backend = backend_of(server, pictures, tmp_path)
            check = backend.examine(question(pictures), required="number")
            backend.close()
        assert check is not None
        assert (check.problem == "") is repaired
        assert len(server.calls) <= MAX_CALLS


def test_evidence_that_is_required_again_may_be_a_stronger_one(pictures: Pictures, tmp_path: Path) -> None:
    server = SeeingServer("reads", "none")
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        check = backend.examine(question(pictures), required="usage")
        backend.close()
    assert check is not None
    assert (check.problem, check.evidence) == ("", "number")


def test_blind_server_that_guesses_is_no_evidence(pictures: Pictures, tmp_path: Path) -> None:
    """Twelve servers; one of two values that each picture gets four times comes by chance in below 1% of them."""
    random.seed(3)
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        check = examined(SeeingServer("guesses", "none"), pictures, folder)
        assert check.evidence == ""
        assert check.remark


def test_usage_that_names_tokens_of_pictures_counts_them(pictures: Pictures, tmp_path: Path) -> None:
    check = examined(SeeingServer("constant", "details", picture_tokens=lambda call: 85), pictures, tmp_path)
    assert (check.problem, check.evidence) == ("", "usage")


@pytest.mark.parametrize("eyes", ["colours", "constant"])
def test_pictures_that_take_fewer_tokens_than_before_are_not_dropped(
    eyes: Eyes, pictures: Pictures, tmp_path: Path
) -> None:
    server = SeeingServer(eyes, picture_tokens=lambda call: 256 if call < 14 else 200)
    with seeing(server):
        backend = answers(server, pictures, tmp_path, 20)
    assert backend.endpoint_check is not None
    assert backend.endpoint_check.problem == ""


def test_usage_without_cached_tokens_does_not_drop_pictures(pictures: Pictures, tmp_path: Path) -> None:
    seen: set[str] = set()

    def uncached(response: dict[str, Any]) -> Any:
        body = str(server.calls[-1]["messages"])
        response["usage"]["prompt_tokens"] = 1 if body in seen else response["usage"]["prompt_tokens"]
        seen.add(body)
        return response

    server = SeeingServer("constant", habit=uncached)
    with seeing(server):
        backend = answers(server, pictures, tmp_path, 20)
    assert backend.endpoint_check is not None
    assert backend.endpoint_check.spot_checks


def test_server_that_answers_each_number_otherwise_and_none_right_is_found(pictures: Pictures, tmp_path: Path) -> None:
    server = SeeingServer("reads", "none", later="numbers", after=3 + 8)
    with seeing(server), pytest.raises(EndpointChangedError):
        answers(server, pictures, tmp_path, 20)


def test_server_that_refuses_the_detail_of_pictures_gets_none(pictures: Pictures, tmp_path: Path) -> None:
    loc = ["body", "messages", 0, "content", 0, "image_url", "detail"]
    refusal = {"detail": [{"type": "extra_forbidden", "loc": loc, "msg": "Extra inputs are not permitted"}]}
    server = SeeingServer("reads", refuses=lambda body: refusal if "'detail': 'high'" in str(body) else None)
    check = examined(server, pictures, tmp_path)
    assert (check.problem, check.evidence, check.calls) == ("", "number", 4)


def test_text_needs_no_examination(pictures: Pictures, tmp_path: Path) -> None:
    server = SeeingServer("blind")
    with seeing(server):
        backend = backend_of(server, pictures, tmp_path)
        run(backend, [Request(f"r{n}", 0, (Message("user", (Text(f"{n}?"),)),), ask(1).decoding) for n in range(20)])
        backend.confirm()
        backend.close()
    assert len(server.calls) == 20


@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen3_vl", "lfm2_vl"])
def test_server_of_mlx_vlm_with_a_tiny_model_passes(family: str, pictures: Pictures, tmp_path: Path) -> None:
    """Its random weights read nothing, but see: their answers differ by picture, and usage counts it."""
    model = getattr(tiny_models, family)(tmp_path / family)
    with served(model, tmp_path / "log") as port:
        options = RemoteOptions(replies=tmp_path / "replies.sqlite", concurrency=2)
        backend = load_backend(f"endpoint:{model}@http://127.0.0.1:{port}/v1", pictures.path, remote=options)
        assert isinstance(backend, RemoteBackend)
        requests = [ask(n, Text("the sea is"), pictures.noise(n), Text("?"), max_tokens=4) for n in range(10)]
        check = backend.examine(requests[0])
        assert check is not None
        assert check.problem == ""
        assert check.evidence in ("answers", "usage"), "some servers answer a repeated request differently"
        assert {generation.finish_reason for generation in run(backend, requests, 120)} == {"length"}
        backend.confirm()
        backend.close()
    assert backend.endpoint_check is not None
    assert backend.endpoint_check.problem == ""
