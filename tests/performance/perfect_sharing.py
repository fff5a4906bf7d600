"""Time of perfect sharing: a lower bound, made of what computing each image, token and decoding step once costs here."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from mlx_backends.core.reuse import shared_prefix_length
from mlx_backends.mlx.preprocess import PreparedInputs
from mlx_backends.mlx.vlm import VLMBackend
from mlx_backends.mlx.vlm_batch import MAX_SUFFIX_TOKENS, VLMRow, VLMRows
from tests.performance.measuring import timed


def bound(backend: VLMBackend, inputs: Sequence[PreparedInputs], width: int, answer_tokens: int) -> tuple[float, str]:
    """Seconds of perfect sharing, and what they are made of.

    Each image once in the tower; every distinct token once, at what it costs at its place in a prompt, since later ones look
    back further; and as few steps of ``width`` rows as give all the tokens. All of it is measured here and now.
    """
    import mlx.core as mx
    from mlx_vlm.models.cache import make_prompt_cache

    model = backend._model

    def see(tensors: Mapping[str, Any]) -> None:
        mx.eval(model.vision_tower(tensors["pixel_values"], tensors["image_grid_thw"]))

    images = {item.images[0]: item.tensors for item in inputs if len(item.images) == 1}
    seeing = sum(timed(partial(see, tensors))[1] for tensors in images.values())

    by_length = sorted((item for item in inputs if item.images), key=lambda item: len(item.content))
    places, seconds, caches, deltas = [], [], [], []
    for item in by_length[:: max(1, len(by_length) // 4)]:
        tensors, length = item.tensors, len(item.content)
        grid, mask = tensors["image_grid_thw"], tensors["attention_mask"]
        embedded = model.get_input_embeddings(
            item.ids, tensors["pixel_values"], image_grid_thw=grid, mask=mask
        ).to_dict()
        row = VLMRow(item, 1, embedded={name: value for name, value in embedded.items() if value is not None})
        mx.eval([value for value in row.embedded.values() if isinstance(value, mx.array)])
        row.cache = make_prompt_cache(model.language_model)
        rows = VLMRows(model, backend._processor, 1)
        for start, end in ((0, length - MAX_SUFFIX_TOKENS), (length - MAX_SUFFIX_TOKENS, length)):
            took = timed(lambda row=row, rows=rows, end=end: deque(rows._advance(row, end), 0))[1]  # type: ignore[misc]
            places.append([end - start, (end**2 - start**2) / 2])
            seconds.append(took)
        rows.close()
        caches.append(row.cache)
        deltas.append(row.embedded["rope_deltas"])
    token, further = np.linalg.lstsq(np.array(places), np.array(seconds), rcond=None)[0]
    seen: list[Any] = []
    reading, count = 0.0, 0
    for item in inputs:
        start = max((shared_prefix_length(item.content, other) for other in seen), default=0)
        reading += token * (len(item.content) - start) + further * (len(item.content) ** 2 - start**2) / 2
        count += len(item.content) - start
        seen.append(item.content)

    chosen = [number % len(caches) for number in range(width)]
    together = [type(layer[0]).merge(list(layer)) for layer in zip(*(caches[n] for n in chosen), strict=True)]
    tokens, delta = mx.zeros((width, 1), dtype=mx.int32), mx.concatenate([deltas[n] for n in chosen])

    def step() -> None:
        mx.eval(model.language_model(tokens, cache=together, rope_deltas=delta).logits[:, -1].argmax(-1))

    step_time = median(timed(step)[1] for _ in range(answer_tokens))
    steps = -(-len(inputs) // width) * answer_tokens
    summary = (
        f"{len(images)} images {seeing:.1f} s, {count} distinct tokens {reading:.1f} s, "
        f"{steps} steps of {width} rows {steps * step_time:.1f} s ({step_time * 1000:.1f} ms each)"
    )
    return seeing + reading + steps * step_time, summary
