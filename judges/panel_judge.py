"""Panels: several judges combined into one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

from benchmarks.answers import AnswerKind
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.vocabulary import Record, Verdict
from judges.base import HUMAN, OVERRIDE, newest

Rule = Literal["any", "all", "majority", "first"]

_RULES: tuple[Rule, ...] = get_args(Rule)
_Judged = TypeVar("_Judged", Record, AnswerKind)
_FORM = re.compile(r"\s*([A-Za-z-]+)\s*\((.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Panel:
    """A rule and the judges it applies to, each by its name (meaning its newest version) or by its id.

    "all" labels an answer if every member gives the same label, and "majority" if more than half of them do. "any"
    gives an answer every label that at least one member gives. "first" takes the verdict of the first member that has
    judged the answer, as in ``first(override:ann, match)``, where Ann has corrected part of ``match``. A member that leaves an
    answer undecided abstains: it does not count as a member, and ``first(match, openai:gpt-5)`` takes the next one's verdict.
    """

    rule: Rule
    members: tuple[str, ...]

    @property
    def counts_flags(self) -> bool:
        """True if an answer may get several labels, which only tables that count flags can use."""
        return self.rule == "any"


def parse_panel(text: str) -> Panel | None:
    """Return the panel that ``text`` names, such as ``majority(match, openai:gpt-5, human:ann)``; None for a single judge.

    Raises SpecError for an unknown rule, fewer than two members, and a member named twice.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    name, rest = match[1], match[2].rstrip()
    rule = next((candidate for candidate in _RULES if candidate == name.lower()), None)
    quoted = _quote(text)
    if rule is None:
        raise SpecError(f"the panel {quoted} has no known rule; {did_you_mean(name[:40].lower(), _RULES)}")
    if not rest.endswith(")"):
        raise SpecError(f"the panel {quoted} has no closing bracket; write it as {rule}(judge, judge).")
    members = tuple(member.strip() for member in rest[:-1].split(","))
    if members == ("",):
        raise SpecError(f"the panel {quoted} has no members; name two or more judges, as in {rule}(judge, judge).")
    if "" in members:
        raise SpecError(f"the panel {quoted} has an empty member; separate judges by a single comma.")
    if len(members) == 1:
        raise SpecError(f"the panel {quoted} has only one member; name that judge directly, or add a second one.")
    _refuse_repeated(members, quoted)
    return Panel(rule, members)


def member_ids(panel: Panel, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the members' ids among ``ids``, the ids that have verdicts.

    Raises SpecError for a member without verdicts, and if two members turn out to be the same judge.
    """
    known_ids = tuple(dict.fromkeys(ids))
    judges = []
    for member in panel.members:
        judge = member if member in known_ids else newest(member, known_ids)
        if judge is None:
            nearest = did_you_mean(member[:80], known_ids) if known_ids else "no judge has labelled anything here."
            raise SpecError(f"the panel's member {_quote(member)} has no labels here; {nearest}")
        judges.append(judge)
    _refuse_repeated(judges, f"{panel.rule}({', '.join(panel.members)})")
    return tuple(judges)


def panel_id(panel: Panel, ids: Iterable[str]) -> str:
    """Return the id of the panel's verdicts: its rule and its members' ids. Raises SpecError as :func:`member_ids` does."""
    return f"{panel.rule}({', '.join(member_ids(panel, ids))})"


def panel_judge(panel: Panel, ids: Iterable[str], labels: Sequence[str]) -> Callable[[_Judged], _Judged]:
    """Return a function that adds the panel's verdict, under :func:`panel_id`, to a record or a kind of answer.

    ``ids`` are the ids that have verdicts, ``labels`` the benchmark's labels in order. An answer that a member has not
    judged yet, or that is an error, gets no verdict: a panel that differs from answer to answer is not one judge.
    "first" needs its last member's verdict only where no other judge has decided: a person corrects it, and a model is asked for
    what a rule leaves undecided. A member without a label (unparsed,
    judge-failed) counts as giving none; if all members that do not abstain say unparsed, so does the panel. If all abstain, it
    is undecided. Raises SpecError as :func:`member_ids` does.
    """
    known_ids = tuple(ids)
    members, judge = member_ids(panel, known_ids), panel_id(panel, known_ids)

    def add(record: _Judged) -> _Judged:
        verdict = _verdict(judge, panel.rule, members, record, labels)
        return record if verdict is None else replace(record, verdicts={**record.verdicts, judge: verdict})

    return add


def _verdict(
    judge: str, rule: Rule, members: Sequence[str], record: Record | AnswerKind, labels: Sequence[str]
) -> Verdict | None:
    outcomes = [record.outcome(member) for member in members]
    if rule == "first":
        return _first(judge, members, record, outcomes)
    if "pending" in outcomes or "error" in outcomes:
        return None
    verdicts = {member: record.verdicts[member] for member in members}
    summary = ", ".join(f"{member} {_describe(verdict)}" for member, verdict in verdicts.items())
    voting = [verdict for verdict in verdicts.values() if verdict.status != "undecided"]
    if not voting:
        return Verdict(judge, "undecided", reason=summary)
    if all(verdict.status == "unparsed" for verdict in voting):
        return Verdict(judge, "unparsed", reason=voting[0].reason)
    if rule == "any":
        return _any(judge, verdicts, summary, labels)
    votes_by_label = Counter(str(verdict.label) for verdict in voting if verdict.status == "labelled")
    label, votes = votes_by_label.most_common(1)[0] if votes_by_label else ("", 0)
    needed = len(voting) if rule == "all" else len(voting) // 2 + 1
    if votes >= needed:
        return Verdict(judge, "labelled", label, reason=summary)
    why = "the judges disagree" if rule == "all" else "no majority"
    return Verdict(judge, "judge-failed", reason=f"{why}: {summary}")


def _first(judge: str, members: Sequence[str], record: Record | AnswerKind, outcomes: Sequence[str]) -> Verdict | None:
    verdicts = [record.verdicts[member] for member in members if member in record.verdicts]
    decided = next((verdict for verdict in verdicts if verdict.status != "undecided"), None)
    unasked = decided is not None and not decided.judge.startswith((HUMAN, OVERRIDE))
    if outcomes[-1] == "error" or (outcomes[-1] == "pending" and not unasked):
        return None
    verdict = decided or verdicts[0]
    return replace(verdict, judge=judge, reason=f"{verdict.judge}: {verdict.reason}")


def _any(judge: str, verdicts: Mapping[str, Verdict], summary: str, labels: Sequence[str]) -> Verdict:
    present = {
        label
        for verdict in verdicts.values()
        if verdict.status == "labelled"
        for label in (verdict.flags or (str(verdict.label),))
    }
    order = [*(label for label in labels if label in present), *sorted(present.difference(labels))]
    if not order:
        return Verdict(judge, "judge-failed", reason=f"no judge gives it a label: {summary}")
    return Verdict(judge, "labelled", order[0], reason=summary, flags=tuple(order))


def _describe(verdict: Verdict) -> str:
    if verdict.status != "labelled":
        return verdict.status
    return " and ".join(verdict.flags) if verdict.flags else str(verdict.label)


def _refuse_repeated(members: Sequence[str], quoted: str) -> None:
    for member, count in Counter(members).items():
        if count > 1:
            raise SpecError(f"the panel {quoted} has {_quote(member)} as a member {count} times; name each judge once.")


def _quote(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "...")
