"""``parse_choice`` and ``official``: whether a reply chooses the correct scene (Contra4)."""

from __future__ import annotations

from abc import abstractmethod

from benchmarks.contra4.contra4_parse_answer import contains_answer, parse_choice
from benchmarks.vocabulary import Record, Verdict
from judges.base import AnswerJudge


class _Scene(AnswerJudge):
    """CORRECT or INCORRECT. A reply without an answer to label is unparsed, with the reason."""

    version = "1"
    benchmarks = ("contra4",)

    @abstractmethod
    def label(self, reply: str, record: Record) -> tuple[bool | None, str]:
        """Return whether a non-empty reply is correct, None if it chooses nothing, and the reason."""

    def label_answer(self, answer: str, record: Record) -> Verdict:
        assert record.answer is not None
        right, reason = self.label(record.answer.text, record)
        if right is None:
            return Verdict(self.id, "unparsed", reason=reason)
        return Verdict(self.id, "labelled", "CORRECT" if right else "INCORRECT", reason)


class SceneChoice(_Scene):
    """The one scene that the reply chooses; a reply with none or several has no answer."""

    name = "choice"
    version = "2"
    description = "Contra4: the one scene that the reply chooses; a reply that names none or several is unparsed"

    def label(self, reply: str, record: Record) -> tuple[bool | None, str]:
        references = record.instance.references
        scene, rule = parse_choice(reply, "".join(references.get("options", ())))
        if scene is None:
            return None, rule
        return scene in references.get("answer", ()), f"Scene {scene}: {rule}"


class OfficialSceneChoice(_Scene):
    """The published evaluation's rule: the printed answer occurs anywhere in the reply."""

    name = "official"
    description = "Contra4: the printed answer anywhere in the reply, as the published evaluation counts"

    def label(self, reply: str, record: Record) -> tuple[bool | None, str]:
        gold = (*record.instance.references.get("gold", ()), "")[0]
        return contains_answer(reply, gold), f"{gold!r} in the reply, or not"
