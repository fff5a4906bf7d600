"""Which media a model takes, read from its configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.base import Modality

ALL: tuple[Modality, ...] = ("image", "audio", "video", "point_cloud")
IMAGES: tuple[Modality, ...] = ("image",)

NAMES: Mapping[Modality, str] = {"image": "images", "audio": "audio", "video": "video", "point_cloud": "3D"}
"""What people call them."""

_INSIDE = "thinker_config"
"""Where an omni model, which speaks as well, keeps the part that reads and hears."""

_KEYS: Mapping[Modality, re.Pattern[str]] = {
    "image": re.compile(r"vision|visual|image|img"),
    "audio": re.compile(r"(audio|sound)_(config|processor|context_token_id|token_id|token_index)"),
    "video": re.compile(r"video_(config|context_token_id|token_id|token_index)"),
}
_ENCODERS: Mapping[Modality, tuple[str, ...]] = {"audio": ("audio_config", "sound_config", "audio_processor")}
"""The encoder's own configuration: where it stands there and is empty, the model was made without one."""


def takes(config: Mapping[str, Any]) -> tuple[Modality, ...]:
    """The modalities that a model with this ``config.json`` is shown as they are: some of image, audio and video.

    An image is taken where any key speaks of vision, a sound or a video where its encoder or its token is configured; a
    model that reads text alone takes none. No model's name is looked at, and no configuration speaks of 3D.
    """
    found = dict(_entries(config))
    return tuple(modality for modality in _KEYS if _has(found, modality))


def _entries(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from config.items()
    inside = config.get(_INSIDE)
    if isinstance(inside, Mapping):
        yield from inside.items()


def _has(found: Mapping[str, Any], modality: Modality) -> bool:
    if modality == "image":
        return any(_KEYS[modality].search(key) for key in found)
    encoders = [found[key] for key in _ENCODERS.get(modality, ()) if key in found]
    if found.get(f"init_{modality}") is False or (encoders and not any(encoders)):
        return False
    return any(_KEYS[modality].fullmatch(key) and _said(value) for key, value in found.items())


def _said(value: object) -> bool:
    """Whether a value names a token, or configures something."""
    return (
        value >= 0
        if isinstance(value, int) and not isinstance(value, bool)
        else isinstance(value, Mapping) and bool(value)
    )


def in_words(modalities: Iterable[Modality]) -> str:
    """``images, audio, video``; "text only" for none."""
    return ", ".join(NAMES[modality] for modality in modalities) or "text only"
