"""The published JSON: its files, its rows, and the files of the media that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchmarks.contra4.contra4_constants import SUFFIXES
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene, parse_sample
from benchmarks.rows.files import RawRow, SkippedRow, list_files, read_rows
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import existing_path, layout_error

PUBLISHED, CAPTIONED, CAPTIONED_PAPER, CHECKS = "published", "captioned", "captioned-paper", "checks"

MEDIA_SOURCES: Mapping[str, tuple[str, str]] = {
    "coco_val": ("{:0>12}", "COCO val2017: 000000000139.jpg"),
    "coco_train": ("{:0>12}", "COCO train2017"),
    "audiocaps": ("{}", "AudioCaps: 105253.wav"),
    "clotho": ("{}", "Clotho: the files by their names"),
    "msrvtt_test": ("{}", "MSR-VTT: video7010.mp4"),
    "msrvtt_train": ("{}", "MSR-VTT: video0.mp4"),
    "pointllm": ("{}_8192", "PointLLM's Objaverse clouds: ID_8192.npz or ID_8192.npy"),
}
"""The data sets of the published rows: the file name pattern for an id, and a description of the folder."""

SOURCE_NAMES = (PUBLISHED, CAPTIONED, CAPTIONED_PAPER, CHECKS, *MEDIA_SOURCES)

LAYOUT = (
    "a folder with test.json or val.json (other .json or .jsonl files of that layout do too), or one such file; media lie in "
    "folders beside it named after the rows' sources (coco_val, audiocaps, clotho, msrvtt_test, pointllm), or are named as "
    "sources of their own"
)

MISSING = "is missing"
OUTSIDE = "has a name that leaves the folder"

Folders = Mapping[str, Sequence[Path]]
"""The folders of the media of a row's source."""


@dataclass(frozen=True, slots=True)
class Contra4SourceRow:
    """A sample read from ``file``; ``row`` is its place there."""

    row: str
    sample: Contra4Sample
    file: Path


def media_folders(sources: Sequence[tuple[str, str]]) -> Folders:
    """Return the folders that are named as sources of media. Raises SourceError if one does not exist."""
    by_source: dict[str, list[Path]] = {}
    for name, place in sources:
        if name in MEDIA_SOURCES:
            by_source.setdefault(name, []).append(existing_path(name, place, MEDIA_SOURCES[name][1]))
    return by_source


def read_samples(place: str) -> Iterator[Contra4SourceRow | SkippedRow]:
    """Yield the samples of a published folder or file. Raises SourceError if it is neither."""
    for file in json_files(place):
        for row in read_rows(file, file.parent, PUBLISHED):
            if isinstance(row, SkippedRow):
                yield row
                continue
            try:
                yield Contra4SourceRow(row.where, parse_sample(row.fields, file.name.partition(".")[0]), file)
            except RowProblem as problem:
                yield SkippedRow(PUBLISHED, _where(row), str(problem))


def json_files(place: str) -> list[Path]:
    """Return the files of rows at ``place``. Raises SourceError if there are none."""
    path = existing_path(PUBLISHED, place, LAYOUT)
    paths = [path] if path.is_file() and path.suffix in (".json", ".jsonl") else list_files(path, ".json", ".jsonl")
    if not paths:
        raise layout_error("contra4", path, LAYOUT)
    return paths


def candidate_folders(scene: Scene, file: Path, named: Folders) -> Sequence[Path]:
    """Return the candidate folders of a scene's medium: those named for its source, else one beside ``file``."""
    source = scene.source
    if source in named:
        return named[source]
    is_plain_name = PurePosixPath(source).name == source and source not in (".", "..") and "\\" not in source
    return (file.parent / source,) if is_plain_name else ()


def find_media(scene: Scene, file: Path, named: Folders) -> Path:
    """Return the file of a scene's medium. Raises RowProblem if it is missing or outside its folder."""
    parts = PurePosixPath(scene.name).parts
    if scene.name.startswith("/") or ".." in parts or "\\" in scene.name or not parts:
        raise RowProblem(OUTSIDE)
    pattern = MEDIA_SOURCES.get(scene.source, ("{}", ""))[0]
    stem = pattern.format(scene.name)
    suffixes = SUFFIXES[scene.modality]
    names = [stem] if stem.lower().endswith(suffixes) else [stem + suffix for suffix in suffixes]
    for place in filter(Path.is_dir, candidate_folders(scene, file, named)):
        for name in names:
            candidate = place / name
            try:
                if candidate.is_file():
                    if not candidate.resolve().is_relative_to(place.resolve()):
                        raise RowProblem(OUTSIDE)
                    return candidate
            except (OSError, ValueError, RuntimeError):  # too long a name, or links that lead in a circle
                continue
    raise RowProblem(MISSING)


def _where(row: RawRow) -> str:
    name = row.fields.get("id")
    return f"{row.where} ({name[:80]})" if isinstance(name, str) and name.isprintable() else row.where
