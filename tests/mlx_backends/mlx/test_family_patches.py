"""Faults of mlx-vlm in single families: each is there without its patch, and gone with it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx import nn
from mlx_vlm.models.cache import make_prompt_cache
from PIL import Image

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Text
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.mlx import mlx_load as loading
from mlx_backends.mlx.patches import apply_patch
from mlx_backends.mlx.patches.hunyuan_vl_positions import _with_image_numbers
from mlx_backends.mlx.patches.llama4_tiles import tiles_of
from mlx_backends.models import model_types
from tests.support import tiny_models
from tests.support.model_matrix import SEEN, Subject

PATCHES = (
    "fastvlm_several_images",
    "gemma3_image_attention",
    "gemma4_image_attention",
    "granite4_vision_gelu",
    "granite4_vision_layers",
    "granite4_vision_several_images",
    "hunyuan_vl_positions",
    "hunyuan_vl_resizing",
    "hunyuan_vl_several_images",
    "internvl_gelu",
    "llama4_batches",
    "llama4_gelu",
    "llama4_tiles",
    "llava_next_image_layout",
    "minicpmv4_6_gelu",
    "mllama_cross_attention",
    "paddleocr_vl_several_images",
    "zaya1_vl_inputs",
)


def loaded(family: str, folder: Path) -> Any:
    return loading.load(tiny_models.FAMILIES[family](folder / family))[0]


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_still_finds_its_fault(name: str) -> None:
    assert apply_patch(name), "delete the patch"


@pytest.mark.parametrize("patched", [True, False])
def test_a_token_of_gemma_3s_image_sees_the_whole_image(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded("gemma3", tmp_path)
    text = model.language_model.model
    if not patched:
        monkeypatch.setattr(type(text), "__call__", inspect.unwrap(type(text).__call__))
    image = text.image_token = model.config.image_token_index
    ids = mx.array([[5, 6, *[image] * 4, 7, 8, *[image] * 4, 9]])
    embeddings = np.random.default_rng(0).standard_normal((1, ids.shape[1], 64)).astype(np.float32)

    def hidden(changed: int) -> Any:
        other = embeddings.copy()
        other[:, changed] += 1
        cache = make_prompt_cache(model.language_model)
        return np.array(text(ids, mx.array(other), cache=cache))[0]

    first, last, behind, next_image = hidden(2), hidden(5), hidden(7), hidden(8)
    base = hidden(ids.shape[1] - 1)
    assert (np.abs(last[2] - base[2]).max() > 1e-3) == patched
    assert np.abs(first[5] - base[5]).max() > 1e-3
    assert np.abs(behind[:7] - base[:7]).max() < 1e-6  # text stays causal
    assert np.abs(next_image[:8] - base[:8]).max() < 1e-6  # and no image sees the next one


def test_gemma_3_reads_a_cached_prefix_as_a_whole_prompt(tmp_path: Path) -> None:
    model = loaded("gemma3", tmp_path)
    text = model.language_model.model
    image = text.image_token = model.config.image_token_index
    ids = mx.array([[*range(10, 40), *[image] * 4, 7, 8, *[image] * 4, 9]])
    embeddings = mx.random.normal((1, ids.shape[1], 64), key=mx.random.key(0))
    whole = np.array(text(ids, mx.array(embeddings), cache=make_prompt_cache(model.language_model)))[0]
    cache = make_prompt_cache(model.language_model)
    parts = [text(ids[:, a:b], embeddings[:, a:b], cache=cache) for a, b in [(0, 36), (36, 40), (40, 41)]]
    np.testing.assert_allclose(np.concatenate([np.array(part)[0] for part in parts]), whole, atol=2e-4)


@pytest.mark.parametrize("patched", [True, False])
def test_gemma_4_reads_a_cached_prefix_as_a_whole_prompt(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = loaded("gemma4_unified", tmp_path).language_model.model
    name = "_apply_blockwise_bidirectional_overlay"
    if not patched:
        fresh: Any = load_apart("mlx_vlm.models.gemma4.language")
        monkeypatch.setattr(type(text), name, getattr(fresh.Gemma4TextModel, name))
    types = mx.array([[0] * 30 + [1] * 4 + [0] * 2 + [1] * 4 + [0]])
    embeddings = mx.random.normal((1, types.shape[1], 64), key=mx.random.key(0))

    def read(*pieces: tuple[int, int]) -> Any:
        cache = make_prompt_cache(text)
        parts = [
            text(None, embeddings[:, a:b], cache=cache, mm_token_type_ids=types[:, a:b], logits_to_keep=None)
            for a, b in pieces
        ]
        return np.concatenate([np.array(part)[0] for part in parts])

    whole, parts = read((0, 41)), read((0, 36), (36, 40), (40, 41))
    assert np.allclose(parts, whole, atol=2e-4) == patched


@pytest.mark.parametrize("patched", [True, False])
def test_llava_next_lays_out_every_image_row_by_row(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlx_vlm.utils import prepare_inputs

    model, processor = loading.load(tiny_models.llava_next(tmp_path / "llava_next"))
    if not patched:
        monkeypatch.setattr(type(model), "get_input_embeddings", inspect.unwrap(type(model).get_input_embeddings))
    images = [Image.fromarray(np.full((150, width, 3), 90, np.uint8)) for width in (150, 300)]
    inputs = prepare_inputs(processor, images=images, prompts="One <image> two <image> Why?")
    ids, pixels = inputs["input_ids"], inputs["pixel_values"]
    rows = np.array(model.get_input_embeddings(ids, pixels, image_sizes=inputs["image_sizes"]).inputs_embeds)[0]
    is_newline = (rows == np.array(model.image_newline)).all(-1)
    is_image = np.array(ids)[0] == model.config.image_token_index
    assert (len(rows) == ids.shape[1]) == patched
    if patched:  # 4 x 4 patches of the whole image, then eight rows of its tiles, eight or sixteen patches wide
        first, second = np.flatnonzero(is_image)[[0, 16 + 8 * 9]]
        places = [first + 16 + 9 * row + 8 for row in range(8)] + [second + 16 + 17 * row + 16 for row in range(8)]
        assert np.flatnonzero(is_newline).tolist() == places
        assert is_image.sum() == 16 + 8 * 9 + 16 + 8 * 17


@pytest.mark.parametrize("patched", [True, False])
def test_llama_3_2_vision_reads_texts_without_cross_attention(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded("mllama", tmp_path).language_model
    layer = model.model.layers[1]
    if not patched:
        monkeypatch.setattr(type(layer), "__call__", inspect.unwrap(type(layer).__call__))
    ids = mx.array([[5, 6, 7, 8]])
    before = np.array(model(ids, cache=make_prompt_cache(model)).logits)
    layer.cross_attn_mlp_gate = layer.cross_attn_mlp_gate + 1
    assert np.array_equal(np.array(model(ids, cache=make_prompt_cache(model)).logits), before) == patched


@pytest.mark.parametrize("patched", [True, False])
def test_llama_3_2_visions_answer_attends_to_no_padding(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded("mllama", tmp_path).language_model
    if not patched:
        monkeypatch.setattr(type(model), "__call__", inspect.unwrap(type(model).__call__))
    states, mask = mx.random.normal((1, 8, 64), key=mx.random.key(0)), mx.ones((1, 1, 3, 8))
    mask[..., 5:] = -1e9
    output = model(
        mx.array([[5, 6, 7]]),
        cache=make_prompt_cache(model),
        cross_attention_states=states,
        cross_attention_mask=mask,
    )
    assert output.cross_attention_states.shape[1] == (5 if patched else 8)


def load_apart(name: str) -> Any:
    """Return a copy of a module that no patch has touched."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_prompt_of_gemma_3_with_an_image_begins_with_one_bos_token(tmp_path: Path) -> None:
    subject = Subject("gemma3", tmp_path)
    probe = subject.backend.probe(subject._asked(subject.noise(1), Text("Why?")), [])
    bos = subject.backend._tokenizer.bos_token_id
    subject.close()
    assert probe.token_ids[0] == bos
    assert probe.token_ids.count(bos) == 1


@pytest.fixture
def fastvlm(tmp_path: Path) -> Iterator[Any]:
    with import_module("tests.support.tiny_models.fastvlm").shrunk():
        yield loaded("fastvlm", tmp_path)


@pytest.mark.parametrize("patched", [True, False])
def test_fastvlm_keeps_texts_between_images_in_place(
    fastvlm: Any, patched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    combine = type(fastvlm).prepare_inputs_for_multimodal
    monkeypatch.setattr(type(fastvlm), "prepare_inputs_for_multimodal", combine if patched else inspect.unwrap(combine))
    images = mx.stack([mx.full((2, 64), 100.0), mx.full((2, 64), 200.0), mx.full((2, 64), 300.0)])
    ids = mx.array([[5, -200, 6, 7, -200, 8, 9, -200, 10]])
    mixed = np.array(fastvlm.prepare_inputs_for_multimodal(images, ids, mx.ones(ids.shape, mx.int32)))[0]
    texts = np.array(fastvlm.language_model.model.embed_tokens(mx.array([5, 6, 7, 8, 9, 10])))
    one, two, three = (np.array(image) for image in images)
    expected = np.concatenate([texts[:1], one, texts[1:3], two, texts[3:5], three, texts[5:]])
    assert (mixed.shape == expected.shape and np.array_equal(mixed, expected)) == patched


def test_internvl_takes_the_exact_gelu(tmp_path: Path) -> None:
    model = loaded("internvl", tmp_path)
    values = mx.linspace(-3, 3, 101)
    parts = [module for _, module in model.named_modules() if isinstance(module, nn.GELU)]
    assert len(parts) == 3  # of two layers and the projector
    assert all(mx.array_equal(part(values), nn.gelu(values)) for part in parts)


@pytest.mark.parametrize("patched", [True, False])
def test_minicpm_v_takes_the_exact_gelu_in_its_merger(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not patched:
        block: Any = import_module("mlx_vlm.models.minicpmv4_6.minicpmv4_6").MergerBlock
        monkeypatch.setattr(block, "__init__", inspect.unwrap(block.__init__))
        monkeypatch.setattr(loading, "apply_patches", lambda _: None)
    model = loaded("minicpmv4_6", tmp_path)
    values = mx.linspace(-3, 3, 101)
    exact = [mx.array_equal(block.act(values), nn.gelu(values)).item() for block in model.merger.mlp]
    assert exact == [patched]


def test_minicpm_v_reads_no_parentheses_and_every_slice_of_an_image(tmp_path: Path) -> None:
    subject = Subject("minicpmv4_6", tmp_path)
    requests = [
        subject._asked(*[subject.noise(n, *size) for n, size in enumerate(sizes)], Text("Why?"))
        for sizes in ([(64, 64)], [(300, 150)], [(300, 150), (64, 64)])
    ]
    probes = [subject.backend.probe(request, []) for request in requests]
    prompts = [subject.backend._tokenizer.decode(probe.token_ids) for probe in probes]
    subject.close()
    assert [prompt.count("<slice>") for prompt in prompts] == [0, 3, 3]
    assert [prompt.count("<image>") for prompt in prompts] == [1, 1, 2]
    assert not any("(" in prompt for prompt in prompts)
    assert all(len(probe.pixels) == 1 for probe in probes)  # of all slices, which have several sizes


GRANITE = ("granite4_vision.Model", "language.Granite", "vision.MLP")


@pytest.fixture
def unpatched_granite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the patches of Granite Vision 4 for a test, which applies those that it needs."""
    for name in GRANITE:
        module, owner = name.split(".")
        holder = getattr(import_module(f"mlx_vlm.models.granite4_vision.{module}"), owner)
        for attribute in ("__init__", "__call__", "get_input_embeddings", "_pack_and_unpad_image_features"):
            if hasattr(holder, attribute):
                monkeypatch.setattr(holder, attribute, inspect.unwrap(getattr(holder, attribute)))


def granite(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Subject:
    """Return a tiny Granite Vision 4, with the patches of these names alone."""
    monkeypatch.setattr(loading, "apply_patches", lambda _: None)
    for name in names:
        apply_patch(f"granite4_vision_{name}")
    return Subject("granite4_vision", folder)


@pytest.mark.usefixtures("unpatched_granite")
@pytest.mark.parametrize(("names", "seen"), [((), False), (("several_images",), True)])
def test_granite_vision_4_sees_each_of_several_images(
    names: tuple[str, ...], seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = granite(tmp_path, monkeypatch, *names)
    result = subject.three_images()
    subject.close()
    assert (result == "yes") == seen


@pytest.mark.slow
@pytest.mark.usefixtures("unpatched_granite")
@pytest.mark.parametrize("patched", [True, False])
def test_granite_vision_4_reads_images_in_batches_and_behind_a_prefix(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = granite(tmp_path, monkeypatch, "several_images", *["layers"] * patched)
    results = [subject.measure("batch of 4"), subject.measure("prefix reuse")]
    rows = [subject.backend.image_rows(subject._asked(subject.noise(n), Text("Why?"))) for n in (1, 2)]
    subject.close()
    assert (results == ["yes", "yes"]) == patched
    assert bool(np.any(rows[0] != rows[1])) == patched  # which the sight check compares


@pytest.mark.usefixtures("unpatched_granite")
@pytest.mark.parametrize("patched", [True, False])
def test_granite_vision_4_takes_the_gelu_by_tanh(
    patched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = granite(tmp_path, monkeypatch, *["gelu"] * patched)
    values = mx.linspace(-3, 3, 101)
    layers = subject.backend._model.vision_tower.vision_model.encoder.layers
    exact = [mx.array_equal(layer.mlp.activation_fn(values), nn.gelu_approx(values)).item() for layer in layers]
    subject.close()
    assert exact == [patched] * 4


def test_granite_vision_is_refused_as_long_as_it_sees_one_image_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_models.granite_vision(tmp_path / "granite")
    with pytest.raises(ModelError, match="granite_vision"):
        load_backend(str(folder), lambda medium: tmp_path / medium.name)
    monkeypatch.setattr(model_types, "REFUSED", {})
    monkeypatch.setitem(tiny_models.FAMILIES, "granite_vision", lambda _: folder)
    subject = Subject("granite_vision", tmp_path / "subject")
    a, b, c = map(subject.noise, range(3))
    logits, other = (subject._logits(subject._asked(a, Text(" and "), image, Text(" Which?"))) for image in (b, c))
    subject.close()
    assert subject._change(logits, other) < SEEN, "it sees the second image now: have it run"


def test_repairs_that_change_answers_are_part_of_the_engine(tmp_path: Path) -> None:
    repaired = describe(str(tiny_models.gemma3(tmp_path / "gemma3")))
    assert repaired.versions["patches"] == "gemma3_image_attention,one_bos"
    assert "patches" not in describe(str(tiny_models.lfm2_vl(tmp_path / "lfm2_vl"))).versions


@pytest.mark.parametrize(
    ("size", "grid", "most"),
    [((50, 50), (1, 1), 16), ((300, 150), (3, 6), 18), ((300, 150), (2, 4), 8), ((56, 600), (8, 1), 8)],
)
def test_llama_4_gets_whole_tiles_and_the_whole_image(size: tuple[int, int], grid: tuple[int, int], most: int) -> None:
    image = Image.new("RGB", size, "white")
    tiles, placed = tiles_of(image, 56, most)
    assert placed == grid
    assert len(tiles) == grid[0] * grid[1] + (grid != (1, 1))
    assert {tile.size for tile in tiles} == {(56, 56)}
    assert tiles[-1].getextrema() == ((255, 255),) * 3  # not padded


def test_llama_4_reads_a_row_behind_padding_as_alone(tmp_path: Path) -> None:
    """Rows of 60 and 41 tokens, whose chunks of 16 and scales of attention begin at other places."""
    model = loaded("llama4", tmp_path).language_model
    rows = [mx.random.randint(5, 200, (1, length), key=mx.random.key(length)) for length in (60, 41)]
    alone = [np.array(model(row).logits)[0, -1] for row in rows]
    caches = [make_prompt_cache(model) for _ in rows]
    for row, cache in zip(rows, caches, strict=True):
        model(row[:, :-1], cache=cache)
    joined = [type(entries[0]).merge(list(entries)) for entries in zip(*caches, strict=True)]
    batched = np.array(model(mx.concatenate([row[:, -1:] for row in rows]), cache=joined).logits)[:, -1]
    np.testing.assert_allclose(batched, np.stack(alone), atol=1e-4)


def test_hunyuan_numbers_the_images_of_a_prompt() -> None:
    places = mx.arange(8)
    inside = mx.array([0, 1, 1, 0, 0, 1, 0, 0])
    positions = mx.stack([places, places, places, mx.where(inside, 0, places)], axis=-1)[None]
    assert _with_image_numbers(positions)[0, :, -1].tolist() == [0, 0, 0, 3, 4, 1, 6, 7]


@pytest.mark.slow
def test_a_token_of_hunyuans_image_keeps_its_position_in_a_second_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject("hunyuan_vl", tmp_path)
    request = subject._asked(Text("Look: "), subject.noise(1, 160, 160), Text(" What?"))
    whole = subject._logits(request)
    monkeypatch.setattr("mlx_backends.mlx.kv_quantization.PREFILL_TOKENS", 16)
    pieces = subject._logits(request)
    subject.close()
    assert subject._change(whole, pieces) < SEEN


@pytest.mark.slow
@pytest.mark.parametrize("family", ["glm4v", "glm4v_moe", "paddleocr_vl"])
def test_rows_of_a_batch_need_the_positions_that_a_model_remembers(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlx_backends.mlx.prompt_reading.remembered_positions", lambda *_: {})
    subject = Subject(family, tmp_path)
    result = subject.measure("batch of 4")
    subject.close()
    assert result.startswith("no: in a batch, the logits of")
