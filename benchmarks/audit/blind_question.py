"""A closed question as somebody sees it who looks at none of its sources."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from string import ascii_uppercase

from benchmarks.vocabulary import SHOWN_TEXT, Instance, Media, Text, digest

YES_NO = ("Yes", "No")

_CATEGORIES = ("type", "category", "subject", "brand", "product", "kind", "change", "relation", "dataset", "negatives")
"""The strata of an example that say nothing of its right answer, but what it is about."""


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
        offered: True if the prompt offers the options. Else the question is open: only who knows its sources can choose.
        texts_are_sources: True if the options' texts are what the sources show, such as captions of scenes.
        example: The group of its instance: what recurs under other conditions of one example is counted once.
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
    offered: bool = True
    texts_are_sources: bool = False
    example: str = ""

    @property
    def chance(self) -> float:
        """The share of guesses that are right."""
        return len(self.right) / len(self.options)


def closed_question(instance: Instance, answers: Sequence[str]) -> BlindQuestion | None:
    """Return the question of an instance that may be answered by ``answers``, or by Yes and No; None if it is open.

    The references are "answer", which is one of the answers, a letter or one of the ``options``; and "options", the texts of the
    choices. The text before the question is a source.
    """
    right = {answer.strip().casefold() for answer in instance.references.get("answer", ())}
    texts = instance.references.get("options", ())
    if not answers and not texts and right and right <= {"yes", "no"}:
        answers = YES_NO
    if not texts or len(texts) < len(answers):
        texts = tuple(answers)
    places = [
        place
        for place, names in enumerate(zip_longest(texts, answers, ascii_uppercase[: len(texts)], fillvalue=""))
        if right.intersection(name.strip().casefold() for name in names if name)
    ]
    if len(texts) < 2 or len(places) != 1:
        return None
    return blind_question(instance, [BlindOption(text) for text in texts], places)


def lettered_question(instance: Instance, right: str, task: str, text: str | None = None) -> BlindQuestion | None:
    """Return a multiple choice whose references have texts and letters by role; ``right`` is the role of the right option."""
    by_letter = {
        letter: (BlindOption(text), role == right)
        for role, texts in instance.references.items()
        if role != SHOWN_TEXT
        for letter, text in zip(instance.references.get(f"{role} letter", ()), texts, strict=False)
    }
    options = [by_letter[letter] for letter in sorted(by_letter)]
    places = [place for place, (_, is_right) in enumerate(options) if is_right]
    return blind_question(instance, [option for option, _ in options], places, task=task, text=text) if places else None


def value_question(instance: Instance, right: Sequence[str], wrong: Sequence[str]) -> BlindQuestion | None:
    """Return an open question as the choice of one of the values that its sources state, in an order that says nothing.

    No source is among its sources: which of them is right is what the condition is named after. None if the values do not differ.
    """
    values = sorted(dict.fromkeys((*right, *wrong)), key=lambda value: digest([instance.group, value]))
    places = [place for place, value in enumerate(values) if value in right]
    if not 0 < len(places) < len(values):
        return None
    return replace(blind_question(instance, [BlindOption(value) for value in values], places, text=""), offered=False)


def blind_question(
    instance: Instance,
    options: Sequence[BlindOption],
    right: Iterable[int],
    *,
    task: str | None = None,
    text: str | None = None,
) -> BlindQuestion:
    """Return the question of an instance with these options; ``text`` is that of its sources, by default what precedes it."""
    shown = [part.sha256 for part in instance.parts if isinstance(part, Media)]
    of_options = {option.media for option in options}
    text = text_before(instance) if text is None else text
    return BlindQuestion(
        id=instance.id,
        task=task or instance.strata.get("task") or instance.condition,
        cluster=instance.group,
        question=instance.question,
        options=tuple(options),
        right=frozenset(right),
        categories={name: instance.strata[name] for name in _CATEGORIES if name in instance.strata},
        sources={"text": text} if text else {},
        media=tuple(sha256 for sha256 in shown if sha256 not in of_options),
    )


def text_before(instance: Instance) -> str:
    """Return the text of a prompt before the question, up to the question's first picture."""
    text = "".join(part.text for part in instance.parts if isinstance(part, Text))
    before, question, _ = text.partition(instance.question.partition("<image>")[0].strip() or "\0")
    return before.strip() if question else ""
