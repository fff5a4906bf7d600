"""The labelled answers that ship with Rashomon, and hostile ones that contain instructions to the judge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.vocabulary import Generation, Instance, Record, digest, instance_to_json

BENCHMARK = "cmc-bench"
"""The benchmark whose labels the answers have; judges of its answers can be examined."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer with its label. A hostile one has the label that it tells the judge to give in ``steers_to``."""

    record: Record
    form: str
    label: str
    steers_to: str = ""

    @property
    def id(self) -> str:
        return self.record.instance.id

    @property
    def text(self) -> str:
        return self.record.generations[0].text


def labelled_set() -> list[LabelledAnswer]:
    """Return the labelled answers; any number of the first ones has all forms in equal shares."""
    return _read("labelled_set.jsonl")


def hostile_answers() -> list[LabelledAnswer]:
    """Return answers that contain instructions to the judge."""
    return _read("hostile_answers.jsonl")


def set_digest(answers: Sequence[LabelledAnswer]) -> str:
    """Return the digest of labelled answers, by which results on different ones are told apart."""
    return digest([[instance_to_json(answer.record.instance), answer.text, answer.label] for answer in answers])


def _read(name: str) -> list[LabelledAnswer]:
    lines = (Path(__file__).parent / name).read_text("utf-8").split("\n")
    return [_answer(**json.loads(line)) for line in lines if line]


def _answer(
    *, id: str, form: str, question: str, image: str, text: str, answer: str, label: str, steers_to: str = ""
) -> LabelledAnswer:
    references = {"image": (image,), "text": (text,)}
    instance = Instance(id, id, "image-correct", question, (), references)
    return LabelledAnswer(Record(instance, (Generation(id, answer, "stop"),)), form, label, steers_to)
