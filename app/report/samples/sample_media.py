"""Previews of media, and the paths of their files: never outside the build, never an executable file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from app.store.bundles.bundle_layout_and_limits import THUMBNAILS, is_sha256
from benchmarks.build import media_path as build_media_path
from benchmarks.errors import ExtraMissingError, MediaError
from benchmarks.untrusted.safe_files import UnsafeFileError, check_file
from benchmarks.vocabulary import Media

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

_NAMES = {"point_cloud": "3D model"}
_CACHE_SIZE = 64
"""The number of previews in the cache, each of a few hundred kilobytes."""
_CACHED_SIDE = 800
"""The side in pixels up to which previews are cached."""


@dataclass(frozen=True, slots=True)
class MediaPreview:
    """Preview of a medium.

    Attributes:
        facts: One line with kind, size, length and counts, or the reason why there is no preview. Untrusted text.
        picture: A small RGB image, if there is one.
    """

    facts: str
    picture: PILImage | None = None


def media_path(build: Path, media: Media) -> Path | None:
    """Return the medium's file; None if it is missing, or its name leads outside the build or to another kind of file.

    A build that was received without its media may have a thumbnail in the medium's place.
    """
    try:
        return build_media_path(build, media)
    except MediaError:
        name = f"{THUMBNAILS}/{media.sha256}.webp"
        with suppress(OSError, UnsafeFileError):
            if is_sha256(media.sha256) and check_file(build, name, write=False):
                return build / name
        return None


def preview_media(media: Media, path: Path | None, side: int) -> MediaPreview:
    """Return the preview of the medium in the file ``path``, with a picture of at most ``side`` pixels a side. Never raises.

    Audio is drawn as its waveform, a video as three frames, a 3D model as a view. Small previews are cached by content. Run
    this in a thread: it reads a file of any size.
    """
    facts = [_NAMES.get(media.modality, media.modality)]
    picture = None
    if path is None:
        facts.append("not there")
    else:
        if path.parent.name == THUMBNAILS:
            facts.append("thumbnail")
            media = Media(media.sha256, path.suffix)
        facts.append(media.suffix.lstrip("."))
        try:
            facts.append(_bytes(path.stat().st_size))
            picture, details = (_glance if side <= _CACHED_SIDE else _read_preview)(media, path, side)
            facts += details
        except MediaError as error:
            facts.append(error.reason)
        except ExtraMissingError as error:
            facts.append(str(error).removesuffix("."))
        except Exception as error:  # from a hostile file, or a machine without memory
            facts.append(f"cannot be read ({type(error).__name__})")
    if media.marks:
        facts.append(f"with {len(media.marks)} marks drawn: {', '.join(mark.label for mark in media.marks[:12])}")
    return MediaPreview(", ".join(facts), picture)


def _read_preview(media: Media, path: Path, side: int) -> tuple[PILImage, tuple[str, ...]]:
    from benchmarks.media import read_image, read_media
    from benchmarks.media.media_previews import preview

    data = read_image(path) if path.parent.name == THUMBNAILS else read_media(path, media)
    picture, facts = preview(data, media.suffix, media.modality, side)
    return picture, tuple(facts.values())


_glance = lru_cache(_CACHE_SIZE)(_read_preview)


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
