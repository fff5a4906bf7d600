"""Base class of rubrics: judge prompts with which a language model labels answers, and the parsing of its replies."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from benchmarks.text.answer_text import visible_answer
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import Choice, Form, JSONObject, Message, Record, Text, digest

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)
_LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_PADDING = " \t\n\r\"'`*_.“”‘’"


class Rubric(ABC):
    """A judge prompt and its labels. Any change to the prompt needs a new ``version``."""

    name: ClassVar[str]
    version: ClassVar[str]
    labels: ClassVar[tuple[str, ...]]
    """The words that the model may reply with."""
    form: ClassVar[Form]
    conditions: ClassVar[tuple[str, ...]] = ()
    """The conditions whose answers it labels; empty for all of them."""

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

        Case is ignored. Labels are not searched for in longer replies, which may quote the answer that they judge.
        """
        text = visible_answer(reply)
        word = _field(text) if isinstance(self.form, JSONObject) else text.strip(_PADDING)
        labels = {label.casefold(): label for label in self.labels}
        label = labels.get(word.casefold()) if word is not None else None
        return None if label is None else self.benchmark_label(label)

    @property
    def digest(self) -> str:
        """The sha256 of what all prompts of this rubric share; it is stored with the verdicts."""
        form = list(self.form.words) if isinstance(self.form, Choice) else self.form.schema()
        return digest([self.name, self.version, list(self.labels), form])


def _field(text: str) -> str | None:
    """Return the value of the JSON object's single field "label", or None if ``text`` is anything else."""
    fence = _FENCE.match(text)
    try:
        value = parse_json(fence[1] if fence else text)
    except OutsideJSONError:
        return None
    if isinstance(value, dict) and list(value) == ["label"] and isinstance(value["label"], str):
        return value["label"].strip()
    return None


def one_line(text: str) -> str:
    """Return ``text`` with spaces for line breaks, so that none of it can start a line of a prompt."""
    return _LINE_BREAKS.sub(" ", text).strip()


def wrap_in_tag(text: str, tag: str) -> str:
    """Return ``text`` between ``<tag>`` and ``</tag>``, with these tags defused wherever ``text`` itself contains them."""
    escaped = re.sub(rf"<(\s*/?\s*{re.escape(tag)})", r"< \1", text, flags=re.IGNORECASE)
    return f"<{tag}>\n{escaped}\n</{tag}>"
