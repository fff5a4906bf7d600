"""RubricJudge: a language model that applies a benchmark's rubric, constrained to its labels where the engine can do that."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, replace
from typing import Any

from benchmarks.rubric import Rubric
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Decoding, Generation, Record, Request, Verdict
from judges.base import Judge
from mlx_backends.base import EngineInfo

MAX_REPLIES = 3
"""The number of times a judge is prompted for one label before the verdict is judge-failed."""

_DECODING = Decoding(max_tokens=1024)  # room for a model that always reasons first


class RubricJudge(Judge):
    """A judge that prompts a model for labels. ``model`` is the name a user types, ``info`` the engine it refers to.

    Its id consists of the model's name and the rubric's: ``openai:gpt-5@clash-1``.
    """

    def __init__(self, model: str, info: EngineInfo, rubric: Rubric) -> None:
        self.model = model
        self.info = info
        self.rubric = rubric
        self.name = model if info.device == "remote" else info.model
        self.version = f"{rubric.name}-{rubric.version}"
        self.description = f"{self.name} asked with the {rubric.name} rubric"
        self.conditions = rubric.conditions

    def identity(self) -> dict[str, Any]:
        """Return everything that decides this judge's labels; it is stored with a run and compared when judging resumes."""
        info = {key: value for key, value in asdict(self.info).items() if key not in ("needs_device", "takes")}
        return {**info, "rubric": self.rubric.digest, "decoding": asdict(_DECODING), "replies": MAX_REPLIES}

    def reversed(self) -> RubricJudge:
        """Return this judge with the references of each instance in the opposite order."""
        judge = copy(self)
        judge.rubric = self.rubric.reversed()
        return judge

    def verdict_without_model(self, record: Record) -> Verdict | None:
        """Return the verdict on an answer that needs no model: it is empty, or the rubric decides it by rule."""
        text = record.answer.text if record.answer else ""
        if visible_answer(text):
            decided = self.rubric.label_by_rule(record)
            if decided is None:
                return None
            label, reason = decided
            return Verdict(self.id, "unparsed" if label is None else "labelled", label, reason)
        return self.empty(text)

    def request(self, key: str, record: Record, replies: Sequence[Generation] = ()) -> Request:
        """Return the request for a label after ``replies`` that could not be parsed; ``key`` distinguishes it from others."""
        rubric = self.rubric
        messages = (
            rubric.retry_messages(record, [reply.text for reply in replies]) if replies else rubric.messages(record)
        )
        return Request(key, len(replies), messages, _DECODING, rubric.form)

    def verdict(self, replies: Sequence[Generation]) -> Verdict | None:
        """Return the verdict after ``replies``, or None to request another reply."""
        last = replies[-1]
        verdict = self._verdict(replies)
        return verdict and replace(
            verdict,
            raw=last.text or None,
            calls=sum(reply.calls for reply in replies),
            prompt_tokens=sum(reply.prompt_tokens or 0 for reply in replies),
            completion_tokens=sum(reply.completion_tokens or 0 for reply in replies),
        )

    def _verdict(self, replies: Sequence[Generation]) -> Verdict | None:
        last = replies[-1]
        if last.finish_reason == "error":
            return Verdict(self.id, "judge-failed", reason=f"the judge gave no reply: {last.error}")
        label = self.rubric.read(last.text)
        if label is not None:
            return Verdict(self.id, "labelled", label, f"reply {len(replies)}")
        if len(replies) < MAX_REPLIES:
            return None
        return Verdict(self.id, "judge-failed", reason=f"none of {len(replies)} replies is exactly one label")
