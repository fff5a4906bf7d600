"""A medium as people are shown it, and where it lies: never outside its build, never a file that could be run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.base import Media
from benchmarks.build import media_path as build_media_path
from benchmarks.errors import MediaError

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

_NAMES = {"point_cloud": "3D model"}
_KEPT = 64
"""So many media are kept as they were seen, each of some hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class MediaPreview:
    """``facts`` is a line: kind, size, length, counts, or why it cannot be seen; hostile as the file is. ``picture`` is small
    and RGB; None where there is none."""

    facts: str
    picture: PILImage | None = None


def media_path(build: Path, media: Media) -> Path | None:
    """The medium's file; None where it is not there, or its name leads elsewhere or to what is no medium."""
    try:
        return build_media_path(build, media)
    except MediaError:
        return None


def seen(media: Media, path: Path | None, side: int) -> MediaPreview:
    """The medium in the file ``path`` as people are shown it, its picture of at most ``side`` pixels a side. Never raises.

    A sound's picture is its waveform, a video's three frames, a 3D model's a view. What was seen is kept by its content. It
    takes as long as reading a file of any size: for a thread.
    """
    told = [_NAMES.get(media.modality, media.modality)]
    picture = None
    if path is None:
        told.append("not there")
    else:
        told.append(media.suffix.lstrip("."))
        try:
            told.append(_bytes(path.stat().st_size))
            picture, known = _glance(media, path, side)
            told += known
        except MediaError as error:
            told.append(error.reason)
        except Exception as error:  # whatever else a hostile file, or a machine without memory, can make of this
            told.append(f"cannot be read ({type(error).__name__})")
    if media.marks:
        told.append(f"with {len(media.marks)} marks drawn: {', '.join(mark.label for mark in media.marks[:12])}")
    return MediaPreview(", ".join(told), picture)


@lru_cache(_KEPT)
def _glance(media: Media, path: Path, side: int) -> tuple[PILImage, tuple[str, ...]]:
    from benchmarks.media import read_media
    from benchmarks.media.previews import glance

    picture, known = glance(read_media(path, media), media.suffix, media.modality, side)
    return picture, tuple(known.values())


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
