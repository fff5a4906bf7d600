"""The patches of mlx-vlm for types of models: each is needed by the installed version, right, and made once."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from PIL import Image

from mlx_backends.mlx.mlx_load import load
from mlx_backends.mlx.patches import apply_patches
from tests.support import tiny_models
from tests.support.model_matrix import shrunk

PATCHED = {
    "deepseek_vl_v2_positions": "deepseek_vl_v2.language.DeepseekV2Attention.__init__",
    "deepseek_vl_v2_tiles": "deepseek_vl_v2.deepseek_vl_v2.Model.get_input_embeddings",
    "gemma3n_embeddings": "gemma3n.gemma3n.Model.get_input_embeddings",
    "gemma3n_shared_positions": "gemma3n.language.Gemma3nAttention.__call__",
    "llava_image_arguments": "llava.processing_llava.LlavaProcessor.__call__",
    "llava_onevision_several_images": "llava_onevision.processing_llava_onevision.LlavaOnevisionProcessor.__call__",
    "phi3_v_dropped_tokens": "phi3_v.processing_phi3_v.Phi3VProcessor._convert_images_texts_to_inputs",
    "phi3_v_proportions": "phi3_v.processing_phi3_v._hd_transform",
    "phi3_v_tile_order": "phi3_v.vision.VisionModel.__call__",
}
"""The names that each patch replaces in ``mlx_vlm.models``; test_family_patches.py has the others."""
NAMES = sorted(PATCHED)


def owner(name: str) -> tuple[Any, str]:
    """Return the class or module that a patch changes, and the name of what it replaces there."""
    family, module, *place, attribute = PATCHED[name].split(".")
    holder: Any = import_module(f"mlx_vlm.models.{family}.{module}")
    for part in place:
        holder = getattr(holder, part)
    return holder, attribute


@pytest.fixture(autouse=True)
def unpatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo all patches for a test."""
    for name in PATCHED:
        holder, attribute = owner(name)
        monkeypatch.setattr(holder, attribute, inspect.unwrap(getattr(holder, attribute)))


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_is_needed_and_made_once(name: str) -> None:
    apply: Any = import_module(f"mlx_backends.mlx.patches.{name}").apply_patch
    holder, attribute = owner(name)
    before = getattr(holder, attribute)
    assert apply(), f"mlx-vlm is right without it: delete mlx_backends/mlx/patches/{name}.py and its test"
    after = getattr(holder, attribute)
    assert after is not before
    assert apply()
    assert getattr(holder, attribute) is after


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_leaves_what_is_already_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = import_module(f"mlx_backends.mlx.patches.{name}")
    monkeypatch.setattr(module, "_FAULT", "a line that is not in the source")
    holder, attribute = owner(name)
    before = getattr(holder, attribute)
    assert not module.apply_patch()
    assert getattr(holder, attribute) is before


def apply(name: str) -> None:
    """Apply one patch."""
    import_module(f"mlx_backends.mlx.patches.{name}").apply_patch()


def noise(width: int, height: int, seed: int = 0) -> Any:
    """Return an image of random pixels."""
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_deepseek_vl2_reads_no_image_size_beyond_the_last() -> None:
    seen: list[Any] = []

    def embed(model: Any, ids: Any, pixels: Any, sizes: Any, mask: Any) -> None:
        seen.append(sizes)

    patched: Any = import_module("mlx_backends.mlx.patches.deepseek_vl_v2_tiles")._patched(embed)
    patched(None, mx.zeros((1, 4)), mx.zeros((1, 5, 3, 28, 28)), mx.array([[[2, 1]]]), None)
    assert seen[0].tolist() == [[[2, 1], [0, 0], [0, 0], [0, 0], [0, 0]]]


