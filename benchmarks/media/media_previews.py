"""Previews of any medium: pictures for models that take only images, a thumbnail, and a few facts."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.errors import MediaError
from benchmarks.media import audio_files, shape_files, shape_renderer, video_files
from benchmarks.media import image_files as image
from benchmarks.media.media_limits import LARGEST_FILE
from benchmarks.vocabulary import Modality

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

FRAMES = 8
"""The number of pictures of a video."""

LARGEST_PICTURE = 640 * 640
"""The maximum number of pixels of a video's picture; larger frames are scaled down."""

_EMPTY = "is empty; replace the file"
_TOO_LARGE = f"is larger than {LARGEST_FILE // 1024**2} MiB; make it smaller"
_WAVE_RATE = 8000
_STRIP_FRAMES = 3
_VIEW = shape_renderer.VIEWS[-1:]


def check_media(data: bytes, suffix: str, modality: Modality) -> str:
    """Return the suffix for a medium's content, whatever its file is called. Raises MediaError for an unusable medium.

    A medium is unusable if it is empty, of another format, truncated, damaged, or beyond a limit. Images, sounds and 3D
    models are read completely; of a video, the packets and the first frame.
    """
    _check_size(data)
    if modality == "image":
        image.load_image(data)
        return image.image_suffix(data) or suffix
    if modality == "audio":
        audio_files.load_sound(data, _WAVE_RATE)
        return audio_files.sound_suffix(data) or suffix
    if modality == "video":
        video_files.read_clip(data)
        return video_files.video_suffix(data) or suffix
    shape_files.load_views(data, suffix, ())
    return shape_files.shape_suffix(data, suffix.lower()) or suffix


def media_pictures(data: bytes, suffix: str, modality: Modality) -> list[bytes]:
    """Return the pictures (PNG) of a 3D model (six labelled views) or a video (at most eight evenly sampled frames).

    Equal bytes give equal pictures. Raises MediaError as :func:`check_media`, and for a modality without pictures.
    """
    _check_size(data)
    if modality == "point_cloud":
        return [_png(view) for view in shape_files.load_views(data, suffix, shape_renderer.VIEWS)[0]]
    if modality == "video":
        return [_png(frame) for frame in video_files.load_frames(data, FRAMES, LARGEST_PICTURE)]
    raise MediaError(f"the {modality}", "is not made into pictures")


def preview(data: bytes, suffix: str, modality: Modality, side: int) -> tuple[PILImage, dict[str, str]]:
    """Return the :func:`thumbnail` and the :func:`media_facts` of a medium, decoding it only once if both need that."""
    _check_size(data)
    if modality == "image":
        picture = image.load_image(data)
        facts = _size(picture)
    elif modality == "point_cloud":
        (picture,), count, faces = shape_files.load_views(data, suffix, _VIEW)
        facts = _counts(count, faces)
    else:
        return thumbnail(data, suffix, modality, side), media_facts(data, suffix, modality)
    picture.thumbnail((side, side))
    return picture, facts


def thumbnail(data: bytes, suffix: str, modality: Modality, side: int) -> PILImage:
    """Return a small RGB picture of any medium, at most ``side`` pixels wide and high. Raises MediaError.

    It shows an image, a sound's waveform, three frames of a video side by side, or a 3D model's three-quarter view.
    """
    _check_size(data)
    if modality == "audio":
        return _waveform(audio_files.load_sound(data, _WAVE_RATE), side)
    if modality == "point_cloud":
        (picture,), *_ = shape_files.load_views(data, suffix, _VIEW)
    elif modality == "video":
        picture = _side_by_side(video_files.load_frames(data, _STRIP_FRAMES, LARGEST_PICTURE))
    else:
        picture = image.load_image(data)
    picture.thumbnail((side, side))
    return picture


def media_facts(data: bytes, suffix: str, modality: Modality) -> dict[str, str]:
    """Return short facts about a medium: length, rate, size, counts. Raises MediaError."""
    _check_size(data)
    if modality == "audio":
        sound = audio_files.read_header(data)
        return {
            "length": f"{sound.seconds:.1f} s",
            "rate": f"{sound.rate} Hz",
            "channels": {1: "mono", 2: "stereo"}.get(sound.channels, f"{sound.channels} channels"),
        }
    if modality == "video":
        clip = video_files.read_clip(data)
        return {
            "length": f"{clip.seconds:.1f} s",
            "size": f"{clip.width} x {clip.height} pixels",
            "frames": f"{clip.frames} frames",
            "rate": f"{clip.fps:.4g} a second",
        }
    if modality == "point_cloud":
        return _counts(*shape_files.load_views(data, suffix, ())[1:])
    return _size(image.load_image(data))


def _size(picture: PILImage) -> dict[str, str]:
    return {"size": f"{picture.width} x {picture.height} pixels"}


def _counts(count: int, faces: int | None) -> dict[str, str]:
    counts = {"points": f"{count} points"}
    return counts if faces is None else {**counts, "faces": f"{faces} faces"}


def _check_size(data: bytes) -> None:
    if not data:
        raise MediaError("the medium", _EMPTY)
    if len(data) > LARGEST_FILE:
        raise MediaError("the medium", _TOO_LARGE)


def _png(picture: PILImage) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _side_by_side(frames: list[PILImage]) -> PILImage:
    from PIL import Image

    strip = Image.new("RGB", (sum(frame.width for frame in frames), max(frame.height for frame in frames)), "white")
    offset = 0
    for frame in frames:
        strip.paste(frame, (offset, 0))
        offset += frame.width
    return strip


def _waveform(sound: np.ndarray[tuple[int, ...], np.dtype[np.float32]], side: int) -> PILImage:
    """Return a sound's peak in each column, relative to the highest peak; silence is a line."""
    from PIL import Image

    height = max(side // 3, 1)
    edges = np.linspace(0, len(sound), side + 1).astype(np.int64)
    peaks = np.array([np.abs(sound[a:b]).max(initial=0.0) for a, b in itertools.pairwise(edges)])
    amplitude = np.maximum(peaks / (float(peaks.max()) or 1.0) * (height // 2), 0.5)
    distance = np.abs(np.arange(height)[:, None] - (height - 1) / 2)
    image = np.where((distance <= amplitude)[..., None], np.array([40, 90, 160]), 255)
    return Image.fromarray(image.astype(np.uint8))
