"""Methods of judges: judges that label by one rule count as one where judges are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.errors import SpecError
from judges.base import newest
from judges.clash_string_match_judge import STRING_MATCHING
from judges.judge_registry import judge_names, usable_judge
from judges.panel_judge import parse_panel

_IMPORTED = {"published": STRING_MATCHING}
"""The methods of judges whose verdicts come with imported answers, by name."""


@dataclass(frozen=True, slots=True)
class MethodJudges:
    """The judges that count, one for each method, and those left out, each with the one that counts in its place."""

    counted: tuple[str, ...]
    left_out: Mapping[str, str]

    def left_out_text(self) -> str:
        """Return the judges left out, each with the reason in brackets."""
        return ", ".join(f"{judge} ({_reason(judge, counted)})" for judge, counted in self.left_out.items())


def method_of(judge_id: str) -> str:
    """Return the method of a judge: the rule that it shares with others, else its name, which its versions share."""
    name = _name(judge_id)
    judge = usable_judge(name)
    return _IMPORTED.get(name, name) if judge is None else judge.method or name


def one_per_method(judges: Sequence[str]) -> MethodJudges:
    """Return the ids in ``judges`` that count where each method counts once, in their order.

    The newest version of a judge counts, and of several judges of a method the first that is registered. A panel counts unless
    one of its members' methods counts already.
    """
    by_method: dict[str, list[str]] = {}
    panels: dict[str, set[str]] = {}
    for judge in judges:
        if members := _members(judge):
            panels[judge] = {method_of(member) for member in members}
        else:
            by_method.setdefault(method_of(judge), []).append(judge)
    counts_for = {method: _representative(ids) for method, ids in by_method.items()}
    in_place_of = {judge: counts_for[method] for method, ids in by_method.items() for judge in ids}
    for panel, methods in panels.items():
        known = [counts_for[method] for method in sorted(methods) if method in counts_for]
        in_place_of[panel] = known[0] if known else panel
        if not known:
            counts_for |= dict.fromkeys(methods, panel)
    return MethodJudges(
        tuple(judge for judge in judges if in_place_of[judge] == judge),
        {judge: in_place_of[judge] for judge in judges if in_place_of[judge] != judge},
    )


def _representative(ids: Sequence[str]) -> str:
    registered = judge_names()
    ranks = {
        name: registered.index(name) if name in registered else len(registered)
        for name in dict.fromkeys(map(_name, ids))
    }
    return newest(min(ranks, key=lambda name: ranks[name]), ids) or ids[0]


def _name(judge_id: str) -> str:
    return judge_id.rpartition("@")[0] or judge_id


def _members(judge: str) -> tuple[str, ...]:
    """Return the members of a panel; none for a single judge, which a name with brackets may be, too."""
    try:
        panel = parse_panel(judge)
    except SpecError:
        return ()
    return () if panel is None else panel.members


def _reason(judge: str, counted: str) -> str:
    if _members(judge):
        return f"a panel that shares judges with {counted}" if _members(counted) else f"a panel that {counted} is in"
    if _name(judge) == _name(counted):
        return f"another version of {counted}"
    return f"{method_of(judge)}, as {counted}"
