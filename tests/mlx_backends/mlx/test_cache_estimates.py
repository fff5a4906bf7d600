"""The estimate of a key-value cache against the bytes that mlx-vlm allocates, for every family of the matrix."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mlx_backends.mlx.activation_type import record_dtype
from mlx_backends.mlx.patches import apply_patches
from mlx_backends.models.request_memory import cache_bytes, element_bytes
from tests.support.model_matrix import shrunk
from tests.support.tiny_models import FAMILIES

READ = 512
SHORT, LONG = 512, 2048
LISTS = ("layer_types", "intermediate_size", "activation_sparsity_pattern")
"""Settings of Gemma's and other language models that have a value for each layer."""


def text_part(config: dict[str, Any]) -> dict[str, Any]:
    parts = (config.get(key, {}) for key in ("text_config", "llm_config", "language_config"))
    return next((part for part in parts if part.get("num_hidden_layers")), config)


def sizes(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the configuration at three sizes: as it is, deeper, and deeper with as many key-value heads as it can have."""
    configs = [copy.deepcopy(config) for _ in range(3)]
    for depth, changed in enumerate(configs, 1):
        text = text_part(changed)
        text["num_hidden_layers"] *= depth
        text |= {name: text[name] * depth for name in LISTS if isinstance(text.get(name), list)}
        if "global_head_dim" in text and depth > 1:
            text |= {"global_head_dim": 64, "attention_k_eq_v": depth == 3, "num_global_key_value_heads": 1}
        if depth == 3:
            names = {"num_key_value_heads", "num_query_groups"} & text.keys()  # ZAYA1 has both
            text |= dict.fromkeys(names, text["num_attention_heads"])
    return configs


def loaded(config: dict[str, Any]) -> Any:
    from mlx_vlm.utils import get_model_and_args, update_module_configs

    apply_patches(config["model_type"])
    module, _ = get_model_and_args(config)
    own = copy.deepcopy(config) | {"text_config": copy.deepcopy(config.get("text_config", {}))}
    parts = ["text", "vision", "audio"]
    model = module.Model(update_module_configs(module.ModelConfig.from_dict(own), module, own, parts))
    record_dtype(model)
    return model


def allocated(model: Any, tokens: int) -> int:
    """Return the bytes of a cache's arrays after a prompt of ``tokens`` tokens."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_vlm.models.cache import make_prompt_cache

    caches = make_prompt_cache(model.language_model)
    ids = mx.array([[5 + number % 200 for number in range(tokens)]])
    if hasattr(model, "_set_position_state"):  # MiniCPM-o's language model gets its positions from the whole model
        model._set_position_state(ids)
    for first in range(0, tokens, READ):
        mx.eval(model.language_model(ids[:, first : first + READ], cache=caches).logits)
    parts = [part for cache in caches for part in getattr(cache, "caches", [cache])]  # a CacheList holds several
    arrays = [array for part in parts for _, array in tree_flatten(list(vars(part).values()))]
    return sum(array.nbytes for array in arrays if isinstance(array, mx.array))


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_estimate_grows_as_the_cache_does(family: str, tmp_path: Path) -> None:
    with shrunk(family):
        config = json.loads((FAMILIES[family](tmp_path / family) / "config.json").read_text())
        for sized in sizes(config | {"dtype": "float32"}):
            model = loaded(sized)
            growth = allocated(model, LONG) - allocated(model, SHORT)
            for known in (sized, model.config):  # before it is loaded, and afterwards
                short, long = (cache_bytes(known, tokens, read=READ) for tokens in (SHORT, LONG))
                assert short is not None
                assert long is not None
                assert long - short == pytest.approx(growth, rel=0.1)


GEMMA4 = {
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "num_kv_shared_layers": 0,  # mlx-vlm's default is 20
    "sliding_window": 512,
}
QWEN3_5 = {"num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 256}


@pytest.mark.parametrize(
    ("model_type", "text", "expected"),
    [
        ("gemma4", GEMMA4, 5 * 512 * 4 * 256 * 4 + 4096 * 1 * 512 * 4),
        ("gemma4", GEMMA4 | {"attention_k_eq_v": False}, 5 * 512 * 4 * 256 * 4 + 4096 * 4 * 512 * 4),
        ("gemma4", GEMMA4 | {"num_kv_shared_layers": 5}, 512 * 4 * 256 * 4),
        ("qwen3_5", QWEN3_5 | {"full_attention_interval": 4}, 2 * 4096 * 2 * 256 * 4),
        ("unknown", QWEN3_5, 8 * 4096 * 2 * 256 * 4),
    ],
)
def test_layers_of_other_kinds_take_what_they_hold(model_type: str, text: dict[str, Any], expected: int) -> None:
    assert cache_bytes({"model_type": model_type, "text_config": text}, 4096) == expected


def test_what_a_file_leaves_to_mlx_vlm_has_its_defaults() -> None:
    """Google's Gemma 3 4B names neither its heads nor their size."""
    text = {"num_hidden_layers": 34, "hidden_size": 2560, "sliding_window": 1024}
    assert cache_bytes({"model_type": "gemma3", "text_config": text}, 2048) == (5 * 2048 + 29 * 1024) * 4 * 256 * 4


def test_a_model_in_fp32_counts_four_bytes_for_a_number(tmp_path: Path) -> None:
    config = json.loads((FAMILIES["qwen2_vl"](tmp_path / "tiny") / "config.json").read_text())
    assert element_bytes(loaded(config).config) == 4
