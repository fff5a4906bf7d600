"""Families that are refused: mlx-vlm still has the fault that each is refused for. Where a test fails, have the family run."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from PIL import Image

from mlx_backends.models.model_types import REFUSED
from tests.support.tiny_models.base import write_tokenizer


def tokenizer(folder: Path, *special: str) -> Any:
    from transformers import AutoTokenizer

    write_tokenizer(folder, ["<|endoftext|>", "<|im_end|>", *special], "", bos="<|endoftext|>", pad_token="<|im_end|>")
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def images(count: int) -> list[Any]:
    return [Image.new("RGB", (64, 64), (40 * number, 0, 0)) for number in range(count)]


@pytest.mark.parametrize("family", ["molmo", "molmo2", "moondream3"])
def test_a_family_is_refused(family: str) -> None:
    assert family in REFUSED


def test_molmo_makes_two_prompts_of_two_images(tmp_path: Path) -> None:
    module: Any = import_module("mlx_vlm.models.molmo.processing_molmo")
    marks = ["<im_patch>", "<im_col>", "<im_start>", "<im_end>", "<|image|>"]
    processor = object.__new__(module.MolmoProcessor)
    processor.image_processor, processor.tokenizer = module.MolmoImageProcessor(), tokenizer(tmp_path / "t", *marks)
    processor.image_patch_token, processor.image_col_token, processor.image_start_token, processor.image_end_token = (
        marks[:4]
    )
    ids = processor(images=images(2), text="First <|image|> then <|image|>.")["input_ids"]
    assert ids.shape[0] == 2
    assert ids[0, 0] == processor.tokenizer.convert_tokens_to_ids("<im_start>")  # before the text and its first token


def test_molmo2s_image_tokens_see_only_those_before_them() -> None:
    config: Any = import_module("mlx_vlm.models.molmo2.config")
    text = config.TextConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
    )
    model: Any = import_module("mlx_vlm.models.molmo2.language").LanguageModel(
        text, config.ModelConfig(text_config=text)
    )
    image = model.config.image_patch_id
    ids = mx.array([[5, image, image, image, 6]])
    embeddings = np.random.default_rng(0).standard_normal((1, 5, 32)).astype(np.float32)
    other = embeddings.copy()
    other[:, 3] += 1  # the last token of the image
    before, after = (np.array(model.model(ids, mx.array(values))[0]) for values in (embeddings, other))
    assert np.array_equal(before[:3], after[:3])


def test_moondream3_puts_an_image_before_the_whole_prompt(tmp_path: Path) -> None:
    module: Any = import_module("mlx_vlm.models.moondream3.processing_moondream3")
    processor = module.Moondream3Processor(tokenizer(tmp_path / "t", "<a>", "<b>"))
    one, two = (processor(images=images(count), text="First this. Why?")["input_ids"][0].tolist() for count in (1, 2))
    assert one == two
    assert one[1 : 1 + module.NUM_VISION_TOKENS] == [0] * module.NUM_VISION_TOKENS
