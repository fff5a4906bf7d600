"""A folder whose files do not belong together is refused before anything is loaded; real layouts pass."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import ModelError
from mlx_backends.models.model_folder_check import check_tokens, check_weights

ROWS = 300


def write_weights(file: Path, *names: str, shape: tuple[int, int] = (ROWS, 2)) -> None:
    size = shape[0] * shape[1] * 4
    header = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [number * size, (number + 1) * size]}
        for number, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size * len(names)))


def write_index(path: Path, **files: str) -> None:
    weight_map = {name.replace("__", "."): file for name, file in files.items()}
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


@pytest.mark.parametrize(
    ("stale", "stem"),
    [
        ("model-old", "model"),
        ("model-00001-of-00002", "model"),
        ("weights", "model"),
        ("model", "model-00002-of-00002"),
    ],
)
def test_a_stale_file_without_an_index_is_refused_with_both_names(tmp_path: Path, stale: str, stem: str) -> None:
    write_weights(tmp_path / f"{stale}.safetensors", "a.weight", "b.weight")
    write_weights(tmp_path / f"{stem}.safetensors", "b.weight", "c.weight")
    with pytest.raises(ModelError, match=r"b\.weight") as refusal:
        check_weights(tmp_path)
    assert f"{stale}.safetensors" in str(refusal.value)
    assert f"{stem}.safetensors" in str(refusal.value)


def test_shards_of_an_index_pass_and_what_it_does_not_name_is_not_read(tmp_path: Path) -> None:
    write_weights(tmp_path / "model-00001-of-00002.safetensors", "a.weight")
    write_weights(tmp_path / "model-00002-of-00002.safetensors", "b.weight")
    write_weights(tmp_path / "model-old.safetensors", "a.weight", "b.weight")
    write_index(tmp_path, a__weight="model-00001-of-00002.safetensors", b__weight="model-00002-of-00002.safetensors")
    check_weights(tmp_path)
    with pytest.raises(ModelError, match=r"model-old\.safetensors"):  # mlx-lm reads every model*.safetensors
        check_weights(tmp_path, text_only=True)


def test_an_index_that_names_a_missing_shard_is_refused(tmp_path: Path) -> None:
    write_weights(tmp_path / "model-00001-of-00002.safetensors", "a.weight")
    write_index(tmp_path, a__weight="model-00001-of-00002.safetensors", b__weight="model-00002-of-00002.safetensors")
    with pytest.raises(ModelError, match=r"model-00002-of-00002\.safetensors"):
        check_weights(tmp_path)


def tokenizer(words: int, *added: str, kind: str = "BPE") -> dict[str, Any]:
    names = [f"word{number}" for number in range(words)]
    vocabulary: Any = (
        {name: number for number, name in enumerate(names)} if kind == "BPE" else [[n, 0.0] for n in names]
    )
    tokens = [{"id": words + number, "content": token} for number, token in enumerate(added)]
    return {"model": {"type": kind, "vocab": vocabulary}, "added_tokens": tokens}


def check(path: Path, settings: Mapping[str, Any] | None, **config: Any) -> None:
    write_weights(path / "model.safetensors", "language_model.model.embed_tokens.weight")
    check_tokens(path, config, settings)


@pytest.mark.parametrize("kind", ["BPE", "Unigram"])
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param((ROWS + 100, "<image>"), id="more tokens than the embedding has rows"),
        pytest.param((100, "<image>"), id="far fewer"),
    ],
)
def test_a_tokenizer_of_another_size_is_refused(tmp_path: Path, settings: tuple[int, str], kind: str) -> None:
    words, *added = settings
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        check(tmp_path, tokenizer(words, *added, kind=kind))


@pytest.mark.parametrize(
    "config",
    [
        {"image_token_id": 17},
        {"image_token_index": 17},
        {"eos_token_id": 17, "bos_token_id": 18},
        {"eos_token_id": [17, 18], "bos_token_id": 19},
    ],
)
def test_a_special_token_that_is_a_word_is_refused_with_its_key(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(config))):
        check(tmp_path, tokenizer(290, "<image>", "</s>"), **config)


@pytest.mark.parametrize(
    ("settings", "config"),
    [
        pytest.param(tokenizer(290, "<image>"), {"image_token_id": 290}, id="an added token"),
        pytest.param(tokenizer(250, "<image>"), {}, id="an embedding padded to more rows"),
        pytest.param(tokenizer(ROWS, "<image>"), {}, id="Gemma 3 1B: one token beyond the embedding"),
        pytest.param(tokenizer(290), {"image_token_index": -200}, id="LLaVA: no token of the tokenizer's"),
        pytest.param(tokenizer(290), {"image_token_id": 295}, id="added by the processor"),
        pytest.param(tokenizer(290, "</s>"), {"eos_token_id": [290, 17]}, id="one end is a marker"),
        pytest.param(tokenizer(290), {"text_config": {"eos_token_id": 290}}, id="a default of transformers"),
        pytest.param(tokenizer(290), {"eos_token_id": 17}, id="an end that is a word, and nothing else amiss"),
        pytest.param(tokenizer(290), {"eos_token_id": 2, "bos_token_id": 1}, id="defaults of transformers"),
        pytest.param(tokenizer(290), {"image_token_id": [17], "bos_token_id": {}}, id="no numbers"),
        pytest.param(None, {"eos_token_id": 1}, id="no tokenizer.json"),
        pytest.param({"model": {"vocab": None}, "added_tokens": "x"}, {"eos_token_id": 1}, id="nothing to compare"),
        pytest.param({"model": {"vocab": {"<0x0A>": 3}}}, {"eos_token_id": 3}, id="a marker among the words"),
    ],
)
def test_real_layouts_pass(tmp_path: Path, settings: Mapping[str, Any] | None, config: dict[str, Any]) -> None:
    if settings and settings["model"]["vocab"] == {"<0x0A>": 3}:
        settings["model"]["vocab"].update({f"w{number}": number for number in range(4, 290)})
    check(tmp_path, settings, **config)


def test_an_adapter_of_speech_or_vision_has_an_embedding_of_its_own(tmp_path: Path) -> None:
    write_weights(tmp_path / "audio.safetensors", "audio_tower.embed_tokens.weight", shape=(5000, 2))
    check(tmp_path, tokenizer(290, "<image>"))


def check_files(path: Path, settings: Mapping[str, Any], eos_token_id: object) -> None:
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "chat_template.jinja").write_text("{{ '<|turn|>' }}")
    check(path, tokenizer(290, "<|im_start|>", "<|im_end|>", "<|turn|>"), eos_token_id=eos_token_id)


@pytest.mark.parametrize(
    ("settings", "end", "token"),
    [
        pytest.param({"eos_token": "<|eot_id|>"}, 291, "eot_id", id="an end that the tokenizer lacks"),
        pytest.param({"eos_token": {"content": "<|eot_id|>"}}, 291, "eot_id", id="with its properties"),
        pytest.param({"eos_token": "<|im_end|>"}, 17, "word17", id="another end in config.json, a word"),
        pytest.param({"eos_token": "<|im_end|>"}, [290], "im_start", id="another end, the token that begins a turn"),
        pytest.param(
            {"added_tokens_decoder": {"17": {"content": "<|turn|>"}}},
            291,
            "turn",
            id="the template's token at a word's id",
        ),
    ],
)
def test_files_that_contradict_each_other_are_refused_with_the_token(
    tmp_path: Path, settings: Mapping[str, Any], end: object, token: str
) -> None:
    with pytest.raises(ModelError, match=token):
        check_files(tmp_path, settings, end)


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        pytest.param({"eos_token": "<|im_end|>"}, 291, id="the same end in both"),
        pytest.param({"eos_token": "<|im_end|>"}, 292, id="another special token"),
        pytest.param({"eos_token": "<|im_end|>"}, [291, 290], id="the token of a turn ends an answer too"),
        pytest.param({"eos_token": "<x>", "added_tokens_decoder": {"293": {"content": "<x>"}}}, 293, id="added behind"),
        pytest.param({"added_tokens_decoder": {"17": {"content": "<unused>"}}}, 291, id="a token not in use"),
        pytest.param({"eos_token": None, "added_tokens_decoder": None}, 17, id="nothing stated"),
    ],
)
def test_files_of_real_layouts_pass(tmp_path: Path, settings: Mapping[str, Any], end: object) -> None:
    check_files(tmp_path, settings, end)
