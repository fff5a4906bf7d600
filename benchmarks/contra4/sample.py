"""Sample: one question about two to four scenes, each a medium with a caption; and how a published row is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.base import Media, Modality, digest, part_from_json, part_to_json
from benchmarks.contra4.constants import LETTERS, NEGATIVES, NO_CATEGORY, OF_FIELD, SIZES, combination
from benchmarks.rows.files import RowProblem

LONGEST = 2_000
"""Characters that a question or a caption may have."""

_LONGEST_NAME = 300
_ANSWER = re.compile(r"(?:scene\s+)?([A-D])\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scene:
    """One option. ``source`` and ``name`` say which medium of which data set; ``caption`` is the data set's own.

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
        """What is shown of it where 3D and video are rendered; empty where it cannot be."""
        if self.modality in ("point_cloud", "video"):
            return self.pictures
        return (self.media,) if self.media else ()


@dataclass(frozen=True, slots=True)
class Contra4Sample:
    """One row. ``answer`` is the number of the right scene, from 0; ``gold`` the answer as it is printed in the row.

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
        """Made from what is asked about which scenes: the same on every machine, whichever media are there."""
        scenes = [[scene.source, scene.name, scene.modality, scene.caption] for scene in self.scenes]
        return f"contra4-{digest([self.question, scenes, self.answer])[:16]}"

    @property
    def letters(self) -> str:
        return LETTERS[: len(self.scenes)]

    @property
    def modalities(self) -> str:
        """The combination of modalities; with one that occurs twice, it stands in it twice."""
        return combination(tuple(scene.modality for scene in self.scenes))

    def to_row(self) -> dict[str, Any]:
        """The sample as a row of a build; the inverse of :meth:`from_row`."""
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
        """The sample of a row that :meth:`to_row` made."""
        known = {name: row[name] for name in ("row_id", "question", "answer", "gold", "negatives", "category", "split")}
        scenes = tuple(_scene(each) for each in row["scenes"])
        return cls(**known, scenes=scenes, source=row["source"], filters=tuple(row["filters"]))


def sample(fields: Mapping[str, Any], split: str = "") -> Contra4Sample:
    """The sample that a row of the published layout holds, without its media.

    Published rows have ``question`` and ``answer``, the paper's Appendix A ``questions`` and ``answers``: both are read.
    Raises RowProblem, with one of a few sentences, for what cannot be asked.
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
    scenes = tuple(scene(example, modality) for example, modality in zip(examples, modalities, strict=True))
    if len({(each.source, each.name) for each in scenes}) < len(scenes):
        raise RowProblem("two examples are the same medium")
    gold = _line(fields, "answer", "answers", "gt_answer")
    found = _ANSWER.fullmatch(gold)
    if found is None or found[1].upper() not in LETTERS[: len(scenes)]:
        raise RowProblem("the answer is not the letter of one of the examples")
    category = fields.get("category")
    return Contra4Sample(
        row_id=str(fields.get("id", ""))[:_LONGEST_NAME],
        question=_line(fields, "question", "questions"),
        scenes=scenes,
        answer=LETTERS.index(found[1].upper()),
        gold=gold,
        negatives=NEGATIVES[negatives],
        category=category.strip()[:_LONGEST_NAME] if isinstance(category, str) and category.strip() else NO_CATEGORY,
        split=split,
    )


def scene(fields: Any, modality: Any) -> Scene:
    """The scene of one of a row's ``examples``. Raises RowProblem."""
    if not isinstance(fields, Mapping):
        raise RowProblem("an example is not a JSON object")
    kind = OF_FIELD.get(modality.strip().lower()) if isinstance(modality, str) else None
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
    """The first of the fields that holds text, or a list that begins with one, on one line."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and value.strip():
            if len(value) > LONGEST:
                raise RowProblem(f"the field {names[0]} is longer than {LONGEST} characters")
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
