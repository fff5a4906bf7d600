"""Videos in MP4, MOV, MKV, WebM and AVI files, read as evenly sampled frames without sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from benchmarks.errors import MediaError
from benchmarks.extras import require_extra
from benchmarks.media.decoder_faults import refusing_bytes
from benchmarks.media.image_pixels import fit_size
from benchmarks.media.media_decoder import run_decoder
from benchmarks.media.media_limits import LARGEST_FRAME, LONGEST_VIDEO, MOST_DECODED, MOST_FRAMES

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
"""Pillow's numbers of the resampling filters."""

_MIN_FRAMES = 0.9
"""The minimum share of the frames declared in the header, which is rounded, that a complete video contains."""


@dataclass(frozen=True, slots=True)
class Clip:
    """The dimensions of a video: width and height in pixels, number of frames, length in seconds."""

    width: int
    height: int
    frames: int
    seconds: float

    @property
    def fps(self) -> float:
        return self.frames / self.seconds if self.seconds else 0.0


def video_suffix(data: bytes) -> str | None:
    """Return the suffix (with its dot) of the video format whose signature ``data`` has; None for anything else."""
    video_format = _format(data)
    return video_format[1] if video_format else None


def read_clip(data: bytes) -> Clip:
    """Return a video's dimensions from its header and packets, after decoding its first frame. Raises MediaError."""
    require_extra("video", "videos")
    ((fields, _),) = run_decoder("clip", NAME, data)
    return Clip(int(fields["width"]), int(fields["height"]), int(fields["frames"]), float(fields["seconds"]))


def load_clip(
    data: bytes, choose: Callable[[Clip], Sequence[int]], most_pixels: int
) -> tuple[Clip, list[int], NDArray[np.uint8]]:
    """Return a video's dimensions, and the numbers and pixels of the frames that ``choose`` selects, in order.

    The frames have shape (frames, 3, height, width). Each has at most ``most_pixels`` and the size of the first. Frames that
    cannot be decoded are left out. Raises MediaError as :func:`load_frames`.
    """
    import numpy as np

    clip = read_clip(data)
    selected = sorted(set(choose(clip)))
    numbers: list[int] = []
    frames = np.empty((0, 3, 0, 0), np.uint8)
    for number, (width, height), pixels in _frames(data, "bicubic", numbers=selected, most_pixels=most_pixels):
        if not numbers:
            frames = np.empty((len(selected), 3, height, width), np.uint8)
        frames[len(numbers)] = np.frombuffer(pixels, np.uint8).reshape(height, width, 3).transpose(2, 0, 1)
        numbers.append(number)
    return clip, numbers, frames[: len(numbers)]


def load_frames(data: bytes, count: int, most_pixels: int | None = None) -> list[PILImage]:
    """Return the middle frames of ``count`` equal parts of a video, as RGB, rotated as its metadata say, in order.

    A video with fewer frames gives all of them. Frames of more than ``most_pixels`` are scaled down. Raises MediaError for
    data that are not a video, have no frames, are truncated, or exceed a limit.
    """
    from PIL import Image

    frames = _frames(data, "lanczos", numbers=None, count=count, most_pixels=most_pixels)
    return [Image.frombytes("RGB", size, pixels) for _, size, pixels in frames]


def _frames(data: bytes, method: str, **request: Any) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield the number, size and RGB pixels of frames that a child process decodes."""
    require_extra("video", "videos")
    for fields, payload in run_decoder("clip-frames", NAME, data, filter=method, **request):
        width, height = map(int, fields["size"])
        yield int(fields["number"]), (width, height), payload


def middle_frames(clip: Clip, count: int) -> set[int]:
    """Return the numbers of the middle frames of ``count`` equal parts."""
    count = min(count, clip.frames)
    return {(2 * part + 1) * clip.frames // (2 * count) for part in range(count)}


def decode(
    file: IO[bytes], numbers: set[int], most_pixels: int | None = None, method: int = FILTERS["lanczos"]
) -> Iterator[tuple[int, PILImage]]:
    """Yield the numbered frames, rotated and scaled down to one size of at most ``most_pixels``, in this process."""
    size, last = None, max(numbers)
    with _opened(file) as (container, stream):
        for number, frame in enumerate(container.decode(stream)):
            if frame.width * frame.height > LARGEST_FRAME:  # the size may change between frames
                raise MediaError(NAME, TOO_LARGE)
            if number in numbers:
                image = frame.to_image()
                if frame.rotation:
                    image = image.rotate(frame.rotation, expand=True)
                size = size or fit_size(image.width, image.height, most_pixels)
                yield number, image if image.size == size else image.resize(size, method)
            if number >= last:
                break
    if size is None:
        raise MediaError(NAME, DAMAGED)


def probe_clip(file: IO[bytes]) -> Clip:
    """Return a video's dimensions from its header and packets, in this process. Raises MediaError."""
    with _opened(file) as (container, stream):
        size = stream.width * stream.height
        if size <= 0:
            raise MediaError(NAME, NO_FRAMES)
        if size > LARGEST_FRAME:
            raise MediaError(NAME, TOO_LARGE)
        declared = float(container.duration or 0) / 1_000_000
        if stream.duration and stream.time_base:
            declared = max(declared, float(stream.duration * stream.time_base))
        if declared > LONGEST_VIDEO:
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
        if frames < _MIN_FRAMES * stream.frames:
            raise MediaError(NAME, DAMAGED)
        if not frames:
            raise MediaError(NAME, NO_FRAMES)
        if end > LONGEST_VIDEO:
            raise MediaError(NAME, TOO_LONG)
        return Clip(stream.width, stream.height, frames, end or declared)


@contextmanager
def _opened(file: IO[bytes]) -> Iterator[tuple[Any, Any]]:
    import av

    file.seek(0)
    if (video_format := _format(file.read(64))) is None:
        raise MediaError(NAME, NO_VIDEO)
    file.seek(0)
    with refusing_bytes(NAME, DAMAGED):
        # The format is given, since some formats that PyAV would detect by content open other files.
        # PyAV 19 accepts metadata that are not UTF-8; before, that had to be requested.
        lenient: dict[str, Any] = {} if int(av.__version__.partition(".")[0]) >= 19 else {"metadata_errors": "replace"}
        with av.open(file, format=video_format[0], **lenient) as container:
            if not container.streams.video:
                raise MediaError(NAME, NO_FRAMES if len(container.streams) else DAMAGED)
            stream = container.streams.video[0]
            stream.codec_context.thread_count = (
                1  # limits count processor time, and each thread would hold its own pictures
            )
            yield container, stream


def _format(data: bytes) -> tuple[str, str] | None:
    """Return PyAV's name and the suffix of the format whose signature ``data`` has."""
    if data[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
        return "mov", ".mov" if data[4:8] != b"ftyp" or data[8:12] == b"qt  " else ".mp4"
    if data[:4] == b"\x1aE\xdf\xa3":
        return "matroska", ".webm" if b"webm" in data[:64] else ".mkv"
    if data[:4] == b"RIFF" and data[8:12] == b"AVI ":
        return "avi", ".avi"
    return None
