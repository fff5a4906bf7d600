"""Remote engines, used as in a run, against a failing server."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import AddressError, BudgetError, ModelError, SpecError
from benchmarks.vocabulary import Generation, Request, Text
from mlx_backends.base import Backend
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import allowed_addresses, check_ready, rate_limit
from tests.support.command import free_port
from tests.support.fault_server import FaultServer, faults
from tests.support.remote import KEYS, ask, endpoint, generate_one, nowhere, run, wait_for_threads

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _short_waits(client: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_BACKOFF_S", 0.05)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


# --- every request ends, and is counted ---


@pytest.mark.slow
def test_every_request_ends_once_if_a_third_of_calls_fail() -> None:
    with FaultServer(lambda prompt, times: f"answer to {prompt}", faults(7, 0.3), hang=2.0) as server:
        backend = endpoint(server, concurrency=16, timeout=0.9)  # a busy machine answers late too
        requests = [ask(number) for number in range(120)]
        done = run(backend, requests)
        backend.close()
    assert sorted(g.request_id for g in done) == sorted(r.id for r in requests)
    answers = {r.id: f"answer to question number {n}?" for n, r in enumerate(requests)}
    assert all(g.text == answers[g.request_id] for g in done if g.finish_reason == "stop")
    assert all(g.error and g.finish_reason == "error" for g in done if g.finish_reason != "stop")
    assert sum(g.finish_reason == "stop" for g in done) > 115
    assert sum(g.calls for g in done) == server.requests > 150
    assert sum(g.prompt_tokens or 0 for g in done) == server.prompt_tokens
    assert sum(g.completion_tokens or 0 for g in done) == server.completion_tokens
    assert {r.fault for r in server.received if r.fault} >= {"reset", "half", "timeout", "429", "html", "empty"}


PASSING = [
    ("429", "HTTP 429: told to fail with 429"),
    ("500", "HTTP 500: told to fail with 500"),
    ("529", "HTTP 529"),
    ("408", "HTTP 408"),
    ("409", "HTTP 409"),
    ("timeout", "no whole reply in time"),
    ("drip", "no whole reply in time"),
    ("drip-headers", "no whole reply in time"),
    ("reset", "the connection failed"),
    ("close", "the connection failed"),
    ("html", "the reply is not JSON: <html>"),
    ("html 502", "HTTP 502: <html>"),
    ("half", "the reply is not JSON"),
    ("empty", "the reply holds no text"),
    ("no-text", "the reply holds no text"),
    ("flood", "longer than 16 MiB"),
    ("gzip", "compressed"),
    ("raw []", "the reply is not JSON"),
    ("raw " + "[" * 100_000, "the reply is not JSON"),
    ('raw {"choices": [{"message": 5}], "usage": -1}', "the reply holds no text"),
    ('raw {"choices": {"0": 1}, "usage": {"prompt_tokens": true}}', "the reply holds no text"),
]
COMMON = ("429", "500", "timeout", "reset", "html", "html 502", "half", "empty", "no-text")


@pytest.mark.parametrize(
    ("model", "fault", "reason"),
    [
        *(("openai:m", *failure) for failure in PASSING),
        *((model, *failure) for model in ("anthropic:m", "gemini:m") for failure in PASSING if failure[0] in COMMON),
    ],
)
def test_transient_errors_are_retried_then_given_up(
    model: str, fault: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(fault=lambda number: fault, hang=1) as server:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.setenv(name, server.url)
        backend = load_backend(
            model,
            nowhere,
            remote=RemoteOptions(attempts=2, timeout=0.25 if fault.startswith(("timeout", "drip")) else 5),
        )
        began = time.monotonic()
        generation = generate_one(backend, ask(1))
        took = time.monotonic() - began
        backend.close()
    assert (generation.finish_reason, generation.text, generation.calls) == ("error", "", 2)
    assert generation.error is not None
    assert generation.error.startswith("failed 2 times, the last time: ")
    assert reason in generation.error
    assert len(generation.error) <= 300
    assert generation.error.isprintable()
    assert server.requests == 2
    assert (generation.prompt_tokens or 0, generation.completion_tokens or 0) == (
        server.prompt_tokens,
        server.completion_tokens,
    )
    assert took < 4


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("400", "HTTP 400: told to fail with 400"),
        ("404", "HTTP 404"),
        ("422", "HTTP 422"),
        ("insufficient_quota", "HTTP 429: told to fail with insufficient_quota"),
        ("content-filter", "the provider refused: content filter"),
        ("content_filter", "the provider refused: content filter"),
        ("redirect http://127.0.0.1:1/v1", "HTTP 307"),
        ("429 retry-after=9999", "asks to wait 9999 seconds: HTTP 429"),
        ("429 retry-after=1e999", "asks to wait inf seconds: HTTP 429"),
    ],
)
@pytest.mark.parametrize("model", ["openai:m", "anthropic:m", "gemini:m", "azure:m"])
def test_permanent_errors_are_not_retried(fault: str, reason: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(fault=lambda number: fault) as server:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
            monkeypatch.setenv(name, server.url)
        backend = load_backend(model, nowhere, remote=RemoteOptions())
        generation = generate_one(backend, ask(1))
        backend.close()
    assert generation.finish_reason == "error"
    assert reason in (generation.error or "")
    assert generation.calls == server.requests == 1


def test_truncated_answer_counts_even_without_text() -> None:
    with FaultServer(fault=lambda number: "length") as server:
        backend = endpoint(server)
        assert generate_one(backend, ask(1)).finish_reason == "length"
        server.reply = lambda prompt, times: ""
        generation = generate_one(backend, ask(2))
        backend.close()
    assert (generation.text, generation.finish_reason, generation.calls) == ("", "length", 1)


def test_server_without_usage_gives_no_counts() -> None:
    with FaultServer(fault=lambda number: "no-usage") as server:
        backend = endpoint(server, max_tokens=1000)
        generation = generate_one(backend, ask(1))
        backend.close()
    assert (generation.text, generation.prompt_tokens, generation.completion_tokens) == ("yes", None, None)


def test_hostile_text_is_stored_up_to_a_mebibyte() -> None:
    text = "\x1b[31m\x00\ud800 red" + "x" * 2_000_000
    with FaultServer(lambda prompt, times: text) as server:
        backend = endpoint(server)
        generation = generate_one(backend, ask(1, Text("lone \udfff surrogate")))
        backend.close()
        assert server.received[0].body["messages"][0]["content"] == "lone ? surrogate"
    assert generation.text == text[: 2**20]
    assert generation.finish_reason == "length"


# --- pace ---


@pytest.mark.slow
def test_concurrency_drops_after_a_429_and_recovers() -> None:
    with FaultServer(fault=lambda number: "429" if 60 <= number < 66 else None, latency=0.03) as server:
        backend = endpoint(server, concurrency=12)
        done = run(backend, [ask(number) for number in range(260)])
        backend.close()
    most = [
        max(r.under_way for r in server.received if low <= r.number < high)
        for low, high in ((1, 5), (40, 60), (75, 85), (220, 260))
    ]
    assert all(g.finish_reason == "stop" for g in done)
    assert most[0] <= 4 < most[1]
    assert most[2] < most[1] < most[3] <= 12


@pytest.mark.parametrize("header", ["retry-after=0.6", "retry-after-ms=600", "date"])
def test_retry_after_is_respected(header: str) -> None:
    def fault(number: int) -> str | None:
        if number != 8:
            return None
        # A date has whole seconds only: between one and two of them from now.
        return "429 " + (f"retry-after={formatdate(time.time() + 2, usegmt=True)}" if header == "date" else header)

    with FaultServer(fault=fault, latency=0.02) as server:
        backend = endpoint(server, concurrency=4)
        done = run(backend, [ask(number) for number in range(30)])
        backend.close()
    refused = server.received[7].at
    later = [r.at - refused for r in server.received if r.at > refused + 0.1]
    assert len(done) == 30
    assert len(later) > 15
    assert min(later) > (0.95 if header == "date" else 0.59)
    assert all(g.finish_reason == "stop" for g in done)


# --- several addresses ---


def several(*urls: str, **options: Any) -> Backend:
    allowed_addresses.allow([allowed_addresses.parse_address(url) for url in urls])
    return load_backend(f"endpoint:some-model@{','.join(urls)}", nowhere, remote=RemoteOptions(**options))


def test_a_run_is_spread_over_the_addresses_of_an_endpoint() -> None:
    with FaultServer(latency=0.02) as first, FaultServer(latency=0.02) as second:
        backend = several(first.url, second.url, concurrency=8)
        done = run(backend, [ask(number) for number in range(60)])
        backend.close()
        assert min(first.requests, second.requests) >= 15
        assert first.requests + second.requests == 60
    assert all(generation.finish_reason == "stop" for generation in done)
    assert backend.info.versions["server"] == f"{first.url[7:]},{second.url[7:]}"


def test_requests_of_a_dead_address_go_to_the_others() -> None:
    with FaultServer() as first:
        with FaultServer() as second:
            backend = several(second.url, first.url, f"http://127.0.0.1:{free_port()}/v1", concurrency=4, attempts=2)
            done = run(backend, [ask(number) for number in range(20)])
        done += run(backend, [ask(number) for number in range(20, 60)])
        backend.close()
        assert second.requests > 0
        assert first.requests + second.requests >= 60
    assert [generation.error for generation in done] == [None] * 60
    assert len({generation.request_id for generation in done}) == 60


def test_endpoint_whose_every_address_is_dead_ends_the_run() -> None:
    urls = [f"http://127.0.0.1:{free_port()}/v1" for _ in range(2)]
    backend = several(*urls, attempts=1)
    with pytest.raises(ModelError):
        run(backend, [ask(1)])
    backend.close()


@pytest.mark.parametrize("status", [401, 403, 404])
def test_wrong_address_takes_no_requests_away_and_is_named(status: int) -> None:
    with (
        FaultServer(fault=lambda number: str(status)) as wrong,
        FaultServer(latency=0.02) as first,
        FaultServer(latency=0.02) as second,
    ):
        backend = several(wrong.url, first.url, second.url, concurrency=4)
        answers = run(backend, [ask(number) for number in range(40)])
        (remark,) = backend.remarks
        backend.close()
        assert {generation.finish_reason for generation in answers} == {"stop"}
        assert wrong.url.removesuffix("/v1") in remark
        assert str(status) in remark
        assert wrong.requests <= 4, "no more than were in flight before another server answered"
        assert first.requests
        assert second.requests


def first_refused(number: int) -> str | None:
    return "404" if number == 1 else None


def test_request_that_every_server_refuses_is_its_own_error() -> None:
    with FaultServer(fault=first_refused) as first, FaultServer(fault=first_refused) as second:
        backend = several(first.url, second.url, concurrency=1)
        answers = {generation.request_id: generation for generation in run(backend, [ask(1), ask(2)])}
        assert "404" in (answers["r1#0"].error or "")
        assert answers["r2#0"].finish_reason == "stop"
        assert not backend.remarks
        backend.close()


@pytest.mark.parametrize(
    "urls", ["http://a/v1,http://a/v1/", "http://a/v1,", "http://a/v1,ftp://b/v1", "http://a/v1,b"]
)
def test_malformed_list_of_addresses_is_refused(urls: str) -> None:
    with pytest.raises(SpecError):
        describe(f"endpoint:some-model@{urls}")


def test_every_address_has_to_be_allowed() -> None:
    allowed_addresses.allow(["http://allowed.example:80"])
    with pytest.raises(AddressError):
        check_ready("endpoint:m@http://allowed.example/v1,http://other.example/v1", RemoteOptions())


# --- the response cache ---


def test_answered_request_is_served_from_the_cache(tmp_path: Path) -> None:
    with FaultServer(lambda prompt, times: f"{prompt} {times}", faults(3, 0.3, ["500", "empty"])) as server:
        first = endpoint(server, replies=tmp_path / "replies.sqlite")
        before = {g.request_id: g for g in run(first, [ask(number) for number in range(30)])}
        first.close()
        count = server.requests
        second = endpoint(server, replies=tmp_path / "replies.sqlite")
        after = {g.request_id: g for g in run(second, [ask(number) for number in range(30)])}
        assert server.requests == count
        assert {i: (g.text, g.finish_reason) for i, g in after.items()} == {
            i: (g.text, g.finish_reason) for i, g in before.items()
        }
        assert {(g.calls, g.prompt_tokens, g.completion_tokens) for g in after.values()} == {(0, 0, 0)}
        run(second, [ask(1, temperature=0.5), ask(1, seed=9), ask(1, Text("another question"))])
        second.close()
        assert server.requests >= count + 3
        with FaultServer() as elsewhere:
            third = endpoint(elsewhere, replies=tmp_path / "replies.sqlite")
            run(third, [ask(1)])
            third.close()
            assert elsewhere.requests == 1


def test_errors_are_not_cached(tmp_path: Path) -> None:
    with FaultServer(fault=lambda number: "400" if number == 1 else None) as server:
        backend = endpoint(server, replies=tmp_path / "replies.sqlite")
        assert generate_one(backend, ask(1)).finish_reason == "error"
        assert generate_one(backend, ask(1)).finish_reason == "stop"
        backend.close()


def test_equal_concurrent_requests_are_sent_once(tmp_path: Path) -> None:
    with FaultServer(fault=lambda number: "500" if number == 1 else None, latency=0.1) as server:
        backend = endpoint(server, replies=tmp_path / "replies.sqlite")
        twins = [ask(number, Text("the same")) for number in range(6)]
        done = run(backend, twins)
        backend.close()
    assert {g.request_id for g in done} == {r.id for r in twins}
    assert {g.text for g in done} == {"yes"}
    assert server.requests == sum(g.calls for g in done) == 2
    assert sum(g.prompt_tokens or 0 for g in done) == server.prompt_tokens


def test_every_request_is_sent_without_a_cache_file() -> None:
    with FaultServer() as server:
        backend = endpoint(server)
        run(backend, [ask(number, Text("the same")) for number in range(3)])
        backend.close()
    assert server.requests == 3


# --- budget ---


def until_refused(backend: Backend, requests: Iterable[Request]) -> tuple[list[Generation], str]:
    """Feed a backend until it raises BudgetError, and return its generations until then and the message."""
    waiting, under_way = list(requests)[::-1], 0
    done: list[Generation] = []
    try:
        while waiting or under_way:
            while waiting and under_way < backend.capacity:
                backend.submit(waiting.pop())
                under_way += 1
            finished = backend.step()
            under_way -= len(finished)
            done += finished
    except BudgetError as error:
        return done, str(error)
    raise AssertionError("the ceiling was never reached")


def test_ceiling_holds_with_calls_in_progress(tmp_path: Path) -> None:
    with FaultServer(lambda prompt, times: "word " * 60, latency=0.02) as server:
        terms = {"replies": tmp_path / "r.sqlite", "concurrency": 8, "max_tokens": 3000}
        backend = endpoint(server, **terms)
        answered, message = until_refused(backend, (ask(number) for number in range(200)))
        used = server.prompt_tokens + server.completion_tokens
        assert 3000 - 100 < used <= 3000
        assert len(answered) == server.requests
        assert message == (
            f"{server.prompt_tokens:,} prompt and {server.completion_tokens:,} completion tokens are used, and the next "
            "call could exceed the ceiling of 3,000 tokens; all answers are kept, and the same command with a higher "
            "ceiling resumes."
        )
        with pytest.raises(BudgetError):
            backend.step()
        backend.close()
        calls = server.requests
        # What was answered costs nothing, so it is given although the ceiling is reached.
        again = endpoint(server, **terms, spent_input=server.prompt_tokens, spent_output=server.completion_tokens)
        answered, _ = until_refused(again, (ask(number) for number in range(200)))
        again.close()
        assert len(answered) == calls == server.requests


def test_a_ceiling_on_cost() -> None:
    with FaultServer(lambda prompt, times: "word " * 60) as server:
        backend = endpoint(server, max_cost=0.01, input_price=1.0, output_price=10.0)
        done, message = until_refused(backend, (ask(number) for number in range(100)))
        backend.close()
        assert 0.009 < (server.prompt_tokens * 1.0 + server.completion_tokens * 10.0) / 1e6 <= 0.01
    assert len(done) == server.requests
    assert re.search(r"at a cost of 0\.009\d, .* ceiling of a cost of 0\.01", message)


# --- stopping ---


def test_reply_to_a_cancelled_request_is_cached(tmp_path: Path) -> None:
    with FaultServer(latency=0.2) as server:
        backend = endpoint(server, replies=tmp_path / "replies.sqlite", concurrency=1)
        backend.submit(ask(1))
        backend.submit(ask(2))
        while not server.requests:
            time.sleep(0.01)
        backend.cancel("r1#0")
        backend.cancel("r2#0")
        backend.cancel("unknown")
        assert [g.request_id for g in run(backend, [ask(3)])] == ["r3#0"]
        assert [r.prompt for r in server.received] == ["question number 1?", "question number 3?"]
        assert generate_one(backend, ask(1)).calls == 0
        backend.close()


def test_closing_is_immediate_and_pending_replies_are_cached(tmp_path: Path) -> None:
    with FaultServer(latency=2.0) as server:
        backend = endpoint(server, replies=tmp_path / "replies.sqlite")
        backend.submit(ask(1))
        while not server.requests:
            time.sleep(0.01)
        began = time.monotonic()
        backend.close()
        assert time.monotonic() - began < 1.0, "it does not wait for the reply"
        with pytest.raises(RuntimeError, match="closed"):
            backend.submit(ask(2))
        wait_for_threads()
        again = endpoint(server, replies=tmp_path / "replies.sqlite")
        assert generate_one(again, ask(1)).calls == 0
        again.close()
    wait_for_threads()


def test_more_than_the_capacity_is_refused() -> None:
    with FaultServer(latency=0.3) as server:
        backend = endpoint(server, concurrency=1)
        for number in range(backend.capacity):
            backend.submit(ask(number))
        with pytest.raises(RuntimeError, match="capacity"):
            backend.submit(ask(99))
        backend.close()


# --- keys ---


@pytest.mark.parametrize("fault", ["echo 401", "echo 500", "echo 400", "echo-answer"])
@pytest.mark.parametrize("engine", ["openai", "azure", "anthropic", "gemini", "endpoint"])
def test_key_is_hidden_even_if_the_server_echoes_it(
    engine: str,
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with FaultServer(fault=lambda number: fault) as server:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
            monkeypatch.setenv(name, server.url)
        monkeypatch.setenv("OPENAI_LOG", "debug")
        monkeypatch.setenv("ANTHROPIC_LOG", "debug")
        model = f"{engine}:m" + (f"@{server.url}" if engine == "endpoint" else "")
        backend = load_backend(model, nowhere, remote=RemoteOptions(attempts=2, replies=tmp_path / "replies.sqlite"))
        try:
            generation = generate_one(backend, ask(1))
            message = generation.error or generation.text
        except ModelError as error:
            assert fault == "echo 401"
            message = str(error)
        written = [
            message,
            repr(backend),
            repr(vars(backend)),
            repr(describe(model)),
            log.text,
            *capfd.readouterr(),
        ]
        backend.close()
        wait_for_threads()
        sent = " ".join(server.received[0].headers.values())
    own = [value for value in KEYS.values() if value in sent]
    assert len(own) == 1
    assert "***" in message
    written += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    assert not [text for text in written for piece in (own[0], own[0][:12], own[0][-12:]) if piece in text]


def test_own_server_gets_no_other_key_or_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RASHOMON_ENDPOINT_KEY")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer other-secret\nx-gateway: gateway-secret")
    with FaultServer() as server:
        backend = endpoint(server)
        generate_one(backend, ask(1))
        backend.close()
    headers = server.received[0].headers
    assert headers["authorization"] == "Bearer none"
    assert "secret" not in repr(headers)
    assert not [value for value in KEYS.values() if value in repr(headers)]
    assert not [name for name in headers if name.startswith(("x-", "openai-"))]


# --- the rest ---


def test_describing_and_importing_load_no_provider_library() -> None:
    script = """
import sys
from mlx_backends.engine_registry import describe
print(describe("openai:gpt-5-mini"), describe("gemini:g"), describe("endpoint:m@http://[::1]:8080/v1"))
print(sorted({"openai", "anthropic", "google.genai", "httpx2", "keyring", "PIL"} & set(sys.modules)))
"""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    described, imported = ran.stdout.splitlines()
    assert imported == "[]"
    assert "'server': '[::1]:8080/v1'" in described


def test_unwritable_cache_costs_no_answer(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    spoilt = tmp_path / "spoilt.sqlite"
    spoilt.write_bytes(b"no database" * 1000)
    (tmp_path / "file").write_text("in the way")
    locked = tmp_path / "full.sqlite"
    with sqlite3.connect(locked) as database:
        database.execute("CREATE VIEW reply AS SELECT 1 AS key, 2 AS body")
    for path in (spoilt, tmp_path / "file" / "replies.sqlite", locked):
        log.clear()
        with FaultServer() as server:
            backend = endpoint(server, replies=path)
            done = run(backend, [ask(number) for number in range(5)])
            backend.close()
        assert {g.finish_reason for g in done} == {"stop"}
        assert len([r for r in log.records if "cannot be cached" in r.getMessage()]) == 1


def test_standard_output_stays_clean(capfd: pytest.CaptureFixture[str]) -> None:
    with FaultServer(fault=faults(1, 0.5, ["500", "half"])) as server:
        backend = endpoint(server)
        run(backend, [ask(number) for number in range(10)])
        backend.close()
    assert capfd.readouterr().out == ""
