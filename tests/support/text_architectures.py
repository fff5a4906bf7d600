"""Tiny random models of mlx-lm's architectures in fp32, which differ in positions, masks and caches."""

from __future__ import annotations

from typing import Any

VOCABULARY = 256

_COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "rope_theta": 10000.0,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
_WINDOW = {"sliding_window": 24, "query_pre_attn_scalar": 16, "rope_local_base_freq": 10000.0}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 24, "layer_types": ["sliding_attention", "full_attention"]},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {},
    "qwen3_moe": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
    },
    "gemma3_text": {**_WINDOW, "sliding_window_pattern": 2},
    "phi3": {"rope_scaling": None},
    "lfm2": {
        "block_dim": 64,
        "block_ff_dim": 128,
        "block_multiple_of": 32,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "conv_bias": False,
        "conv_L_cache": 3,
        "norm_eps": 1e-5,
        "full_attn_idxs": [1],
        "layer_types": ["conv", "full_attention"],
    },
    "smollm3": {"no_rope_layer_interval": 2},
    "granite": {
        "logits_scaling": 8.0,
        "attention_multiplier": 0.25,
        "embedding_multiplier": 2.0,
        "residual_multiplier": 0.5,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "mamba": {
        "state_size": 8,
        "conv_kernel": 4,
        "use_bias": False,
        "use_conv_bias": True,
        "time_step_rank": 4,
    },
    "gemma2": {
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "query_pre_attn_scalar": 16,
    },
}
"""Differences from a common configuration, by model type."""


def text_model(kind: str, size: int = VOCABULARY) -> Any:
    """A model of ``kind`` in mlx-lm with a vocabulary of ``size``; the same one every time."""
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten
    from mlx_lm.utils import _get_classes

    config = {**_COMMON, "model_type": kind, **CONFIGS[kind], "vocab_size": size}
    model_class, arguments = _get_classes(config)
    model = model_class(arguments.from_dict(config))
    model.eval()
    random = np.random.default_rng(0)
    weights = []
    for name, parameter in tree_flatten(model.parameters()):
        values = np.array(parameter.astype(mx.float32))
        noise = random.standard_normal(parameter.shape)
        if "embed" in name:
            values = 0.5 * noise
        elif "norm" in name:
            values = values + 0.1 * noise
        elif name.endswith("weight") and parameter.ndim >= 2:
            values = 0.2 * (64 / parameter.shape[-1]) ** 0.5 * noise
        elif name.endswith("bias"):
            values = values + 0.02 * noise
        weights.append((name, mx.array(values.astype(np.float32))))
    model.load_weights(weights)
    return model
