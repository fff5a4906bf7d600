"""Real weights: SmolLM2-135M-Instruct answers as in mlx-lm in every mode, and labels answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.vocabulary import Message, Request, Text
from mlx_backends.core.prompts.text_prompt import TextPrompter
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.real_prompts import real_requests
from tests.support.real_weights import Reference, Tokens, our_answers
from tests.support.smollm2 import build_smollm2, build_smolvlm, needs_smollm2, quantise_smollm2

pytestmark = [pytest.mark.slow, needs_smollm2]

NEAR_TIE = 1e-3
"""The difference of two logits in fp32 that rounding may turn over; between two likely tokens it is about 1."""
FEW = real_requests(6, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_smollm2(tmp_path_factory.mktemp("smollm2") / "fp32", "float32")


@pytest.fixture(scope="module")
def library(folder: Path) -> Reference:
    return Reference(folder)


@pytest.fixture(scope="module")
def expected(library: Reference) -> Tokens:
    return library.tokens(FEW)


def assert_equal(library: Reference, expected: Tokens, actual: Tokens) -> None:
    """Fail where answers differ, but for near ties."""
    differences = library.differences(FEW, expected, actual)
    assert [difference for difference in differences if abs(difference.ahead) > NEAR_TIE] == []


def test_prompts_are_those_of_the_models_own_template(library: Reference) -> None:
    prompter = TextPrompter(library.tokenizer)
    for request in real_requests():
        assert prompter.ids(request.messages) == library.prompt(request)
    greeting = prompter.ids((Message("user", (Text("Hi 42"),)),))
    assert library.tokenizer.decode(greeting) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi 42<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_model_knows_its_language_and_ends_by_itself(library: Reference) -> None:
    """Weights or a tokenizer that were read wrongly could still agree with themselves."""
    question = Request("paris", 0, (Message("user", (Text("What is the capital of France?"),)),), FEW[0].decoding)
    (tokens,) = library.tokens([question], max_tokens=10).values()
    assert library.tokenizer.decode(tokens) == "The capital of France is Paris.<|im_end|>"


def test_sequential_answers_are_mlx_lms(folder: Path, library: Reference, expected: Tokens) -> None:
    assert_equal(library, expected, our_answers(folder, FEW, exact=True).tokens)


def test_batched_answers_are_mlx_lms(folder: Path, library: Reference, expected: Tokens) -> None:
    ours = our_answers(folder, FEW, exact=False)
    assert ours.way == "in batches"
    assert_equal(library, expected, ours.tokens)


def test_answers_with_shared_prefixes_are_mlx_lms(
    folder: Path, tmp_path: Path, library: Reference, expected: Tokens
) -> None:
    """The language model inside a SmolVLM: mlx-vlm, batches and shared prefixes give mlx-lm's tokens."""
    ours = our_answers(build_smolvlm(folder, tmp_path / "vlm"), FEW, exact=False)
    assert "shared prefixes" in ours.way
    assert_equal(library, expected, ours.tokens)


def test_four_bit_answers_are_mlx_lms(folder: Path, tmp_path: Path) -> None:
    folder = quantise_smollm2(folder, tmp_path / "4bit")
    library = Reference(folder)
    expected = library.tokens(FEW)
    assert_equal(library, expected, our_answers(folder, FEW, exact=True).tokens)


def test_it_labels_answers_to_the_end(folder: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    draw_sources(tmp_path / "sources")
    rashomon.run("build", "cmc-bench", "--source", tmp_path / "sources")
    rashomon.run(
        *("--batch", "--benchmark", "cmc-bench", "--model", "policy:random", "--limit", "1", "--name", "judged"),
        *("--conditions", "image-only,text-only", "--display", "none"),
    )
    rashomon.run("judge", "judged", "--judge", folder, "--display", "none")
    (table,) = rashomon.json("show", "judged", "--judge", "fp32", "--table", "failures")["tables"]
    assert sum(row["cells"]["labelled"] for row in table["rows"]) == 4
    checked = rashomon.run("judges", "check", folder, "--limit", "1").stdout
    assert re.search(r"agrees with [01] of 1 labels", checked)
