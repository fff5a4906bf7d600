"""The instances of a log's question: its sources together, and each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.cmc_bench.constants import Correct
from benchmarks.cmc_bench.construction.candidates import conflict_type
from benchmarks.prompt_template import Prompts
from benchmarks.retrieval.constants import UNDECIDED
from benchmarks.retrieval.prompts import parts
from benchmarks.retrieval.stored_rows import StoredRow
from benchmarks.values import compare
from benchmarks.vocabulary import DOCUMENT, RIGHT_VALUE, TRUST, Instance, Media

AGREE_ON_WRONG = "both sources give the same wrong answer"
UNCLEAR = "unclear whether its answers are the same"

_QUOTED = 60

_CONDITIONS: Mapping[tuple[bool, bool], tuple[str, Correct]] = {
    (True, True): ("aligned", "both"),
    (True, False): ("image-correct", "image"),
    (False, True): ("text-correct", "text"),
    (False, False): ("both-wrong", "none"),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """The condition of a row, which of its sources are right, and what each of them supports."""

    condition: str
    correct: Correct
    references: Mapping[str, str]


def decide(answer: str, image: str, text: str, question: str = "") -> Decision | str:
    """Return the condition that the readings of a row amount to, or why it is neither a conflict nor agreement.

    Without a right ``answer``, sources that agree are taken to be right, and a conflict is undecided. Where it is unclear
    whether two of the answers are the same, nothing is decided.
    """
    pairs = [(answer, image), (answer, text), (image, text)]
    results = [compare(first, second, question) for first, second in pairs]
    is_image, is_text, is_each_other = [result.verdict == "same" for result in results]
    deciding = slice(2, 3) if not answer else slice(2 if is_image or is_text else 3)
    for (first, second), result in zip(pairs[deciding], results[deciding], strict=True):
        if result.verdict == "unclear":
            return f"{UNCLEAR}: {first[:_QUOTED]!r} and {second[:_QUOTED]!r}, {result.reason}; write them alike"
    if not answer:
        return Decision("aligned" if is_each_other else UNDECIDED, "both", {"image": image, "text": text})
    if is_each_other and not (is_image or is_text):
        return AGREE_ON_WRONG
    condition, correct = _CONDITIONS[is_image, is_text]
    return Decision(condition, correct, {"image": answer if is_image else image, "text": answer if is_text else text})


def instance_rows(row: StoredRow, decision: Decision) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``instances.jsonl``: both sources, the images alone, the passages alone."""
    strata = {
        "type": conflict_type("chartqa", row.answer or decision.references["image"]),
        "source": row.source,
        "passages": str(len(row.passages)),
        "images": str(len(row.images)),
    }
    if row.group:
        strata["subject"] = row.group
    if row.document:
        strata[DOCUMENT] = row.document
    if row.trust:
        strata[TRUST] = row.trust
    right = {RIGHT_VALUE: row.answer} if row.answer else {}
    common = {"group": row.id, "question": row.question}
    images = [{"sha256": media.sha256, "suffix": media.suffix} for media in row.images]
    passages = list(row.passages)
    yield {
        **common,
        "id": f"{row.id}/{decision.condition}",
        "condition": decision.condition,
        "images": images,
        "passages": passages,
        "references": {**decision.references, **(right if decision.correct == "none" else {})},
        "strata": {**strata, "correct": decision.correct},
    }
    for source in ("image", "text"):
        is_right = decision.correct in ("both", source)
        yield {
            **common,
            "id": f"{row.id}/{source}-only",
            "condition": f"{source}-only",
            "images": images if source == "image" else [],
            "passages": passages if source == "text" else [],
            "references": {source: decision.references[source], **({} if is_right else right)},
            "strata": {**strata, "correct": source if is_right else "none"},
        }


def instance_from_row(row: Mapping[str, Any], prompt_set: Prompts) -> Instance:
    """Return the instance of a build's row with the prompt of ``prompt_set``."""
    images = [Media(image["sha256"], image["suffix"]) for image in row["images"]]
    return Instance(
        id=row["id"],
        group=row["group"],
        condition=row["condition"],
        question=row["question"],
        parts=parts(prompt_set, row["question"], images, row["passages"]),
        references={source: (answer,) for source, answer in row["references"].items()},
        strata=row["strata"],
    )
