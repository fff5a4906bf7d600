"""The repair of mlx-vlm: that it is right, and that it is still needed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_backends.mlx.load import load
from mlx_backends.mlx.patches import qwen3_vl_deepstack

ROWS: list[list[tuple[int, int]]] = [[(64, 64)], [], [(96, 64), (64, 32)]]
"""The images of three prompts, by width and height."""


def prompts(tiny: Path) -> tuple[Any, list[list[int]], list[dict[str, Any]]]:
    """A model that computes in fp32, and what three prompts of equal length in tokens are given to it as."""
    from mlx_vlm.utils import prepare_inputs
    from PIL import Image

    model, processor = load(tiny)
    model.set_dtype(mx.float32)
    random, ids, given = np.random.default_rng(0), [], []
    for sizes in ROWS:
        images = [Image.fromarray(random.integers(0, 256, (h, w, 3), dtype=np.uint8)) for w, h in sizes]
        text = "".join("<|vision_start|><|image_pad|><|vision_end|>" for _ in sizes) + "What is the value of the bar?"
        inputs = prepare_inputs(processor, images=images or None, prompts=text)
        tokens, pixels, mask = (inputs.pop(name, None) for name in ("input_ids", "pixel_values", "attention_mask"))
        found = model.get_input_embeddings(tokens, pixels, mask=mask, **inputs)
        ids.append(tokens[0].tolist())
        given.append({name: value for name, value in found.to_dict().items() if value is not None})
    return model, ids, given


def right_in_a_batch(tiny: Path) -> bool:
    """Whether prompts that the installed mlx-vlm puts together are read as each by itself."""
    from mlx_vlm.generate import ar

    model, ids, given = prompts(tiny)
    alone = []
    for tokens, one in zip(ids, given, strict=True):
        cache = ar._make_cache(model.language_model, [0])
        alone.append(model.language_model(mx.array([tokens]), cache=cache, **one).logits[0, -1])
    longest = max(map(len, ids))
    padding = [longest - len(tokens) for tokens in ids]
    embeddings, together = ar._merge_prefill_prompt_kwargs(given, ids)
    padded = mx.array([[0] * pad + tokens for pad, tokens in zip(padding, ids, strict=True)])
    cache = ar._make_cache(model.language_model, padding)
    found = model.language_model(padded, cache=cache, inputs_embeds=embeddings, **together).logits[:, -1]
    return bool(mx.allclose(found, mx.stack(alone), rtol=0, atol=1e-4))


@pytest.fixture
def unrepaired(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_vlm.generate import ar

    merge = ar._merge_prefill_prompt_kwargs
    monkeypatch.setattr(ar, "_merge_prefill_prompt_kwargs", getattr(merge, "__wrapped__", merge))


@pytest.mark.usefixtures("unrepaired")
def test_the_repair_is_needed_by_the_installed_version_and_enough(tiny: Path) -> None:
    if version("mlx-vlm") in qwen3_vl_deepstack.NEEDED_BY:
        assert not right_in_a_batch(tiny), (
            "mlx-vlm is right without it: delete mlx_backends/mlx/patches/qwen3_vl_deepstack.py and this file"
        )
        assert qwen3_vl_deepstack.repair()
    assert right_in_a_batch(tiny), "a version that needs the repair: name it in NEEDED_BY"


@pytest.mark.usefixtures("unrepaired")
def test_it_is_made_once_and_only_where_it_is_known_to_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_vlm.generate import ar

    before = ar._merge_prefill_prompt_kwargs
    monkeypatch.setattr(qwen3_vl_deepstack, "NEEDED_BY", ("0.0.1",))
    assert not qwen3_vl_deepstack.repair()
    assert ar._merge_prefill_prompt_kwargs is before
    monkeypatch.setattr(qwen3_vl_deepstack, "NEEDED_BY", (version("mlx-vlm"),))
    qwen3_vl_deepstack.repair()
    repaired = ar._merge_prefill_prompt_kwargs
    qwen3_vl_deepstack.repair()
    assert ar._merge_prefill_prompt_kwargs is repaired
    assert repaired is not before