def test_deepseek_vl2_rotates_neighbouring_dimensions() -> None:
    holder, _ = owner("deepseek_vl_v2_positions")
    config: Any = import_module("mlx_vlm.models.deepseek_vl_v2.config").TextConfig(
        hidden_size=32, num_attention_heads=2, kv_lora_rank=8, q_lora_rank=None, qk_rope_head_dim=8
    )
    vectors = np.random.default_rng(0).standard_normal((1, 1, 3, 8)).astype(np.float32)
    angles = np.arange(3)[:, None] * config.rope_theta ** (-np.arange(4) / 4)
    rotated = (vectors[..., ::2] + 1j * vectors[..., 1::2]) * np.exp(1j * angles)
    expected = np.stack([rotated.real, rotated.imag], axis=-1).reshape(vectors.shape)
    assert np.abs(np.array(holder(config).rope(mx.array(vectors))) - expected).max() > 0.1
    apply("deepseek_vl_v2_positions")
    assert np.abs(np.array(holder(config).rope(mx.array(vectors))) - expected).max() < 1e-5


@pytest.mark.parametrize("patched", [True, False])
def test_llava_onevision_sees_each_of_several_images_once(patched: bool, tmp_path: Path) -> None:
    from mlx_vlm import load as load_vlm

    loaded: Any = load_vlm(str(tiny_models.llava_onevision(tmp_path / "model")))
    model, processor = loaded
    if patched:
        apply("llava_onevision_several_images")

    def image_tokens(*images: Any) -> int:
        inputs = dict(processor(images=list(images), text=["<image>" * len(images) + "Why?"]))
        assert mx.isfinite(model.get_input_embeddings(**inputs).inputs_embeds).all()
        return int((inputs["input_ids"] == model.config.image_token_index).sum())

    small, wide = noise(64, 64), noise(120, 40)
    assert image_tokens(small) > 40  # nine patches of the whole, its tiles, and newlines
    assert (image_tokens(small, wide) == 2 * (9 + 1)) == patched
    assert (image_tokens(small, wide) == image_tokens(small) + image_tokens(wide)) != patched


def gemma3n(folder: Path) -> tuple[Any, Any]:
    """Return a tiny Gemma 3n, not patched, and the tokens of a prompt."""
    from mlx_vlm import load as load_vlm

    with shrunk("gemma3n"):
        model: Any = load_vlm(str(tiny_models.gemma3n(folder)))[0]
    return model, mx.array([[7 * n % 300 for n in range(24)]])


def read(model: Any, ids: Any, pieces: list[int]) -> Any:
    """Return the logits of a prompt that is read in pieces of these lengths."""
    from mlx_vlm.models.cache import make_prompt_cache

    embedded = model.get_input_embeddings(ids).to_dict()
    cache, logits, start = make_prompt_cache(model.language_model), [], 0
    for length in pieces:
        piece = {name: embedded[name][:, start : start + length] for name in ("inputs_embeds", "per_layer_inputs")}
        logits.append(model.language_model(ids[:, start : start + length], cache=cache, **piece).logits[0])
        start += length
    return np.array(mx.concatenate(logits))


def test_gemma3n_reads_a_prompt_as_it_reads_its_own_answer(tmp_path: Path) -> None:
    from mlx_vlm.models.cache import make_prompt_cache

    model, ids = gemma3n(tmp_path / "model")
    own = np.array(model.language_model(ids, cache=make_prompt_cache(model.language_model)).logits[0])
    assert np.abs(read(model, ids, [24]) - own).max() > 0.1 * own.std()
    apply("gemma3n_embeddings")
    assert np.abs(read(model, ids, [24]) - own).max() < 1e-4 * own.std()


def test_gemma3n_reads_a_prompt_in_pieces_as_in_one(tmp_path: Path) -> None:
    model, ids = gemma3n(tmp_path / "model")
    whole = read(model, ids, [24])
    assert np.abs(read(model, ids, [12, 12]) - whole).max() > 0.1 * whole.std()
    apply("gemma3n_shared_positions")
    whole = read(model, ids, [24])
    for pieces in ([12, 12], [1] * 24, [23, 1]):
        assert np.abs(read(model, ids, pieces) - whole).max() < 1e-4 * whole.std()


