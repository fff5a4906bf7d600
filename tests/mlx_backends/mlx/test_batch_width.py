"""Batch widths next to a model, from the arithmetic of real configurations on made-up machines."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlx_backends.models.memory_and_cache_sizes import batch_width, memory_fit, required_memory
from mlx_backends.models.metal_working_set import GIB, estimated_working_set
from mlx_backends.models.request_memory import cache_bytes, prefill_bytes

# The figures of the models' own config.json on the Hub.
_QWEN = {"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
QWEN_4B = {"text_config": {**_QWEN, "hidden_size": 2560, "intermediate_size": 9728, "vocab_size": 151936}}
QWEN_8B = {"text_config": {**_QWEN, "hidden_size": 4096, "intermediate_size": 12288, "vocab_size": 151936}}
GEMMA_4B = {
    "text_config": {
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "vocab_size": 262208,
        "sliding_window": 1024,
        "sliding_window_pattern": 6,
    }
}
PROMPT, ANSWER = 1500, 256
MACS = (8, 16, 32, 64)


def mac(gigabytes: int) -> dict[str, Any]:
    """A Mac's device information, with the working set that is published for its memory."""
    return {"max_recommended_working_set_size": max(1, estimated_working_set(gigabytes * GIB))}


@pytest.mark.parametrize(
    ("config", "weights", "widths"),
    [
        # 144 KiB a token, 1792 tokens; 186 MiB to read 512 of them
        (QWEN_4B, 3_100_000_000, (2, 17, 48, 111)),
        # the weights alone are more than the smallest machine has
        (QWEN_8B, 5_800_000_000, (1, 10, 40, 102)),
        # 5 layers of 1792 tokens and 29 of 1024; a vocabulary of 262,208
        (GEMMA_4B, 3_400_000_000, (1, 14, 41, 95)),
    ],
)
def test_width_follows_from_the_remaining_working_set(config: Any, weights: int, widths: tuple[int, ...]) -> None:
    assert tuple(batch_width(config, weights, PROMPT, ANSWER, mac(size), most=1000) for size in MACS) == widths
    assert tuple(batch_width(config, weights, PROMPT, ANSWER, mac(size), most=8) for size in MACS) == tuple(
        min(8, wide) for wide in widths
    )
    object_too = SimpleNamespace(text_config=SimpleNamespace(**config["text_config"]))
    assert batch_width(object_too, weights, PROMPT, ANSWER, mac(16), most=1000) == widths[1], (
        "a library's own configuration"
    )


def test_cache_size_counts_keys_and_values_in_steps() -> None:
    assert cache_bytes(QWEN_4B, 1) == cache_bytes(QWEN_4B, 256) == 2 * 36 * 8 * 128 * 2 * 256
    assert cache_bytes(QWEN_4B, 257) == 2 * 36 * 8 * 128 * 2 * 512
    assert cache_bytes({**QWEN_4B["text_config"]}, 256) == cache_bytes(QWEN_4B, 256), "a text-only model has no part"


def test_the_language_model_is_where_its_layers_are_counted() -> None:
    phi3 = {"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 3072, "vocab_size": 32064}
    part = SimpleNamespace(max_position_embeddings=4096)  # all that mlx-vlm puts there
    assert cache_bytes(SimpleNamespace(**phi3, text_config=part), 256) == 2 * 32 * 32 * 96 * 2 * 256


def test_latent_attention_has_keys_and_values_of_its_own_sizes() -> None:
    deepseek = {"num_hidden_layers": 27, "num_attention_heads": 16, "hidden_size": 2048}
    sizes = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    assert cache_bytes({"language_config": deepseek | sizes}, 256) == 27 * 16 * (192 + 128) * 2 * 256


def test_sliding_layers_hold_their_window_and_no_more() -> None:
    assert cache_bytes(GEMMA_4B, 1792) == 2 * 4 * 256 * 2 * (5 * 1792 + 29 * 1024)
    assert cache_bytes(GEMMA_4B, 512) == 2 * 4 * 256 * 2 * 34 * 512
    named = {**GEMMA_4B["text_config"], "layer_types": ["sliding_attention"] * 29 + ["full_attention"] * 5}
    assert cache_bytes({"text_config": named}, 1792) == cache_bytes(GEMMA_4B, 1792)


def test_shared_cache_layers_hold_nothing() -> None:
    kinds = ["conv", "conv", "full_attention"] * 6
    config = {"num_hidden_layers": 18, "num_attention_heads": 8, "hidden_size": 512, "layer_types": kinds}
    assert cache_bytes(config, 256) == 2 * 8 * 64 * 2 * 6 * 256
    assert cache_bytes({**config, "num_kv_shared_layers": 9}, 256) == 2 * 8 * 64 * 2 * 3 * 256


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("float16", 2), ("float32", 4), (None, 2), (7, 2)])
def test_cache_numbers_have_the_models_precision(dtype: object, size: int) -> None:
    config = {**QWEN_4B, "torch_dtype": dtype}
    assert cache_bytes(config, 256) == size * (cache_bytes(QWEN_4B, 256) or 0) // 2
    assert prefill_bytes(config, 512) == size * 512 * (151936 + 4 * 9728)


