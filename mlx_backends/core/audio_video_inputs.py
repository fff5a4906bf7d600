"""Audio and video as a model's processor takes them, decoded by our own readers and cached by content."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.media import read_media
from benchmarks.media.video_files import Clip
from benchmarks.vocabulary import Media
from mlx_backends.core.lru_cache import LRUCache

CACHE_BYTES = 2**27
"""Memory for decoded audio and video; the newest entry is cached whatever its size."""

MAX_FRAMES = 64
"""Most frames shown of a video, even where its model would take more."""

MAX_FRAME_PIXELS = 1024 * 1024
"""Most pixels of a frame; a larger one is scaled down before the processor sees it."""

_RATE = 16_000


@dataclass(frozen=True, slots=True, eq=False)
class SampledAudio:
    """Decoded audio: ``samples`` of shape (samples,) at the processor's rate, float32.

    ``truncated`` tells that the model hears no more than its beginning.
    """

    samples: Any
    truncated: bool


@dataclass(frozen=True, slots=True, eq=False)
class SampledVideo:
    """A decoded video: ``frames`` of shape (frames, 3, height, width), uint8, and mlx-vlm's ``metadata`` with their times.

    ``subsampled`` tells that the model would take more frames than it is shown.
    """

    frames: Any
    metadata: Any
    subsampled: bool


MediaKey = tuple[Any, ...]
"""The cache key of one audio clip or video: the sha256 of its file's bytes, and how it is decoded."""


class AudioVideoReader:
    """Reader of audio and video for one model.

    ``rate`` is the sampling rate of its processor in Hz; ``max_seconds`` the longest audio it hears, None where it sets no
    limit. Videos are sampled as mlx-vlm samples them for this processor: at its frames per second, evenly from the first frame
    to the last, but at most ``MAX_FRAMES``.
    """

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        extractor = getattr(processor, "feature_extractor", None)
        self.rate = int(getattr(extractor, "sampling_rate", None) or _RATE)
        self.max_seconds = _max_seconds(extractor, self.rate)
        self.truncated: set[str] = set()
        """sha256 of the audio files of which the model hears only the beginning."""
        self.subsampled: set[str] = set()
        """sha256 of the videos of which the model is shown fewer frames than it would take."""
        self._audio_cache: LRUCache[SampledAudio] = LRUCache(CACHE_BYTES // 4)
        self._video_cache: LRUCache[SampledVideo] = LRUCache(CACHE_BYTES - CACHE_BYTES // 4)

    def read_audio(self, path: Path, media: Media, *, keep: bool) -> tuple[MediaKey, SampledAudio]:
        """Return an audio file's key and its samples, from the file as it is now; without ``keep`` nothing is cached.

        Raises MediaError.
        """
        data = read_media(path, media)
        key = ("audio", hashlib.sha256(data).hexdigest())
        audio = (
            self._audio_cache.get(key, lambda: self._decode_audio(data), lambda decoded: int(decoded.samples.nbytes))
            if keep
            else self._decode_audio(data)
        )
        if audio.truncated:
            self.truncated.add(key[1])
        return key, audio

    def read_video(
        self, path: Path, media: Media, max_pixels: int | None, *, keep: bool
    ) -> tuple[MediaKey, SampledVideo]:
        """Return a video file's key and its frames of at most ``max_pixels``, from the file as it is now.

        Raises MediaError.
        """
        data = read_media(path, media)
        key = ("video", hashlib.sha256(data).hexdigest(), max_pixels)

        def decode() -> SampledVideo:
            return self._decode_video(data, max_pixels)

        video = self._video_cache.get(key, decode, lambda decoded: int(decoded.frames.nbytes)) if keep else decode()
        if video.subsampled:
            self.subsampled.add(key[1])
        return key, video

    def remarks(self, model: str) -> list[str]:
        """Return a sentence for each way in which media were not shown to the model in full."""
        remarks = []
        if self.truncated:
            remarks.append(
                f"{model} hears the first {self.max_seconds:g} s of audio; "
                f"{len(self.truncated)} longer files were truncated."
            )
        if self.subsampled:
            remarks.append(
                f"{model} was shown only {MAX_FRAMES} frames of {len(self.subsampled)} videos; it would take more."
            )
        return remarks

    def _decode_audio(self, data: bytes) -> SampledAudio:
        from benchmarks.media.audio_files import load_sound

        samples = load_sound(data, self.rate)
        limit = len(samples) if self.max_seconds is None else int(self.max_seconds * self.rate)
        return SampledAudio(samples[:limit], len(samples) > limit)

    def _decode_video(self, data: bytes, max_pixels: int | None) -> SampledVideo:
        from mlx_vlm.utils import VideoMetadata

        from benchmarks.media.video_files import load_clip

        clip, numbers, frames = load_clip(
            data, self.sample_frames, min(max_pixels or MAX_FRAME_PIXELS, MAX_FRAME_PIXELS)
        )
        height, width = frames.shape[2:]
        metadata = VideoMetadata(clip.frames, clip.fps or 1.0, numbers, width, height, clip.seconds)
        return SampledVideo(frames, metadata, len(self.sample_frames(clip, most=clip.frames)) > len(numbers))

    def sample_frames(self, clip: Clip, most: int = MAX_FRAMES) -> list[int]:
        """Return the numbers of the frames to show of a video, as mlx-vlm's ``load_video`` chooses them."""
        import numpy as np
        from mlx_vlm.utils import resolve_video_sampling

        sampling: Any = resolve_video_sampling(self._processor, {})
        factor = sampling.frame_factor
        most = min(sampling.max_frames, most, clip.frames) // factor * factor
        minimum = -(-sampling.min_frames // factor) * factor
        count = int(min(max(clip.seconds * sampling.fps, minimum), most)) // factor * factor
        count = max(count, min(factor, clip.frames))
        return [int(number) for number in np.linspace(0, clip.frames - 1, count).round()]


def _max_seconds(extractor: Any, rate: int) -> float | None:
    """Return the length in seconds to which a feature extractor silently truncates audio, read from its own defaults."""
    try:
        parameters = inspect.signature(extractor.__call__).parameters
        truncates, max_length = parameters["truncation"].default, parameters["max_length"].default
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    max_length = max_length or getattr(extractor, "n_samples", None)
    return max_length / rate if truncates is True and isinstance(max_length, int) and max_length > 0 else None
