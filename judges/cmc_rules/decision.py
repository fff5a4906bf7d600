"""The decision on an answer, by the forms that the rules recognise, in order; what they do not recognise is undecided."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.moments import find_moments
from benchmarks.values.words import word_set, words_of
from judges.cmc_rules import cues
from judges.cmc_rules.answer import Answer, Clause, clause_of, plain_lines, read_answer, split_clauses
from judges.cmc_rules.behaviour import UNDECIDED, Decision, stating, undecided
from judges.cmc_rules.cues import source_named
from judges.cmc_rules.mentions import Mention, find_mentions
from judges.cmc_rules.references import OTHER, References, read_references
from judges.cmc_rules.short_answer import decide_short
from judges.cmc_rules.statements import Place, Statement, conflicts, is_set_aside, read_clause, refuses, revises

_BOTH = frozenset({"image", "text"})
_EMPTY_FIELDS = ("", "null", "none", "n/a", "unknown", "-")
_EMPHASIS = re.compile(r"[*_`]+")
_TABLE_MARKS = re.compile(r"[*_`|]+")
_LINE_END = re.compile(r"\n|(?<=[^\W\d_]{3}[.!?])\s")
_ENTRY_END = re.compile(r"\n|(?<=[.;])\s")
_OPEN_END = re.compile(r"\b(?:is|the|of|an?|at|was|and|are|to|in|that|by|for|with|from)$")
_AND = re.compile(r"\b(?:and|both|und|et|y)\b|和")
_JOINED = re.compile(r"\s*(?:\([^()]*\))?\W*(?:and|und|et|y|e|&|,|/|和)\W*(?:the |an? |also )?")
_HINTS_AT_CHOICE = re.compile(
    r"(?<!which )(?<!one )(?<!them )\b(?:is|are|seems?) (?:the )?(?:right|correct|accurate|clear)\b"
    r"|\b(?:trust|rely|prefer|priorit|more reliable|primary|authoritative|favou?r|should be used)"
)
_STRESSING = re.compile(r"\b(?:clearly|actually|in fact|really|explicitly|unambiguously)\b")
_DENYING = re.compile(
    r"\b(?:cannot|unable|afraid|sorry|unfortunately|missing|provide|not?|never|none|neither|yes|same|agree\w*|consistent|zero|nil)\b"
)
_JUDGED = re.compile(r"\b(?:misprint|error|mistake|typo|outdated|current|newer|older|earlier|later|must|should)\b")
_LABEL = re.compile(r"\W*(?:according to )?[\w.' -]{1,30}\s*[:=]\W*")
_ASIDE = re.compile(r"[\w% ]{0,12}\([^()]{1,30}\)\W*")
_LOCATED = re.compile(r"\s*(?:\((?=\w)|(?:on|in|at|from|by|per|as|of|according|selon|laut|según)\b)")
_NUMBERED = re.compile(r"(?<!\w)1[).:]\s.*(?<!\w)2[).:]\s", re.DOTALL)
_LATTER = re.compile(
    r"\bthe (?:latter|former|(?:first|second|other|smaller|larger|lower|higher) (?:one|number|value))\b|\byes and no\b"
)
_ENGLISH_WORDS = word_set("the is are this of in what which how many")


@dataclass(frozen=True)
class _Account:
    """The clauses of an answer and what they state."""

    references: References
    clauses: Sequence[Clause]
    mentions: Sequence[Sequence[Mention]]
    cut_off: bool
    revisions: Sequence[int]
    """The clauses that take something back."""
    refusals: Sequence[int]
    """The clauses that say that the question cannot be answered."""
    conflicts: Sequence[int]
    """The clauses that say that the sources conflict."""
    statements: Sequence[Statement]

    @property
    def commits(self) -> list[Statement]:
        """The statements that the answer itself makes."""
        return [s for s in self.statements if s.commits]

    @property
    def reports(self) -> list[Statement]:
        """The statements that it says are a source's."""
        return [s for s in self.statements if s.speaker in _BOTH]

    def holds(self, table: re.Pattern[str]) -> bool:
        """Return whether an entry of a table of cues occurs in a clause."""
        return any(c.holds(table) for c in self.clauses)


