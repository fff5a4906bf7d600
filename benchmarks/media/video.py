"""Videos: MP4, MOV, MKV, WebM and AVI, as frames sampled evenly. No sound of theirs is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from benchmarks.errors import MediaError
from benchmarks.media.decoder import read
from benchmarks.media.image import fitting
from benchmarks.media.limits import LARGEST_FRAME, LONGEST_VIDEO, MOST_DECODED, MOST_FRAMES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image as PILImage

NAME = "the video"
NO_VIDEO = "is not an MP4, MOV, MKV, WebM or AVI video; convert it to one of them"
NO_FRAMES = "holds no pictures; replace the file"
TOO_LONG = f"is longer than {LONGEST_VIDEO // 60} minutes; cut it"
TOO_LARGE = f"has frames of more than {LARGEST_FRAME // 10**6} megapixels, or too many of them; scale it down or cut it"
DAMAGED = "is truncated or damaged; replace the file"

FILTERS = {"lanczos": 1, "bicubic": 3}
"""Pillow's numbers of what scales frames down."""

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
    """Return what the video is, from its header and packets; its first frame is decoded. Raises MediaError."""
    ((fields, _),) = read("clip", NAME, data)
    return Clip(int(fields["width"]), int(fields["height"]), int(fields["frames"]), float(fields["seconds"]))


def load_clip(
    data: bytes, choose: Callable[[Clip], Sequence[int]], most_pixels: int
) -> tuple[Clip, list[int], NDArray[np.uint8]]:
    """What the video is, and the frames whose numbers ``choose`` names, in order, with those numbers.

    The frames have the shape (frames, 3, height, width); each has at most ``most_pixels``, all the size of the first; one that
    cannot be decoded is left out. Raises MediaError as ``load_frames``.
    """
    import numpy as np

    clip = read_clip(data)
    wanted = sorted(set(choose(clip)))
    numbers: list[int] = []
    frames = np.empty((0, 3, 0, 0), np.uint8)
    for number, (width, height), pixels in _frames(data, "bicubic", numbers=wanted, most_pixels=most_pixels):
        if not numbers:
            frames = np.empty((len(wanted), 3, height, width), np.uint8)
        frames[len(numbers)] = np.frombuffer(pixels, np.uint8).reshape(height, width, 3).transpose(2, 0, 1)
        numbers.append(number)
    return clip, numbers, frames[: len(numbers)]


def load_frames(data: bytes, count: int, most_pixels: int | None = None) -> list[PILImage]:
    """At most ``count`` frames, RGB, turned as the video says: the middle ones of as many equal parts of it, in order.

    A video of fewer frames gives all of them. A frame of more than ``most_pixels`` is scaled down. Raises MediaError for what
    is no video, has no frames, is truncated, or is beyond a limit.
    """
    from PIL import Image

    found = _frames(data, "lanczos", numbers=None, count=count, most_pixels=most_pixels)
    return [Image.frombytes("RGB", size, pixels) for _, size, pixels in found]


def _frames(data: bytes, method: str, **request: Any) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    for fields, payload in read("clip-frames", NAME, data, filter=method, **request):
        width, height = map(int, fields["size"])
        yield int(fields["number"]), (width, height), payload


def middles(clip: Clip, count: int) -> set[int]:
    """Return the numbers of the middle frames of ``count`` equal parts."""
    count = min(count, clip.frames)
    return {(2 * part + 1) * clip.frames // (2 * count) for part in range(count)}


def decode(
    file: IO[bytes], wanted: set[int], most_pixels: int | None = None, method: int = FILTERS["lanczos"]
) -> Iterator[tuple[int, PILImage]]:
    """Yield the frames of ``wanted`` numbers, turned, scaled down to ``most_pixels`` and to one size; in this process."""
    size, last = None, max(wanted)
    with _opened(file) as (container, stream):
        for number, frame in enumerate(container.decode(stream)):
            if frame.width * frame.height > LARGEST_FRAME:  # it may change on the way
                raise MediaError(NAME, TOO_LARGE)
            if number in wanted:
                image = frame.to_image()
                if frame.rotation:
                    image = image.rotate(frame.rotation, expand=True)
                size = size or fitting(image.width, image.height, most_pixels)
                yield number, image if image.size == size else image.resize(size, method)
            if number >= last:
                break
    if size is None:
        raise MediaError(NAME, DAMAGED)


def measure(file: IO[bytes]) -> Clip:
    """Return what the video is, from its header and packets; in this process. Raises MediaError."""
    with _opened(file) as (container, stream):
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
            if frames * size > MOST_DECODED or frames > MOST_FRAMES:
                raise MediaError(NAME, TOO_LARGE)
        if not frames:
            raise MediaError(NAME, NO_FRAMES)
        if end > LONGEST_VIDEO:
            raise MediaError(NAME, TOO_LONG)
        if frames < _WHOLE * stream.frames:
            raise MediaError(NAME, DAMAGED)
        return Clip(stream.width, stream.height, frames, end or said)


@contextmanager
def _opened(file: IO[bytes]) -> Iterator[tuple[Any, Any]]:
    import av

    file.seek(0)
    if (found := _format(file.read(64))) is None:
        raise MediaError(NAME, NO_VIDEO)
    file.seek(0)
    try:
        # The format is named, since some that are recognised by their contents open other files.
        with av.open(file, format=found[0], metadata_errors="replace") as container:
            if not container.streams.video:
                raise MediaError(NAME, NO_FRAMES)
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1  # its time is counted, and each thread has pictures of its own
            yield container, stream
    except (MediaError, MemoryError):
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
