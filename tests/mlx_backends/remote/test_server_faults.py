"""Faults of a server behind HTTP 200: each an error with the server's own message, none the model's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.vocabulary import Generation
from mlx_backends.engine_registry import load_backend
from mlx_backends.options import RemoteOptions
from tests.support.fault_server import FaultServer
from tests.support.remote import ask, endpoint, generate_one, nowhere

pytestmark = pytest.mark.usefixtures("client")

USAGE = {"prompt_tokens": 400, "completion_tokens": 5, "total_tokens": 405}


def completion(content: Any, reason: Any = "stop", usage: Any = USAGE, **message: Any) -> dict[str, Any]:
    """A response of OpenAI's API."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": reason}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def answer_to(response: Any, **decoding: Any) -> Generation:
    """Return the answer that an endpoint's response, as JSON or text, becomes."""
    text = response if isinstance(response, str) else json.dumps(response)
    with FaultServer(fault=lambda number: f"raw {text}") as server:
        backend = endpoint(server)
        generation = generate_one(backend, ask(1, **decoding))
        backend.close()
    assert generation.calls == server.requests
    return generation


@pytest.mark.parametrize(
    "response",
    [
        {"error": {"message": "the vision part is not loaded"}, "message": "the vision part is not loaded"},
        {"error": "the vision part is not loaded"},
        {"message": "the vision part is not loaded"},
        {"object": "error", "message": "the vision part is not loaded", "choices": []},
        {"detail": "the vision part is not loaded", "choices": None},
        {**completion("43"), "error": {"message": "the vision part is not loaded", "code": 400}},
        {"choices": [{"error": {"message": "the vision part is not loaded"}, "message": {"content": "4"}}]},
        '"the vision part is not loaded"',
        'data: {"error": {"message": "the vision part is not loaded"}}\n\ndata: [DONE]\n\n',
    ],
)
def test_message_with_status_200_reaches_the_user_after_one_call(response: Any) -> None:
    generation = answer_to(response)
    assert (generation.finish_reason, generation.text, generation.calls) == ("error", "", 1)
    assert generation.error is not None
    assert "the vision part is not loaded" in generation.error


@pytest.mark.parametrize(
    "response", [{"id": "x", "choices": []}, completion(""), completion(" \n\n"), completion(None, "error")]
)
def test_fault_that_a_server_repeats_ends_after_three_calls(response: Any) -> None:
    generation = answer_to(response)
    assert (generation.finish_reason, generation.calls) == ("error", 3)


@pytest.mark.parametrize(("fault", "calls"), [("500", 3), ("503", 6)])
def test_repeated_500_ends_early_but_an_overloaded_server_gets_all_attempts(fault: str, calls: int) -> None:
    with FaultServer(fault=lambda number: fault) as server:
        backend = endpoint(server)
        assert generate_one(backend, ask(1)).calls == calls
        backend.close()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        *((reason, "stop") for reason in ("stop", "eos", "EOS_TOKEN", "end_turn", "stop_sequence", None, "")),
        *(
            (reason, "stop")
            for reason in ("FinishReason.STOP", "FINISH_REASON_STOP", "COMPLETE", "completed", "eosFound")
        ),
        *(
            (reason, "stop")
            for reason in ("stopStringFound", "eos_token_id", "stop_sequence_reached", "endoftext", "done")
        ),
        *((reason, "length") for reason in ("FinishReason.MAX_TOKENS", "maxPredictedTokensReached", "MAX-TOKENS")),
        *(
            (reason, "length")
            for reason in ("length", "max_tokens", "model_length", "token_limit", "max_output_tokens")
        ),
        *((reason, "error") for reason in ("abort", "error", "cancelled", "tool_calls", "content_filter", "refusal")),
        *((reason, "error") for reason in ("function_call", "recitation", "something new", 7, ["stop"])),
    ],
)
def test_finish_reasons_are_a_closed_list(reason: Any, finish: str) -> None:
    generation = answer_to(completion("The val", reason))
    assert generation.finish_reason == finish
    if finish == "error" and reason not in ("content_filter", "refusal"):
        assert str(reason) in (generation.error or "")


