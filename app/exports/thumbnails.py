"""A run's media, small, for exports that people look at."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.report.media import media_path, seen
from app.text.escape import clean
from benchmarks.base import Media

LONGEST_SIDE = 256
"""Pixels: a chart's labels can still be guessed, and 1,884 of them take some ten megabytes."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A medium: a line of ``facts``, and ``picture``, a ``data:`` URI of a small WebP; None where it has none."""

    facts: str
    picture: str | None


def shown(wanted: Iterable[tuple[Path, Media]]) -> Mapping[str, Thumbnail]:
    """Every medium among (build, medium) by its sha256, as the first of the builds that has it shows it."""
    found: dict[str, Thumbnail] = {}
    for build, media in wanted:
        if media.sha256 in found and found[media.sha256].picture:
            continue
        look = seen(media, media_path(build, media), LONGEST_SIDE)
        uri = None
        if look.picture is not None:
            out = io.BytesIO()
            look.picture.save(out, "WEBP", quality=60, method=2)
            uri = f"data:image/webp;base64,{b64encode(out.getvalue()).decode()}"
        found[media.sha256] = Thumbnail(clean(look.facts), uri)
    return found
