"""The media of a build: located, checked, and for 3D and video rendered as pictures on request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.build import BuildWriter, Renderer
from benchmarks.contra4.contra4_sample import Scene
from benchmarks.contra4.sources.contra4_released import Folders, find_media
from benchmarks.errors import MediaError
from benchmarks.media import LARGEST_FILE
from benchmarks.media.media_previews import check_media
from benchmarks.rows.reader_types import RowProblem
from benchmarks.untrusted.safe_files import open_regular
from benchmarks.vocabulary import Media, Modality

_EMPTY = "is empty"
_UNREADABLE = "cannot be read"
_TOO_LARGE = f"is larger than {LARGEST_FILE // 1024**2} MiB"


class BuildMedia:
    """The media of scenes in a build, each file stored once."""

    def __init__(self, writer: BuildWriter, named: Folders, render: Renderer | None) -> None:
        self._writer = writer
        self._named = named
        self._render = render
        self._known: dict[tuple[Path, str, str, Modality], Scene | str] = {}

    def of(self, scene: Scene, file: Path) -> Scene:
        """Return the scene with its medium and pictures, or with its problem as a short phrase."""
        key = file.parent, scene.source, scene.name, scene.modality
        if key not in self._known:
            try:
                self._known[key] = self._stored(scene, find_media(scene, file, self._named))
            except RowProblem as problem:
                self._known[key] = str(problem)
            except MediaError as error:
                self._known[key] = error.reason.partition(";")[0]
        result = self._known[key]
        if isinstance(result, str):
            return replace(scene, problem=result)
        return replace(scene, media=result.media, pictures=result.pictures, problem=result.problem)

    def _stored(self, scene: Scene, path: Path) -> Scene:
        data = _read(path)
        suffix = check_media(data, path.suffix.lower(), scene.modality)
        pictures, problem = self._pictures(data, suffix, scene.modality)
        media = replace(self._writer.add_media(data, suffix), modality=scene.modality)
        return replace(scene, media=media, pictures=pictures, problem=problem)

    def _pictures(self, data: bytes, suffix: str, modality: Modality) -> tuple[tuple[Media, ...], str]:
        if self._render is None or modality not in ("point_cloud", "video"):
            return (), ""
        try:
            images = self._render(data, suffix, modality)
        except MediaError as error:
            return (), f"cannot be rendered: {error.reason.partition(';')[0]}"
        return tuple(self._writer.add_media(image, ".png") for image in images), ""


def _read(path: Path) -> bytes:
    name = f"the medium {path.name!r}"
    try:
        with open_regular(path) as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise MediaError(name, _UNREADABLE) from error
    if len(data) > LARGEST_FILE:
        raise MediaError(name, _TOO_LARGE)
    if not data:
        raise MediaError(name, _EMPTY)
    return data
