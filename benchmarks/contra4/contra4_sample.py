"""A sample: one question about two to four scenes, each a medium with a caption; with its row parser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.contra4.contra4_constants import (
    LETTERS,
    MODALITY_BY_NAME,
    NEGATIVES,
    NO_CATEGORY,
    SIZES,
    combination_name,
)
from benchmarks.rows.reader_types import RowProblem
from benchmarks.vocabulary import Media, Modality, digest, part_from_json, part_to_json

LONGEST_TEXT = 2_000
"""The maximum characters of a question or a caption."""

_LONGEST_NAME = 300
_ANSWER = re.compile(r"(?:scene\s+)?([A-D])\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene: one option of a question.

    ``media`` is None where the file is not there or cannot be used, and ``problem`` says why. ``pictures`` are its views or
    frames, where it is of 3D or a video and was rendered. ``predicted`` is a captioner's caption, "" for none.
    """

    source: str
    name: str
    modality: Modality
    caption: str
    media: Media | None = None
    problem: str = ""
    pictures: tuple[Media, ...] = ()
    predicted: str = ""

    @property
    def shown(self) -> tuple[Media, ...]:
        """The scene's media when 3D and video are rendered; empty if that is not possible."""
        if self.modality in ("point_cloud", "video"):
            return self.pictures
        return (self.media,) if self.media else ()


@dataclass(frozen=True, slots=True)
class Contra4Sample:
    """A sample, one row of a build.

    ``negatives`` is "random" or "similar"; ``category`` one of the paper's topics; ``split`` the file it is from; ``filters``
    which filters of the round-trip consistency a constructed sample passes.
    """

    row_id: str
    question: str
    scenes: tuple[Scene, ...]
    answer: int
    gold: str
    negatives: str
    category: str = NO_CATEGORY
    split: str = ""
    source: str = "published"
    filters: tuple[str, ...] = field(default=())

    @property
    def id(self) -> str:
        """The sample's id, derived from its question and scenes: equal on every machine, whatever media exist."""
        scenes = [[scene.source, scene.name, scene.modality, scene.caption] for scene in self.scenes]
        return f"contra4-{digest([self.question, scenes, self.answer])[:16]}"

    @property
    def letters(self) -> str:
        return LETTERS[: len(self.scenes)]

    @property
    def modalities(self) -> str:
        """The combination of modalities; a repeated modality appears twice."""
        return combination_name(tuple(scene.modality for scene in self.scenes))

    def to_row(self) -> dict[str, Any]:
        """Return the sample as a row of a build; the inverse of :meth:`from_row`."""
        return {
            "row_id": self.row_id,
            "question": self.question,
            "scenes": [_scene_row(scene) for scene in self.scenes],
            "answer": self.answer,
            "gold": self.gold,
            "negatives": self.negatives,
            "category": self.category,
            "split": self.split,
            "source": self.source,
            "filters": list(self.filters),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Contra4Sample:
        """Return the sample of a row that :meth:`to_row` wrote."""
        fields = {
            name: row[name] for name in ("row_id", "question", "answer", "gold", "negatives", "category", "split")
        }
        scenes = tuple(_scene(scene) for scene in row["scenes"])
        return cls(**fields, scenes=scenes, source=row["source"], filters=tuple(row["filters"]))


def parse_sample(fields: Mapping[str, Any], split: str = "") -> Contra4Sample:
    """Parse a row of the published layout into a sample without its media.

    Published rows have ``question`` and ``answer``, the paper's Appendix A ``questions`` and ``answers``: both are read.
    Raises RowProblem, with one of a fixed set of sentences, for an unusable row.
    """
    examples, modalities = fields.get("examples"), fields.get("modalities")
    if not isinstance(examples, list) or not isinstance(modalities, list) or len(examples) != len(modalities):
        raise RowProblem("examples and modalities are not two lists of one length")
    if len(examples) not in SIZES:
        raise RowProblem("the row has not two to four examples")
    if fields.get("q_type", f"mc_{len(examples)}") != f"mc_{len(examples)}":
        raise RowProblem("q_type is not the number of examples")
    negatives = fields.get("selection_type")
    if not isinstance(negatives, str) or negatives not in NEGATIVES:
        raise RowProblem("selection_type is neither random nor similarity")
    scenes = tuple(parse_scene(example, modality) for example, modality in zip(examples, modalities, strict=True))
    if len({(scene.source, scene.name) for scene in scenes}) < len(scenes):
        raise RowProblem("two examples are the same medium")
    gold = _line(fields, "answer", "answers", "gt_answer")
    match = _ANSWER.fullmatch(gold)
    if match is None or match[1].upper() not in LETTERS[: len(scenes)]:
        raise RowProblem("the answer is not the letter of one of the examples")
    category = fields.get("category")
    return Contra4Sample(
        row_id=str(fields.get("id", ""))[:_LONGEST_NAME],
        question=_line(fields, "question", "questions"),
        scenes=scenes,
        answer=LETTERS.index(match[1].upper()),
        gold=gold,
        negatives=NEGATIVES[negatives],
        category=category.strip()[:_LONGEST_NAME] if isinstance(category, str) and category.strip() else NO_CATEGORY,
        split=split,
    )


def parse_scene(fields: Any, modality: Any) -> Scene:
    """Parse the scene of one of a row's ``examples``. Raises RowProblem."""
    if not isinstance(fields, Mapping):
        raise RowProblem("an example is not a JSON object")
    kind = MODALITY_BY_NAME.get(modality.strip().lower()) if isinstance(modality, str) else None
    if kind is None:
        raise RowProblem("a modality is not one of audio, image, pc and video")
    name = fields.get("id")
    name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    source = fields.get("source")
    return Scene(_name(source), _name(name), kind, _line(fields, "caption", "captions"))


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME or not value.isprintable():
        raise RowProblem("an example has no source or no id")
    return value.strip()


def _line(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first field with text, or with a list that begins with text, on one line."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and value.strip():
            if len(value) > LONGEST_TEXT:
                raise RowProblem(f"the field {names[0]} is longer than {LONGEST_TEXT} characters")
            return " ".join(value.split())
    raise RowProblem(f"the row has no {names[0]}")


def _scene_row(scene: Scene) -> dict[str, Any]:
    row: dict[str, Any] = {
        "source": scene.source,
        "name": scene.name,
        "modality": scene.modality,
        "caption": scene.caption,
        "media": scene.media and part_to_json(scene.media),
    }
    optional = {
        "problem": scene.problem,
        "pictures": [part_to_json(picture) for picture in scene.pictures],
        "predicted": scene.predicted,
    }
    return row | {name: value for name, value in optional.items() if value}


def _scene(row: Mapping[str, Any]) -> Scene:
    return Scene(
        source=row["source"],
        name=row["name"],
        modality=row["modality"],
        caption=row["caption"],
        media=_media(row["media"]),
        problem=row.get("problem", ""),
        pictures=_all(row.get("pictures", ())),
        predicted=row.get("predicted", ""),
    )


def _media(value: Mapping[str, Any] | None) -> Media | None:
    part = part_from_json(value) if value else None
    return part if isinstance(part, Media) else None


def _all(values: Sequence[Mapping[str, Any]]) -> tuple[Media, ...]:
    return tuple(media for value in values if (media := _media(value)))
