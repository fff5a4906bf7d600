"""What is made of any medium: pictures for models that see only those, a thumbnail, a few facts."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Modality
from benchmarks.errors import MediaError
from benchmarks.media import audio, image, points, render, video
from benchmarks.media.limits import LARGEST_FILE

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

FRAMES = 8
"""Pictures of a video."""

LARGEST_PICTURE = 640 * 640
"""Pixels of a video's picture; a larger frame is scaled down."""

_EMPTY = "is empty; replace the file"
_TOO_LARGE = f"is larger than {LARGEST_FILE // 1024**2} MiB; make it smaller"
_WAVE_RATE = 8000
_STRIP = 3
_VIEW = render.VIEWS[-1:]


def check(data: bytes, suffix: str, modality: Modality) -> str:
    """The suffix that a medium's bytes ask for, whatever its file is called. Raises MediaError where a model could not be
    shown it: it is empty, of another format, truncated, damaged, or beyond a limit.

    Images, sounds and 3D models are read whole; of a video the packets are, and its first frame.
    """
    _sized(data)
    if modality == "image":
        image.load_image(data)
        return image.image_suffix(data) or suffix
    if modality == "audio":
        audio.load_sound(data, _WAVE_RATE)
        return audio.sound_suffix(data) or suffix
    if modality == "video":
        video.read_clip(data)
        return video.video_suffix(data) or suffix
    points.load_views(data, suffix, ())
    return points.shape_suffix(data, suffix.lower()) or suffix


def pictures(data: bytes, suffix: str, modality: Modality) -> list[bytes]:
    """The pictures (PNG) of a 3D model, six labelled views, or of a video, at most eight frames sampled evenly.

    Equal bytes give equal pictures. Raises MediaError as ``check``, and for a modality that has no pictures.
    """
    _sized(data)
    if modality == "point_cloud":
        return [_png(view) for view in points.load_views(data, suffix, render.VIEWS)[0]]
    if modality == "video":
        return [_png(frame) for frame in video.load_frames(data, FRAMES, LARGEST_PICTURE)]
    raise MediaError(f"the {modality}", "is not made into pictures")


def glance(data: bytes, suffix: str, modality: Modality, side: int) -> tuple[PILImage, dict[str, str]]:
    """The ``thumbnail`` and the ``facts`` of a medium, which is decoded once for both where both need that."""
    _sized(data)
    if modality == "image":
        made = image.load_image(data)
        known = _size(made)
    elif modality == "point_cloud":
        (made,), count, faces = points.load_views(data, suffix, _VIEW)
        known = _counts(count, faces)
    else:
        return thumbnail(data, suffix, modality, side), facts(data, suffix, modality)
    made.thumbnail((side, side))
    return made, known


def thumbnail(data: bytes, suffix: str, modality: Modality, side: int) -> PILImage:
    """A small RGB picture of any medium, at most ``side`` pixels wide and high: an image, a sound's waveform, three frames
    of a video side by side, a 3D model's three-quarter view. Raises MediaError."""
    _sized(data)
    if modality == "audio":
        return _waveform(audio.load_sound(data, _WAVE_RATE), side)
    if modality == "point_cloud":
        (made,), *_ = points.load_views(data, suffix, _VIEW)
    elif modality == "video":
        made = _beside(video.load_frames(data, _STRIP, LARGEST_PICTURE))
    else:
        made = image.load_image(data)
    made.thumbnail((side, side))
    return made


def facts(data: bytes, suffix: str, modality: Modality) -> dict[str, str]:
    """What is known of a medium, in short: length, rate, size, counts. Raises MediaError."""
    _sized(data)
    if modality == "audio":
        sound = audio.read_header(data)
        return {
            "length": f"{sound.seconds:.1f} s",
            "rate": f"{sound.rate} Hz",
            "channels": {1: "mono", 2: "stereo"}.get(sound.channels, f"{sound.channels} channels"),
        }
    if modality == "video":
        clip = video.read_clip(data)
        return {
            "length": f"{clip.seconds:.1f} s",
            "size": f"{clip.width} x {clip.height} pixels",
            "frames": f"{clip.frames} frames",
            "rate": f"{clip.fps:.4g} a second",
        }
    if modality == "point_cloud":
        return _counts(*points.load_views(data, suffix, ())[1:])
    return _size(image.load_image(data))


def _size(made: PILImage) -> dict[str, str]:
    return {"size": f"{made.width} x {made.height} pixels"}


def _counts(count: int, faces: int | None) -> dict[str, str]:
    counts = {"points": f"{count} points"}
    return counts if faces is None else {**counts, "faces": f"{faces} faces"}


def _sized(data: bytes) -> None:
    if not data:
        raise MediaError("the medium", _EMPTY)
    if len(data) > LARGEST_FILE:
        raise MediaError("the medium", _TOO_LARGE)


def _png(made: PILImage) -> bytes:
    out = io.BytesIO()
    made.save(out, "PNG")
    return out.getvalue()


def _beside(frames: list[PILImage]) -> PILImage:
    from PIL import Image

    whole = Image.new("RGB", (sum(each.width for each in frames), max(each.height for each in frames)), "white")
    left = 0
    for each in frames:
        whole.paste(each, (left, 0))
        left += each.width
    return whole


def _waveform(sound: np.ndarray[tuple[int, ...], np.dtype[np.float32]], side: int) -> PILImage:
    """The loudest sample of each column, to the loudest of all; a line where there is nothing."""
    from PIL import Image

    high = max(side // 3, 1)
    edges = np.linspace(0, len(sound), side + 1).astype(np.int64)
    loudest = np.array([np.abs(sound[a:b]).max(initial=0.0) for a, b in itertools.pairwise(edges)])
    tall = np.maximum(loudest / (float(loudest.max()) or 1.0) * (high // 2), 0.5)
    away = np.abs(np.arange(high)[:, None] - (high - 1) / 2)
    drawn = np.where((away <= tall)[..., None], np.array([40, 90, 160]), 255)
    return Image.fromarray(drawn.astype(np.uint8))
