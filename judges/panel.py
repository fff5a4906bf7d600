"""Panels: several judges taken as one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from benchmarks.base import Record, Verdict, did_you_mean
from benchmarks.errors import SpecError
from judges.base import newest

Rule = Literal["any", "all", "majority", "first"]

_RULES: tuple[Rule, ...] = get_args(Rule)
_FORM = re.compile(r"\s*([A-Za-z-]+)\s*\((.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Panel:
    """A rule and the judges it is applied to, each by its name (then its newest version counts) or by its id.

    "all" labels an answer where every member gives it the same label, "majority" where more than half of the members
    do, "any" gives it every label that at least one member gives, "first" what the first member says that has judged it,
    as ``first(override:ann, match)`` does where Ann has corrected some of what ``match`` said.
    """

    rule: Rule
    members: tuple[str, ...]

    @property
    def counts_flags(self) -> bool:
        """Whether an answer may get several labels, so that only tables that count flags can be made with it."""
        return self.rule == "any"


def parse_panel(text: str) -> Panel | None:
    """The panel that ``text`` names, such as ``majority(match, openai:gpt-5, human:ann)``; None where it names a single judge.

    Raises SpecError for a rule that does not exist, fewer than two members, and a member that is named twice.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    name, rest = found[1], found[2].rstrip()
    rule = next((known for known in _RULES if known == name.lower()), None)
    shown = _short(text)
    if rule is None:
        raise SpecError(f"the panel {shown} has no known rule; {did_you_mean(name[:40].lower(), _RULES)}")
    if not rest.endswith(")"):
        raise SpecError(f"the panel {shown} has no closing bracket; write it as {rule}(judge, judge).")
    members = tuple(member.strip() for member in rest[:-1].split(","))
    if members == ("",):
        raise SpecError(f"the panel {shown} has no members; name two or more judges, as in {rule}(judge, judge).")
    if "" in members:
        raise SpecError(f"the panel {shown} has an empty place among its members; put one comma between two judges.")
    if len(members) == 1:
        raise SpecError(f"the panel {shown} has one member; name that judge itself, or a second one.")
    _refuse_repeated(members, shown)
    return Panel(rule, members)


def member_ids(panel: Panel, ids: Iterable[str]) -> tuple[str, ...]:
    """The members' ids among ``ids``, those under which verdicts are kept.

    Raises SpecError for a member that none of them belongs to, and where two members turn out to be the same judge.
    """
    known = tuple(dict.fromkeys(ids))
    found = []
    for member in panel.members:
        judge = member if member in known else newest(member, known)
        if judge is None:
            nearest = did_you_mean(member[:80], known) if known else "no judge has labelled anything here."
            raise SpecError(f"the panel's member {_short(member)} has labelled nothing here; {nearest}")
        found.append(judge)
    _refuse_repeated(found, f"{panel.rule}({', '.join(panel.members)})")
    return tuple(found)


def panel_id(panel: Panel, ids: Iterable[str]) -> str:
    """The id that the panel's verdicts are kept under: its rule and its members' ids. Raises SpecError as :func:`member_ids`."""
    return f"{panel.rule}({', '.join(member_ids(panel, ids))})"


def with_panel(records: Iterable[Record], panel: Panel, ids: Iterable[str], labels: Sequence[str]) -> list[Record]:
    """The records, each with the panel's verdict under :func:`panel_id`.

    ``ids`` are the ids under which verdicts are kept, ``labels`` the benchmark's labels in their order. An answer that a
    member has not judged yet, and one that is an error, gets no verdict: a panel that differs from answer to answer is
    not one judge. But "first" needs only its last member's, which the
    others correct. A member without a label (unparsed, judge-failed) counts as one that gave none; where all
    members say unparsed, so does the panel. Raises SpecError as :func:`member_ids`.
    """
    known = tuple(ids)
    members, judge = member_ids(panel, known), panel_id(panel, known)
    judged = []
    for record in records:
        verdict = _verdict(judge, panel.rule, members, record, labels)
        judged.append(record if verdict is None else replace(record, verdicts={**record.verdicts, judge: verdict}))
    return judged


def _verdict(judge: str, rule: Rule, members: Sequence[str], record: Record, labels: Sequence[str]) -> Verdict | None:
    outcomes = [record.outcome(member) for member in members]
    if rule == "first":
        return _first(judge, members, record, outcomes)
    if "pending" in outcomes or "error" in outcomes:
        return None
    verdicts = {member: record.verdicts[member] for member in members}
    if all(outcome == "unparsed" for outcome in outcomes):
        return Verdict(judge, "unparsed", reason=next(iter(verdicts.values())).reason)
    said = ", ".join(f"{member} {_said(verdict)}" for member, verdict in verdicts.items())
    if rule == "any":
        return _any(judge, verdicts, said, labels)
    given = Counter(str(verdict.label) for verdict in verdicts.values() if verdict.status == "labelled")
    label, votes = given.most_common(1)[0] if given else ("", 0)
    needed = len(members) if rule == "all" else len(members) // 2 + 1
    if votes >= needed:
        return Verdict(judge, "labelled", label, reason=said)
    why = "the judges disagree" if rule == "all" else "no majority"
    return Verdict(judge, "judge-failed", reason=f"{why}: {said}")


def _first(judge: str, members: Sequence[str], record: Record, outcomes: Sequence[str]) -> Verdict | None:
    if outcomes[-1] in ("pending", "error"):
        return None
    said = next(record.verdicts[member] for member in members if member in record.verdicts)
    return replace(said, judge=judge, reason=f"{said.judge}: {said.reason}")


def _any(judge: str, verdicts: Mapping[str, Verdict], said: str, labels: Sequence[str]) -> Verdict:
    given = {
        label
        for verdict in verdicts.values()
        if verdict.status == "labelled"
        for label in (verdict.flags or (str(verdict.label),))
    }
    order = [*(label for label in labels if label in given), *sorted(given.difference(labels))]
    if not order:
        return Verdict(judge, "judge-failed", reason=f"no judge gives it a label: {said}")
    return Verdict(judge, "labelled", order[0], reason=said, flags=tuple(order))


def _said(verdict: Verdict) -> str:
    if verdict.status != "labelled":
        return verdict.status
    return " and ".join(verdict.flags) if verdict.flags else str(verdict.label)


def _refuse_repeated(members: Sequence[str], shown: str) -> None:
    for member, count in Counter(members).items():
        if count > 1:
            raise SpecError(f"the panel {shown} has {_short(member)} as a member {count} times; name every judge once.")


def _short(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "...")
