"""Estimate of the memory that a training takes, from a model's configuration and the longest row, before it is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlx_backends.models.memory_and_cache_sizes import row_bytes
from mlx_backends.models.metal_working_set import GIB
from mlx_backends.models.request_memory import (
    element_bytes,
    head_size,
    image_bytes,
    number,
    pixels_per_token,
    text_config,
    vision_config,
)
from mlx_backends.training_settings import CHECK_TOKENS

_ADAPTER_NUMBERS = 6
"""32-bit numbers for each of an adapter's: itself, a row's gradient, the batch's, two moments, and one update in progress."""
_RUNTIME = GIB // 2  # of MLX and its buffers
_SPECIAL_TOKENS = 64  # of a chat template
_SCORES_KEPT, _SCORES_PASSING = 2, 5
"""Arrays of scores of attention, which MLX does not fuse when it computes gradients: those kept for each layer, and those of the
layer whose gradient is computed."""
_STATES_KEPT, _STATES_PASSING = 4, 4
"""Arrays of the state of linear attention after each token, which mlx-vlm computes token by token in a training: likewise."""
_COPIES_ON_DISK = 8
"""32-bit numbers on disk for each of an adapter's: two checkpoints of itself and two moments while one replaces the other, and
two adapters."""
_LOGITS = 4  # arrays of an answer's logits, in 32 bits


@dataclass(frozen=True, slots=True)
class RowTokens:
    """The size of a row: tokens of all, of its images, and of its answer."""

    total: int
    image: int
    answer: int


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """The memory of a training in bytes, by what takes it."""

    weights: int
    adapter: int
    activations: int
    logits: int
    encoder: int
    runtime: int = _RUNTIME
    initial: int = 0
    """The copy of the adapter that the trial of each learning rate begins with."""
    generation: int = 0
    """The key-value cache and the working memory of an answer of a check."""

    @property
    def disk(self) -> int:
        """The most bytes that its files take: checkpoints, and the last and the best adapter."""
        return self.adapter * _COPIES_ON_DISK // _ADAPTER_NUMBERS

    @property
    def total(self) -> int:
        """The peak: the encoder of images is done when the activations are kept, and a check keeps none."""
        return self.weights + self.adapter + self.initial + self._passing + self.runtime

    @property
    def _passing(self) -> int:
        return max(self.activations + self.logits, self.encoder, self.generation)

    def sentence(self) -> str:
        """Return the total and its parts as prose."""
        parts = {
            "weights": self.weights,
            "adapter and optimiser": self.adapter + self.initial,
            "activations": self._passing,
        }
        return f"{gigabytes(self.total)} ({', '.join(f'{gigabytes(size)} of {name}' for name, size in parts.items())})"


def row_tokens(config: Mapping[str, Any], prompt: int, answer: int, images: Iterable[tuple[int, int]]) -> RowTokens:
    """Return the tokens of a row with so many of text in its prompt and in its answer, and images of these sizes."""
    image = sum(image_tokens(config, *size) for size in images)
    return RowTokens(prompt + _SPECIAL_TOKENS + image + answer + 1, image, answer + 1)


