"""Media of the page: how each is displayed, and the files behind the addresses that the page was given."""

from __future__ import annotations

import hashlib
import io
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from app.report.samples.sample_media import media_path, preview_media
from app.store.bundles.bundle_layout_and_limits import THUMBNAILS
from app.text.text_escaping import clean
from app.text.text_escaping import size as text_size
from app.view.contents.page_types import Medium
from benchmarks.errors import MediaError
from benchmarks.media import load_image, read_media
from benchmarks.vocabulary import Media, digest

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

TYPES: Mapping[str, str] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".mp4": "video/mp4",
    ".mov": "video/quicktime",
    ".mkv": "video/x-matroska",
    ".webm": "video/webm",
    ".avi": "video/x-msvideo",
}
"""The MIME types of the files that a browser is given; of others, such as TIFF and 3D models, it is given the preview alone."""

SIDE = 1_600
"""The longest side of a preview in pixels."""
_MOST_FILES = 20_000
_PREVIEW_BYTES = 32 << 20
_FOLDER = "media"
_IN_A_ROW = 3


class MediaFile(NamedTuple):
    """A medium, and the folder of the build that it belongs to."""

    medium: Media
    build: Path

    @property
    def path(self) -> Path | None:
        """The file, or the thumbnail in its place; None if it is missing or unsafe."""
        return media_path(self.build, self.medium)

    def intact_path(self) -> Path | None:
        """Return the file; None if it is missing, unsafe or not the one that the instance names, as its digest tells."""
        path = self.path
        if path is None:
            return None
        state = path.stat()
        return path if _file_digest(path, state.st_mtime_ns, state.st_size) == self.medium.sha256 else None


@lru_cache(_MOST_FILES)
def _file_digest(path: Path, changed: int, size: int) -> str:
    """Return the sha256 of a file, which is read again once its time or its size is another."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class MediaFiles:
    """The media that the page was told of, by the names in their addresses; those displayed long ago are forgotten."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, MediaFile] = OrderedDict()
        self._previews: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    def describe(self, file: MediaFile) -> Medium:
        """Return a medium as the page displays it, with addresses below the page's."""
        medium, path = file.medium, file.path
        if medium.modality == "image":
            glance = preview_media(medium, path, 1)
            facts, is_usable = glance.facts, glance.picture is not None
        else:  # decoded only for its preview, which takes seconds
            facts, is_usable = _facts(medium, path), path is not None
        is_original = path is not None and path.parent.name != THUMBNAILS and medium.suffix in TYPES
        return Medium(
            modality=medium.modality,
            facts=clean(facts),
            type=TYPES.get(medium.suffix, "application/octet-stream"),
            original=self._add(medium.name, file) if is_usable and is_original else None,
            preview=self._add(preview_name(medium), file) if is_usable else None,
            marks=tuple(clean(mark.label) for mark in medium.marks),
        )

    def file(self, address: str) -> MediaFile | None:
        """Return the medium behind an address in what :meth:`describe` returned; None if that was long ago."""
        with self._lock:
            return self._files.get(address.removeprefix(f"{_FOLDER}/"))

    def original(self, name: str) -> MediaFile | None:
        """Return the medium whose file has this name; None if the page was not told of it."""
        with self._lock:
            file = self._files.get(name)
        return file if file is not None and file.medium.name == name else None

    def preview(self, name: str) -> bytes | None:
        """Return a preview as WebP; None if the page was not told of it. Raises MediaError if it cannot be drawn."""
        with self._lock:
            file, picture = self._files.get(name), self._previews.get(name)
            if picture is not None:
                self._previews.move_to_end(name)
        if file is None or picture is not None or file.medium.name == name:
            return picture
        picture = draw_preview(file)
        with self._lock:
            self._previews[name] = picture
            while sum(map(len, self._previews.values())) > _PREVIEW_BYTES and len(self._previews) > 1:
                self._previews.popitem(last=False)
        return picture

    def _add(self, name: str, file: MediaFile) -> str:
        with self._lock:
            self._files[name] = file
            self._files.move_to_end(name)
            while len(self._files) > _MOST_FILES:
                self._files.popitem(last=False)
        return f"{_FOLDER}/{name}"


def preview_name(medium: Media) -> str:
    """Return the name of a preview, which depends on the marks that are drawn in it."""
    marks = digest([(mark.label, mark.box) for mark in medium.marks])[:8] if medium.marks else "preview"
    return f"{medium.sha256}-{marks}.webp"


def draw_preview(file: MediaFile, side: int = SIDE) -> bytes:
    """Return a picture of a medium as WebP, with its marks. Raises MediaError if it cannot be drawn."""
    medium, path = file.medium, file.path
    if path is None:
        raise MediaError(f"the {medium.modality}", "is not there")
    if path.parent.name != THUMBNAILS and medium.modality == "point_cloud":
        picture = _views(medium, path)
    elif path.parent.name != THUMBNAILS and medium.marks:
        picture = load_image(read_media(path, medium), marks=medium.marks)
    else:
        preview = preview_media(medium, path, side)
        if preview.picture is None:
            raise MediaError(f"the {medium.modality}", preview.facts)
        picture = preview.picture
    picture.thumbnail((side, side))
    out = io.BytesIO()
    picture.convert("RGB").save(out, "WEBP", quality=85)
    return out.getvalue()


def _views(medium: Media, path: Path) -> PILImage:
    """Return the views of a 3D model that models are shown, three in a row."""
    from PIL import Image

    from benchmarks.media.media_previews import media_pictures

    pictures = media_pictures(read_media(path, medium), medium.suffix, medium.modality)
    views = [load_image(picture) for picture in pictures]
    width, height = views[0].size
    sheet = Image.new("RGB", (_IN_A_ROW * width, -(-len(views) // _IN_A_ROW) * height))
    for place, view in enumerate(views):
        sheet.paste(view, (place % _IN_A_ROW * width, place // _IN_A_ROW * height))
    return sheet


def _facts(medium: Media, path: Path | None) -> str:
    """Return a medium's kind and size without decoding it."""
    kind = {"point_cloud": "3D model"}.get(medium.modality, medium.modality)
    if path is None:
        return f"{kind}, not there"
    try:
        size = path.stat().st_size
    except OSError:
        return f"{kind}, not there"
    return f"{kind}, {path.suffix.lstrip('.')}, {text_size(size)}"
