"""Rubric: how a benchmark asks a language model to label an answer, and how its reply is read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from benchmarks.base import Choice, Form, JSONObject, Message, Record, Text, digest
from benchmarks.text.answer_text import visible_answer
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)
_LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_AROUND = " \t\n\r\"'`*_.“”‘’"


class Rubric(ABC):
    """A judge prompt with its labels. A change to what it asks is a new ``version``."""

    name: ClassVar[str]
    version: ClassVar[str]
    labels: ClassVar[tuple[str, ...]]
    """The words the model may reply with."""
    form: ClassVar[Form]
    conditions: ClassVar[tuple[str, ...]] = ()
    """The conditions whose answers it is made for; empty: all."""

    @abstractmethod
    def prompt(self, record: Record) -> str:
        """The user turn that asks for the label of ``record.answer``, which is there and not empty."""

    def decided(self, record: Record) -> tuple[str | None, str] | None:
        """The benchmark's label and the reason for it where an answer, which is not empty, needs no model.

        A label of None is that nothing can be asked about it. None where a model is to be asked.
        """
        return None

    def meaning(self, label: str) -> str:
        """The benchmark's label for the rubric's; the same word unless a rubric says otherwise."""
        return label

    def messages(self, record: Record) -> tuple[Message, ...]:
        """The conversation that asks for the label."""
        return (Message("user", (Text(self.prompt(record)),)),)

    def again(self, record: Record, replies: Sequence[str]) -> tuple[Message, ...]:
        """The conversation that asks once more, after ``replies`` that could not be read."""
        wanted = ", ".join(self.labels)
        shape = 'only the JSON object {"label": "..."} with' if isinstance(self.form, JSONObject) else "only"
        reminder = Message("user", (Text(f"That is not one of the labels. Reply with {shape} one of {wanted}."),))
        turns = [turn for reply in replies for turn in (Message("assistant", (Text(reply),)), reminder)]
        return (*self.messages(record), *turns)

    def read(self, reply: str) -> str | None:
        """The benchmark's label that ``reply`` gives, or None where it is not exactly one label.

        Letter case does not matter. Nothing is searched for: a reply that says more than a label may be quoting what it was
        to judge, so it is not read at all.
        """
        text = visible_answer(reply)
        word = _field(text) if isinstance(self.form, JSONObject) else text.strip(_AROUND)
        known = {label.casefold(): label for label in self.labels}
        found = known.get(word.casefold()) if word is not None else None
        return None if found is None else self.meaning(found)

    @property
    def digest(self) -> str:
        """sha256 of what every prompt of this rubric has in common, kept with the verdicts."""
        form = list(self.form.words) if isinstance(self.form, Choice) else self.form.schema()
        return digest([self.name, self.version, list(self.labels), form])


def _field(text: str) -> str | None:
    fenced = _FENCE.match(text)
    try:
        value = parse_json(fenced[1] if fenced else text)
    except OutsideJSONError:
        return None
    if isinstance(value, dict) and list(value) == ["label"] and isinstance(value["label"], str):
        return value["label"].strip()
    return None


def one_line(text: str) -> str:
    """``text`` with its line breaks as spaces, so that nothing in it can begin a line of a prompt."""
    return _LINE_BREAKS.sub(" ", text).strip()


def fenced(text: str, tag: str) -> str:
    """``text`` between ``<tag>`` and ``</tag>``, with every spelling of those inside it made harmless."""
    inside = re.sub(rf"<(\s*/?\s*{re.escape(tag)})", r"< \1", text, flags=re.IGNORECASE)
    return f"<{tag}>\n{inside}\n</{tag}>"