def image_tokens(config: Any, width: int, height: int) -> int:
    """Return the estimated tokens of an image: those of a fixed size, or those of its pixels."""
    vision = vision_config(config)
    size, patch = number(vision, "image_size"), number(vision, "patch_size")
    if size and patch and number(vision, "spatial_merge_size") is None:
        fixed: int = (size // patch) ** 2
        return fixed
    return -(-width * height // pixels_per_token(config))


def training_memory(
    config: Mapping[str, Any],
    weights_bytes: int,
    row: RowTokens,
    *,
    rank: int,
    dropout: float,
    checkpointing: bool,
    answers: int = 1,
    rates: bool = False,
) -> TrainingMemory:
    """Return the memory of training an adapter of ``rank`` on rows of at most the size of ``row``, one at a time.

    ``answers`` is how many answers of a row are computed together: two where one is preferred to the other. ``rates`` is whether
    learning rates are tried first.
    """
    text = text_config(config)
    layers = number(text, "num_hidden_layers") or 0
    hidden, inner = number(text, "hidden_size") or 0, _inner_size(text)
    heads = number(text, "num_attention_heads") or 1
    keys = (number(text, "num_key_value_heads") or heads) * (head_size(config) or 0)
    queries = heads * (head_size(config) or 0)
    element = element_bytes(config)
    inputs = 5 * hidden + queries + inner  # of the seven linear layers
    outputs = 2 * queries + 3 * keys + 2 * hidden + 4 * inner + 3 * hidden
    attention = max(
        4 * hidden + 2 * queries + 2 * keys, _linear_attention(text, hidden), _latent_attention(text, hidden)
    )
    widths = ("intermediate_size_mlp", "intermediate_size", "shared_expert_intermediate_size")
    dense = next(filter(None, (number(text, width) for width in widths)), 0)
    others = _router_and_image_layers(text, hidden, queries, keys)
    adapter = rank * (attention + 3 * hidden + 3 * dense + others) * layers * 4 * _ADAPTER_NUMBERS
    # An adapter's input is kept in 32 bits, and with dropout before it too.
    kept = outputs * element + inputs * (4 + (2 * element if dropout else 0)) + 7 * rank * 4
    scores = heads * row.total**2 * element
    linear_layers, state = _states(text, layers)
    states = row.total * state
    layer = row.total * kept + _SCORES_KEPT * scores
    passing = row.total * kept + _SCORES_PASSING * scores + _STATES_PASSING * states
    inputs_kept = layers * row.total * hidden * element
    activations = passing + answers * (
        inputs_kept + layer + _STATES_KEPT * states
        if checkpointing
        else layers * layer + linear_layers * _STATES_KEPT * states
    )
    logits = answers * _LOGITS * 4 * row.answer * (number(text, "vocab_size") or number(config, "vocab_size") or 0)
    initial = adapter // _ADAPTER_NUMBERS if rates else 0
    return TrainingMemory(weights_bytes, adapter, activations, logits, image_bytes(config, row.image), initial=initial)


def generation_memory(config: Mapping[str, Any], row: RowTokens) -> int:
    """Return the bytes of answering a row in a check: its key-value cache, and the working memory while its prompt is read."""
    return row_bytes(config, row.total, row.answer + CHECK_TOKENS, row.total)


def _inner_size(text: Mapping[str, Any]) -> int:
    """Return the width of the layers after attention; of all experts that a token is given to, if that is more."""
    expert, count = number(text, "moe_intermediate_size") or 0, number(text, "num_experts_per_tok") or 1
    shared = number(text, "shared_expert_intermediate_size") or expert * (number(text, "n_shared_experts") or 0)
    gated = (number(text, "ffn_hidden_size") or 0) // 2  # of ZAYA1, which names both halves
    # Llama 4's dense layers have a width of their own, and its experts share one
    dense = number(text, "intermediate_size_mlp") or number(text, "intermediate_size") or gated
    return max(dense, expert * count + shared)


def _linear_attention(text: Mapping[str, Any], hidden: int) -> int:
    """Return the inputs and outputs of linear attention's five linear layers; 0 for a model without it."""
    heads = number(text, "linear_num_value_heads") or 0
    values = heads * (number(text, "linear_value_head_dim") or 0)
    keys = (number(text, "linear_num_key_heads") or 0) * (number(text, "linear_key_head_dim") or 0)
    return 5 * hidden + 2 * keys + 3 * values + 2 * heads if heads else 0


def _router_and_image_layers(text: Mapping[str, Any], hidden: int, queries: int, keys: int) -> int:
    """Return the inputs and outputs of ZAYA1's router, and of the low-rank layers for images in its attention; else 0."""
    router, rank = number(text, "zaya_mlp_expansion"), number(text, "vision_lora_rank_attn")
    if not router:
        return 0
    for_images = 10 * rank + 5 * hidden + 2 * (queries + keys) if rank and text.get("vision_lora") else 0
    return hidden + 6 * router + (number(text, "num_experts") or 0) + 1 + for_images


def _latent_attention(text: Mapping[str, Any], hidden: int) -> int:
    """Return the inputs and outputs of latent attention's linear layers; 0 for a model without it."""
    heads, rank, nope, rope, value = (
        number(text, key) or 0
        for key in ("num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    )
    of_queries = 2 * (number(text, "q_lora_rank") or 0) + heads * (nope + rope)
    return 3 * hidden + of_queries + 2 * rank + rope + heads * (nope + 2 * value) if rank else 0


def _states(text: Mapping[str, Any], layers: int) -> tuple[int, int]:
    """Return the number of layers with linear attention, and the bytes of a state of one, in 32 bits."""
    heads, keys, values = (
        number(text, key) for key in ("linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim")
    )
    if not (heads and keys and values):
        return 0, 0
    kinds = text.get("layer_types")
    if isinstance(kinds, list):
        return kinds.count("linear_attention"), heads * keys * values * 4
    return layers - layers // (number(text, "full_attention_interval") or 4), heads * keys * values * 4


def gigabytes(size: int) -> str:
    """Return bytes in words, such as 3.1 GB."""
    return f"{size / 1e9:.1f} GB"
