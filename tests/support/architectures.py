"""Tiny random models of other architectures, whose templates and image tokens differ from Qwen3-VL's."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support import tiny_qwen3

TEXTS = ["The chart shows the value of the bar in 2015.", "What does the passage say, and what the image?"] * 20

_TURNS = """{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}{%- if m.content is string %}{{- m.content }}\
{%- else %}{%- for c in m.content %}{%- if c.type == 'image' %}{{- 'IMAGE' }}{%- elif c.type == 'text' %}{{- c.text }}\
{%- endif %}{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def lfm2_vl(folder: Path) -> Path:
    """Its template opens with the token that its tokenizer adds as well, and an image may become several tiles."""
    tiles = [f"<|img_row_{row}_col_{col}|>" for row in range(1, 4) for col in range(1, 4)]
    marks = ["<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>", *tiles]
    template = "{{- bos_token }}" + _TURNS.replace("IMAGE", "<image>")
    ids = _tokenizer(
        folder,
        ["<|startoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>", *marks],
        template,
        bos="<|startoftext|>",
        image_token="<image>",
        image_start_token="<|image_start|>",
        image_end_token="<|image_end|>",
        image_thumbnail="<|img_thumbnail|>",
    )
    text = {
        "model_type": "lfm2",
        "hidden_size": 64,
        "intermediate_size": 128,
        "block_ff_dim": 128,
        "block_auto_adjust_ff_dim": False,
        "block_dim": 64,
        "conv_dim": 64,
        "conv_dim_out": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "layer_types": ["conv", "full_attention"],
        "vocab_size": len(ids),
        "eos_token_id": ids["<|im_end|>"],
    }
    vision = {
        "model_type": "siglip2_vision_model",
        "vision_use_head": False,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "patch_size": 16,
        "num_patches": 64,
    }
    config = {
        "architectures": ["Lfm2VlForConditionalGeneration"],
        "model_type": "lfm2_vl",
        "image_token_id": ids["<image>"],
        "projector_hidden_size": 64,
        "eos_token_id": ids["<|im_end|>"],
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "Lfm2VlImageProcessorFast",
        "processor_class": "Lfm2VlProcessor",
        "encoder_patch_size": 16,
        "downsample_factor": 2,
        "tile_size": 64,
        "min_image_tokens": 1,
        "max_image_tokens": 4,
        "resample": 2,  # mlx-vlm and transformers do not have the same one where it is left out
    }
    return _model(folder, config, processor)


def qwen2_5_vl(folder: Path) -> Path:
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    template = _TURNS.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    ids = _tokenizer(folder, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks], template)
    config = {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "vocab_size": len(ids),
        "tie_word_embeddings": True,
        "rope_scaling": {"type": "mrope", "mrope_section": [4, 2, 2]},
        "eos_token_id": [ids["<|im_end|>"]],
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "vision_config": {
            "model_type": "qwen2_5_vl",
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "out_hidden_size": 64,
            "num_heads": 4,
            "patch_size": 14,
            "in_channels": 3,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
    }
    processor = {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "processor_class": "Qwen2_5_VLProcessor",
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "min_pixels": 784,
        "max_pixels": 12544,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],  # the published ones; left out, the libraries differ
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    return _model(folder, config, processor)


def internvl_chat(folder: Path) -> Path:
    """mlx-vlm's template for it puts every image before every text."""
    ids = _tokenizer(folder, ["<|endoftext|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>"], _TURNS)
    text = {
        "model_type": "qwen2",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
    }
    vision = {
        "model_type": "intern_vit_6b",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "patch_size": 14,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "image_size": 56,
    }
    config = {
        "architectures": ["InternVLChatModel"],
        "model_type": "internvl_chat",
        "force_image_size": 56,
        "downsample_ratio": 0.5,
        "max_dynamic_patch": 1,
        "use_thumbnail": False,
        "image_token_index": ids["<IMG_CONTEXT>"],
        "eos_token_id": [ids["<|im_end|>"]],
        "text_config": text,
        "vision_config": vision,
    }
    return _model(folder, config, {"processor_class": "InternVLChatProcessor"})


def gemma4(folder: Path) -> Path:
    """It takes images, sounds and videos; before each frame of a video its processor writes when it is."""
    marks = ["<|image|>", "<|audio|>", "<|video|>", "<boi>", "<eoi>", "<boa>", "<eoa>"]
    each = "".join(f"{{%- elif c.type == '{kind}' %}}{{{{- '<|{kind}|>' }}}}" for kind in ("audio", "video"))
    template = _TURNS.replace("IMAGE", "<|image|>").replace(
        "{%- elif c.type == 'text' %}", each + "{%- elif c.type == 'text' %}"
    )
    ids = _tokenizer(
        folder,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks],
        template,
        extra_special_tokens={
            "image_token": "<|image|>",
            "audio_token": "<|audio|>",
            "video_token": "<|video|>",
            "boi_token": "<boi>",
            "eoi_token": "<eoi>",
            "boa_token": "<boa>",
            "eoa_token": "<eoa>",
        },
    )
    text = {
        "model_type": "gemma4_text",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "global_head_dim": 16,
        "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 16,
        "vocab_size": len(ids),
        "vocab_size_per_layer_input": len(ids),
        "layer_types": ["sliding_attention", "full_attention"],
        "use_double_wide_mlp": False,
    }
    vision = {
        "model_type": "gemma4_vision",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "global_head_dim": 16,
        "position_embedding_size": 64,
    }
    audio = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "subsampling_conv_channels": [8, 4],
        "output_proj_dims": 64,
    }
    config = {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "eos_token_id": [ids["<|im_end|>"]],
        "image_token_id": ids["<|image|>"],
        "audio_token_id": ids["<|audio|>"],
        "video_token_id": ids["<|video|>"],
        "text_config": text,
        "vision_config": vision,
        "audio_config": audio,
    }
    return _model(folder, config, {"patch_size": 16, "max_soft_tokens": 70, "pooling_kernel_size": 3}, ["audio"])


def _tokenizer(
    folder: Path, special: Sequence[str], template: str, bos: str | None = None, **named: Any
) -> dict[str, int]:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    fill = range(-tokenizer.get_vocab_size() % 64)
    tokenizer.add_tokens([AddedToken(f"<extra_{number}>", normalized=False) for number in fill])
    if bos:
        opening = [(bos, tokenizer.token_to_id(bos))]
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=opening)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": special[3] if bos else special[0],
        "chat_template": template,
        "model_max_length": 32768,
        **({"bos_token": bos} if bos else {}),
        **named,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _model(folder: Path, config: dict[str, Any], processor: dict[str, Any], more: Sequence[str] = ()) -> Path:
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten
    from mlx_vlm.utils import get_model_and_args, update_module_configs

    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    module, _ = get_model_and_args(config)
    own = copy.deepcopy(config)
    own.setdefault("text_config", {})
    model = module.Model(
        update_module_configs(module.ModelConfig.from_dict(own), module, own, ["text", "vision", *more])
    )
    # Not as they are initialised: such a model says one token whatever it is asked, and any two ways of asking agree.
    random = tiny_qwen3._random(tree_flatten(model.parameters()), seed=0)
    weights = {name: mx.array(values.astype(np.float32)) for name, values in random}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder
