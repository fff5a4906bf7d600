"""Clips: sounds and videos as a model's processor takes them, decoded by our own readers and kept by their content."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.base import Media
from benchmarks.media import read_media
from benchmarks.media.video import Clip
from mlx_backends.core.lru_cache import LRUCache

KEPT_BYTES = 2**27
"""How much memory is given to kept sounds and videos; the newest is kept whatever its size."""

MOST_FRAMES = 64
"""Of a video, however many its model would take."""

LARGEST_FRAME = 1024 * 1024
"""Pixels; a larger one is scaled down before the processor sees it."""

_RATE = 16_000


@dataclass(frozen=True, slots=True, eq=False)
class SampledAudio:
    """A sound: ``samples`` of shape (samples,) at the processor's rate, float32; ``cut`` where the model hears no more of it."""

    samples: Any
    cut: bool


@dataclass(frozen=True, slots=True, eq=False)
class SampledVideo:
    """A video: ``frames`` of shape (frames, 3, height, width), uint8, and mlx-vlm's ``metadata``, which has their times.

    ``thinned`` where the model would take more frames.
    """

    frames: Any
    metadata: Any
    thinned: bool


Look = tuple[Any, ...]
"""What decides what a processor is given of a sound or a video: the sha256 of its file's bytes, and how it is taken."""


class AudioVideoReader:
    """The sounds and videos of one model.

    ``rate`` is what its processor takes sounds at, in Hz; ``seconds`` what it hears of one at most, None where it does not
    say. Videos are sampled as mlx-vlm samples them for this processor: so many frames a second, evenly from the first frame to
    the last, but at most ``MOST_FRAMES``.
    """

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        extractor = getattr(processor, "feature_extractor", None)
        self.rate = int(getattr(extractor, "sampling_rate", None) or _RATE)
        self.seconds = _longest(extractor, self.rate)
        self.cut: set[str] = set()
        """The sounds, by sha256, of which the model hears only the beginning."""
        self.thinned: set[str] = set()
        """The videos of which it is shown fewer frames than it would take."""
        self._heard: LRUCache[SampledAudio] = LRUCache(KEPT_BYTES // 4)
        self._seen: LRUCache[SampledVideo] = LRUCache(KEPT_BYTES - KEPT_BYTES // 4)

    def sound(self, path: Path, media: Media, *, keep: bool) -> tuple[Look, SampledAudio]:
        """A sound's file as it is now. Raises MediaError."""
        data = read_media(path, media)
        look = ("audio", hashlib.sha256(data).hexdigest())
        heard = (
            self._heard.get(look, lambda: self._hear(data), lambda one: int(one.samples.nbytes))
            if keep
            else self._hear(data)
        )
        if heard.cut:
            self.cut.add(look[1])
        return look, heard

    def video(self, path: Path, media: Media, max_pixels: int | None, *, keep: bool) -> tuple[Look, SampledVideo]:
        """A video's file as it is now; ``max_pixels`` bounds each frame. Raises MediaError."""
        data = read_media(path, media)
        look = ("video", hashlib.sha256(data).hexdigest(), max_pixels)

        def see() -> SampledVideo:
            return self._see(data, max_pixels)

        seen = self._seen.get(look, see, lambda one: int(one.frames.nbytes)) if keep else see()
        if seen.thinned:
            self.thinned.add(look[1])
        return look, seen

    def remarks(self, model: str) -> list[str]:
        """What whoever reads the answers must know of how media were shown, a sentence each."""
        told = []
        if self.cut:
            told.append(
                f"{model} hears the first {self.seconds:g} s of a sound; {len(self.cut)} are longer and were cut."
            )
        if self.thinned:
            told.append(
                f"{model} was shown {MOST_FRAMES} frames of {len(self.thinned)} videos of which it would take more."
            )
        return told

    def _hear(self, data: bytes) -> SampledAudio:
        from benchmarks.media.audio import load_sound

        samples = load_sound(data, self.rate)
        most = len(samples) if self.seconds is None else int(self.seconds * self.rate)
        return SampledAudio(samples[:most], len(samples) > most)

    def _see(self, data: bytes, max_pixels: int | None) -> SampledVideo:
        from mlx_vlm.utils import VideoMetadata

        from benchmarks.media.video import load_clip

        clip, numbers, frames = load_clip(data, self.sampled, min(max_pixels or LARGEST_FRAME, LARGEST_FRAME))
        height, width = frames.shape[2:]
        metadata = VideoMetadata(clip.frames, clip.fps or 1.0, numbers, width, height, clip.seconds)
        return SampledVideo(frames, metadata, len(self.sampled(clip, most=clip.frames)) > len(numbers))

    def sampled(self, clip: Clip, most: int = MOST_FRAMES) -> list[int]:
        """The numbers of the frames that are shown of a video (mlx-vlm's ``load_video``)."""
        import numpy as np
        from mlx_vlm.utils import resolve_video_sampling

        sampling: Any = resolve_video_sampling(self._processor, {})
        factor = sampling.frame_factor
        most = min(sampling.max_frames, most, clip.frames) // factor * factor
        least = -(-sampling.min_frames // factor) * factor
        count = int(min(max(clip.seconds * sampling.fps, least), most)) // factor * factor
        count = max(count, min(factor, clip.frames))
        return [int(number) for number in np.linspace(0, clip.frames - 1, count).round()]


def _longest(extractor: Any, rate: int) -> float | None:
    """The seconds after which a feature extractor cuts a sound without a word, as its own defaults say."""
    try:
        parameters = inspect.signature(extractor.__call__).parameters
        cuts, most = parameters["truncation"].default, parameters["max_length"].default
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    most = most or getattr(extractor, "n_samples", None)
    return most / rate if cuts is True and isinstance(most, int) and most > 0 else None
