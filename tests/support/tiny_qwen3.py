"""A tiny Qwen3-VL and a tiny Qwen3, built in a second: random weights, their own tokenizer, the real layout.

They are there to run the whole machine on: every part of them is real except what they have learnt, which is nothing.
Their answers are noise and no figure made from them means anything.
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.library_isolation import contained

_SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
_TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{- message.content }}
{%- else %}
{%- for item in message.content %}
{%- if item.type == 'image' %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- elif item.type == 'video' %}{{- '<|vision_start|><|video_pad|><|vision_end|>' }}
{%- elif 'text' in item %}{{- item.text }}
{%- endif %}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

_HIDDEN = 64  # with all other widths a multiple of 64, the group size of 4-bit quantisation
_TEXT_TOKENS = 504  # with the special ones, 512


def build_tiny_vlm(folder: Path, texts: Iterable[str], *, seed: int = 0, quantise: bool) -> Path:
    """Build a random Qwen3-VL in ``folder``, its tokenizer trained on ``texts``; about half a million parameters.

    bf16, or 4-bit in groups of 64 if ``quantise`` (the vision encoder stays bf16). The same texts and seed give the
    same weights. The folder appears whole or not at all. Raises ModelError where it is there already.
    """
    with _whole(folder) as scratch:
        built = scratch / "bf16"
        built.mkdir()
        config = _config(_tokenizer(built, texts))
        _processor(built)
        _json(built / "config.json", config)
        _weights(built, config, seed)
        if quantise:
            built = _quantised(built, scratch / "4bit", "mlx_vlm")
        os.rename(built, folder)
    return folder


def build_tiny_lm(folder: Path, texts: Iterable[str], *, seed: int = 0, quantise: bool) -> Path:
    """Build a random Qwen3 in ``folder``, which reads text only, as :func:`build_tiny_vlm` does; about 0.1 million parameters.

    fp32, in which batches can be compared with single answers, or 4-bit in groups of 64 if ``quantise``.
    """
    with _whole(folder) as scratch:
        built = scratch / "fp32"
        built.mkdir()
        vocabulary = _tokenizer(built, texts)
        config = {**_text_config(len(vocabulary)), "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
        config |= {"rope_scaling": None, "dtype": "float32", "eos_token_id": _ends(vocabulary)}
        _json(built / "config.json", config)
        _text_weights(built, config, seed)
        if quantise:
            built = _quantised(built, scratch / "4bit", "mlx_lm")
        os.rename(built, folder)
    return folder


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A scratch folder beside ``folder``, which must not be there yet, for building what is renamed to it."""
    if folder.exists():
        raise ModelError(f"{folder} exists already; name a new folder for the tiny model.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        yield Path(scratch)


def _tokenizer(
    folder: Path,
    texts: Iterable[str],
    special: Sequence[str] = _SPECIAL,
    template: str = _TEMPLATE,
    named: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, int]:
    """Train a byte-level BPE tokenizer; the ids of all its tokens, whose number is a multiple of 64.

    ``named`` are the special tokens that its processor asks it for by a name.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=_TEXT_TOKENS, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    fill = range(-tokenizer.get_vocab_size() % 64)  # an id without a token could not be decoded
    tokenizer.add_tokens([AddedToken(f"<extra_{number}>", normalized=False) for number in fill])
    tokenizer.save(str(folder / "tokenizer.json"))
    _json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "Qwen2Tokenizer",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "chat_template": template,
            **({"extra_special_tokens": dict(named)} if named else {}),
        },
    )
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _ends(vocabulary: dict[str, int]) -> list[int]:
    return [vocabulary["<|im_end|>"], vocabulary["<|endoftext|>"]]


def _text_config(size: int) -> dict[str, Any]:
    return {
        "model_type": "qwen3_vl_text",
        "num_hidden_layers": 2,
        "hidden_size": _HIDDEN,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-6,
        "vocab_size": size,
        "rope_theta": 5e6,
        "max_position_embeddings": 32768,
        "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True},
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    }


def _config(vocabulary: dict[str, int]) -> dict[str, Any]:
    size = len(vocabulary)
    text = _text_config(size)
    vision = {
        "model_type": "qwen3_vl",
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 4,
        "out_hidden_size": _HIDDEN,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "in_channels": 3,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1],
        "hidden_act": "gelu_pytorch_tanh",
    }
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
        "vocab_size": size,
        "eos_token_id": _ends(vocabulary),
        "image_token_id": vocabulary["<|image_pad|>"],
        "video_token_id": vocabulary["<|video_pad|>"],
        "vision_start_token_id": vocabulary["<|vision_start|>"],
        "vision_end_token_id": vocabulary["<|vision_end|>"],
        "text_config": text,
        "vision_config": vision,
    }


def _processor(folder: Path, kind: str = "Qwen3VLProcessor", more: Mapping[str, Any] = MappingProxyType({})) -> None:
    common = {
        "size": {"shortest_edge": 1024, "longest_edge": 65536},  # pixels of the whole image
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "processor_class": kind,
        **more,
    }
    _json(folder / "preprocessor_config.json", {**common, "image_processor_type": "Qwen2VLImageProcessorFast"})
    _json(folder / "video_preprocessor_config.json", {**common, "video_processor_type": "Qwen3VLVideoProcessor"})


def _weights(folder: Path, config: dict[str, Any], seed: int) -> None:
    """Random weights under the names and in the layout of the published checkpoints."""
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten
    from mlx_vlm.utils import get_model_and_args, update_module_configs

    module, _ = get_model_and_args(config)
    own = copy.deepcopy(config)  # mlx-vlm changes it
    model = module.Model(update_module_configs(module.ModelConfig.from_dict(own), module, own, ["text", "vision"]))
    weights = {}
    for name, values in _random(tree_flatten(model.parameters()), seed):
        if values.ndim == 5:
            values = values.transpose(0, 4, 1, 2, 3)  # MLX keeps the channels of a convolution last
        weights[_published(name)] = mx.array(np.ascontiguousarray(values, dtype=np.float32)).astype(mx.bfloat16)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "pt"})


def _text_weights(folder: Path, config: dict[str, Any], seed: int) -> None:
    """The same for Qwen3, whose names mlx-lm leaves as they are published."""
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten

    qwen3 = import_module("mlx_lm.models.qwen3")
    model = qwen3.Model(qwen3.ModelArgs.from_dict(config))
    values_by_name = _random(tree_flatten(model.parameters()), seed)
    weights = {name: mx.array(values.astype(np.float32)) for name, values in values_by_name}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "pt"})


def _random(parameters: Iterable[tuple[str, Any]], seed: int) -> Iterator[tuple[str, Any]]:
    import numpy as np

    random = np.random.default_rng(seed)
    for name, parameter in parameters:
        values = random.standard_normal(parameter.shape) * _scale(name, parameter.shape)
        if "norm" in name and name.endswith("weight"):
            values += 1
        yield name, values


def _scale(name: str, shape: tuple[int, ...]) -> float:
    """A standard deviation that lets a signal through two layers, so that answers differ with what is asked."""
    if "norm" in name and name.endswith("weight"):
        return 0.1
    if name.endswith("bias"):
        return 0.02
    if "embed_tokens" in name:
        return 0.5
    return float(0.2 * (64 / shape[-1]) ** 0.5) if len(shape) == 2 else 0.2


def _published(name: str) -> str:
    for ours, theirs in (
        ("language_model.model.", "model.language_model."),
        ("language_model.lm_head", "lm_head"),
        ("vision_tower.", "model.visual."),
    ):
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def _quantised(source: Path, target: Path, library: str) -> Path:
    with contained():
        convert = import_module(f"{library}.convert").convert
        convert(str(source), str(target), quantize=True, q_bits=4, q_group_size=64, trust_remote_code=False)
    (target / "README.md").unlink(missing_ok=True)
    return target


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
