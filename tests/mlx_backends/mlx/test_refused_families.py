"""Families that are refused: mlx-vlm still has the fault that each is refused for. Where a test fails, have the family run."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import ModelError
from mlx_backends.engine_registry import load_backend
from mlx_backends.models.model_types import REFUSED
from tests.support.tiny_models.base import write_tokenizer


def tokenizer(folder: Path, *special: str) -> Any:
    from transformers import AutoTokenizer

    write_tokenizer(folder, ["<|endoftext|>", "<|im_end|>", *special], "", bos="<|endoftext|>", pad_token="<|im_end|>")
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def images(count: int) -> list[Any]:
    return [Image.new("RGB", (64, 64), (40 * number, 0, 0)) for number in range(count)]


@pytest.mark.parametrize("family", ["ernie4_5_moe_vl", "molmo", "molmo2", "moondream3", "phi4mm", "youtu_vl"])
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


def test_phi4mm_leaves_out_what_separates_the_tiles_of_an_image() -> None:
    model: Any = import_module("mlx_vlm.models.phi4mm.phi4mm").Model
    image = "model.embed_tokens_extend.image_embed"
    separators = {f"{image}.{name}": mx.zeros((1, 1, 4)) for name in ("glb_GN", "sub_GN")}
    holder = SimpleNamespace(config=SimpleNamespace(vision_lora=None, speech_lora=None), _remap_llm_key=lambda key: key)
    assert model.sanitize(holder, {**separators, "model.norm.weight": mx.zeros(4)}).keys() == {"model.norm.weight"}


def test_phi4mm_makes_no_tiles_of_a_large_image() -> None:
    processing: Any = import_module("mlx_vlm.models.phi4mm.processing_phi4mm")
    inputs = processing.Phi4MMImageProcessor()([Image.new("RGB", (900, 600))])
    assert inputs["spatial_shapes"].tolist() == [[42, 63]]  # patches of the whole image, once


def test_ernies_image_tokens_are_computed_as_texts() -> None:
    config: Any = import_module("mlx_vlm.models.ernie4_5_moe_vl.config")
    language: Any = import_module("mlx_vlm.models.ernie4_5_moe_vl.language")
    features: Any = import_module("mlx_vlm.models.base").InputEmbeddingsFeatures
    assert "token_type_ids" not in features(inputs_embeds=None).to_dict()  # all that a prompt's embeddings hand over
    text = config.TextConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        vocab_size=64,
        moe_num_experts=[4, 4],
        moe_intermediate_size=[32, 32],
        moe_layer_start_index=[0, 0],
        moe_layer_end_index=[0, 0],
        mrope_section=[3, 3, 2],
        freq_allocation=2,
    )
    model = language.LanguageModel(text, config.ModelConfig(text_config=text, vision_config=config.VisionConfig()))
    ids, image = mx.array([[5, 6, 7]]), mx.array([[0, 1, 0]])
    embeddings = mx.random.normal((1, 3, 32), key=mx.random.key(0))
    plain, routed = (model(ids, inputs_embeds=embeddings, **types).logits for types in ({}, {"token_type_ids": image}))
    assert not mx.allclose(plain, routed)


def test_youtu_vl_has_no_processor() -> None:
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    package = find_spec("mlx_vlm.models.youtu_vl")
    assert package is not None
    assert not [file for folder in package.submodule_search_locations or () for file in Path(folder).glob("process*")]
    assert "youtu_vl" not in PROCESSOR_MAPPING_NAMES


@pytest.mark.parametrize("family", ["ernie4_5_moe_vl", "phi4mm", "youtu_vl"])
def test_a_refused_family_is_named_with_its_reason(family: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family, "vision_config": {}}))
    mx.save_safetensors(str(tmp_path / "model.safetensors"), {"norm.weight": mx.zeros(4)})
    for name in ("tokenizer.json", "preprocessor_config.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelError) as refusal:
        load_backend(str(tmp_path), lambda medium: tmp_path / medium.name)
    assert f"is of type {family!r}, which is refused: {REFUSED[family]}. Choose another model." in str(refusal.value)
