"""Small pictures of a run's media, for exports that people look at."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.base import Media
from benchmarks.errors import MediaError

LONGEST_SIDE = 256
"""Pixels: a chart's labels can still be guessed, and 1,884 of them take some ten megabytes."""


def thumbnails(wanted: Iterable[tuple[Path, Media]]) -> Mapping[str, str]:
    """A ``data:`` URI of a small WebP by sha256, of every image among (folder, medium) that is there and can be read."""
    found: dict[str, str] = {}
    for folder, media in wanted:
        if media.sha256 not in found and media.modality == "image" and (small := _thumbnail(folder / media.name)):
            found[media.sha256] = f"data:image/webp;base64,{b64encode(small).decode()}"
    return found


def _thumbnail(path: Path) -> bytes | None:
    from benchmarks.media import load_image

    try:
        image = load_image(path)
    except MediaError:
        return None
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    out = io.BytesIO()
    image.save(out, "WEBP", quality=60, method=2)
    return out.getvalue()
