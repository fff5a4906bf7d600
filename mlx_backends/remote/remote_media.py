"""Media as they are sent to a provider: of images the pixels, of sounds the samples, and of videos the whole file."""

from __future__ import annotations

import hashlib
import io
import threading
import wave
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Media, Modality
from mlx_backends.base import MediaPath

_PIXELS_A_TOKEN = 750
"""Anthropic's documented formula; others take fewer tokens for a large image, some small models many more."""

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


SOUND_RATE = 16_000
"""The sample rate in Hz at which sounds are sent, that to which Gemini reduces them."""

MAX_REQUEST_BYTES = 14 * 2**20
"""The most bytes of a request's sounds and videos; as base64 they and the texts stay below Gemini's 20 MB a request."""

_VIDEO_TYPES = {".mp4": "video/mp4", ".mov": "video/mov", ".webm": "video/webm", ".avi": "video/avi"}

_BYTES_A_TOKEN = {".wav": 2_500, ".flac": 1_200}
"""About the bytes of a file for a token of Gemini's 32 a second of sound; other formats, and videos, are compressed more."""

_BYTES_A_TOKEN_COMPRESSED = 300


@dataclass(frozen=True, slots=True)
class EncodedMedium:
    """A medium as bytes of the media type ``mime``."""

    modality: Modality
    mime: str
    data: bytes


class EncodedMedia:
    """Encoded media. The last few are cached: an example's siblings show one medium, and failed calls are retried."""

    def __init__(self, media: MediaPath) -> None:
        self._media = media
        self._lock = threading.Lock()
        self._added: dict[str, bytes] = {}
        self._cached_png = lru_cache(maxsize=16)(self._png)
        self._cached_wav = lru_cache(maxsize=4)(self._wav)

    def add_png(self, data: bytes) -> Media:
        """Return a picture that was made here, which is sent as it is."""
        picture = Media(hashlib.sha256(data).hexdigest(), ".png")
        self._added[picture.name] = data
        return picture

    def encode(self, media: Media, max_pixels: int | None) -> EncodedMedium:
        """Return a medium as it is sent: an image as a PNG, a sound as a WAV file of one channel, a video as its file.

        Raises ModelError for another medium or too large a file, and MediaError for a medium that cannot be read.
        """
        match media.modality:
            case "image":
                return EncodedMedium("image", "image/png", self.png(media, max_pixels))
            case "audio":
                with self._lock:
                    return EncodedMedium("audio", "audio/wav", self._cached_wav(media))
            case "video":
                return self._video(media)
        raise ModelError(f"no remote engine takes media of type {media.modality}.")

    def png(self, media: Media, max_pixels: int | None) -> bytes:
        """Return the pixels of an image, scaled down to ``max_pixels``, as a PNG without metadata.

        Raises MediaError for an image that cannot be read.
        """
        with self._lock:
            return self._cached_png(media, max_pixels)

    def _png(self, media: Media, max_pixels: int | None) -> bytes:
        from benchmarks.media import load_image, read_media

        if media.name in self._added:
            return self._added[media.name]
        image = load_image(read_media(self._media(media), media), max_pixels, media.marks)
        image.info.clear()
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    def _wav(self, media: Media) -> bytes:
        import numpy as np

        from benchmarks.media import read_media
        from benchmarks.media.audio_files import load_sound

        samples = load_sound(read_media(self._media(media), media), SOUND_RATE)
        file = io.BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(SOUND_RATE)
            writer.writeframes((np.clip(samples, -1, 1) * 32767).round().astype("<i2").tobytes())
        return file.getvalue()

    def _video(self, media: Media) -> EncodedMedium:
        from benchmarks.media import read_media
        from benchmarks.media.video_files import video_suffix

        data = read_media(self._media(media), media)
        suffix = video_suffix(data) or media.suffix
        if suffix not in _VIDEO_TYPES:
            raise ModelError(f"remote engines take no {suffix} videos; convert it to MP4 and build again.")
        return EncodedMedium("video", _VIDEO_TYPES[suffix], data)

    def tokens(self, media: Media, max_pixels: int | None) -> int:
        """Return about how many tokens a medium takes, from an image's header or the size of another file; 0 where unknown."""
        if media.modality == "image":
            return -(-self.pixels(media, max_pixels) // _PIXELS_A_TOKEN)
        try:
            size = self._media(media).stat().st_size
        except OSError:  # the call itself reports it
            return 0
        return -(-size // _BYTES_A_TOKEN.get(media.suffix, _BYTES_A_TOKEN_COMPRESSED))

    def pixels(self, media: Media, max_pixels: int | None) -> int:
        """Return how many pixels an image has when it is sent, read from its header; 0 where it cannot be read."""
        from PIL import Image

        try:
            added = self._added.get(media.name)
            with Image.open(io.BytesIO(added) if added else self._media(media), formats=_FORMATS) as image:
                size = image.width * image.height
        except Exception:  # a hostile header can raise anything, and the call itself reports the problem
            return 0
        return size if max_pixels is None else min(size, max_pixels)
