"""Table of what the answers do, where a judge tells that apart more finely than its labels do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from benchmarks.answers import Answers
from benchmarks.vocabulary import BEHAVIOURS, Table

NAME = "behaviours"
_UNTOLD, _NO_ANSWER, _UNDECIDED = "label alone", "no answer", "undecided"


def behaviour_table(runs: Mapping[str, Answers], judge: str) -> Table | None:
    """Return the number of answers by what they do, for each run and condition; None where no verdict says it."""
    columns = (*BEHAVIOURS, _UNTOLD, _NO_ANSWER, _UNDECIDED)
    rows: list[tuple[str, tuple[int, ...]]] = []
    is_told = False
    for run, answers in runs.items():
        counts: dict[str, Counter[str]] = {}
        for kind, size in zip(answers.kinds, answers.sizes.tolist(), strict=True):
            outcome, of_condition = kind.outcome(judge), counts.setdefault(kind.condition, Counter())
            if outcome == "labelled":
                behaviour = kind.verdicts[judge].behaviour
                is_told = is_told or behaviour is not None
                of_condition[behaviour or _UNTOLD] += size
            elif outcome in ("unparsed", "undecided"):
                of_condition[_NO_ANSWER if outcome == "unparsed" else _UNDECIDED] += size
        rows += [(f"{run} / {name}", tuple(of[column] for column in columns)) for name, of in counts.items() if of]
    if not is_told:
        return None
    notes = (
        f"{'; '.join(f'{name}: {text}' for name, text in BEHAVIOURS.items())}. Label alone: labelled by a model or a person, who "
        "do not tell flagging from abstaining, or the right value, an invention and another topic apart.",
        "ABSTAIN is conflict and abstain; NEITHER is right, invents and off-topic. The right value is known in builds of this "
        "version and later.",
    )
    return Table(NAME, "What the answers do", columns, tuple(rows), notes)
