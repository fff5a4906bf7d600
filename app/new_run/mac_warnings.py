"""Warnings before a run on a Mac: what else takes memory, and images too large for a small one."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from app.system.mac_state import load_warnings
from benchmarks.errors import RashomonError
from mlx_backends.engine_registry import has_prefix
from mlx_backends.models.memory_and_cache_sizes import memory_fit, suggested_max_pixels
from mlx_backends.models.model_discovery import inspect, read_config, resolve


def mac_warnings(models: Iterable[tuple[str, int | None]]) -> list[str]:
    """Return the warnings in a sentence each for runs of ``models``, each with its limit on an image's pixels; none elsewhere.

    Those of the machine itself are included if one of ``models`` runs on it.
    """
    if sys.platform != "darwin":
        return []
    local = [(model, pixels) for model, pixels in dict.fromkeys(models) if not has_prefix(model)]
    warnings = load_warnings() if local else []
    return [*warnings, *filter(None, (_image_warning(model, pixels) for model, pixels in local))]


def _image_warning(model: str, max_pixels: int | None) -> str:
    try:
        info = inspect(resolve(model))
        config = read_config(info.path)
    except RashomonError:  # reported where the model is checked
        return ""
    fit = memory_fit(info.weights_bytes)
    pixels = suggested_max_pixels(config, info.weights_bytes, fit.available) if fit.ok else None
    if pixels is None or (max_pixels is not None and max_pixels <= pixels):
        return ""
    return f"{info.name}: images of more than {pixels / 1e6:.1f} megapixels may not fit in memory; add --max-pixels {pixels}."
