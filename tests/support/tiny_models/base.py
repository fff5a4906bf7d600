"""Tokenizer and weights of tiny random models: the real layout, widths of 64, fp32."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support import tiny_qwen3

TEXTS = ["The chart shows the value of the bar in 2015.", "What does the passage say, and what the image?"] * 20

TURNS = """{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}{%- if m.content is string %}{{- m.content }}\
{%- else %}{%- for c in m.content %}{%- if c.type == 'image' %}{{- 'IMAGE' }}{%- elif c.type == 'text' %}{{- c.text }}\
{%- endif %}{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
"""A chat template with ``IMAGE`` where the model's own image token stands."""


def write_tokenizer(
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


def write_model(folder: Path, config: dict[str, Any], processor: dict[str, Any], more: Sequence[str] = ()) -> Path:
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
