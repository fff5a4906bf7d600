"""Refusals of a server (a parameter, the key), and their consequences for requests and cached responses."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import ModelError
from benchmarks.vocabulary import JSONObject
from mlx_backends.engine_registry import load_backend
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import rate_limit
from mlx_backends.remote.http_errors import classify_error
from mlx_backends.remote.remote_errors import PermanentError
from mlx_backends.remote.server_responses_and_errors import refused_parameter
from tests.support.fault_server import FaultServer
from tests.support.remote import ask, endpoint, generate_one, nowhere, run
from tests.support.trust import agree_to

pytestmark = pytest.mark.usefixtures("client")

LABEL = JSONObject({"label": ("IMAGE", "TEXT")})


# --- what is behind an address ---


def test_replaced_endpoint_model_does_not_get_cached_replies(tmp_path: Path) -> None:
    terms = {"replies": tmp_path / "replies.sqlite"}
    with FaultServer(lambda prompt, times: "the old model's") as server:

        def answer_in(scope: str) -> str:
            backend = endpoint(server, **terms, scope=scope)
            generation = generate_one(backend, ask(1))
            backend.close()
            return generation.text

        assert answer_in("first run") == "the old model's"
        server.reply = lambda prompt, times: "the new model's"
        assert answer_in("first run") == "the old model's"
        assert answer_in("second run") == "the new model's"
    assert server.requests == 2


@pytest.mark.slow
@pytest.mark.parametrize(("model", "calls"), [("azure:m", 1), ("openai:m", 2), ("anthropic:m", 2), ("gemini:m", 2)])
def test_responses_are_shared_only_for_provider_hosted_models(
    model: str, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer() as server:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
            monkeypatch.setenv(name, server.url)
        for scope in ("first run", "second run", "first run"):
            backend = load_backend(
                model, nowhere, remote=RemoteOptions(replies=tmp_path / "replies.sqlite", scope=scope)
            )
            generate_one(backend, ask(1))
            backend.close()
    assert server.requests == calls


# --- a parameter that is refused ---


def test_reply_without_a_parameter_does_not_answer_the_full_request(tmp_path: Path) -> None:
    terms = {"replies": tmp_path / "replies.sqlite"}
    with FaultServer(lambda prompt, times: f"answer {times}", lambda number: "refuses temperature") as server:

        def run_once() -> tuple[str, int, list[str]]:
            backend = endpoint(server, **terms)
            generation = generate_one(backend, ask(1))
            remarks = list(backend.remarks)
            backend.close()
            return generation.text, generation.calls, remarks

        remark = "endpoint:some-model refuses temperature, which was left out."
        assert run_once() == ("answer 1", 2, [remark])
        server.fault = lambda number: None
        assert run_once() == ("answer 2", 1, [])
        assert server.received[-1].body["temperature"] == 0
        assert run_once() == ("answer 2", 0, [])
        # What is not answered yet finds that the parameter is refused, and then the reply to what is left.
        server.fault = lambda number: "refuses seed"
        backend = endpoint(server, **terms)
        assert (generate_one(backend, ask(2)).text, len(backend.remarks)) == ("answer 1", 1)
        backend.close()
        server.fault = lambda number: "refuses temperature"
        backend = endpoint(server, **terms)
        assert generate_one(backend, ask(3)).calls == 2
        assert (generate_one(backend, ask(1)).text, backend.remarks) == ("answer 1", [remark])
        backend.close()


def test_second_run_reuses_replies_to_reduced_requests(tmp_path: Path) -> None:
    terms = {"replies": tmp_path / "replies.sqlite", "concurrency": 8}
    requests = [ask(number, form=LABEL if number % 2 else None) for number in range(40)]
    with FaultServer(
        lambda prompt, times: f"{prompt} {times}", lambda number: "refuses temperature,response_format"
    ) as server:
        first = endpoint(server, **terms)
        before = {g.request_id: g.text for g in run(first, requests)}
        first.close()
        answered, sent = len(server.replies), server.requests
        second = endpoint(server, **terms)
        after = run(second, requests)
        second.close()
    assert {g.request_id: g.text for g in after} == before
    assert len(server.replies) == answered == 40
    # No more than the calls that find out what is refused: those under way until then, for each parameter.
    assert sum(g.calls for g in after) == server.requests - sent <= 2 * rate_limit.INITIAL_CALLS
    assert sum(g.prompt_tokens or 0 for g in after) == 0


def test_parameters_dropped_for_another_request_do_not_matter(tmp_path: Path) -> None:
    terms = {"replies": tmp_path / "replies.sqlite"}
    with FaultServer(fault=lambda number: "refuses response_format") as server:
        backend = endpoint(server, **terms)
        run(backend, [ask(1, form=LABEL)])
        run(backend, [ask(2)])
        backend.close()
        again = endpoint(server, **terms)
        assert generate_one(again, ask(2)).calls == 0
        again.close()


def test_other_backends_have_no_remarks() -> None:
    with FaultServer() as server:
        backend = endpoint(server)
        generate_one(backend, ask(1))
        assert not backend.remarks
        backend.close()
    assert not load_backend("policy:random", nowhere).remarks


SENT = ("response_format", "seed", "top_p", "temperature", "max_tokens")


def _openai(message: str, param: str | None = None, code: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


def _fastapi(kind: str, loc: list[Any], message: str) -> dict[str, Any]:
    echoed = {"temperature": 0, "seed": 0, "top_p": 1, "max_tokens": 5, "note": "unsupported"}
    return {"detail": [{"type": kind, "loc": loc, "msg": message, "input": echoed}]}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        # OpenAI, Azure
        (
            _openai("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
            "temperature",
        ),
        (
            _openai("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens'.", "max_tokens"),
            "max_tokens",
        ),
        (_openai("It went wrong.", "seed", "unknown_parameter"), "seed"),
        (_openai("Invalid schema for response_format 'answer': ...", "response_format"), "response_format"),
        (_openai("Missing required 'name'", "response_format.json_schema.name"), "response_format"),
        (_openai("max_tokens is too large: 50000. This model supports at most 16384 tokens", "max_tokens"), None),
        (_openai("max_tokens above 4096 is not supported", "max_tokens"), None),
        (_openai("Invalid value: temperature must be between 0 and 1", "temperature"), None),
        (_openai("'seed' is fine but the value of 'messages' is not supported", "messages.[0].content"), None),
        (_openai("Unsupported parameter seed", "tools"), None),
        # Anthropic
        (json.dumps({"error": {"message": "`temperature` is deprecated for this model."}}), "temperature"),
        (
            json.dumps({"error": {"message": "`temperature` and `top_p` cannot both be specified. Use only one."}}),
            "top_p",
        ),
        (json.dumps({"error": {"message": "seed: Extra inputs are not permitted"}}), "seed"),
        # Gemini
        (
            json.dumps(
                [{"error": {"message": "Invalid JSON. Unknown name \"topP\" at 'generation_config': No field."}}]
            ),
            "top_p",
        ),
        # gateways and servers of one's own
        (_openai("x.UnsupportedParamsError: m does not support parameters: {'seed': 5}. Drop it.", "None"), "seed"),
        (json.dumps({"error": "seed is not supported"}), "seed"),
        (json.dumps({"detail": "Unrecognized request argument supplied: seed"}), "seed"),
        (json.dumps(_fastapi("extra_forbidden", ["body", "seed"], "No.")), "seed"),
        (json.dumps({"message": _fastapi("x", ["body", "top_p"], "Extra inputs are not permitted")}), "top_p"),
        (json.dumps(_fastapi("missing", ["body", "model"], "Field required; unexpected field")), None),
        (json.dumps(_fastapi("missing", ["body"], "unsupported")), None),
        (json.dumps(_fastapi("less_than", ["body", "temperature"], "Input should be less than 2")), None),
        (
            _openai("[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs', 'input': 5}]"),
            "seed",
        ),
        (
            _openai("[{'loc': ('body', 'model'), 'msg': 'unexpected field', 'input': {'temperature': 0, 'seed': 0}}]"),
            None,
        ),
        (_openai("response_format must be json_object"), "response_format"),
        # something else went wrong
        (_openai("Unknown model qwen; seed nodes cannot be reached"), None),
        (_openai("Unknown seed node"), None),
        (_openai("Input prompt (9000 tokens) is too long; max_tokens cannot be satisfied"), None),
        (_openai("This model does not support image input"), None),
        (_openai("This model does not support images. The temperature was 0. The seed was 5."), None),
        (_openai("The model is deprecated.\nseed=5"), None),
        (_openai("The response_format is json_schema. The prompt is invalid."), None),
        (json.dumps({"error": {"message": "no such model"}, "request": "seed is not supported"}), None),
        (json.dumps({"error": {"message": "not supported: seeds, temperatures, top_priority"}}), None),
        ("seed is not supported", None),
        ("<html>temperature is not supported</html>", None),
        ("", None),
        ("[]", None),
        ('{"error": {"param": 7, "message": ["seed is not supported"], "detail": [{"loc": "seed"}, 5]}}', None),
    ],
)
def test_only_refused_parameters_are_detected(text: str, refused: str | None) -> None:
    assert refused_parameter(text, SENT) == refused


WORDS = st.sampled_from(
    [*SENT, "topP", "is not supported", "unknown parameter", "the model", ". ", "; ", " ", "\n", "'input': "]
)


@given(st.lists(WORDS | st.text(max_size=5), max_size=12), st.none() | WORDS, st.sets(st.sampled_from(SENT)))
def test_unsent_or_unnamed_parameter_is_not_refused(words: list[str], param: str | None, sent: set[str]) -> None:
    message = "".join(words)
    parameter = refused_parameter(_openai(message, param), sent)
    if parameter is None:
        return
    spelt = {parameter, "topP"} if parameter == "top_p" else {parameter}
    assert parameter in sent
    if param in (*SENT, "topP"):
        assert param in spelt
    else:
        assert any(name in message for name in spelt)
    if parameter != "response_format":
        assert "not supported" in message or "unknown parameter" in message


# --- a key that is refused ---


@pytest.mark.parametrize("status", ["401", "403"])
@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_wrong_key_ends_the_run_after_pending_calls(concurrency: int, status: str) -> None:
    with FaultServer(fault=lambda number: f"echo {status}", latency=0.02) as server:
        backend = endpoint(server, concurrency=concurrency)
        with pytest.raises(ModelError) as caught:
            run(backend, [ask(number) for number in range(50)])
        for number in range(50):
            backend.cancel(f"r{number}#0")
        with pytest.raises(ModelError):
            backend.step()
        time.sleep(0.1)
        backend.close()
        assert 1 <= server.requests <= concurrency
    message = str(caught.value)
    assert message == (
        "endpoint:some-model: the provider refuses the key; set RASHOMON_ENDPOINT_KEY again "
        f"(HTTP {status}: key Bearer *** is wrong)."
    )


def test_unreachable_server_ends_the_run_after_the_first_request() -> None:
    with FaultServer() as server:
        url = server.url
    backend = load_backend(f"endpoint:m@{url}", nowhere, remote=RemoteOptions(attempts=3))
    with pytest.raises(ModelError, match=r"^endpoint:m: the server cannot be reached; check that it runs .*connection"):
        run(backend, [ask(number) for number in range(50)])
    backend.close()


@pytest.mark.parametrize("model", ["openai:m", "azure:m", "anthropic:m", "gemini:m"])
def test_refused_key_is_named(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(fault=lambda number: "401") as server:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
            monkeypatch.setenv(name, server.url)
        backend = load_backend(model, nowhere, remote=RemoteOptions())
        variable = {"azure:m": "AZURE_OPENAI_API_KEY"}.get(model, f"{model[:-2].upper()}_API_KEY")
        with pytest.raises(
            ModelError, match=rf"^{model}: the provider refuses the key; set {variable} again \(HTTP 401"
        ):
            generate_one(backend, ask(1))
        backend.close()


def test_key_refused_after_an_answer_fails_only_that_request() -> None:
    with FaultServer(fault=lambda number: None if number == 1 else "403") as server:
        backend = endpoint(server)
        assert generate_one(backend, ask(0)).finish_reason == "stop"
        done = run(backend, [ask(number) for number in range(1, 20)])
        backend.close()
    assert [g.error for g in done] == ["HTTP 403: told to fail with 403"] * 19


def test_early_refusal_fails_one_request_if_another_call_succeeds() -> None:
    with FaultServer(fault=lambda number: "403" if number == 4 else None, latency=0.2) as server:
        backend = endpoint(server, concurrency=4)
        done = run(backend, [ask(number) for number in range(20)])
        backend.close()
    assert [g.error for g in done if g.finish_reason == "error"] == ["HTTP 403: told to fail with 403"]
    assert len(done) == server.requests == 20


def test_cached_reply_does_not_validate_the_key(tmp_path: Path) -> None:
    with FaultServer() as server:
        backend = endpoint(server, replies=tmp_path / "replies.sqlite")
        generate_one(backend, ask(1))
        backend.close()
        server.fault = lambda number: "401"
        again = endpoint(server, replies=tmp_path / "replies.sqlite")
        assert generate_one(again, ask(1)).text == "yes"
        with pytest.raises(ModelError):
            generate_one(again, ask(2))
        again.close()


def test_gemini_reports_a_refused_key_in_the_request() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    body = {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": details}}
    wrong, other = (
        classify_error(400, {}, json.dumps(body)),
        classify_error(400, {}, '{"error": {"message": "API key not valid."}}'),
    )
    assert isinstance(wrong, PermanentError)
    assert isinstance(other, PermanentError)
    assert (wrong.refuses_key, other.refuses_key) == (True, False)


# --- a host of several addresses ---


def _resolve(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> list[str]:
    """Let many.invalid have ``addresses``; what is looked up is noted."""
    real: Callable[..., Any] = socket.getaddrinfo
    looked_up: list[str] = []

    def resolve(host: str, port: int, *args: Any, **named: Any) -> Any:
        if host != "many.invalid":
            return real(host, port, *args, **named)
        looked_up.append(host)
        kinds = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        return [
            (kind, socket.SOCK_STREAM, 6, "", (address, port, 0, 0) if kind == socket.AF_INET6 else (address, port))
            for kind, address in zip(kinds, addresses, strict=True)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return looked_up


def test_second_address_is_tried_if_the_first_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = _resolve(monkeypatch, ["::1", "127.0.0.1"])
    with FaultServer() as server:
        url = server.url.replace("127.0.0.1", "many.invalid")
        agree_to(url)
        backend = load_backend(f"endpoint:m@{url}", nowhere, remote=RemoteOptions(attempts=1))
        assert generate_one(backend, ask(1)).text == "yes"
        backend.close()
    assert server.received[0].headers["host"].startswith("many.invalid:")
    assert len(looked_up) == 1


def test_all_addresses_share_the_timeout_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolve(monkeypatch, [f"192.0.2.{number}" for number in range(1, 5)])
    tried: list[tuple[str, float]] = []

    def silent(address: tuple[str, int], timeout: float, **_: Any) -> socket.socket:
        tried.append((address[0], timeout))
        time.sleep(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    agree_to("http://many.invalid")
    backend = load_backend("endpoint:m@http://many.invalid/v1", nowhere, remote=RemoteOptions(attempts=1, timeout=0.8))
    began = time.monotonic()
    generation = generate_one(backend, ask(1))
    backend.close()
    assert 0.7 < time.monotonic() - began < 2.4, "not the time of a call for each address"
    assert generation.error == "no whole reply in time"
    assert [address for address, _ in tried] == [f"192.0.2.{number}" for number in range(1, 5)]
    assert all(timeout == pytest.approx(0.2, abs=0.15) for _, timeout in tried)
