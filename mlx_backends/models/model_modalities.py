"""Modalities that a model supports, read from its configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.vocabulary import Modality

ALL_MODALITIES: tuple[Modality, ...] = ("image", "audio", "video", "point_cloud")
IMAGES_ONLY: tuple[Modality, ...] = ("image",)

MODALITY_NAMES: Mapping[Modality, str] = {"image": "images", "audio": "audio", "video": "video", "point_cloud": "3D"}
"""Names of the modalities for users."""

_INSIDE = "thinker_config"
"""The key under which an omni model, which also speaks, keeps the configuration of the part that reads and hears."""

_KEYS: Mapping[Modality, re.Pattern[str]] = {
    "image": re.compile(r"vision|visual|image|img"),
    "audio": re.compile(r"(audio|sound)_(config|processor|context_token_id|token_id|token_index)"),
    "video": re.compile(r"video_(config|context_token_id|token_id|token_index)"),
}
_ENCODERS: Mapping[Modality, tuple[str, ...]] = {"audio": ("audio_config", "sound_config", "audio_processor")}
"""Keys of the encoder's own configuration: where one is present but empty, the model was made without the encoder."""


def supported_modalities(config: Mapping[str, Any]) -> tuple[Modality, ...]:
    """Return the modalities that a model with this ``config.json`` supports: some of image, audio and video.

    Images are supported where any key speaks of vision, audio or video where its encoder or its token is configured; a
    text-only model supports none. No model's name is looked at, and no configuration speaks of 3D.
    """
    entries = dict(_entries(config))
    return tuple(modality for modality in _KEYS if _has(entries, modality))


def _entries(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from config.items()
    nested = config.get(_INSIDE)
    if isinstance(nested, Mapping):
        yield from nested.items()


def _has(entries: Mapping[str, Any], modality: Modality) -> bool:
    if modality == "image":
        return any(_KEYS[modality].search(key) for key in entries)
    encoders = [entries[key] for key in _ENCODERS.get(modality, ()) if key in entries]
    if entries.get(f"init_{modality}") is False or (encoders and not any(encoders)):
        return False
    return any(_KEYS[modality].fullmatch(key) and _is_configured(value) for key, value in entries.items())


def _is_configured(value: object) -> bool:
    """Return whether a value names a token, or configures something."""
    return (
        value >= 0
        if isinstance(value, int) and not isinstance(value, bool)
        else isinstance(value, Mapping) and bool(value)
    )


def describe_modalities(modalities: Iterable[Modality]) -> str:
    """Return modalities as ``images, audio, video``; "text only" for none."""
    return ", ".join(MODALITY_NAMES[modality] for modality in modalities) or "text only"
