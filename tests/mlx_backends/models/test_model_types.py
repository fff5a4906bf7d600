"""Types of models that mlx-vlm has, by its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.errors import ModelError
from mlx_backends.engine_registry import describe
from mlx_backends.models.model_discovery import cached_models
from mlx_backends.models.model_types import REFUSED, type_problem


@pytest.mark.parametrize("kind", ["qwen3_5", "gemma3", "llava_qwen2", "SmolVLM", "lfm2-vl"])
def test_a_known_type_has_no_problem(kind: str) -> None:
    assert type_problem({"model_type": kind}) is None


def test_an_unknown_type_is_named_with_the_nearest(tmp_path: Path) -> None:
    problem = type_problem({"model_type": "gemma3_vl"})
    assert problem is not None
    assert "'gemma3_vl'" in problem
    assert "'gemma3'" in problem


@pytest.mark.parametrize("kind", [None, 7, "", "quaggle"])
def test_a_type_like_no_other_is_named_alone(kind: object) -> None:
    problem = type_problem({"model_type": kind})
    assert problem is not None
    assert "nearest" not in problem


@pytest.mark.parametrize("kind", ["moondream1", "moondream2", *REFUSED])
def test_a_refused_type_has_its_reason(kind: str) -> None:
    problem = type_problem({"model_type": kind})
    assert problem is not None
    assert "refused" in problem


def test_a_cached_model_of_an_unknown_type_has_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    commit = "0" * 40
    folder = tmp_path / "models--org--new" / "snapshots" / commit
    folder.mkdir(parents=True)
    (tmp_path / "models--org--new" / "refs").mkdir()
    (tmp_path / "models--org--new" / "refs" / "main").write_text(commit)
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma3_vl", "vision_config": {"a": 1}}))
    for name in ("tokenizer.json", "preprocessor_config.json"):
        (folder / name).write_text("{}")
    header = b"{}      "
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    (model,) = cached_models()
    assert "'gemma3'" in (model.problem or "")


VISION: dict[str, object] = {"vision_config": {"a": 1}}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "quaggle", **VISION}, "which this version of mlx-vlm does not know"),
        ({"model_type": "qwen9"}, "type 'qwen9', which this version of mlx-lm does not know"),
        ({"model_type": "../utils"}, "which this version of mlx-lm does not know"),
        ({}, "has no model_type in its config.json"),
        (VISION, "has no model_type in its config.json"),
        ({"model_type": 7, **VISION}, "has no model_type in its config.json"),
    ],
)
def test_a_model_of_no_known_type_is_refused_before_a_run(
    config: dict[str, object], reason: str, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "model", "norm.weight", **{"model_type": None, **config})
    (folder / "preprocessor_config.json").write_text("{}")
    with pytest.raises(ModelError, match=reason) as refusal:
        describe(str(folder))
    assert ("update mlx-" in str(refusal.value)) == isinstance(config.get("model_type"), str)


def test_a_cached_model_in_other_capitals_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "models--lena--Whole-4bit").mkdir()
    with pytest.raises(ModelError, match="did you mean 'lena/Whole-4bit'"):
        describe("lena/whole-4bit")
    with pytest.raises(ModelError, match="models get lena/other"):
        describe("lena/other")


def write_model(folder: Path, tensor: str, **config: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", **config}))
    (folder / "tokenizer.json").write_text("{}")
    header = json.dumps({tensor: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return folder


@pytest.mark.parametrize(
    ("name", "tensor", "runs"),
    [
        ("Qwen3ForCausalLM", "model.embed_tokens.weight", True),
        ("GPT2LMHeadModel", "wte.weight", True),
        ("ChatGLMModel", "embed_tokens.weight", True),
        ("Qwen3Model", "model.embed_tokens.weight", True),  # a whole model whose name was written wrong
        ("Qwen3ForSequenceClassification", "model.embed_tokens.weight", False),
        ("Qwen2ForTokenClassification", "model.embed_tokens.weight", False),
        ("LlamaForQuestionAnswering", "model.embed_tokens.weight", False),
        ("Qwen3Model", "embed_tokens.weight", False),
    ],
)
def test_a_model_that_has_no_output_layer_for_texts_cannot_be_described(
    tmp_path: Path, name: str, tensor: str, runs: bool
) -> None:
    folder = write_model(tmp_path / "model", tensor, architectures=[name])
    if runs:
        assert describe(str(folder)).engine == "mlx-lm"
        return
    with pytest.raises(ModelError, match=name):
        describe(str(folder))


@pytest.mark.parametrize("file", ["modules.json", "config_sentence_transformers.json"])
def test_an_embedder_has_a_problem_where_models_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--org--embedder"
    folder = write_model(repository / "snapshots" / ("0" * 40), "model.embed_tokens.weight")
    (folder / file).write_text("[]")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    (model,) = cached_models()
    assert "embeds" in (model.problem or "")
    with pytest.raises(ModelError, match="embeds"):
        describe(str(folder))
