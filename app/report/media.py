"""What is known of a medium without decoding it, and where it lies: never outside its build, never a file that could be run."""

from __future__ import annotations

import re
import wave
from pathlib import Path

from benchmarks.base import Media

_NAME = re.compile(r"[0-9a-f]{64}\.[a-z0-9]{1,5}")
_SUFFIXES = {
    "image": ".png .jpg .jpeg .gif .webp .bmp .tif .tiff",
    "audio": ".wav .mp3 .flac .ogg .opus .m4a .aac",
    "video": ".mp4 .m4v .mov .mkv .webm .avi",
    "point_cloud": ".ply .pcd .xyz .npy .npz .obj .stl .glb .las",
}


def media_path(build: Path, media: Media) -> Path | None:
    """The medium's file; None where it is not there, or its name leads elsewhere or to what is no medium."""
    name = media.name
    if not _NAME.fullmatch(name) or media.suffix not in _SUFFIXES.get(media.modality, "").split():
        return None
    folder = build / "media"
    path = folder / name
    try:
        inside = path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except OSError:
        return None
    return path if inside else None


def media_facts(media: Media, path: Path | None) -> str:
    """Kind, size, and pixels or seconds as far as a header tells them; and the boxes drawn on it for the model."""
    told = [media.modality.replace("_", " ")]
    if path is None:
        told.append("not there")
    else:
        told += [media.suffix.lstrip("."), _size(path), *_header(media, path)]
    if media.marks:
        told.append(f"with {len(media.marks)} marks drawn: {', '.join(mark.label for mark in media.marks[:12])}")
    return ", ".join(part for part in told if part)


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _header(media: Media, path: Path) -> list[str]:
    try:
        if media.modality == "image":
            from PIL import Image

            with Image.open(path, formats=("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")) as image:
                return [f"{image.width} x {image.height} pixels"]
        if media.suffix == ".wav":
            with wave.open(str(path), "rb") as sound:
                return [f"{sound.getnframes() / sound.getframerate():.1f} s", f"{sound.getframerate()} Hz"]
        if media.suffix == ".ply":
            with path.open("rb") as file:
                found = re.search(rb"element vertex (\d{1,12})\s", file.read(4096))
            return [f"{int(found[1])} points"] if found else []
    except Exception:  # a decoder that is given hostile bytes can raise anything
        return ["cannot be read"]
    return []
