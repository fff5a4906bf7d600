"""Acts: what an answer does with its sources, and the rules on what should win by which a user judges that.

The paper's labels do not tell an invented value from the right one that no source has, nor an abstention from no answer.
``FOLLOWS`` is the truth table of acts and rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.protocols.without_sources import shows_no_source
from benchmarks.vocabulary import TRUST

if TYPE_CHECKING:
    from benchmarks.base import Benchmark

ACTS: Mapping[str, str] = {
    "image": "follows the image",
    "text": "follows the text",
    "right passage": "gives the right passage's value",
    "wrong passages": "gives the wrong passages' value",
    "both": "gives both values",
    "distractor": "answers a distractor's question",
    "flags": "flags the conflict or abstains",
    "right": "gives a right value that no source has",
    "invents": "invents a value",
    "none": "gives no answer",
}
"""The acts of an answer, and the row of each in the scorecard. A benchmark has those that its labels tell apart."""

FOLLOWS: Mapping[str, frozenset[str]] = {
    "image": frozenset({"image"}),
    "text": frozenset({"text"}),
    "flag": frozenset({"flags"}),
}
"""The rules, and the acts that follow each under conflict; a rule is named by what should win."""

AGREES = frozenset({"image", "text", "right passage", "both"})
"""The acts that give the value of sources that agree, whatever the rule."""

SOURCES = frozenset({"image", "text"})
_VALUES = SOURCES | {"right passage", "both"}
"""The acts that give the value of a source."""

NEEDS: Mapping[str, tuple[str, ...]] = {"image": ("image",), "text": ("text",), "flag": ("image", "text")}
"""The sources that must be read to follow a rule."""

_OF_SOURCE = {"IMAGE": "image", "TEXT": "text", "BOTH": "both", "ABSTAIN": "flags", "NEITHER": "invents"}
_OF_PASSAGE = {
    "RIGHT": "right passage",
    "WRONG": "wrong passages",
    "BOTH": "both",
    "DISTRACTOR": "distractor",
    "NEITHER": "invents",
    "ABSTAIN": "flags",
}
_OF_LABEL = {**_OF_SOURCE, **_OF_PASSAGE}
_OF_BEHAVIOUR = {"right": "right", "off-topic": "none"}

_AGREEMENTS = ("aligned", "no-conflict")
"""The conditions under which several sources agree."""

EACH_ROW = "each row's own"


def check_rule(rule: str | None) -> None:
    """Raise SpecError for a rule that there is not."""
    if rule is not None and rule not in FOLLOWS:
        raise SpecError(f"{rule!r} is not what can win; {did_you_mean(rule, FOLLOWS)}")


def rules_under_conflict(benchmark: Benchmark, runs: Iterable[Answers], rule: str | None) -> Counter[str]:
    """Return the number of answers under conflict by what should win there: by its row, else by ``rule``, else ""."""
    counts: Counter[str] = Counter()
    for answers in runs:
        counts += answers.count(lambda kind: rule_of(kind, rule) if kind.condition in benchmark.conflicts else None)
    return counts


def name_rules(rules: Collection[str]) -> str:
    """Return the rules that decide as one word; "" where some conflicts have none."""
    if not rules or "" in rules:
        return ""
    return next(iter(rules)) if len(rules) == 1 else EACH_ROW


def rule_of(kind: AnswerKind, rule: str | None) -> str:
    """Return what should win for an answer: by its row, else ``rule``; "" if neither says it."""
    return kind.strata.get(TRUST) or rule or ""


def has_scorecard(benchmark: Benchmark) -> bool:
    """Return whether the labels of a benchmark say what an answer does with its sources."""
    return set(benchmark.labels) <= _OF_LABEL.keys() and bool(benchmark.conflicts)


def names_sources(benchmark: Benchmark) -> bool:
    """Return whether the labels say if an answer follows the image or the text, so that one of them can be what should win."""
    return {"IMAGE", "TEXT"} <= set(benchmark.labels) <= _OF_SOURCE.keys() and bool(benchmark.conflicts)


def acts_of(benchmark: Benchmark) -> list[str]:
    """Return the acts that answers to a benchmark with a scorecard can have, in order."""
    possible = {"none", *map(act_of_label, benchmark.labels), *(["right"] if names_sources(benchmark) else [])}
    return [act for act in ACTS if act in possible]


def act_of_label(label: str) -> str:
    """Return what an answer with a label does, as far as the label tells."""
    return _OF_LABEL[label]


def act_of(kind: AnswerKind, judge: str) -> str:
    """Return what an answer does, a key of ``ACTS``; empty if that is not known (pending, in error, undecided, judge failed)."""
    if kind.is_no_answer(judge):
        return "none"
    if kind.outcome(judge) != "labelled":
        return ""
    verdict = kind.verdicts[judge]
    return _OF_BEHAVIOUR.get(verdict.behaviour or "") or _OF_LABEL[str(verdict.label)]


def gives_right(benchmark: Benchmark, condition: str, label: str, act: str) -> bool:
    """Return whether an answer gives the right value, whatever should win: that of a right source, or one that no source has."""
    return act == "right" or (act in _VALUES and benchmark.correct(condition, label))


def situation_of(benchmark: Benchmark, condition: str, single_source: str) -> str:
    """Return the situation of an answer, such as "conflict"; empty if the scorecard leaves it out."""
    if condition in benchmark.without_sources:
        return "without sources" if shows_no_source(condition) else ""
    if condition in benchmark.conflicts:
        return "conflict"
    if single_source:
        return single_source if single_source in ("image", "text") else ""
    return "agreement" if condition in _AGREEMENTS else ""


def needs_of(rules: Iterable[str]) -> str:
    """Return the sources that must be read to follow these rules, in words."""
    return f"the {' and the '.join(dict.fromkeys(source for rule in sorted(rules) for source in NEEDS[rule]))}"