@pytest.mark.parametrize(
    ("model", "response", "finish"),
    [
        *(
            ("anthropic:m", {"content": [{"type": "text", "text": "43"}], "stop_reason": reason}, finish)
            for reason, finish in [
                *(("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("refusal", "error")),
                *(("pause_turn", "error"), ("tool_use", "error"), ("model_context_window_exceeded", "length")),
            ]
        ),
        *(
            ("gemini:m", {"candidates": [{"content": {"parts": [{"text": "43"}]}, "finishReason": reason}]}, finish)
            for reason, finish in [
                *(("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "error"), ("OTHER", "error")),
                *(("MALFORMED_FUNCTION_CALL", "error"), ("NEW_REASON", "error")),
            ]
        ),
    ],
)
def test_finish_reasons_of_other_providers(
    model: str, response: dict[str, Any], finish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(fault=lambda number: f"raw {json.dumps(response)}") as server:
        for name in ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.setenv(name, server.url)
        backend = load_backend(model, nowhere, remote=RemoteOptions())
        assert generate_one(backend, ask(1)).finish_reason == finish
        backend.close()


@pytest.mark.parametrize(
    ("tokens", "finish"),
    [(63, "stop"), (64, "length"), (65, "length"), (4000, "error"), ("4000", "error"), (0, "stop")],
)
def test_usage_decides_whether_an_answer_was_cut(tokens: Any, finish: str) -> None:
    assert answer_to(completion("43 and", usage={**USAGE, "completion_tokens": tokens})).finish_reason == finish


def test_endless_text_without_usage_is_no_whole_answer() -> None:
    assert answer_to(completion("43 <|im_end|>\n<|im_start|>user\n" * 100, usage=None)).finish_reason == "length"


@pytest.mark.parametrize(
    "response",
    [
        completion("43", reasoning_content="It says 12."),
        completion("43", reasoning="It says 12."),
        completion("43", reasoning="<think>It says 12.</think>"),
        completion(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "It says 12."}]},
                {"type": "text", "text": "43"},
            ]
        ),
        completion([{"type": "reasoning", "text": "It says 12."}, {"type": "output_text", "text": "43"}]),
        'data: {"choices": [{"delta": {"reasoning_content": "It says"}}]}\n\n'
        'data: {"choices": [{"delta": {"reasoning_content": " 12."}}]}\n\n'
        'data: {"choices": [{"delta": {"content": "4"}}]}\n\n'
        'data: {"choices": [{"delta": {"content": "3"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n',
    ],
)
def test_reasoning_apart_from_the_text_is_stored_before_it(response: Any) -> None:
    generation = answer_to(response)
    assert (generation.finish_reason, generation.text) == ("stop", "<think>\nIt says 12.\n</think>\n\n43")


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_reasoning_without_an_answer_is_one_call_and_no_error(reason: str) -> None:
    generation = answer_to(completion(None, reason, reasoning="It says 12. So 12."))
    assert (generation.finish_reason, generation.calls) == (reason, 1)
    assert generation.text == "<think>\nIt says 12. So 12.\n</think>\n\n"


def test_stream_that_nobody_asked_for_is_read_if_whole() -> None:
    chunk, done = 'data: {"choices": [{"delta": {"content": "43"}}]}\n\n', "data: [DONE]\n\n"
    end = 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    assert answer_to(f"{chunk}{end}{done}").text == "43"
    assert answer_to(f"\ufeff{chunk}{end}").text == "43"
    assert answer_to(chunk).finish_reason == "error"
    assert answer_to(f"{chunk}{done}").finish_reason == "error", "a server may end a broken stream like a whole one"


def test_byte_order_mark_before_json_is_no_fault() -> None:
    assert answer_to("\ufeff" + json.dumps(completion("43"))).text == "43"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        *((None, None), ({}, None), ({"prompt_tokens": 0, "completion_tokens": 0}, None)),
        *(({"prompt_tokens": "400", "completion_tokens": 5.0}, 400), ({"prompt_tokens": -4}, None)),
    ],
)
def test_usage_in_any_form_costs_no_answer(usage: Any, tokens: int | None) -> None:
    generation = answer_to(completion("43", usage=usage))
    assert (generation.finish_reason, generation.text, generation.prompt_tokens) == ("stop", "43", tokens)
