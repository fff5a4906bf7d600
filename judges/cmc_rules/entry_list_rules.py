"""The decision on a list, a table or a sentence of several entities with a value each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import find_moments
from benchmarks.values.name_words import words_of
from judges.cmc_rules import cue_words
from judges.cmc_rules.answer_clauses import Answer, clause_of
from judges.cmc_rules.answer_decision import Decision, stating
from judges.cmc_rules.clause_statements import is_set_aside, revises
from judges.cmc_rules.cue_words import source_named
from judges.cmc_rules.reference_values import References
from judges.cmc_rules.value_mentions import Mention, find_mentions

_TABLE_MARKS = re.compile(r"[*_`|]+")
_ENTRY_END = re.compile(r"\n|(?<=[.;])\s")
_LOCATED = re.compile(r"\s*(?:\((?=\w)|(?:on|in|at|from|by|per|as|of|according|selon|laut|según)\b)")


def decide_entries(answer: Answer, references: References) -> Decision | None:
    """Decide a list, a table or a sentence of several entities with a value each: the question's entity counts."""
    tables = (
        cue_words.CONFLICTS,
        cue_words.REFUSALS,
        cue_words.LACKS,
        cue_words.ANSWER,
        cue_words.BOTH,
        cue_words.UNDECIDED,
        cue_words.CHOOSING,
        cue_words.AFFIRMS_BOTH,
    )
    if not references.typed or any(c.holds(table) for c in answer.clauses for table in tables):
        return None
    if any(revises(c, i, references) or cue_words.CONCEDING.match(c.lead) for i, c in enumerate(answer.clauses)):
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
        labels = [frozenset(w for w in words_of(fold(t)) if cue_words.is_content(w) and not w.isdigit()) for t in texts]
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
