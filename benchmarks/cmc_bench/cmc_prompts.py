"""The prompts by prompt set."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.vocabulary import Media, Part, Text

PROMPT_SETS = {
    "paper": "the prompt of section 4.2, as printed",
    "conflict-aware": "says that the evidence may be wrong or disagree, and permits not to answer (our wording)",
}

_IMAGE_EVIDENCE = "Retrieved image evidence: "
_ASK = "Answer the query using the provided evidence."
_AWARE = {
    "both": "The image and the text may contradict each other, and either or both of them may be wrong. ",
    "one": "The evidence may be wrong or may not belong to the query. ",
}
_PERMIT = (
    "Answer the query using the evidence that you find correct. "
    "If the evidence does not settle the answer, do not guess: say that you cannot answer, and why."
)

_ASK_WITHOUT = "Answer the query."
_PERMIT_WITHOUT = " If you do not know the answer, do not guess: say that you cannot answer, and why."


def parts(prompt_set: Prompts, question: str, image: Media | None, passage: str | None) -> tuple[Part, ...]:
    """Return the prompt's parts, with the image between the texts.

    Without an image or without a passage its sentence is left out, and without both every mention of evidence. Source:
    section 4.2 for ``paper``; the rest is ours.
    """
    if isinstance(prompt_set, PromptTemplate):
        return prompt_set.parts(
            {
                "question": (Text(question),),
                "image": () if image is None else (image,),
                "text": () if passage is None else (Text(passage),),
                "abstention": (Text(ABSTENTION),),
            }
        )
    is_aware = prompt_set == "conflict-aware"
    ask = _ASK
    if image is None and passage is None:
        ask = _ASK_WITHOUT + _PERMIT_WITHOUT * is_aware
    elif is_aware:
        ask = _AWARE["both" if image is not None and passage is not None else "one"] + _PERMIT
    query = f"Query: {question}. "
    text = "" if passage is None else _text_evidence(passage)
    if image is None:
        return (Text(f"{query}{text}{ask}"),)
    return Text(f"{query}{_IMAGE_EVIDENCE}"), image, Text(f". {text}{ask}")


def text_first(parts: Sequence[Part], passage: str) -> tuple[Part, ...]:
    """Return the parts of a prompt of this module with the text evidence before the image evidence (ours); none of another."""
    match parts:
        case (Text(before), Media() as image, Text(after)) if after.startswith(f". {_text_evidence(passage)}"):
            query, label, statement = before.rpartition(_IMAGE_EVIDENCE)
            text = _text_evidence(passage)
            return Text(f"{query}{text}{label}{statement}"), image, Text(f". {after[len(text) + 2 :]}")
    return ()


def _text_evidence(passage: str) -> str:
    return f"Retrieved text evidence: {passage}. "
