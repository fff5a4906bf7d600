"""``choice`` and ``official``: whether a reply chooses the right scene (Contra4)."""

from __future__ import annotations

from abc import abstractmethod

from benchmarks.base import Record, Verdict
from benchmarks.contra4.parse_answer import choice, contains
from benchmarks.text.answer_text import visible_answer
from judges.base import FunctionJudge


class _Scene(FunctionJudge):
    """CORRECT or INCORRECT. A reply without an answer to label is unparsed, with the reason."""

    version = "1"
    benchmarks = ("contra4",)

    @abstractmethod
    def label(self, reply: str, record: Record) -> tuple[bool | None, str]:
        """Whether a reply that is not empty is right, None where it chooses nothing, and why."""

    def judge(self, record: Record) -> Verdict:
        reply = record.answer.text if record.answer else ""
        if not visible_answer(reply):
            return self.empty(reply)
        right, reason = self.label(reply, record)
        if right is None:
            return Verdict(self.id, "unparsed", reason=reason)
        return Verdict(self.id, "labelled", "CORRECT" if right else "INCORRECT", reason)


class SceneChoice(_Scene):
    """By the one scene that the reply chooses; none, or several, is no answer."""

    name = "choice"
    version = "2"
    description = "Contra4: the one scene that the reply chooses; a reply that names none or several is unparsed"

    def label(self, reply: str, record: Record) -> tuple[bool | None, str]:
        references = record.instance.references
        said, rule = choice(reply, "".join(references.get("options", ())))
        if said is None:
            return None, rule
        return said in references.get("answer", ()), f"Scene {said}: {rule}"


class OfficialSceneChoice(_Scene):
    """As the published evaluation: the answer as it is printed stands anywhere in the reply."""

    name = "official"
    description = "Contra4: the printed answer anywhere in the reply, as the published evaluation counts"

    def label(self, reply: str, record: Record) -> tuple[bool | None, str]:
        gold = (*record.instance.references.get("gold", ()), "")[0]
        return contains(reply, gold), f"{gold!r} in the reply, or not"
