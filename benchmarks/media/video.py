"""Videos: MP4, MOV, MKV, WebM and AVI, as frames sampled evenly. No sound of theirs is read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.errors import MediaError
from benchmarks.media.image import fitting
from benchmarks.media.limits import LARGEST_FRAME, LONGEST_VIDEO, MOST_DECODED

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

NAME = "the video"
NO_VIDEO = "is not an MP4, MOV, MKV, WebM or AVI video; convert it to one of them"
NO_FRAMES = "holds no pictures; replace the file"
TOO_LONG = f"is longer than {LONGEST_VIDEO // 60} minutes; cut it"
TOO_LARGE = f"has frames of more than {LARGEST_FRAME // 10**6} megapixels, or too many of them; scale it down or cut it"
DAMAGED = "is truncated or damaged; replace the file"

_BICUBIC = 3
"""Pillow's number of it."""

_WHOLE = 0.9
"""The share of the frames its header promises that a whole video has at least; headers are rounded."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A video at a glance: pixels, frames, seconds."""

    width: int
    height: int
    frames: int
    seconds: float

    @property
    def fps(self) -> float:
        return self.frames / self.seconds if self.seconds else 0.0


def video_suffix(data: bytes) -> str | None:
    """The suffix, with its dot, of the video format that ``data`` begins like; None for anything else."""
    found = _format(data)
    return found[1] if found else None


def read_clip(data: bytes) -> Clip:
    """What the video is, from its header and packets; its first frame is decoded. Raises MediaError as ``load_frames``."""
    clip, _ = _measured(data)
    load_frames(data, 1, first=True)
    return clip


def load_clip(
    data: bytes, choose: Callable[[Clip], Sequence[int]], most_pixels: int
) -> tuple[Clip, list[int], list[PILImage]]:
    """What the video is, and the frames whose numbers ``choose`` names, in order, with those numbers.

    Each has at most ``most_pixels``, all the size of the first; one that cannot be decoded is left out. Raises MediaError as
    ``load_frames``.
    """
    clip, _ = _measured(data)
    numbers, frames = _decoded(data, set(choose(clip)))
    size = fitting(*frames[0].size, most_pixels)
    return clip, numbers, [frame if frame.size == size else frame.resize(size, _BICUBIC) for frame in frames]


def load_frames(data: bytes, count: int, *, first: bool = False) -> list[PILImage]:
    """At most ``count`` frames, RGB, turned as the video says: the middle ones of as many equal parts of it, in order.

    A video of fewer frames gives all of them; ``first`` begins at its first frame instead of in the middle of a part. Raises
    MediaError for what is no video, has no frames, is truncated, or is beyond a limit (seen before anything is decoded).
    """
    clip, _ = _measured(data)
    count = min(count, clip.frames)
    wanted = {0} if first else {(2 * part + 1) * clip.frames // (2 * count) for part in range(count)}
    return _decoded(data, wanted)[1]


def _decoded(data: bytes, wanted: set[int]) -> tuple[list[int], list[PILImage]]:
    numbers, found = [], []
    with _opened(data) as (container, stream):
        for number, frame in enumerate(container.decode(stream)):
            if frame.width * frame.height > LARGEST_FRAME:  # it may change on the way
                raise MediaError(NAME, TOO_LARGE)
            if number in wanted:
                image = frame.to_image()
                found.append(image.rotate(frame.rotation, expand=True) if frame.rotation else image)
                numbers.append(number)
            if number >= max(wanted):
                break
    if not found:
        raise MediaError(NAME, DAMAGED)
    return numbers, found


def _measured(data: bytes) -> tuple[Clip, float]:
    with _opened(data) as (container, stream):
        size = stream.width * stream.height
        if size <= 0:
            raise MediaError(NAME, NO_FRAMES)
        if size > LARGEST_FRAME:
            raise MediaError(NAME, TOO_LARGE)
        said = float(container.duration or 0) / 1_000_000
        if stream.duration and stream.time_base:
            said = max(said, float(stream.duration * stream.time_base))
        if said > LONGEST_VIDEO:
            raise MediaError(NAME, TOO_LONG)
        frames, end = 0, 0.0
        for packet in container.demux(stream):
            if not packet.size:
                continue
            frames += 1
            if packet.pts is not None and packet.time_base:
                end = max(end, float((packet.pts + (packet.duration or 0)) * packet.time_base))
            if frames * size > MOST_DECODED:
                raise MediaError(NAME, TOO_LARGE)
        if not frames:
            raise MediaError(NAME, NO_FRAMES)
        if end > LONGEST_VIDEO:
            raise MediaError(NAME, TOO_LONG)
        if frames < _WHOLE * stream.frames:
            raise MediaError(NAME, DAMAGED)
        return Clip(stream.width, stream.height, frames, end or said), said


@contextmanager
def _opened(data: bytes) -> Iterator[tuple[Any, Any]]:
    import av

    if (found := _format(data)) is None:
        raise MediaError(NAME, NO_VIDEO)
    try:
        # The format is named, since some that are recognised by their contents open other files.
        with av.open(io.BytesIO(data), format=found[0], metadata_errors="replace") as container:
            if not container.streams.video:
                raise MediaError(NAME, NO_FRAMES)
            yield container, container.streams.video[0]
    except MediaError:
        raise
    # A decoder that is given hostile bytes can raise anything.
    except Exception as error:
        raise MediaError(NAME, DAMAGED) from error


def _format(data: bytes) -> tuple[str, str] | None:
    if data[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
        return "mov", ".mov" if data[4:8] != b"ftyp" or data[8:12] == b"qt  " else ".mp4"
    if data[:4] == b"\x1aE\xdf\xa3":
        return "matroska", ".webm" if b"webm" in data[:64] else ".mkv"
    if data[:4] == b"RIFF" and data[8:12] == b"AVI ":
        return "avi", ".avi"
    return None
