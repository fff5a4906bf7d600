"""Base class of rubrics: judge prompts with which a language model labels answers, and the parsing of its replies."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self, TypeVar

from benchmarks.protocols.repeats import split_repeat
from benchmarks.text.answer_text import visible_answer
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import Choice, Form, Instance, JSONObject, Message, Record, Text, digest

_FENCE = re.compile(r"\A```(?:json)?(.*)```\Z", re.DOTALL | re.IGNORECASE)
_LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_SPACES = (*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F)
_PADDING = "".join(map(chr, (*_SPACES, 0x2060, 0x3000, 0xFEFF))) + "\"'`*_.“”‘’„«»"

OFFICIAL = "-official"
"""The end of the name of a rubric whose prompt is that of the benchmark's official code; it labels what the benchmark's does."""

_T = TypeVar("_T")


class Rubric(ABC):
    """A judge prompt and its labels. Any change to the prompt needs a new ``version``."""

    name: ClassVar[str]
    version: ClassVar[str]
    labels: ClassVar[tuple[str, ...]]
    """The words that the model may reply with."""
    form: ClassVar[Form]
    conditions: ClassVar[tuple[str, ...]] = ()
    """The conditions whose answers it labels; empty for all of them."""
    is_reversed = False
    """True to list the references of each instance in the opposite of their drawn order."""

    @abstractmethod
    def prompt(self, record: Record) -> str:
        """Return the user turn that asks for the label of ``record.answer``, which is present and not empty."""

    def label_by_rule(self, record: Record) -> tuple[str | None, str] | None:
        """Return the benchmark's label and the reason for it if an answer, which is not empty, needs no model.

        A label of None means that the answer cannot be judged. Return None if the model has to judge the answer.
        """
        return None

    def benchmark_label(self, label: str) -> str:
        """Return the benchmark's label for a label of the rubric; by default the same word."""
        return label

    def messages(self, record: Record) -> tuple[Message, ...]:
        """Return the conversation that asks for the label."""
        return (Message("user", (Text(self.prompt(record)),)),)

    def retry_messages(self, record: Record, replies: Sequence[str]) -> tuple[Message, ...]:
        """Return the conversation that asks again after ``replies`` that could not be parsed."""
        labels = ", ".join(self.labels)
        shape = 'only the JSON object {"label": "..."} with' if isinstance(self.form, JSONObject) else "only"
        reminder = Message("user", (Text(f"That is not one of the labels. Reply with {shape} one of {labels}."),))
        turns = [turn for reply in replies for turn in (Message("assistant", (Text(reply),)), reminder)]
        return (*self.messages(record), *turns)

    def read(self, reply: str) -> str | None:
        """Return the benchmark's label for ``reply``, or None if the reply is not exactly one label.

        That is the bare word, in any case, quoted or bold, or the field "label" of a JSON object none of whose other fields is
        another label. Labels are not searched for in longer replies, which may quote the answer that they judge.
        """
        text = visible_answer(reply)
        if fence := _FENCE.match(text):
            text = fence[1].strip()
        labels = {label.casefold(): label for label in self.labels}
        fields = _fields(text)
        if fields is None:
            words = {_bare(text)}
        else:
            words = {_bare(value) for key, value in fields if key.casefold() == "label"}
            words |= {word for _, value in fields if words and (word := _bare(value)) in labels}
        label = labels.get(words.pop()) if len(words) == 1 else None
        return None if label is None else self.benchmark_label(label)

    def in_drawn_order(self, instance: Instance, references: Sequence[_T]) -> Sequence[_T]:
        """Return ``references`` or their reverse, as drawn by the instance's id, so that no reference is always first.

        All repeats of an instance have the same order.
        """
        is_reversed = is_drawn_reversed(split_repeat(instance.id)[0]) != self.is_reversed
        return references[::-1] if is_reversed else references

    def reversed(self) -> Self:
        """Return this rubric with the references of each instance in the opposite order."""
        rubric = copy(self)
        rubric.is_reversed = not self.is_reversed
        return rubric

    @property
    def digest(self) -> str:
        """The sha256 of what all prompts of this rubric share; it is stored with the verdicts."""
        form = list(self.form.words) if isinstance(self.form, Choice) else self.form.schema()
        return digest([self.name, self.version, list(self.labels), form])


def is_drawn_reversed(instance_id: str) -> bool:
    """Return whether the references of an instance are drawn to be listed in reverse; the same each time."""
    return int(digest(["order of references", instance_id]), 16) % 2 == 1


def _fields(text: str) -> list[tuple[str, Any]] | None:
    """Return the fields of a JSON object, also those with one name; None if ``text`` is anything else."""
    try:
        if not isinstance(parse_json(text), dict):
            return None
    except OutsideJSONError:
        return None
    fields: list[tuple[str, Any]] = json.loads(text, object_pairs_hook=list)
    return fields


def _bare(value: Any) -> str:
    """Return a word in small letters, without quotation marks and emphasis around it; "" for what is no text."""
    return value.strip(_PADDING).casefold() if isinstance(value, str) else ""


def one_line(text: str) -> str:
    """Return ``text`` with spaces for line breaks, so that none of it can start a line of a prompt."""
    return _LINE_BREAKS.sub(" ", text).strip()