def _read(clauses: Sequence[Clause], references: References, *, cut_off: bool) -> _Account:
    mentions = [find_mentions(c.text, references) for c in clauses]
    pairs = list(enumerate(zip(clauses, mentions, strict=True)))
    statements = [s for i, m in enumerate(mentions) for s in read_clause(Place(i, clauses, m, references))]
    return _Account(
        references,
        clauses,
        mentions,
        cut_off or _OPEN_END.search(clauses[-1].folded) is not None,
        [i for i, c in enumerate(clauses) if revises(c, i, references)],
        [i for i, (c, m) in pairs if refuses(c, references, m, hedging=bool(statements))],
        [i for i, (c, m) in pairs if conflicts(c, m)],
        statements,
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
        early = decide_short(answer, own) or _announced(text.text, own) or (None if cut_off else _entries(text, own))
        decision = early or _by_clauses(text, own, cut_off)
        if cut_off and decision.behaviour != UNDECIDED and _names_both(text, own):
            return undecided("was cut off, and names both values")
    tables = (cues.REFUSALS, cues.LACKS, cues.CONFLICTS)
    if decision.label == "ABSTAIN" and any(table.search(fold(r.text)) for r in own.every for table in tables):
        return undecided("refuses or disagrees, as a reference does")
    if decision.behaviour == "invents" and _NUMBERED.search(question):
        return undecided("may give an option by its number")
    if own.may_agree and decision.behaviour in _BOTH:
        return undecided("it is unclear whether the sources have one value")
    return decision


def _names_both(answer: Answer, references: References) -> bool:
    return {m.name for clause in answer.clauses for m in find_mentions(clause.text, references)} >= _BOTH


def _marked(answer: Answer, references: References, *, cut_off: bool) -> Decision:
    """Decide by the field or the box that is marked as the answer."""
    final = answer.final or ""
    if fold(final.strip()) in _EMPTY_FIELDS:
        return Decision("conflict" if answer.flags else "abstain", "its field for the answer is empty")
    read = Answer(final, None, False, tuple(split_clauses(final)))
    decision = decide_short(final, references) or _entries(read, references) or _by_clauses(read, references, cut_off)
    reason = f"marked as the answer: {decision.reason}"
    return decision if decision.behaviour == UNDECIDED else Decision(decision.behaviour, reason)


def _announced(text: str, references: References) -> Decision | None:
    """Decide by what stands behind each "the answer is" if that is one value and nothing else."""
    text = _EMPHASIS.sub("", plain_lines(clean(text)))
    folded = fold(text)
    ends = [m.end() for m in cues.ANSWER.finditer(folded)]
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


def _entries(answer: Answer, references: References) -> Decision | None:
    """Decide a list, a table or a sentence of several entities with a value each: the question's entity counts."""
    tables = (
        cues.CONFLICTS,
        cues.REFUSALS,
        cues.LACKS,
        cues.ANSWER,
        cues.BOTH,
        cues.UNDECIDED,
        cues.CHOOSING,
        cues.AFFIRMS_BOTH,
    )
    if not references.typed or any(c.holds(table) for c in answer.clauses for table in tables):
        return None
    if any(revises(c, i, references) or cues.CONCEDING.match(c.lead) for i, c in enumerate(answer.clauses)):
        return None
    entries: list[tuple[frozenset[str], Mention]] = []
    sources: set[str] = set()
    for sentence in _ENTRY_END.split(_TABLE_MARKS.sub(" ", clean(answer.text))):
        mentions, clause = find_mentions(sentence, references), clause_of(sentence)
        if any(_LOCATED.match(sentence[m.end :]) for m in mentions[:-1]):
            return None  # "12 on the plate and 15 in the manual" are no entities
        labels = _labels(sentence, mentions)
        if mentions and not labels:
            return None
        if any(is_set_aside(clause, mentions, i, typed=True) for i in range(len(mentions))):
            return None
        entries += zip(labels, mentions, strict=True)
        sources |= {source_named(word.strip(",.:;()'s")) for word in fold(sentence).split()} - {""}
    return _own_entry(entries, references) if len(entries) > 1 and len(sources) < 2 else None


def _labels(sentence: str, mentions: Sequence[Mention]) -> list[frozenset[str]]:
    """Return the words that may name the entity beside each value, all before or all after it; none if some lack any."""
    starts, ends = [m.start for m in mentions], [m.end for m in mentions]
    for left, right in (([0, *ends], starts), (ends, [*starts[1:], len(sentence)])):
        texts = (sentence[begin:end] for begin, end in zip(left, right, strict=False))
        labels = [frozenset(w for w in words_of(fold(t)) if cues.is_content(w) and not w.isdigit()) for t in texts]
        if all(labels):
            return labels
    return []


def _own_entry(entries: Sequence[tuple[frozenset[str], Mention]], references: References) -> Decision | None:
    common = frozenset.intersection(*(label for label, _ in entries))
    labels = [(label - common, mention) for label, mention in entries]
    subject = references.subject
    dates = {word for word in subject if word.isdigit() or find_moments(word)}
    own = [mention for label, mention in labels if label & (subject - dates)]
    foreign = [label for label, _ in labels if not label & subject]
    related = any(len(w) >= 5 and w[:5] == q[:5] for label in foreign for w in label for q in subject)
    if len(own) == 1 and own[0].exact and foreign and all(foreign) and not related:
        return stating(own[0].name, "the value that it gives for what the question asks about")
    return None


def _by_clauses(answer: Answer, references: References, cut_off: bool) -> Decision:
    """Decide by the clauses of an answer."""
    if not answer.clauses:
        return undecided("says nothing")
    first, *others = answer.clauses
    repeats = len(others) > 1 and all(c.folded == first.folded for c in others[:-1])
    if repeats and first.folded.startswith(others[-1].folded.rstrip(" .")):
        return _by_clauses(Answer(answer.text, None, False, (first,)), references, False)
    account = _read(answer.clauses, references, cut_off=cut_off)
    last = max([*account.revisions, *account.refusals], default=-1)
    affirms = [i for i, c in enumerate(answer.clauses) if c.holds(cues.AFFIRMS_BOTH) and not c.holds(cues.NEGATIONS)]
    if affirms and affirms[-1] >= last and {s.name for s in account.statements} == _BOTH:
        return Decision("both", "affirms both values")
    if account.revisions:
        return _corrected(account)
    if any(_LATTER.search(c.folded) for c in answer.clauses):
        return undecided("points to a value that it named before")
    last_form = _doubtful if account.refusals or account.conflicts else _plain
    if decision := _given_as_answer(account):
        return decision
    decision, unread = last_form(account), references.occurring(answer.text) - {s.name for s in account.statements}
    if unread and decision.behaviour not in ("abstain", "conflict"):
        return undecided("holds a reference where the rules do not read it")
    return decision


def _given_as_answer(account: _Account) -> Decision | None:
    """Decide by the last clause that gives a value as the answer, if no refusal follows."""
    explicit = [s for s in account.commits if s.explicit]
    if not explicit or any(i > explicit[-1].index for i in account.refusals):
        return None
    if account.holds(cues.BOTH) and len({s.name for s in account.statements}) > 1:
        return None
    at = explicit[-1].index
    names = {s.name for s in explicit if s.index == at}
    if len(names) == 1:
        later = {s.name for s in account.commits if s.index > at} - names
        if later or any(c.holds(cues.ANSWER) for c in account.clauses[at + 1 :]):
            return undecided("goes on after its answer with another value")
        if len({s.name for s in explicit}) > 1 and not account.clauses[at].concludes:
            return undecided("gives several values as the answer")
        return stating(min(names), "given as the answer")
    return None


def _corrected(account: _Account) -> Decision:
    """Decide an answer that takes something back: the one value that it states in its last words, if they are clear."""
    clauses, references, start = account.clauses, account.references, account.revisions[-1]
    if account.holds(cues.RESTORED):
        return undecided("takes something back, and perhaps restores it")
    trailing = {i for i, c in enumerate(clauses) if c.holds(cues.EARLIER) or not any(map(str.isalnum, c.folded))}
    end = max((i for i in range(len(clauses)) if i not in trailing), default=-1)
    standing = [s for s in account.statements if s.standing and s.speaker != "if"]
    last = max((s.index for s in standing), default=-1)
    refused = any(refuses(c, references) for c in clauses[start:])
    if refused and last < end and all(s.index <= start for s in account.statements):
        return Decision("abstain", "takes its answer back, and gives no other")
    final = [s for s in standing if s.index == last]
    cue = _last_cue(clauses[max(last, 0)], final)
    is_corrected = last != start or cue >= 0 or (references.polar and len(final) == 1)
    final = [s for s in final if s.start > cue]
    if not (is_corrected and final) or last < end or (last < start and start not in trailing):
        return undecided("takes something back, and states no value as its last word")
    names = {s.name for s in final}
    others = {s.name for s in standing if start < s.index != last} - names
    if len(names) > 1 or (others and not final[-1].explicit):
        return undecided("takes something back, and names several values after it")
    return stating(final[0].name, "the value it states after a correction")


def _last_cue(clause: Clause, statements: Sequence[Statement]) -> int:
    """Return where the last cue of a correction before one of the statements begins; -1 if there is none."""
    tables = (cues.REVISIONS, cues.TAKEN_BACK, cues.NO)
    starts = (m.start() for table in tables for m in table.finditer(clause.folded))
    return max((at for at in starts if any(s.start > at for s in statements)), default=-1)


def _doubtful(account: _Account) -> Decision:
    """Decide an answer that refuses, doubts or names a conflict."""
    refusals, conflicts, commits = account.refusals, account.conflicts, account.commits
    last = max([*refusals, *conflicts])
    stated = any(s.explicit for s in commits)
    later = {s.name for s in account.statements if s.index > last}
    beside = {s.name for s in account.statements if s.index == last}
    names = {s.name for s in account.statements}
    if conflicts and not stated and names >= _BOTH and 1 not in (len(later), len(beside)):
        hints = account.holds(cues.WRONGLY) or account.holds(cues.CHOOSING) or account.holds(cues.BOTH)
        if not hints and not any(_HINTS_AT_CHOICE.search(c.folded) for c in account.clauses):
            return Decision("conflict", "names a conflict between both values")
    after = [s.name for s in commits if s.index > last and (s.explicit or s.echoes)]
    if len(set(after)) == 1:
        if not conflicts and len(names - {OTHER}) > 1:
            return undecided("refuses, and states a value after it")
        return stating(after[0], "states a value after its doubt")
    if stated or any(s.index >= last for s in commits):
        return undecided("doubts or names a conflict, and states a value")
    return _conflicting(account, last) if conflicts else _refusing(account)


def _conflicting(account: _Account, last: int) -> Decision:
    chosen = account.holds(cues.WRONGLY) or any(_HINTS_AT_CHOICE.search(c.folded) for c in account.clauses)
    ending = {s.name for s in account.statements if s.index >= last}
    if chosen or account.holds(cues.BOTH) or len(ending) == 1 or any(s.name != OTHER for s in account.commits):
        return undecided("names a conflict and hints at a choice")
    return Decision("conflict", "names a conflict and chooses neither value")


def _refusing(account: _Account) -> Decision:
    clauses, refusals = account.clauses, account.refusals
    is_end = refusals[-1] >= max((s.index for s in account.statements), default=-1)
    named = {s.name for s in account.statements} - {OTHER}
    if is_end and (not account.commits or named == _BOTH) and clauses[refusals[-1]].holds(cues.DECIDING):
        return Decision("abstain", "says at its end that it cannot answer")
    if not named and not account.commits:
        return Decision("abstain", "refuses or cannot tell, and gives no value")
    return undecided("refuses or doubts, and states a value")


def _plain(account: _Account) -> Decision:
    """Decide an answer that only states values."""
    references, clauses = account.references, account.clauses
    stating_clauses = {s.index for s in account.statements}
    if not references.typed and not references.polar:
        unread = (c for i, c in enumerate(clauses) if i not in stating_clauses and c.concludes)
        if any(not refuses(c, references) for c in unread):
            return undecided("gives an answer that the rules cannot read")
    if account.cut_off and len(clauses) > 1:
        return undecided("was cut off before it gave an answer as such")
    names = {s.name for s in account.commits}
    if final := _settled(account):
        return stating(final, "comes back to this value in its last words")
    if len(names - {OTHER}) > 1:
        return _both(account)
    if names - {OTHER} and account.holds(cues.BOTH):
        return undecided("says both, and states one value")
    if names - {OTHER}:
        return _value(account, min(names - {OTHER}))
    return _others(account) if names else _reported(account) or _valueless(account)


def _settled(account: _Account) -> str:
    """Return the source whose value, stated before beside the other's, is all that a short last clause states; "" if none."""
    last, before = account.statements[-1:], {s.name for s in account.statements[:-1]}
    clause = account.clauses[-1]
    ends = last and last[0].index == len(account.clauses) - 1 and last[0].commits and last[0].name in before & _BOTH
    alone = ends and len(clause.text.split()) <= 6 and all(s.index < last[0].index for s in account.statements[:-1])
    return last[0].name if alone and before >= _BOTH and "?" not in clause.text else ""


def _both(account: _Account) -> Decision:
    """Decide an answer that states both values."""
    if _lists_both(account) or _coordinates(account):
        return Decision("both", "lists each source's value, and neither chooses nor objects")
    clauses, indexes = account.clauses, {s.index for s in account.commits}
    clause = clauses[min(indexes)]
    mentions = [m for m in account.mentions[min(indexes)] if m.name in _BOTH]
    between = clause.folded[mentions[0].end : mentions[1].start] if len(mentions) == 2 else "."
    if len(clauses) == 1 and _JOINED.fullmatch(between) and not clause.holds(cues.UNDECIDED):
        return Decision("both", "affirms both values in one statement")
    return undecided("states both values")


def _value(account: _Account, name: str) -> Decision:
    """Decide an answer that states the value of one source, and perhaps others."""
    own = [s for s in account.commits if s.name == name]
    other = [s for s in account.commits if s.name == OTHER]
    if len({s.name for s in account.statements} - {OTHER}) > 1:
        if account.holds(cues.BOTH) or other or not _is_chosen(account, own[-1]):
            return undecided("names both values")
        return stating(name, "states one value and sets the other aside")
    if not other:
        if not account.references.typed and not _answers_with(account, own):
            return undecided("mentions one reference where it may not be the answer")
        return stating(name, "states this value and no other")
    return undecided("states several values")


def _answers_with(account: _Account, own: Sequence[Statement]) -> bool:
    """Return whether a name stands where the answer takes up the question, or alone, and no later clause does without it."""
    clauses, indexes = account.clauses, {s.index for s in own}
    if account.references.polar or any(s.explicit for s in own):
        return True
    last = max(indexes)
    taking_up = [i for i, c in enumerate(clauses) if account.references.takes_up(words_of(c.folded))]
    if taking_up:
        return taking_up[-1] in indexes or (len(clauses[last].text.split()) <= 4 and last > taking_up[-1])
    is_short = all(len(clauses[i].text.split()) <= 8 for i in indexes)
    return len(clauses) == 1 or (is_short and last in (0, len(clauses) - 1))


def _is_chosen(account: _Account, own: Statement) -> bool:
    """Return whether the other value is set aside: negated, rejected, conceded, or reported before the last statement."""
    clauses = account.clauses
    is_last = own.index == max(s.index for s in account.statements) and (own.echoes or clauses[own.index].concludes)
    return all(
        not s.standing
        or clauses[s.index].holds(cues.WRONGLY)
        or cues.CONCEDING.match(clauses[s.index].lead)
        or (is_last and s.speaker in _BOTH and own.index > s.index)
        for s in account.statements
        if s.name not in (own.name, OTHER)
    )


def _others(account: _Account) -> Decision:
    """Decide an answer that states only values of no reference."""
    own = [s for s in account.statements if s.name != OTHER]
    echoes = any(s.echoes for s in account.commits)
    if not own and (echoes or len(account.clauses) == 1) and len({s.index for s in account.commits}) == 1:
        return Decision("invents", "states another value and none of the references")
    if own and echoes and not any(s.standing for s in own):
        return Decision("invents", "states another value, and names the references only to set them aside")
    return undecided("states other values")


def _reported(account: _Account) -> Decision | None:
    """Decide an answer that only reports what sources say."""
    mentioned = {s.name for s in account.statements} - {OTHER}
    reported = {s.name for s in account.reports if s.standing}
    if not account.reports:
        return None
    if len(reported) == len(mentioned) == 1:
        return stating(min(reported), "reports this value and no other")
    return _contrasted(account) if len(mentioned) > 1 else None


def _contrasted(account: _Account) -> Decision:
    """Decide an answer that only reports both sources: one that calls a source wrong follows the other."""
    clauses, reports = account.clauses, account.reports
    names = {s.name for s in reports}
    wrong_sentences = {c.sentence for c in clauses if c.holds(cues.WRONGLY)}
    wrong = {s.name for s in reports if clauses[s.index].sentence in wrong_sentences}
    if len(wrong) == len(names - wrong) == 1 and not account.references.polar:
        return stating(min(names - wrong), "calls the other source wrong")
    conceded = {s.name for s in reports if cues.CONCEDED.match(clauses[s.index].lead or clauses[s.index].folded)}
    against = (s for s in reports if cues.CONTRASTS.match(clauses[s.index].lead))
    main = {s.name for s in against if _STRESSING.search(clauses[s.index].folded)} or names - conceded
    if not wrong and len(main) == 1 < len(names):
        return stating(min(main), "stresses one source's value, or concedes the other's")
    if not wrong and (_lists_both(account) or _coordinates(account)):
        return Decision("both", "lists each source's value, and neither chooses nor objects")
    return undecided("reports both sources and chooses neither in words that the rules recognise")


def _lists_both(account: _Account) -> bool:
    """Return whether an answer is a list of both values, each with a label, perhaps with a heading, and no prose."""
    indexes = [s.index for s in account.statements]
    lines = [(c, account.mentions[i]) for i, c in enumerate(account.clauses) if i in indexes]
    if set(range(len(account.clauses))) - set(indexes) > {0} or len(set(indexes)) < len(indexes):
        return False
    labelled = all(
        m and (_LABEL.fullmatch(c.folded[: m[0].start]) or _ASIDE.fullmatch(c.folded[m[0].end :])) for c, m in lines
    )
    return labelled and not any(map(_turns, account.clauses)) and {s.name for s in account.statements} == _BOTH


def _coordinates(account: _Account) -> bool:
    """Return whether an answer is one clause that gives both values, each with its source behind it and nothing else."""
    mentions, folded = [m for m in account.mentions[0] if m.name in _BOTH], account.clauses[0].folded
    if len(account.clauses) > 1 or len(mentions) != 2 or _turns(account.clauses[0]):
        return False
    between, after = folded[mentions[0].end : mentions[1].start], folded[mentions[1].end :]
    sources = [[source_named(w) for w in words_of(text)] for text in (folded[: mentions[0].start], between, after)]
    words = set(words_of(_AND.sub(" ", between + " " + after))) - account.references.question.words
    plain = not any(cues.is_content(w) and not w.isdigit() for w in words)
    return plain and not any(sources[0]) and any(sources[1]) and any(sources[2])


def _turns(clause: Clause) -> bool:
    """Return whether a clause sets what it says against something, or says how good it is."""
    return clause.holds(cues.CONTRASTS) or _JUDGED.search(clause.folded) is not None


def _valueless(account: _Account) -> Decision:
    """Decide an answer that states no value."""
    statements, clauses, typed = account.statements, account.clauses, account.references.typed
    words = [word for c in clauses for w in c.folded.split() if (word := w.strip(".,:;!?*_`\"'“”#"))]
    if not statements:
        aside = any(_DENYING.search(c.folded) or any(map(str.isdigit, c.text)) for c in clauses)
        is_prose = len(words) >= 4 and not _ENGLISH_WORDS.isdisjoint(words)
        is_name = len(words) < 4 and all(
            w.isascii() and w.isalpha() and len(w) > 2 and w.strip("ivxlcdm") for w in words
        )
        is_name = is_name and not _ENGLISH_WORDS.isdisjoint(account.references.question.folded.split())
        if typed and not account.cut_off and not aside and (is_prose or is_name) and not account.holds(cues.UNSURE):
            return Decision("off-topic", "gives no value of the kind that is asked for")
        if account.holds(cues.UNSURE) and len(words) < 12:
            return Decision("abstain", "says that it does not know, and gives no value")
    return undecided("has a form that the rules do not recognise")
