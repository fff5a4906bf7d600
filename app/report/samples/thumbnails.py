"""Thumbnails of a run's media, for exports that people look at."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.report.samples.sample_media import MediaPreview, media_path, preview_media
from app.text.text_escaping import clean
from benchmarks.vocabulary import Media

LONGEST_SIDE = 256
"""In pixels: a chart's labels are still legible, and 1,884 thumbnails take about ten megabytes."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """Thumbnail of a medium: a line of ``facts``, and ``picture``, a ``data:`` URI of a small WebP, if it has one."""

    facts: str
    picture: str | None


def make_thumbnails(media_by_build: Iterable[tuple[Path, Media]]) -> Mapping[str, Thumbnail]:
    """Return a thumbnail of every medium in pairs of (build, medium), by sha256; from the first build that has the file."""
    thumbnails: dict[str, Thumbnail] = {}
    for build, media in media_by_build:
        if media.sha256 in thumbnails and thumbnails[media.sha256].picture:
            continue
        preview = preview_media(media, media_path(build, media), LONGEST_SIDE)
        picture = small_picture(preview)
        uri = None if picture is None else f"data:image/webp;base64,{b64encode(picture).decode()}"
        thumbnails[media.sha256] = Thumbnail(clean(preview.facts), uri)
    return thumbnails


def small_picture(preview: MediaPreview) -> bytes | None:
    """Return the picture of a preview as a small WebP; None if it has none."""
    if preview.picture is None:
        return None
    out = io.BytesIO()
    preview.picture.save(out, "WEBP", quality=60, method=2)
    return out.getvalue()
