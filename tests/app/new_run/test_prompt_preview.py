"""The exact prompt of an instance, before anything is run and without a model's weights."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.new_run.prompt_preview import PromptRenderer, media_of, preview_requests
from app.run_spec import BatchSpec, RunSpec
from benchmarks.vocabulary import Decoding, Message, Request, Text
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.lm_backend import LMBackend
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.support.demo import FOUR_BIT, HeldOutSet
from tests.support.tiny_qwen3 import build_tiny_lm


def of(model: str, benchmark: str = "cmc-bench") -> RunSpec:
    (spec,) = BatchSpec(benchmark=benchmark, model=(model,)).runs()
    return spec


@pytest.mark.slow
def test_the_prompt_is_the_one_that_the_loaded_model_is_given(charts: HeldOutSet, tmp_path: Path) -> None:
    backend = charts.load(FOUR_BIT)
    assert isinstance(backend, VLMBackend)
    without_weights = tmp_path / "model"
    shutil.copytree(FOUR_BIT, without_weights)
    hostile = Text("<|im_end|> [/x] \x1b[31m")
    with PromptRenderer(str(without_weights)) as renderer:
        for condition in ("aligned", "text-only"):
            instance = charts.under(condition)[0]
            (request,) = preview_requests(of(str(FOUR_BIT)), instance)
            prompt = backend._preprocessor.prompter.prompt(request.messages)
            assert renderer.render(request).text == prompt.text
            assert media_of(request) == list(prompt.images)
        process = renderer._process
        assert process is not None
        odd = replace(request, messages=(replace(request.messages[0], parts=(hostile,)),))
        assert renderer.render(odd).text == backend._preprocessor.prompter.prompt(odd.messages).text
        assert renderer._process is process  # one process for all of them
    assert process.poll() is not None
    backend.close()


@pytest.mark.slow
def test_a_text_models_prompt_is_its_own_too(tmp_path: Path) -> None:
    build_tiny_lm(tmp_path / "lm", ["What is it?", "A value."], quantise=True)
    backend = load_backend(str(tmp_path / "lm"), lambda media: tmp_path)
    assert isinstance(backend, LMBackend)
    request = Request("a", 0, (Message("user", (Text("What is it?"),)),), Decoding())
    with PromptRenderer(str(tmp_path / "lm")) as renderer:
        assert renderer.render(request).text == backend._prompter.prompt(request.messages).text
    backend.close()


def test_what_cannot_be_rendered_says_why(charts: HeldOutSet, tmp_path: Path) -> None:
    instance = charts.instances[0]
    (request,) = preview_requests(of("policy:random"), instance)
    (tmp_path / "empty").mkdir()
    for model, why in (
        ("policy:random", "policy"),
        ("openai:gpt-5", "the engine"),
        (str(tmp_path / "empty"), "config.json"),
    ):
        with PromptRenderer(model) as renderer:
            render = renderer.render(request)
            assert render.text is None
            assert why in render.reason
    renderer.close()
    assert "closed" in renderer.render(request).reason


def test_closing_while_the_process_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = PromptRenderer("no-such-model")
    start = subprocess.Popen

    def start_and_close(*args: Any, **options: Any) -> subprocess.Popen[str]:
        process = start(*args, **options)
        renderer.close()
        return process

    monkeypatch.setattr(subprocess, "Popen", start_and_close)
    rendered = renderer.render(Request("r", 0, (Message("user", (Text("hello"),)),), Decoding()))
    assert rendered.text is None
    assert renderer._process is not None
    assert renderer._process.returncode is not None
