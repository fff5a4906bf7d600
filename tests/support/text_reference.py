"""Logits of a language model in transformers, in fp32, for models whose images transformers cannot read here.

``python -m tests.support.text_reference FAMILY FOLDER`` reads weights and token ids from ``inputs.npz`` in the folder, and writes
``logits.npy``. It runs as a process of its own: importing mlx-vlm changes transformers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FAMILIES = ("deepseek_vl_v2", "gemma3n", "gemma4_unified", "llama4")
_IDS = "token ids"


def reference_logits(family: str, model: Path, language_model: Any, ids: Sequence[int]) -> Any:
    """Return the logits after each of ``ids`` from transformers, with the weights of mlx-vlm's ``language_model``."""
    from mlx.utils import tree_flatten

    weights = {name: np.array(value) for name, value in tree_flatten(language_model.parameters())}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "config.json").write_text((model / "config.json").read_text())
        np.savez(folder / "inputs.npz", **weights, **{_IDS: np.array(ids)})  # type: ignore[arg-type]
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.text_reference", family, scratch],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return np.load(folder / "logits.npy")


def _deepseek_vl_v2(config: Mapping[str, Any], weights: dict[str, Any]) -> Any:
    from transformers import DeepseekV2Config, DeepseekV2ForCausalLM

    language = config["language_config"]
    dense = language["first_k_dense_replace"]
    kinds = ["dense"] * dense + ["sparse"] * (language["num_hidden_layers"] - dense)
    settings = DeepseekV2Config(**language, mlp_layer_types=kinds, attn_implementation="eager")
    _join_experts(weights, "switch_mlp")
    return DeepseekV2ForCausalLM(settings)


def _join_experts(weights: dict[str, Any], part: str, *, is_transposed: bool = False) -> None:
    import torch

    for name in [name for name in weights if name.endswith(f"{part}.gate_proj.weight")]:
        base = name.removesuffix(f"{part}.gate_proj.weight")
        gate, up, down = (weights.pop(f"{base}{part}.{matrix}_proj.weight") for matrix in ("gate", "up", "down"))
        joined = {"gate_up_proj": torch.cat([gate, up], 1), "down_proj": down}
        for matrix, value in joined.items():
            weights[f"{base}experts.{matrix}"] = value.swapaxes(1, 2) if is_transposed else value


def _gemma3n(config: Mapping[str, Any], weights: dict[str, Any]) -> Any:
    from transformers.models.gemma3n.configuration_gemma3n import Gemma3nTextConfig
    from transformers.models.gemma3n.modeling_gemma3n import Gemma3nForCausalLM

    text = {name: value for name, value in config["text_config"].items() if not name.startswith("rope_")}
    return Gemma3nForCausalLM(
        Gemma3nTextConfig(**text, attn_implementation="eager")
    )  # the rope's defaults are the same


def _gemma4_unified(config: Mapping[str, Any], weights: dict[str, Any]) -> Any:
    from transformers.models.gemma4_unified.configuration_gemma4_unified import Gemma4UnifiedTextConfig
    from transformers.models.gemma4_unified.modeling_gemma4_unified import Gemma4UnifiedForCausalLM

    return Gemma4UnifiedForCausalLM(Gemma4UnifiedTextConfig(**config["text_config"], attn_implementation="eager"))


def _llama4(config: Mapping[str, Any], weights: dict[str, Any]) -> Any:
    from transformers import Llama4ForCausalLM, Llama4TextConfig

    _join_experts(weights, "experts", is_transposed=True)
    return Llama4ForCausalLM(Llama4TextConfig(**config["text_config"], attn_implementation="eager"))


def _main(family: str, folder: Path) -> None:
    import torch

    inputs = dict(np.load(folder / "inputs.npz"))
    ids = torch.tensor(inputs.pop(_IDS)).long()[None]
    weights = {name: torch.tensor(value) for name, value in inputs.items()}
    build = {
        "deepseek_vl_v2": _deepseek_vl_v2,
        "gemma3n": _gemma3n,
        "gemma4_unified": _gemma4_unified,
        "llama4": _llama4,
    }[family]
    model = build(json.loads((folder / "config.json").read_text()), weights).eval().float()
    missing = [name for name in model.load_state_dict(weights, strict=False).missing_keys if name != "lm_head.weight"]
    assert not missing, missing
    with torch.no_grad():
        np.save(folder / "logits.npy", model(ids, use_cache=False).logits[0].numpy())


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]))
