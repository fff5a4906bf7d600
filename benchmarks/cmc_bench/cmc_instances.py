"""The instances of an example: four conditions, and each of its sources by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.cmc_bench.cmc_constants import ORIGIN
from benchmarks.cmc_bench.cmc_prompts import parts
from benchmarks.cmc_bench.construction.cmc_passages import passage_stating
from benchmarks.cmc_bench.construction.constructed_examples import ConstructedExample
from benchmarks.prompt_template import Prompts
from benchmarks.source_agreement import Correct
from benchmarks.vocabulary import DOCUMENT, RIGHT_VALUE, TRUST, Instance, Media, Part

CORRECT_SOURCES: Mapping[str, Correct] = {
    "aligned": "both",
    "image-correct": "image",
    "text-correct": "text",
    "both-wrong": "none",
}


@dataclass(frozen=True, slots=True)
class InstanceDraft:
    """An instance before its prompt, as a build stores it.

    ``correct`` says which of the shown sources supports the ``gold``; ``references`` what each shown source supports.
    """

    id: str
    group: str
    condition: str
    question: str
    image: Media | None
    passage: str | None
    references: Mapping[str, str]
    correct: Correct
    strata: Mapping[str, str] = field(default_factory=dict)
    gold: str = ""

    def to_row(self) -> dict[str, Any]:
        """Return the draft as a row of ``instances.jsonl``."""
        return {
            "id": self.id,
            "group": self.group,
            "condition": self.condition,
            "question": self.question,
            "image": None if self.image is None else {"sha256": self.image.sha256, "suffix": self.image.suffix},
            "passage": self.passage,
            "references": {
                **self.references,
                **({RIGHT_VALUE: self.gold} if self.correct == "none" and self.gold else {}),
            },
            "strata": {**self.strata, "correct": self.correct},
        }


def instance_from_row(row: Mapping[str, Any], prompt_set: Prompts) -> Instance:
    """Return the instance of a build's row with the prompt of ``prompt_set``."""
    image = None if row["image"] is None else Media(row["image"]["sha256"], row["image"]["suffix"])
    return instance_with_parts(row, parts(prompt_set, row["question"], image, row["passage"]))


def instance_with_parts(row: Mapping[str, Any], prompt: tuple[Part, ...]) -> Instance:
    """Return the instance of a build's row with a prompt of these parts."""
    references = {source: (answer,) for source, answer in row["references"].items()}
    return Instance(row["id"], row["group"], row["condition"], row["question"], prompt, references, row["strata"])


def draft_instances(example: ConstructedExample, *, with_origin: bool = False) -> list[InstanceDraft]:
    """Return the example's instances under its conditions of the paper, up to four, and each of its sources by itself.

    ``with_origin`` adds the stratum ``ORIGIN``.

    References (the paper gives them for the right sources; that a wrong image's is the gold answer of the example it
    belongs to is our choice): aligned: both gold; image-correct: gold and the contradicting value; text-correct:
    the other gold answer and gold; both-wrong: the other gold answer and the contradicting value. Of a user's own row the
    other gold answer is to the same question.
    """
    row = example.right.row
    strata = {"type": example.right.type, "source": row.source}
    if row.subject:
        strata["subject"] = row.subject
    if row.document:
        strata[DOCUMENT] = row.document
    if row.trust:
        strata[TRUST] = row.trust
    if with_origin:
        strata[ORIGIN] = example.right.origin
    images = {not row.image_answer: (example.right.media, row.image_answer or row.answer)}
    texts = {not row.text_answer: (passage_stating(row, row.answer), row.text_answer or row.answer)}
    if example.donor is not None:
        images[False] = (example.donor.media, example.donor.row.answer)
    if example.value:
        texts[False] = (passage_stating(row, example.value), example.value)
    paper_drafts = []
    for condition in example.conditions:
        correct = CORRECT_SOURCES[condition]
        image, image_reference = images[correct in ("both", "image")]
        text, text_reference = texts[correct in ("both", "text")]
        references = {"image": image_reference, "text": text_reference}
        paper_drafts.append(
            InstanceDraft(
                f"{example.id}/{condition}",
                example.id,
                condition,
                row.question,
                image,
                text,
                references,
                correct,
                strata,
                row.answer,
            )
        )
    return [*paper_drafts, *single_source_drafts(paper_drafts)]


def instance_ids(example: ConstructedExample) -> Iterator[str]:
    """Yield the ids of :func:`draft_instances` of the example, in order."""
    for condition in example.conditions:
        yield f"{example.id}/{condition}"
    for source in ("image", "text"):
        for side in dict.fromkeys(CORRECT_SOURCES[condition] in ("both", source) for condition in example.conditions):
            yield f"{example.id}/{source}-only/{'right' if side else 'wrong'}"


def single_source_drafts(paper_drafts: Sequence[InstanceDraft]) -> Iterator[InstanceDraft]:
    """Yield each distinct image and passage of one example's drafts as a single-source draft.

    Their ids end in ``image-only/right``, ``image-only/wrong``, ``text-only/right`` and ``text-only/wrong``, by whether
    the source supports the gold.
    """
    seen = set()
    for source in ("image", "text"):
        for draft in paper_drafts:
            is_right = draft.correct in ("both", source)
            if (source, is_right) in seen or source not in draft.references:
                continue
            seen.add((source, is_right))
            yield replace(
                draft,
                id=f"{draft.group}/{source}-only/{'right' if is_right else 'wrong'}",
                condition=f"{source}-only",
                image=draft.image if source == "image" else None,
                passage=draft.passage if source == "text" else None,
                references={source: draft.references[source]},
                correct=("image" if source == "image" else "text") if is_right else "none",
            )
