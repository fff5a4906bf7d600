"""Records with verdicts, for what is made of verdicts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.answers import Answers
from benchmarks.vocabulary import Generation, Instance, Record, Text, Verdict
from tests.support.toy import Toy

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")


def labelled(
    verdicts: Mapping[str, str | Verdict],
    *,
    id: str = "i",
    group: str = "",
    condition: str = "aligned",
    answer: str = "It is 12.",
    error: bool = False,
    strata: Mapping[str, str] | None = None,
) -> Record:
    """An answered record; a verdict that is a label, "unparsed", "undecided" or "judge-failed" is made into one."""
    instance = Instance(
        id, group or id, condition, "How many?", (Text("How many?"),), {"image": ("12",), "text": ("15",)}, strata or {}
    )
    generation = Generation(f"{id}#0", answer, "error" if error else "stop", error="it broke" if error else None)
    return Record(instance, (generation,), {judge: _verdict(judge, outcome) for judge, outcome in verdicts.items()})


def _verdict(judge: str, outcome: str | Verdict) -> Verdict:
    if isinstance(outcome, Verdict):
        return outcome
    if outcome == "unparsed":
        return Verdict(judge, "unparsed", reason="the answer is empty")
    if outcome == "undecided":
        return Verdict(judge, "undecided", reason="it names both")
    if outcome == "judge-failed":
        return Verdict(judge, "judge-failed", reason="no reply")
    return Verdict(judge, "labelled", outcome)


def answers_of(records: Sequence[Record]) -> Answers:
    """Records as tables count them."""
    return Answers.of(records, Toy())
