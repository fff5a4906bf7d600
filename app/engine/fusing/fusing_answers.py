"""Greedy answers of a base, of the base with an adapter, and of fused models, to the same rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.engine.cached_text_models import CachedTextModel, LocalModelSlot
from app.engine.fusing.held_out_rows import HeldOutRows
from benchmarks.errors import ModelError
from mlx_backends.base import Backend
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.engine_registry import describe, load_backend


def answers(
    model: str, rows: HeldOutRows, device: LocalModelSlot, replies: ResponseCache, done: Callable[[], None]
) -> dict[str, str]:
    """Return the answers of ``model`` to ``rows``, by request; failed ones are left out. ``done`` is called after each.

    Answers that are cached in ``replies`` are not generated again. Raises ModelError if the model cannot be loaded, or if every
    request fails.
    """
    load = partial(_load, model, rows)
    cached = CachedTextModel(describe(model), lambda: device.use(model, load), replies)
    texts: dict[str, str] = {}
    problem = ""
    for generation in cached.generate(rows.requests):
        done()
        if generation.finish_reason == "error":
            problem = problem or str(generation.error)
        else:
            texts[generation.request_id] = generation.text
    if not texts:
        raise ModelError(f"{model} answered none of the {len(rows.requests)} rows: {problem}")
    return texts


def _load(model: str, rows: HeldOutRows) -> Backend:
    backend = load_backend(model, rows.media)
    backend.use_sequential_mode()  # answers of a batch may differ by rounding, which is not the fused model's doing
    return backend
