"""The decision on an answer that only states values: one, both, those of neither source, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.values.name_words import word_set, words_of
from judges.cmc_rules import cue_words
from judges.cmc_rules.answer_account import BOTH_SOURCES, Account
from judges.cmc_rules.answer_clauses import Clause
from judges.cmc_rules.answer_decision import Decision, stating, undecided
from judges.cmc_rules.clause_statements import Statement, refuses
from judges.cmc_rules.cue_words import source_named
from judges.cmc_rules.reference_values import OTHER

_AND = re.compile(r"\b(?:and|both|und|et|y)\b|和")
_JOINED = re.compile(r"\s*(?:\([^()]*\))?\W*(?:and|und|et|y|e|&|,|/|和)\W*(?:the |an? |also )?")
_STRESSING = re.compile(r"\b(?:clearly|actually|in fact|really|explicitly|unambiguously)\b")
_DENYING = re.compile(
    r"\b(?:cannot|unable|afraid|sorry|unfortunately|missing|provide|not?|never|none|neither|yes|same|agree\w*|consistent|zero|nil)\b"
)
_JUDGED = re.compile(r"\b(?:misprint|error|mistake|typo|outdated|current|newer|older|earlier|later|must|should)\b")
_LABEL = re.compile(r"\W*(?:according to )?[\w.' -]{1,30}\s*[:=]\W*")
_ASIDE = re.compile(r"[\w% ]{0,12}\([^()]{1,30}\)\W*")
_ENGLISH_WORDS = word_set("the is are this of in what which how many")


def decide_values(account: Account) -> Decision:
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
    if names - {OTHER} and account.holds(cue_words.BOTH):
        return undecided("says both, and states one value")
    if names - {OTHER}:
        return _value(account, min(names - {OTHER}))
    return _others(account) if names else _reported(account) or _valueless(account)


def _settled(account: Account) -> str:
    """Return the source whose value, stated before beside the other's, is all that a short last clause states; "" if none."""
    last, before = account.statements[-1:], {s.name for s in account.statements[:-1]}
    clause = account.clauses[-1]
    ends = (
        last and last[0].index == len(account.clauses) - 1 and last[0].commits and last[0].name in before & BOTH_SOURCES
    )
    alone = ends and len(clause.text.split()) <= 6 and all(s.index < last[0].index for s in account.statements[:-1])
    return last[0].name if alone and before >= BOTH_SOURCES and "?" not in clause.text else ""


def _both(account: Account) -> Decision:
    """Decide an answer that states both values."""
    if _lists_both(account) or _coordinates(account):
        return Decision("both", "lists each source's value, and neither chooses nor objects")
    clauses, indexes = account.clauses, {s.index for s in account.commits}
    clause = clauses[min(indexes)]
    mentions = [m for m in account.mentions[min(indexes)] if m.name in BOTH_SOURCES]
    between = clause.folded[mentions[0].end : mentions[1].start] if len(mentions) == 2 else "."
    if len(clauses) == 1 and _JOINED.fullmatch(between) and not clause.holds(cue_words.UNDECIDED):
        return Decision("both", "affirms both values in one statement")
    return undecided("states both values")


def _value(account: Account, name: str) -> Decision:
    """Decide an answer that states the value of one source, and perhaps others."""
    own = [s for s in account.commits if s.name == name]
    other = [s for s in account.commits if s.name == OTHER]
    if len({s.name for s in account.statements} - {OTHER}) > 1:
        if account.holds(cue_words.BOTH) or other or not _is_chosen(account, own[-1]):
            return undecided("names both values")
        return stating(name, "states one value and sets the other aside")
    if not other:
        if not account.references.typed and not _answers_with(account, own):
            return undecided("mentions one reference where it may not be the answer")
        return stating(name, "states this value and no other")
    return undecided("states several values")


def _answers_with(account: Account, own: Sequence[Statement]) -> bool:
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


def _is_chosen(account: Account, own: Statement) -> bool:
    """Return whether the other value is set aside: negated, rejected, conceded, or reported before the last statement."""
    clauses = account.clauses
    is_last = own.index == max(s.index for s in account.statements) and (own.echoes or clauses[own.index].concludes)
    return all(
        not s.standing
        or clauses[s.index].holds(cue_words.WRONGLY)
        or cue_words.CONCEDING.match(clauses[s.index].lead)
        or (is_last and s.speaker in BOTH_SOURCES and own.index > s.index)
        for s in account.statements
        if s.name not in (own.name, OTHER)
    )


def _others(account: Account) -> Decision:
    """Decide an answer that states only values of no reference."""
    own = [s for s in account.statements if s.name != OTHER]
    echoes = any(s.echoes for s in account.commits)
    if not own and (echoes or len(account.clauses) == 1) and len({s.index for s in account.commits}) == 1:
        return Decision("invents", "states another value and none of the references")
    if own and echoes and not any(s.standing for s in own):
        return Decision("invents", "states another value, and names the references only to set them aside")
    return undecided("states other values")


