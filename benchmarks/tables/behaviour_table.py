"""Table of what the answers do, where a judge tells that apart more finely than its labels do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from benchmarks.answers import Answers
from benchmarks.failure_table import OUTCOMES
from benchmarks.vocabulary import BEHAVIOURS, Table

NAME = "behaviours"
_UNTOLD = "label alone"


def behaviour_table(runs: Mapping[str, Answers], judge: str) -> Table | None:
    """Return the number of answers by what they do, for each run and condition; None where no verdict says it."""
    columns = (*BEHAVIOURS, _UNTOLD, *(outcome for outcome in OUTCOMES if outcome != "labelled"))
    rows: list[tuple[str, tuple[int, ...]]] = []
    is_told = False
    for run, answers in runs.items():
        counts: dict[str, Counter[str]] = {}
        for kind, size in zip(answers.kinds, answers.sizes.tolist(), strict=True):
            outcome: str = kind.outcome(judge)
            if outcome == "labelled":
                behaviour = kind.verdicts[judge].behaviour
                is_told = is_told or behaviour is not None
                outcome = behaviour or _UNTOLD
            counts.setdefault(kind.condition, Counter())[outcome] += size
        rows += [(f"{run} / {name}", tuple(of[column] for column in columns)) for name, of in counts.items()]
    if not is_told:
        return None
    notes = (
        f"{'; '.join(f'{name}: {text}' for name, text in BEHAVIOURS.items())}. Label alone: labelled by a model or a person, who "
        "do not tell flagging from abstaining, or the right value, an invention and another topic apart.",
        "ABSTAIN is conflict and abstain; NEITHER is right, invents and off-topic. The right value is known in builds of this "
        "version and later.",
    )
    return Table(NAME, "What the answers do", columns, tuple(rows), notes)
