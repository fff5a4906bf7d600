"""The published JSON: its files, its rows, and where the media that they name lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchmarks.contra4.constants import SUFFIXES
from benchmarks.contra4.sample import Contra4Sample, Scene, sample
from benchmarks.rows.files import RawRow, RowProblem, SkippedRow, files, rows
from benchmarks.rows.sources import folder_of, wrong_layout

PUBLISHED, CAPTIONED, CHECKS = "published", "captioned", "checks"

MEDIA: Mapping[str, tuple[str, str]] = {
    "coco_val": ("{:0>12}", "COCO val2017: 000000000139.jpg"),
    "coco_train": ("{:0>12}", "COCO train2017"),
    "audiocaps": ("{}", "AudioCaps: 105253.wav"),
    "clotho": ("{}", "Clotho: the files by their names"),
    "msrvtt_test": ("{}", "MSR-VTT: video7010.mp4"),
    "msrvtt_train": ("{}", "MSR-VTT: video0.mp4"),
    "pointllm": ("{}_8192", "PointLLM's Objaverse clouds: ID_8192.npz or ID_8192.npy"),
}
"""The data sets of the published rows: how a file is called by its id, and what the folder is."""

NAMES = (PUBLISHED, CAPTIONED, CHECKS, *MEDIA)

LAYOUT = (
    "a folder with test.json or val.json (other .json or .jsonl files of that layout do too), or one such file; media lie in "
    "folders beside it named after the rows' sources (coco_val, audiocaps, clotho, msrvtt_test, pointllm), or are named as "
    "sources of their own"
)

MISSING = "is missing"
OUTSIDE = "has a name that leaves the folder"

Folders = Mapping[str, Sequence[Path]]
"""The folders named for the media of a row's source."""


@dataclass(frozen=True, slots=True)
class Contra4SourceRow:
    """A sample as it stands in ``file``; ``row`` is where a person finds it."""

    row: str
    sample: Contra4Sample
    file: Path


def media_folders(sources: Sequence[tuple[str, str]]) -> Folders:
    """The folders that are named as sources of media. Raises SourceError where one is not there."""
    found: dict[str, list[Path]] = {}
    for name, place in sources:
        if name in MEDIA:
            found.setdefault(name, []).append(folder_of(name, place, MEDIA[name][1]))
    return found


def read(place: str) -> Iterator[Contra4SourceRow | SkippedRow]:
    """The samples of a published folder or file. Raises SourceError where it is neither."""
    for file in json_files(place):
        for row in rows(file, file.parent, PUBLISHED):
            if isinstance(row, SkippedRow):
                yield row
                continue
            try:
                yield Contra4SourceRow(row.where, sample(row.fields, file.name.partition(".")[0]), file)
            except RowProblem as problem:
                yield SkippedRow(PUBLISHED, _where(row), str(problem))


def json_files(place: str) -> list[Path]:
    """The files of rows at ``place``. Raises SourceError where there are none."""
    path = folder_of(PUBLISHED, place, LAYOUT)
    found = [path] if path.is_file() and path.suffix in (".json", ".jsonl") else files(path, ".json", ".jsonl")
    if not found:
        raise wrong_layout("contra4", path, LAYOUT)
    return found


def places(scene: Scene, file: Path, named: Folders) -> Sequence[Path]:
    """Where the medium of a scene of ``file`` may lie: in the folders named for its source, else in one beside the file."""
    source = scene.source
    if source in named:
        return named[source]
    inside = PurePosixPath(source).name == source and source not in (".", "..") and "\\" not in source
    return (file.parent / source,) if inside else ()


def find(scene: Scene, file: Path, named: Folders) -> Path:
    """Where the medium of a scene of ``file`` lies. Raises RowProblem where it is missing, or its name leads elsewhere."""
    parts = PurePosixPath(scene.name).parts
    if scene.name.startswith("/") or ".." in parts or "\\" in scene.name or not parts:
        raise RowProblem(OUTSIDE)
    pattern = MEDIA.get(scene.source, ("{}", ""))[0]
    stem = pattern.format(scene.name)
    suffixes = SUFFIXES[scene.modality]
    names = [stem] if stem.lower().endswith(suffixes) else [stem + suffix for suffix in suffixes]
    for place in filter(Path.is_dir, places(scene, file, named)):
        for name in names:
            there = place / name
            try:
                if there.is_file():
                    if not there.resolve().is_relative_to(place.resolve()):
                        raise RowProblem(OUTSIDE)
                    return there
            except (OSError, ValueError, RuntimeError):  # too long a name, or links that lead in a circle
                continue
    raise RowProblem(MISSING)


def _where(row: RawRow) -> str:
    name = row.fields.get("id")
    return f"{row.where} ({name[:80]})" if isinstance(name, str) and name.isprintable() else row.where
