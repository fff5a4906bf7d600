"""A closed question as somebody sees it who looks at none of its sources."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from string import ascii_uppercase

from benchmarks.vocabulary import Instance, Media


@dataclass(frozen=True, slots=True)
class BlindOption:
    """An answer that can be chosen: its text, and the modality, the sha256 and the file's name of a medium that stands for it."""

    text: str = ""
    modality: str = ""
    media: str | None = None
    file_name: str = ""


@dataclass(frozen=True, slots=True)
class BlindQuestion:
    """One instance's question with its options, in the order of the prompt.

    Attributes:
        id: The instance's id.
        task: The name of the questions that it is audited with.
        cluster: The cluster of its example; no rule is tested on a cluster that it was fitted on.
        question: The words of the question alone.
        options: The answers that can be chosen.
        right: The places of the right options.
        categories: What is known of the example without looking, such as its category or brand, by name.
        sources: The text of each source, by the source's name.
        media: The sha256 of the media that belong to the question and to no option, in the order of the prompt.
    """

    id: str
    task: str
    cluster: Hashable
    question: str
    options: tuple[BlindOption, ...]
    right: frozenset[int]
    categories: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    media: tuple[str, ...] = ()

    @property
    def chance(self) -> float:
        """The share of guesses that are right."""
        return len(self.right) / len(self.options)


def closed_question(instance: Instance, answers: Sequence[str]) -> BlindQuestion | None:
    """Return the question of an instance that may be answered by ``answers``, or by Yes and No; None if it is open.

    The references are "answer", which is one of the answers or of the ``options``, and "options", the texts of the choices.
    """
    right = {answer.strip().casefold() for answer in instance.references.get("answer", ())}
    texts = instance.references.get("options", ())
    if not answers and not texts and right and right <= {"yes", "no"}:
        answers = ("Yes", "No")
    if not texts or len(texts) != len(answers or texts):
        texts = tuple(answers)
    places = frozenset(
        place
        for place, names in enumerate(zip_longest(texts, answers, ascii_uppercase[: len(texts)], fillvalue=""))
        if right.intersection(name.strip().casefold() for name in names if name)
    )
    if len(texts) < 2 or len(places) != 1:
        return None
    return BlindQuestion(
        id=instance.id,
        task=instance.strata.get("task", instance.condition),
        cluster=instance.group,
        question=instance.question,
        options=tuple(BlindOption(text) for text in texts),
        right=places,
        media=tuple(part.sha256 for part in instance.parts if isinstance(part, Media)),
    )
