"""The decision on an answer, by the forms that the rules recognise, in order; what they do not recognise is undecided."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchmarks.values.clean_text import clean, fold
from judges.cmc_rules import cue_words
from judges.cmc_rules.answer_account import BOTH_SOURCES, Account, read_account
from judges.cmc_rules.answer_clauses import Answer, Clause, plain_lines, read_answer, split_clauses
from judges.cmc_rules.answer_decision import UNDECIDED, Decision, stating, undecided
from judges.cmc_rules.clause_statements import Statement, refuses, revises
from judges.cmc_rules.entry_list_rules import decide_entries
from judges.cmc_rules.reference_values import OTHER, References, read_references
from judges.cmc_rules.short_answer_rules import decide_short
from judges.cmc_rules.stated_value_rules import decide_values
from judges.cmc_rules.value_mentions import find_mentions

_EMPTY_FIELDS = ("", "null", "none", "n/a", "unknown", "-")
_EMPHASIS = re.compile(r"[*_`]+")
_LINE_END = re.compile(r"\n|(?<=[^\W\d_]{3}[.!?])\s")
_HINTS_AT_CHOICE = re.compile(
    r"(?<!which )(?<!one )(?<!them )\b(?:is|are|seems?) (?:the )?(?:right|correct|accurate|clear)\b"
    r"|\b(?:trust|rely|prefer|priorit|more reliable|primary|authoritative|favou?r|should be used)"
)
_NUMBERED = re.compile(r"(?<!\w)1[).:]\s.*(?<!\w)2[).:]\s", re.DOTALL)
_LATTER = re.compile(
    r"\bthe (?:latter|former|(?:first|second|other|smaller|larger|lower|higher) (?:one|number|value))\b|\byes and no\b"
)


def decide(answer: str, question: str, references: Mapping[str, Sequence[str]], *, cut_off: bool = False) -> Decision:
    """Return the decision on an answer without its reasoning.

    ``references`` are the acceptable answers of "image" and "text". ``cut_off`` says that the answer ended at the limit of
    tokens; such an answer is decided only by what it gives as its answer.
    """
    own = read_references(question, references)
    text = read_answer(answer)
    if text.final is not None:
        decision = _marked(text, own, cut_off=cut_off)
    else:
        early = (
            decide_short(answer, own) or _announced(text.text, own) or (None if cut_off else decide_entries(text, own))
        )
        decision = early or _by_clauses(text, own, cut_off)
        if cut_off and decision.behaviour != UNDECIDED and _names_both(text, own):
            return undecided("was cut off, and names both values")
    tables = (cue_words.REFUSALS, cue_words.LACKS, cue_words.CONFLICTS)
    if decision.label == "ABSTAIN" and any(table.search(fold(r.text)) for r in own.every for table in tables):
        return undecided("refuses or disagrees, as a reference does")
    if decision.behaviour == "invents" and _NUMBERED.search(question):
        return undecided("may give an option by its number")
    if own.may_agree and decision.behaviour in BOTH_SOURCES:
        return undecided("it is unclear whether the sources have one value")
    return decision


def _names_both(answer: Answer, references: References) -> bool:
    return {m.name for clause in answer.clauses for m in find_mentions(clause.text, references)} >= BOTH_SOURCES


def _marked(answer: Answer, references: References, *, cut_off: bool) -> Decision:
    """Decide by the field or the box that is marked as the answer."""
    final = answer.final or ""
    if fold(final.strip()) in _EMPTY_FIELDS:
        return Decision("conflict" if answer.flags else "abstain", "its field for the answer is empty")
    read = Answer(final, None, False, tuple(split_clauses(final)))
    decision = (
        decide_short(final, references) or decide_entries(read, references) or _by_clauses(read, references, cut_off)
    )
    reason = f"marked as the answer: {decision.reason}"
    return decision if decision.behaviour == UNDECIDED else Decision(decision.behaviour, reason)


def _announced(text: str, references: References) -> Decision | None:
    """Decide by what stands behind each "the answer is" if that is one value and nothing else."""
    text = _EMPHASIS.sub("", plain_lines(clean(text)))
    folded = fold(text)
    ends = [m.end() for m in cue_words.ANSWER.finditer(folded)]
    lines = [_LINE_END.split(text[end:].lstrip(" :=\n"), maxsplit=1)[0] for end in ends]
    if not ends or not all(lines) or len(folded) != len(text):
        return None
    decisions = [decide_short(line, references) for line in lines]
    last = decisions[-1]
    if last is None or any(d is None or d.behaviour != last.behaviour for d in decisions):
        return None
    rest = text[ends[-1] :].partition(lines[-1])[2]
    goes_on = any(revises(c, 1, references) for c in split_clauses(rest)) or find_mentions(rest, references)
    if goes_on or len(rest.split()) > 40:
        return None
    return last if last.behaviour == UNDECIDED else Decision(last.behaviour, f"given as the answer: {last.reason}")


def _by_clauses(answer: Answer, references: References, cut_off: bool) -> Decision:
    """Decide by the clauses of an answer."""
    if not answer.clauses:
        return undecided("says nothing")
    if _repeats_itself(answer.clauses):
        return _by_clauses(Answer(answer.text, None, False, (answer.clauses[0],)), references, False)
    account = read_account(answer.clauses, references, cut_off=cut_off)
    if _affirms_both(account):
        return Decision("both", "affirms both values")
    if account.revisions:
        return _corrected(account)
    if any(_LATTER.search(c.folded) for c in answer.clauses):
        return undecided("points to a value that it named before")
    if decision := _given_as_answer(account):
        return decision
    decision = _doubtful(account) if account.refusals or account.conflicts else decide_values(account)
    unread = references.occurring(answer.text) - {s.name for s in account.statements}
    if unread and decision.behaviour not in ("abstain", "conflict"):
        return undecided("holds a reference where the rules do not read it")
    return decision


def _repeats_itself(clauses: Sequence[Clause]) -> bool:
    """Return whether an answer is one clause over and over, of which the last may be cut."""
    first, *others = clauses
    repeats = len(others) > 1 and all(c.folded == first.folded for c in others[:-1])
    return repeats and first.folded.startswith(others[-1].folded.rstrip(" ."))


def _affirms_both(account: Account) -> bool:
    """Return whether an answer states both values and affirms both, and takes nothing back and refuses nothing after it."""
    last = max([*account.revisions, *account.refusals], default=-1)
    affirms = [
        i for i, c in enumerate(account.clauses) if c.holds(cue_words.AFFIRMS_BOTH) and not c.holds(cue_words.NEGATIONS)
    ]
    return bool(affirms) and affirms[-1] >= last and {s.name for s in account.statements} == BOTH_SOURCES


def _given_as_answer(account: Account) -> Decision | None:
    """Decide by the last clause that gives a value as the answer, if no refusal follows."""
    explicit = [s for s in account.commits if s.explicit]
    if not explicit or any(i > explicit[-1].index for i in account.refusals):
        return None
    if account.holds(cue_words.BOTH) and len({s.name for s in account.statements}) > 1:
        return None
    at = explicit[-1].index
    names = {s.name for s in explicit if s.index == at}
    if len(names) == 1:
        later = {s.name for s in account.commits if s.index > at} - names
        if later or any(c.holds(cue_words.ANSWER) for c in account.clauses[at + 1 :]):
            return undecided("goes on after its answer with another value")
        if len({s.name for s in explicit}) > 1 and not account.clauses[at].concludes:
            return undecided("gives several values as the answer")
        return stating(min(names), "given as the answer")
    return None


def _corrected(account: Account) -> Decision:
    """Decide an answer that takes something back: the one value that it states in its last words, if they are clear."""
    start = account.revisions[-1]
    if account.holds(cue_words.RESTORED):
        return undecided("takes something back, and perhaps restores it")
    end = max((i for i, c in enumerate(account.clauses) if not _is_trailing(c)), default=-1)
    standing = account.standing
    last = max((s.index for s in standing), default=-1)
    if last < end and _only_takes_back(account):
        return Decision("abstain", "takes its answer back, and gives no other")
    final = _after_correction(account, [s for s in standing if s.index == last])
    if not final or last < end or (last < start and not _is_trailing(account.clauses[start])):
        return undecided("takes something back, and states no value as its last word")
    names = {s.name for s in final}
    others = {s.name for s in standing if start < s.index != last} - names
    if len(names) > 1 or (others and not final[-1].explicit):
        return undecided("takes something back, and names several values after it")
    return stating(final[0].name, "the value it states after a correction")


def _is_trailing(clause: Clause) -> bool:
    """Return whether a clause is no last word: it speaks of what was said before, or says nothing."""
    return clause.holds(cue_words.EARLIER) or not any(map(str.isalnum, clause.folded))


def _only_takes_back(account: Account) -> bool:
    """Return whether an answer refuses from its last correction on, and states nothing after that."""
    start = account.revisions[-1]
    refused = any(refuses(c, account.references) for c in account.clauses[start:])
    return refused and all(s.index <= start for s in account.statements)


def _after_correction(account: Account, last: Sequence[Statement]) -> list[Statement]:
    """Return those of the last statements, all in one clause, that stand behind a correction; none if it is not clear."""
    if not last:
        return []
    at, cue = last[0].index, _last_cue(account.clauses[last[0].index], last)
    is_corrected = at != account.revisions[-1] or cue >= 0 or (account.references.polar and len(last) == 1)
    return [s for s in last if s.start > cue] if is_corrected else []


def _last_cue(clause: Clause, statements: Sequence[Statement]) -> int:
    """Return where the last cue of a correction before one of the statements begins; -1 if there is none."""
    tables = (cue_words.REVISIONS, cue_words.TAKEN_BACK, cue_words.NO)
    starts = (m.start() for table in tables for m in table.finditer(clause.folded))
    return max((at for at in starts if any(s.start > at for s in statements)), default=-1)


def _doubtful(account: Account) -> Decision:
    """Decide an answer that refuses, doubts or names a conflict."""
    refusals, conflicts, commits = account.refusals, account.conflicts, account.commits
    last = max([*refusals, *conflicts])
    stated = any(s.explicit for s in commits)
    if conflicts and not stated and _names_both_in_conflict(account, last):
        return Decision("conflict", "names a conflict between both values")
    after = [s.name for s in commits if s.index > last and (s.explicit or s.echoes)]
    if len(set(after)) == 1:
        if not conflicts and len({s.name for s in account.statements} - {OTHER}) > 1:
            return undecided("refuses, and states a value after it")
        return stating(after[0], "states a value after its doubt")
    if stated or any(s.index >= last for s in commits):
        return undecided("doubts or names a conflict, and states a value")
    return _conflicting(account, last) if conflicts else _refusing(account)


def _names_both_in_conflict(account: Account, last: int) -> bool:
    """Return whether an answer states both values, neither alone in or after its clause ``last``, and hints at no choice."""
    later = {s.name for s in account.statements if s.index > last}
    beside = {s.name for s in account.statements if s.index == last}
    states_both = {s.name for s in account.statements} >= BOTH_SOURCES and 1 not in (len(later), len(beside))
    return states_both and not account.holds(cue_words.CHOOSING) and not _hints_at_choice(account)


def _hints_at_choice(account: Account) -> bool:
    is_hint = any(_HINTS_AT_CHOICE.search(c.folded) for c in account.clauses)
    return is_hint or account.holds(cue_words.WRONGLY) or account.holds(cue_words.BOTH)


def _conflicting(account: Account, last: int) -> Decision:
    ending = {s.name for s in account.statements if s.index >= last}
    if _hints_at_choice(account) or len(ending) == 1 or any(s.name != OTHER for s in account.commits):
        return undecided("names a conflict and hints at a choice")
    return Decision("conflict", "names a conflict and chooses neither value")


def _refusing(account: Account) -> Decision:
    clauses, refusals = account.clauses, account.refusals
    is_end = refusals[-1] >= max((s.index for s in account.statements), default=-1)
    named = {s.name for s in account.statements} - {OTHER}
    if is_end and (not account.commits or named == BOTH_SOURCES) and clauses[refusals[-1]].holds(cue_words.DECIDING):
        return Decision("abstain", "says at its end that it cannot answer")
    if not named and not account.commits:
        return Decision("abstain", "refuses or cannot tell, and gives no value")
    return undecided("refuses or doubts, and states a value")
