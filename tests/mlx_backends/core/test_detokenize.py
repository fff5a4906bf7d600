"""The stored text of a local model's reply says by itself what is reasoning, whatever engine answered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.text.answer_text import visible_answer
from benchmarks.text.reasoning import read_reply
from benchmarks.vocabulary import Candidates, Choice, Request, Text
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.prompts.reasoning_markers import OwnMarkers, own_markers
from mlx_backends.engine_registry import load_backend
from tests.mlx_backends.conftest import Pictures, request_of
from tests.support.benchmark_requests import answers
from tests.support.in_torch import in_torch, needs_torch
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm

START = r"'<|im_start|>assistant\n'"
OPENS, CLOSES = START + r" + '<think>\n'", START + r" + '<think>\n\n</think>\n\n'"
SWITCH = f"({CLOSES}) if enable_thinking is defined and not enable_thinking else ({OPENS})"


def with_template(folder: Path, generation: str) -> Path:
    """Let the chat template begin the model's turn with the value of an expression."""
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    turns, condition, _ = settings["chat_template"].partition("{%- if add_generation_prompt %}")
    settings["chat_template"] = f"{turns}{condition}{{{{- {generation} }}}}{{%- endif %}}"
    path.write_text(json.dumps(settings))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("generation", "opened"), [(OPENS, "<think>\n"), (CLOSES, ""), (SWITCH, ""), (START, "")])
def test_what_the_prompt_opened_stands_in_front_of_the_stored_text(
    generation: str, opened: str, tmp_path: Path, pictures: Pictures
) -> None:
    folder = with_template(build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False), generation)
    backend = load_backend(str(folder), pictures.path)
    requests = [request_of(pictures.noise(n), Text(f"What is {n}? <think>")) for n in range(4)]
    requests = [replace(request, instance_id=str(n)) for n, request in enumerate(requests)]
    sequential = {name: generation.text for name, generation in answers(backend, requests).items()}
    assert all(text.startswith(opened) for text in sequential.values())
    assert all((visible_answer(text) == "") == bool(opened) for text in sequential.values())
    backend.choose_mode(requests)
    assert backend.capacity > 1
    assert {name: generation.text for name, generation in answers(backend, requests).items()} == sequential
    held = replace(requests[0], instance_id="held", form=Choice(("IMAGE", "TEXT")))
    scored = replace(requests[0], instance_id="scored", form=Candidates(("7", "8"), "unknown"))
    by_form = answers(backend, [held, scored])
    assert by_form[held.id].text in ("IMAGE", "TEXT")  # an answer in a given form is no reasoning
    assert by_form[scored.id].text == sequential[requests[0].id]
    assert len(by_form[scored.id].scores) == 4
    backend.close()


@needs_torch
@pytest.mark.slow
def test_pytorch_stores_the_same_text(tmp_path: Path, pictures: Pictures) -> None:
    folder = with_template(build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False), OPENS)
    request = request_of(pictures.noise(1), Text("What is it?"))
    theirs = in_torch(folder, [request], pictures.path).answers[request.id]
    assert theirs.text.startswith("<think>\n")
    assert visible_answer(theirs.text) == ""


def test_a_text_model_stores_the_same(tmp_path: Path) -> None:
    folder = build_tiny_lm(tmp_path / "model", TEXTS, quantise=False)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings["chat_template"] = "{%- for m in messages %}{{- m.content }}{%- endfor %}{{- '\\n<think>\\n' }}"
    path.write_text(json.dumps(settings))
    backend = load_backend(str(folder), lambda medium: Path(medium.name))
    request = request_of(Text("One?"))
    assert answers(backend, [request])[request.id].text.startswith("<think>\n")
    backend.close()


# --- tokens -----------------------------------------------------------------------------------------


class Prompts:
    """The part of a prompter that a detokenizer uses."""

    def __init__(self, own: OwnMarkers, opened: str = "") -> None:
        self.own_markers = own
        self._opened = opened

    def opened(self, request: Request) -> str:
        return self._opened


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(["43 68"], trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False))
    special = "[THINK] [/THINK] ◁think▷ ◁/think▷ <|channel> <channel|> <|channel|> <|message|> <|start|> <|end|> <pad> <|im_end|>"
    special += " <|im_start|> <ponder> </ponder> <|image_pad|> <|begin_of_thought|> <|end_of_thought|>"
    trained.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special.split()])
    return PreTrainedTokenizerFast(tokenizer_object=trained, pad_token="<pad>", eos_token="<|im_end|>")


@pytest.mark.parametrize(
    "reply",
    [
        "[THINK]It is 68.[/THINK]43",
        "◁think▷It is 68.◁/think▷43",
        "<|channel>thought\nIt is 68.<channel|>43",
        "<|channel|>analysis<|message|>It is 68.<|end|><|start|>assistant<|channel|>final<|message|>43",
        "<|begin_of_thought|>It is 68.<|end_of_thought|>43",
        "<ponder>It is 68.</ponder>43",
        "<|image_pad|>43<pad><pad>",
        "43<|im_end|>\n<|im_start|>user\nIt is 68.",
    ],
)
def test_special_tokens_around_reasoning_survive_decoding(tokenizer: Any, reply: str) -> None:
    prompts: Any = Prompts(OwnMarkers("<ponder>", "</ponder>"))
    tokens = tokenizer.encode(reply, add_special_tokens=False)
    assert visible_answer(Detokenizer(tokenizer, prompts).text(tokens)) == "43"


def test_reasoning_in_special_tokens_that_is_cut_is_no_answer(tokenizer: Any) -> None:
    prompts: Any = Prompts(OwnMarkers("<ponder>", "</ponder>"), "<think>\n")
    tokens = tokenizer.encode("[THINK]It is 68, or", add_special_tokens=False)
    assert read_reply(Detokenizer(tokenizer).text(tokens)) == ("", True)
    tokens = tokenizer.encode("It is 68.</ponder>43", add_special_tokens=False)
    assert Detokenizer(tokenizer, prompts).reply(request_of(Text("?")), tokens) == "<think>\nIt is 68.</think>43"


@pytest.mark.parametrize(
    ("opening", "closing", "known"),
    [
        ("<ponder>", "</ponder>", True),
        ("<think>", "</think>", False),
        ("<|channel|>analysis<|message|>", "<|end|>", False),
        ("", "", False),
        ("<|im_start|>", "<|im_end|>", False),
    ],
)
def test_markers_that_are_in_no_list_are_found_in_the_template(opening: str, closing: str, known: bool) -> None:
    def render(turns: list[dict[str, Any]]) -> str:
        user, reply = turns
        reasoning = f"{opening}\n{reply['reasoning_content']}\n{closing}" if "reasoning_content" in reply else ""
        return f"<|user|>{user['content']}<|assistant|>{reasoning}{reply['content']}<|im_end|>"

    assert own_markers(render) == (OwnMarkers(opening, closing) if known else OwnMarkers())
    assert own_markers(lambda _: 1 / 0) == OwnMarkers()  # type: ignore[arg-type,return-value]