def test_llava_takes_images(tmp_path: Path) -> None:
    from mlx_vlm.utils import prepare_inputs

    _, processor = load(tiny_models.llava(tmp_path / "model"))
    holder, attribute = owner("llava_image_arguments")
    setattr(holder, attribute, inspect.unwrap(getattr(holder, attribute)))
    with pytest.raises(Exception, match="padding"):
        prepare_inputs(processor, images=[noise(64, 64)], prompts="<image> what?")
    apply("llava_image_arguments")
    inputs = prepare_inputs(processor, images=[noise(64, 64)], prompts="<image> what?")
    assert inputs["pixel_values"].shape == (1, 3, 56, 56)


def test_phi3_keeps_what_follows_an_image(tmp_path: Path) -> None:
    with shrunk("phi3_v"):
        _, processor = load(tiny_models.phi3_v(tmp_path / "model"))
    text = "<|user|>\n<|image_1|>What is it?<|end|>\n"
    after = processor.tokenizer.encode("What is it?<|end|>\n", add_special_tokens=False)
    holder, attribute = owner("phi3_v_dropped_tokens")
    setattr(holder, attribute, inspect.unwrap(getattr(holder, attribute)))

    def last_tokens() -> list[int]:
        ids: list[int] = processor(images=[noise(64, 64)], text=text)["input_ids"][0].tolist()
        return [token for token in ids[ids.index(-1) :] if token >= 0]

    assert last_tokens() == after[1:]
    apply("phi3_v_dropped_tokens")
    assert last_tokens() == after


def test_phi3_puts_tiles_beside_each_other() -> None:
    rows, columns, side = 2, 3, 12
    holder, _ = owner("phi3_v_tile_order")
    values = np.arange((rows * columns + 1) * 24 * 24, dtype=np.float32).reshape(-1, 24 * 24, 1)
    features = mx.array(np.concatenate([np.zeros((len(values), 1, 1), np.float32), values], axis=1))
    encoder = SimpleNamespace(
        image_dim_out=1,
        sub_GN=mx.full((1, 1, 1, 4), -2.0),
        glb_GN=mx.full((1, 1, 4), -1.0),
        img_projection=[],
        img_processor=SimpleNamespace(vision_model=lambda *_: (None, None, [features, None])),
    )
    tiles = values[1:].reshape(rows, columns, side, 2, side, 2)
    expected = tiles.transpose(0, 2, 1, 4, 3, 5).reshape(rows * side, columns * side, 4)  # row, column, 2 by 2 patches
    count = (rows * columns + 1) * side * side + 1 + (rows + 1) * side
    arguments = (mx.zeros((1, rows * columns + 1, 1, 1, 1)), mx.zeros((1, count + 3, 4)))
    places = mx.array([[rows * 336, columns * 336]]), [[0, 2 + number] for number in range(count)]

    def picture() -> Any:
        tokens = np.array(holder.__call__(encoder, *arguments, *places))[0, 2 : 2 + rows * side * (columns * side + 1)]
        return tokens.reshape(rows * side, columns * side + 1, 4)

    assert not np.array_equal(picture()[:, :-1], expected)
    apply("phi3_v_tile_order")
    assert np.array_equal(picture()[:, :-1], expected)
    assert (picture()[:, -1] == -2).all()


def test_phi3_keeps_the_proportions_of_images() -> None:
    processing, _ = owner("phi3_v_proportions")
    black = Image.new("RGB", (300, 100))

    def share_of_black(image: Any) -> float:
        return float((np.array(processing._hd_transform(image, 4)) == 0).mean())

    assert share_of_black(black) == 1
    apply("phi3_v_proportions")
    for image in (black, black.transpose(Image.Transpose.TRANSPOSE)):
        picture = processing._hd_transform(image, 4)
        assert picture.size in {(1008, 336), (336, 1008)}
        assert share_of_black(image) == 1
    wide = processing._hd_transform(Image.new("RGB", (500, 100)), 4)
    assert wide.size == (1344, 336)
    rows = (np.array(wide) == 0).all(axis=(1, 2))
    assert (rows.sum(), rows[:33].any(), rows[34:301].all()) == (268, False, True)


def test_no_other_type_is_patched() -> None:
    apply_patches("qwen3_vl")
    for name in PATCHED:
        holder, attribute = owner(name)
        assert not hasattr(getattr(holder, attribute), "__wrapped__")
