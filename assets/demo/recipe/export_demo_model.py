"""Export of a checkpoint to a folder that mlx-vlm and transformers load, and of that folder to MLX 4-bit."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from assets.demo.recipe.chat import SPECIAL, TEMPLATE
from assets.demo.recipe.quantise import quantise
from assets.demo.recipe.tokens import tokenizer


def write_model(checkpoint: Path, folder: Path, dtype: str) -> None:
    """Write the checkpoint's weights in ``dtype`` (float32 or bfloat16), with the tokenizer and all configurations.

    Needs PyTorch. The names and layouts are those of the published Qwen3-VL checkpoints.
    """
    import torch
    from safetensors.torch import save_file

    from assets.demo.recipe.demo_model import trained

    folder.mkdir(parents=True, exist_ok=True)
    demo_tokenizer = tokenizer()
    demo_tokenizer.save(str(folder / "tokenizer.json"))
    ids = {token: demo_tokenizer.token_to_id(token) for token in SPECIAL}
    model = trained(checkpoint)
    weights = {name: value.to(getattr(torch, dtype)).contiguous() for name, value in model.state_dict().items()}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    _json(folder / "config.json", _config(model.shape, ids, dtype))
    ends = [ids["<|im_end|>"], ids["<|endoftext|>"]]
    _json(folder / "generation_config.json", {"eos_token_id": ends, "pad_token_id": ends[1], "do_sample": False})
    _json(
        folder / "tokenizer_config.json",
        {
            # Another class would replace the tokenizer's way of splitting text.
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "chat_template": TEMPLATE,
        },
    )
    _processor(folder)


def _config(shape: Any, ids: dict[str, int], dtype: str) -> dict[str, Any]:
    from assets.demo.recipe.demo_model import MERGE, PATCH, PATCHES

    text = {
        "model_type": "qwen3_vl_text",
        "num_hidden_layers": shape.depth,
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "rms_norm_eps": 1e-6,
        "vocab_size": shape.vocabulary,
        "rope_theta": shape.theta,
        "max_position_embeddings": 4096,
        "rope_scaling": {
            "rope_type": "default",
            "mrope_section": list(shape.sections),
            "mrope_interleaved": True,
            "rope_theta": shape.theta,
        },
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": False,
        "dtype": dtype,
    }
    vision = {
        "model_type": "qwen3_vl",
        "depth": shape.vision_depth,
        "hidden_size": shape.vision_width,
        "intermediate_size": shape.vision_inner,
        "num_heads": shape.vision_heads,
        "out_hidden_size": shape.width,
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "spatial_merge_size": MERGE,
        "in_channels": 3,
        "num_position_embeddings": PATCHES**2,
        "deepstack_visual_indexes": list(shape.deepstack),
        "hidden_act": "gelu_pytorch_tanh",
    }
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "tie_word_embeddings": False,
        "dtype": dtype,
        "vocab_size": shape.vocabulary,
        "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
        "pad_token_id": ids["<|endoftext|>"],
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "text_config": text,
        "vision_config": vision,
    }


def _processor(folder: Path) -> None:
    from assets.demo.recipe.charts import SIZE
    from assets.demo.recipe.demo_model import MERGE, PATCH

    common = {
        "size": {"shortest_edge": SIZE**2, "longest_edge": SIZE**2},  # pixels of the whole picture
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "merge_size": MERGE,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "processor_class": "Qwen3VLProcessor",
    }
    _json(folder / "preprocessor_config.json", {**common, "image_processor_type": "Qwen2VLImageProcessorFast"})
    _json(folder / "video_preprocessor_config.json", {**common, "video_processor_type": "Qwen3VLVideoProcessor"})


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def main() -> None:
    """Write a checkpoint as float32 or bfloat16, or a bfloat16 folder as MLX 4-bit."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("form", choices=("float32", "bfloat16", "4bit"))
    parser.add_argument("source", type=Path, help="the checkpoint; for 4bit, the bfloat16 folder")
    parser.add_argument("folder", type=Path, help="the folder to write")
    arguments = parser.parse_args()
    if arguments.form == "4bit":
        quantise(arguments.source, arguments.folder)
    else:
        write_model(arguments.source, arguments.folder, arguments.form)


if __name__ == "__main__":
    main()