@pytest.mark.parametrize(
    "silent", [{}, {"text_config": {}}, {"num_hidden_layers": "36"}, {"num_hidden_layers": 36}, None]
)
def test_unknown_configuration_means_width_one(silent: Any) -> None:
    assert cache_bytes(silent, 100) is None
    assert batch_width(silent, GIB, PROMPT, ANSWER, mac(64), most=16) == 1


@given(
    weights=st.integers(0, 10**11),
    prompt=st.integers(1, 100_000),
    answer=st.integers(1, 10_000),
    memory=st.integers(1, 512),
    most=st.integers(1, 256),
)
def test_allowed_rows_fit_in_memory(weights: int, prompt: int, answer: int, memory: int, most: int) -> None:
    wide = batch_width(QWEN_4B, weights, prompt, answer, mac(memory), most=most)
    assert 1 <= wide <= most
    row = (cache_bytes(QWEN_4B, prompt + answer) or 0) + prefill_bytes(QWEN_4B, min(prompt, 512))
    have = memory_fit(weights, mac(memory)).available
    assert wide == 1 or required_memory(weights) + wide * row <= have
    assert wide == most or required_memory(weights) + (wide + 1) * row > have
    assert batch_width(QWEN_4B, weights, prompt, answer, mac(2 * memory), most=most) >= wide


def test_computed_cache_size_matches_a_real_model(tiny: Path) -> None:
    from mlx_vlm import load
    from mlx_vlm.models.cache import make_prompt_cache

    model, _ = load(str(tiny), trust_remote_code=False)
    import mlx.core as mx

    caches = make_prompt_cache(model.language_model)
    model.language_model(mx.arange(1, 301)[None] % 200, cache=caches)
    mx.eval([cache.state for cache in caches])
    held = sum(array.nbytes for cache in caches for array in (cache.keys, cache.values))
    config = json.loads((tiny / "config.json").read_text())
    assert held == cache_bytes(config, 300) == cache_bytes(model.config, 300)


@pytest.mark.parametrize(("bits", "share"), [(8, 17 / 32), (4, 9 / 32)])
def test_a_quantised_cache_takes_its_bits_and_a_scale_and_bias_for_64_numbers(bits: int, share: float) -> None:
    assert cache_bytes(QWEN_4B, 4096, bits) == share * (cache_bytes(QWEN_4B, 4096) or 0)
    # of Gemma 3, the 5 layers without a window
    full, windowed = 5 * 4096 * 4 * 512 * 2, 29 * 1024 * 4 * 512 * 2
    assert cache_bytes(GEMMA_4B, 4096, bits) == share * full + windowed


def test_more_requests_fit_with_a_quantised_cache_where_answers_are_long() -> None:
    widths = [
        batch_width(QWEN_4B, 3_100_000_000, PROMPT, 8192, mac(16), most=1000, prefill_tokens=64, kv_bits=bits)
        for bits in (None, 8, 4)
    ]
    assert widths == sorted(set(widths))
    # next to a single request, the scores of a long prompt can take what is left
    assert batch_width(QWEN_4B, 3_100_000_000, 10**6, 16, mac(16), most=8, kv_bits=4) == 1
