"""Two questions about texts, without a run: are two values the same, and which source does an answer follow?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from benchmarks.errors import SpecError
from benchmarks.text.answer_text import visible_answer
from benchmarks.values import compare

UNDECIDED = "UNDECIDED"


def same_value(a: str, b: str, question: str | None = None) -> Literal["same", "different", "unclear"]:
    """Return whether two short texts give the same value, as builds, checks and judges by rule see it.

    "unclear" means that only context could tell: 12 and 12 km, "1/2/2024" and 2 January 2024. The ``question`` settles what it
    says, such as the unit that it asks in.
    """
    return compare(a, b, question or "").verdict


def label(
    answer: str,
    *,
    question: str = "",
    image: str | Sequence[str] | None = None,
    text: str | Sequence[str] | None = None,
) -> str:
    """Return the label that the judge ``match`` gives: IMAGE, TEXT, BOTH, NEITHER or ABSTAIN (CMC-Bench, section 4.2).

    ``image`` and ``text`` are the values of the two sources, each with its other acceptable forms; None for a source that was not
    shown. "UNDECIDED" means that the rules cannot show a label, or that there is nothing to label. Raises SpecError without any
    source.
    """
    from judges.cmc_rules.decision_rules import decide

    references = {name: _values(values) for name, values in (("image", image), ("text", text)) if values is not None}
    if not any(references.values()):
        raise SpecError("an answer is labelled by what its sources say; give image, text or both.")
    visible = visible_answer(answer)
    return decide(visible, question, references).label if visible else UNDECIDED


def _values(values: str | Sequence[str]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(values)
