"""Agreement or conflict of a question's sources, by what each of them says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.values import compare

Correct = Literal["both", "image", "text", "none"]

UNDECIDED = "undecided"
"""The condition of a conflict whose right answer is not known, which only logs of retrieval have."""

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
            return f"{UNCLEAR}: {quoted(first)} and {quoted(second)}, {result.reason}; write them alike"
    if not answer:
        return Decision("aligned" if is_each_other else UNDECIDED, "both", {"image": image, "text": text})
    if is_each_other and not (is_image or is_text):
        return AGREE_ON_WRONG
    condition, correct = condition_of(is_image=is_image, is_text=is_text)
    return Decision(condition, correct, {"image": answer if is_image else image, "text": answer if is_text else text})


def condition_of(*, is_image: bool, is_text: bool) -> tuple[str, Correct]:
    """Return the condition under which exactly these sources are right, and the right sources."""
    return _CONDITIONS[is_image, is_text]


def quoted(value: str) -> str:
    """Return the beginning of a value that a row holds, in quotes."""
    return repr(value[:_QUOTED])
