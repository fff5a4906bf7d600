"""The patch of mlx-vlm: it is correct, and still needed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_backends.mlx.mlx_load import load
from mlx_backends.mlx.patches import qwen3_vl_deepstack

ROWS: list[list[tuple[int, int]]] = [[(64, 64)], [], [(96, 64), (64, 32)]]
"""The images of three prompts, by width and height."""


def prompts(tiny: Path) -> tuple[Any, list[list[int]], list[dict[str, Any]]]:
    """A model that computes in fp32, and what three prompts of equal length in tokens are given to it as."""
    from mlx_vlm.utils import prepare_inputs
    from PIL import Image

    model, processor = load(tiny)
    model.set_dtype(mx.float32)
    random, ids, inputs_list = np.random.default_rng(0), [], []
    for sizes in ROWS:
        images = [Image.fromarray(random.integers(0, 256, (h, w, 3), dtype=np.uint8)) for w, h in sizes]
        text = "".join("<|vision_start|><|image_pad|><|vision_end|>" for _ in sizes) + "What is the value of the bar?"
        inputs = prepare_inputs(processor, images=images or None, prompts=text)
        tokens, pixels, mask = (inputs.pop(name, None) for name in ("input_ids", "pixel_values", "attention_mask"))
        output = model.get_input_embeddings(tokens, pixels, mask=mask, **inputs)
        ids.append(tokens[0].tolist())
        inputs_list.append({name: value for name, value in output.to_dict().items() if value is not None})
    return model, ids, inputs_list


def right_in_a_batch(tiny: Path) -> bool:
    """Return whether the installed mlx-vlm reads prompts in a batch as it reads each alone."""
    from mlx_vlm.generate import ar

    model, ids, inputs_list = prompts(tiny)
    alone = []
    for tokens, row_inputs in zip(ids, inputs_list, strict=True):
        cache = ar._make_cache(model.language_model, [0])
        alone.append(model.language_model(mx.array([tokens]), cache=cache, **row_inputs).logits[0, -1])
    longest = max(map(len, ids))
    padding = [longest - len(tokens) for tokens in ids]
    embeddings, together = ar._merge_prefill_prompt_kwargs(inputs_list, ids)
    padded = mx.array([[0] * pad + tokens for pad, tokens in zip(padding, ids, strict=True)])
    cache = ar._make_cache(model.language_model, padding)
    logits = model.language_model(padded, cache=cache, inputs_embeds=embeddings, **together).logits[:, -1]
    return bool(mx.allclose(logits, mx.stack(alone), rtol=0, atol=1e-4))


@pytest.fixture
def unrepaired(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_vlm.generate import ar

    merge = ar._merge_prefill_prompt_kwargs
    monkeypatch.setattr(ar, "_merge_prefill_prompt_kwargs", getattr(merge, "__wrapped__", merge))


@pytest.mark.usefixtures("unrepaired")
def test_patch_is_needed_and_sufficient(tiny: Path) -> None:
    if version("mlx-vlm") in qwen3_vl_deepstack.AFFECTED_VERSIONS:
        assert not right_in_a_batch(tiny), (
            "mlx-vlm is right without it: delete mlx_backends/mlx/patches/qwen3_vl_deepstack.py and this file"
        )
        assert qwen3_vl_deepstack.apply_patch()
    assert right_in_a_batch(tiny), "a version that needs the repair: name it in AFFECTED_VERSIONS"


@pytest.mark.usefixtures("unrepaired")
def test_patch_is_applied_once_to_known_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_vlm.generate import ar

    before = ar._merge_prefill_prompt_kwargs
    monkeypatch.setattr(qwen3_vl_deepstack, "AFFECTED_VERSIONS", ("0.0.1",))
    assert not qwen3_vl_deepstack.apply_patch()
    assert ar._merge_prefill_prompt_kwargs is before
    monkeypatch.setattr(qwen3_vl_deepstack, "AFFECTED_VERSIONS", (version("mlx-vlm"),))
    qwen3_vl_deepstack.apply_patch()
    repaired = ar._merge_prefill_prompt_kwargs
    qwen3_vl_deepstack.apply_patch()
    assert ar._merge_prefill_prompt_kwargs is repaired
    assert repaired is not before
