"""Records for judges: a question, what each source supports, and an answer."""

from __future__ import annotations

from benchmarks.vocabulary import Generation, Instance, Record, Text, Verdict
from judges.base import Judge
from judges.cmc_rules.cmc_match_judge import Match

QUESTION = "How many trams run on line 4?"


def judge_called(judge_id: str) -> Judge:
    """A judge with this id, which judges nothing."""
    judge = Judge()
    judge.name, _, judge.version = judge_id.rpartition("@")
    return judge


def record(answer: str, image: str | None, text: str | None, question: str = QUESTION) -> Record:
    """An answered instance; a source that is None is not shown."""
    references = {name: (value,) for name, value in (("image", image), ("text", text)) if value is not None}
    instance = Instance("i", "g", "image-correct", question, (Text(question),), references)
    return Record(instance, (Generation("i#0", answer, "stop"),))


def verdict(answer: str, image: str | None = "12", text: str | None = "15", question: str = QUESTION) -> Verdict:
    """Return the verdict of ``match`` on an answer."""
    return Match().judge(record(answer, image, text, question))


def label(answer: str, image: str | None = "12", text: str | None = "15", question: str = QUESTION) -> str | None:
    """Return the label of an answer, or None if there is no answer to label."""
    return verdict(answer, image, text, question).label
