"""Captions that another program predicted, from a file of rows with the id and the modality of a medium.

The paper's predicted captions are not published. Rows of the published code's result files are read too: `index` or
`image_id` for the id, `generated_text` for the caption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.build import BuildWriter
from benchmarks.contra4.contra4_constants import MODALITY_BY_NAME
from benchmarks.contra4.contra4_sample import LONGEST_TEXT, Contra4Sample, Scene
from benchmarks.errors import SourceError
from benchmarks.rows.files import SkippedRow, read_rows
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import existing_path
from benchmarks.vocabulary import Modality

LAYOUT = 'a file of rows {"id": ..., "modality": "audio", "image", "pc" or "video", "caption": ...}'

_SOURCE = "captions"
_IDS, _CAPTIONS = ("id", "image_id", "index"), ("caption", "generated_text")
_OTHER = "another row has another caption for this medium; the first counts"

Key = tuple[Modality, str]


@dataclass
class ImportedCaptions:
    """Captions by the modality and the id of their media, and those that a sample used."""

    captions: Mapping[Key, str] = field(default_factory=dict)
    used: set[Key] = field(default_factory=set)

    def on(self, sample: Contra4Sample) -> Contra4Sample:
        """Return a sample with the captions of its scenes."""
        return replace(sample, scenes=tuple(map(self._with, sample.scenes)))

    def _with(self, scene: Scene) -> Scene:
        key = scene.modality, scene.name
        if key not in self.captions:
            return scene
        self.used.add(key)
        return replace(scene, predicted=self.captions[key])

    def counts(self) -> dict[str, int]:
        """Return the numbers of captions in the file, and of those for a medium of the build."""
        return {"read": len(self.captions), "used": len(self.used)}


def read_captions(file: Path | None, writer: BuildWriter) -> ImportedCaptions:
    """Return the captions of a file; rows that cannot be used are recorded with ``writer``. None is no file.

    Raises SourceError for a file that is missing or has no usable row.
    """
    if file is None:
        return ImportedCaptions()
    path = existing_path(_SOURCE, str(file), LAYOUT)
    captions: dict[Key, str] = {}
    reasons: Counter[str] = Counter()
    for row in read_rows(path, path.parent, _SOURCE):
        try:
            if isinstance(row, SkippedRow):
                raise RowProblem(row.reason)
            key, caption = _caption(row.fields)
            if captions.setdefault(key, caption) != caption:
                raise RowProblem(_OTHER)
        except RowProblem as problem:
            writer.add_skipped(_SOURCE, row.row if isinstance(row, SkippedRow) else row.where, str(problem))
            reasons[str(problem)] += 1
    if not captions:
        why = "; ".join(f"{count} times: {reason}" for reason, count in reasons.most_common(3))
        raise SourceError(f"{path.name} has no usable caption ({why or 'it has no rows'}); expected {LAYOUT}.")
    return ImportedCaptions(captions)


def _caption(fields: Mapping[str, Any]) -> tuple[Key, str]:
    modality = fields.get("modality")
    kind = MODALITY_BY_NAME.get(modality.strip().lower()) if isinstance(modality, str) else None
    if kind is None:
        raise RowProblem("the row has no modality that is one of audio, image, pc and video")
    name = _first(fields, _IDS)
    caption = " ".join(_first(fields, _CAPTIONS).split())
    if not name or not caption:
        raise RowProblem("the row has no id" if not name else "the row has no caption")
    if len(caption) > LONGEST_TEXT:
        raise RowProblem(f"the caption is longer than {LONGEST_TEXT} characters")
    return (kind, name), caption


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    for value in (fields[name] for name in names if name in fields):
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""
