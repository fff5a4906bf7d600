"""RubricJudge: a benchmark's rubric put to a language model, constrained to its labels where the engine can do that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from benchmarks.base import Decoding, Generation, Record, Request, Verdict
from benchmarks.rubric import Rubric
from benchmarks.text.answer_text import visible_answer
from judges.base import Judge
from mlx_backends.base import EngineInfo

REPLIES = 3
"""How often a judge is asked for one label before it has failed on that answer."""

_DECODING = Decoding(max_tokens=1024)  # room for a model that cannot be kept from reasoning first


class RubricJudge(Judge):
    """Labels answers by asking a model. ``model`` is what a user types, ``info`` what it stands for.

    Its id is the model's name and the rubric's: ``openai:gpt-5@clash-1``.
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
        """What decides this judge's labels, kept with a run and compared when it judges more of it."""
        info = {key: value for key, value in asdict(self.info).items() if key not in ("needs_device", "takes")}
        return {**info, "rubric": self.rubric.digest, "decoding": asdict(_DECODING), "replies": REPLIES}

    def unasked(self, record: Record) -> Verdict | None:
        """The verdict on an answer that needs no asking: there is nothing in it, or the rubric decides without a model."""
        text = record.answer.text if record.answer else ""
        if visible_answer(text):
            decided = self.rubric.decided(record)
            if decided is None:
                return None
            label, reason = decided
            return Verdict(self.id, "unparsed" if label is None else "labelled", label, reason)
        return self.empty(text)

    def request(self, key: str, record: Record, replies: Sequence[Generation] = ()) -> Request:
        """The request for a label after ``replies`` that could not be read; ``key`` tells it from others' requests."""
        rubric = self.rubric
        messages = rubric.again(record, [reply.text for reply in replies]) if replies else rubric.messages(record)
        return Request(key, len(replies), messages, _DECODING, rubric.form)

    def verdict(self, replies: Sequence[Generation]) -> Verdict | None:
        """The verdict after ``replies``, or None: ask once more."""
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
        if len(replies) < REPLIES:
            return None
        return Verdict(self.id, "judge-failed", reason=f"none of {len(replies)} replies is exactly one label")