def _reported(account: Account) -> Decision | None:
    """Decide an answer that only reports what sources say."""
    mentioned = {s.name for s in account.statements} - {OTHER}
    reported = {s.name for s in account.reports if s.standing}
    if not account.reports:
        return None
    if len(reported) == len(mentioned) == 1:
        return stating(min(reported), "reports this value and no other")
    return _contrasted(account) if len(mentioned) > 1 else None


def _contrasted(account: Account) -> Decision:
    """Decide an answer that only reports both sources: one that calls a source wrong follows the other."""
    names = {s.name for s in account.reports}
    wrong_sentences = {c.sentence for c in account.clauses if c.holds(cue_words.WRONGLY)}
    wrong = {s.name for s in account.reports if account.clauses[s.index].sentence in wrong_sentences}
    if len(wrong) == len(names - wrong) == 1 and not account.references.polar:
        return stating(min(names - wrong), "calls the other source wrong")
    main = _main_sources(account)
    if not wrong and len(main) == 1 < len(names):
        return stating(min(main), "stresses one source's value, or concedes the other's")
    if not wrong and (_lists_both(account) or _coordinates(account)):
        return Decision("both", "lists each source's value, and neither chooses nor objects")
    return undecided("reports both sources and chooses neither in words that the rules recognise")


def _main_sources(account: Account) -> set[str]:
    """Return the sources whose report is stressed against the others'; without any, those whose report is not conceded."""
    stressed: set[str] = set()
    conceded: set[str] = set()
    for report in account.reports:
        clause = account.clauses[report.index]
        if cue_words.CONTRASTS.match(clause.lead) and _STRESSING.search(clause.folded):
            stressed.add(report.name)
        if cue_words.CONCEDED.match(clause.lead or clause.folded):
            conceded.add(report.name)
    return stressed or {s.name for s in account.reports} - conceded


def _lists_both(account: Account) -> bool:
    """Return whether an answer is a list of both values, each with a label, perhaps with a heading, and no prose."""
    indexes = [s.index for s in account.statements]
    lines = [(c, account.mentions[i]) for i, c in enumerate(account.clauses) if i in indexes]
    if set(range(len(account.clauses))) - set(indexes) > {0} or len(set(indexes)) < len(indexes):
        return False
    labelled = all(
        m and (_LABEL.fullmatch(c.folded[: m[0].start]) or _ASIDE.fullmatch(c.folded[m[0].end :])) for c, m in lines
    )
    return labelled and not any(map(_turns, account.clauses)) and {s.name for s in account.statements} == BOTH_SOURCES


def _coordinates(account: Account) -> bool:
    """Return whether an answer is one clause that gives both values, each with its source behind it and nothing else."""
    mentions, folded = [m for m in account.mentions[0] if m.name in BOTH_SOURCES], account.clauses[0].folded
    if len(account.clauses) > 1 or len(mentions) != 2 or _turns(account.clauses[0]):
        return False
    between, after = folded[mentions[0].end : mentions[1].start], folded[mentions[1].end :]
    sources = [[source_named(w) for w in words_of(text)] for text in (folded[: mentions[0].start], between, after)]
    words = set(words_of(_AND.sub(" ", between + " " + after))) - account.references.question.words
    plain = not any(cue_words.is_content(w) and not w.isdigit() for w in words)
    return plain and not any(sources[0]) and any(sources[1]) and any(sources[2])


def _turns(clause: Clause) -> bool:
    """Return whether a clause sets what it says against something, or says how good it is."""
    return clause.holds(cue_words.CONTRASTS) or _JUDGED.search(clause.folded) is not None


def _valueless(account: Account) -> Decision:
    """Decide an answer that states no value."""
    words = [word for c in account.clauses for w in c.folded.split() if (word := w.strip(".,:;!?*_`\"'“”#"))]
    if not account.statements:
        unsure = account.holds(cue_words.UNSURE)
        if account.references.typed and not account.cut_off and not unsure and _misses_the_topic(account, words):
            return Decision("off-topic", "gives no value of the kind that is asked for")
        if unsure and len(words) < 12:
            return Decision("abstain", "says that it does not know, and gives no value")
    return undecided("has a form that the rules do not recognise")


def _misses_the_topic(account: Account, words: Sequence[str]) -> bool:
    """Return whether an answer is English prose, or a name to an English question, without a digit or a denial."""
    if any(_DENYING.search(c.folded) or any(map(str.isdigit, c.text)) for c in account.clauses):
        return False
    if len(words) >= 4:
        return not _ENGLISH_WORDS.isdisjoint(words)
    is_name = all(w.isascii() and w.isalpha() and len(w) > 2 and w.strip("ivxlcdm") for w in words)
    return is_name and not _ENGLISH_WORDS.isdisjoint(account.references.question.folded.split())
