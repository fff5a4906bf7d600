"""The acts of an answer, clause by clause: committing to a value, reporting one, doubting, naming a conflict, refusing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from judges.cmc_rules import cues
from judges.cmc_rules.attribution import CONDITIONAL, Attribution, find_sources, quotes_answer, source_of
from judges.cmc_rules.clauses import mark_phrases, moment_mark, phrase_mark, split_clauses
from judges.cmc_rules.compounds import Quantity
from judges.cmc_rules.cues import compiled, either
from judges.cmc_rules.moments import mark_moments
from judges.cmc_rules.polarity import implied_polarity
from judges.cmc_rules.references import ClauseWords, Mention, ParsedQuestion, Reference, analyse_clause
from judges.cmc_rules.retraction import is_retracted
from judges.cmc_rules.revision import EARLIER, blank_cue, find_revision, is_earlier_statement, restores_statement
from judges.cmc_rules.words import KINDS, Token, content_stems, is_symbol, stem

Kind = Literal["commit", "report", "choice", "refusal", "doubt", "conflict", "agreement", "revision", "restored"]

OTHER = "other"
"""The name of a value that belongs to no source."""
EXPLICIT, ECHOED, PLAIN, STRESSED, REPORTED = 3.0, 2.0, 1.0, 0.5, 0.0
"""Degrees of commitment: introduced as the answer; in the question's words or as the whole clause; plainly stated;
stated by a source in contrast with the other; stated by a source.
"""
_ECHO, _CLOSE_ECHO = 0.5, 0.6
_REVISED_BEFORE, _LONGEST_NAME = 1, 3
_TIED = 1e-9
_COMMENTING = frozenset(
    map(
        stem,
        ("i", "i'm", "i'd", "my", "me", "we", "you", "let", "that", "that's", "this", "these", "there", "no", "not"),
    )
)

_EXPLICIT, _CONCLUDING, _TRAILING = compiled(cues.EXPLICIT), compiled(cues.CONCLUDING), compiled(cues.TRAILING)
_NEGATION, _UNDECIDED = compiled(cues.NEGATIONS), compiled(cues.UNDECIDED)
_REFUSAL, _DOUBT, _HEDGE = compiled(cues.REFUSALS), compiled(cues.DOUBTS), compiled(cues.HEDGES)
_CONFLICT, _AGREEMENT = compiled(cues.CONFLICTS), compiled(cues.AGREEMENTS)
_TRUSTED, _DISTRUSTED = compiled(cues.TRUSTED), compiled(cues.DISTRUSTED)
_COMPARED = compiled(cues.COMPARED)
_JOINED_AFTER = re.compile(r"\s*(?:and|&)\s+(?:\w+ )?#?(\w+)")
_JOINED_BEFORE = re.compile(r"(?<!\w)(\w+)\s*(?:,|,? and|&)\s+(?:\w+ )?#?$")
_CHOOSING = compiled(cues.CHOOSING)
_CONDITION = re.compile(r"\b(?:if|whether|which|unless)\b")
_RESULTING = re.compile(r"\W*which (?:\w+ )?(?:is|are|was|were|be|gives?|equals?|means?|makes?|comes|amounts)\b")
_SPAN = re.compile(r"\s*[-—]\s*[$€£¥₹]?")
_COPULA = re.compile(r"\b(?:is|are|was|were|belongs?)\b")
_LABEL = re.compile(rf"\b(?:{either(cues.LABELLING)})\s*[#(]?$")
_EXISTENCE = re.compile(
    r"\W*(?:is|are|was|were) there\b|\W*(?:do|does|did)\b.*\b(?:have|show|contain|include|depict)\b"
)
_ENTRY = re.compile(r"\W*[^\W\d][\w'&/-]*(?:\s[^\W\d][\w'&/-]*){0,3}\s?[:(=-]\s?")
_CONCLUSIVE = ("so", "therefore", "thus", "hence")
_FILLER_WORDS = "the a an it is was approximately about answer value result in year of so"
_FILLERS = frozenset(stem(w) for w in _FILLER_WORDS.split())


@dataclass(frozen=True, slots=True)
class Event:
    """One act of a clause.

    ``values`` names the sources whose value it is, ``speaker`` the source that is quoted. ``bare`` is set if the clause
    is nothing but the value. A revision of strength EXPLICIT withdraws the statement before it, even if no other
    follows.
    """

    index: int
    kind: Kind
    values: frozenset[str] = frozenset()
    strength: float = PLAIN
    speaker: str = ""
    cue: str = ""
    bare: bool = False


class CommitmentReader:
    """The reading of one answer against the references of each source."""

    def __init__(self, folded: str, question: ParsedQuestion, references: Mapping[str, Sequence[Reference]]) -> None:
        self.question = question
        self.references = references
        self.every = [r for rs in references.values() for r in rs]
        self.phrases = [r.phrase for r in self.every]
        formulas = [i for i, r in enumerate(self.every) if r.formula]
        self.numeric = any(r.quantity for r in self.every)
        self.polar = any(r.polarity is not None for r in self.every)
        moments = [
            (i, name, r.moment)
            for i, (name, r) in enumerate((name, r) for name, rs in references.items() for r in rs)
            if r.moment
        ]
        folded, marked = mark_moments(folded, moments, question.folded)
        self.marks: dict[str, tuple[str, int | None]] = {phrase_mark(i): (p, i) for i, p in enumerate(self.phrases)}
        self.marks |= {moment_mark(i): (m.text, m.reference) for i, m in enumerate(marked)}
        self.entire = split_clauses(
            mark_phrases(folded, self.phrases, formulas), join_items=any(r.parts for r in self.every)
        )
        several = len(self.entire) > 1  # a single clause has nothing before it to retract
        self.revisions = [find_revision(c.masked, polar=self.polar) if several else None for c in self.entire]
        self.clauses = [blank_cue(c, cue) for c, cue in zip(self.entire, self.revisions, strict=True)]
        self.replacing = self._replacing()
        self.words = [analyse_clause(c) for c in self.clauses]
        self.attribution = Attribution(self.clauses)
        self.sentences: dict[int, frozenset[str]] = {}
        for words in self.words:
            stems = frozenset(t.stem for t in words.tokens)
            number = words.clause.sentence
            self.sentences[number] = self.sentences.get(number, frozenset()) | stems
        self.mentions = self._mentions()
        texts = [c.masked for c in self.clauses]
        self.compares = any(self.mentions) or any(_COMPARED.search(t) or find_sources(t) for t in texts)

    def events(self) -> list[Event]:
        """Return all acts of the answer, in order."""
        events = [event for index in range(len(self.clauses)) for event in self._clause(index)]
        if self.polar and not any(e.values for e in events):
            events += self._implied()
        return [_resolve(e, events) for e in events]

    # --- mentions --------------------------------------------------------------------------------

    def _mentions(self) -> list[list[tuple[Mention, str]]]:
        """Return the mentions of each clause with their source.

        An implied mention counts only if the answer nowhere states the value.
        """
        by_clause: list[list[tuple[Mention, str]]] = [[] for _ in self.words]
        for name, references in self.references.items():
            mentions_of = [
                [m for r in references for m in self._quoted(r, words) + r.mentions(words)] for words in self.words
            ]
            if not any(mentions_of):
                others = [r for n, rs in self.references.items() if n != name for r in rs]
                mentions_of = [
                    [m for r in references for m in r.implied_mentions(words, others, self._answer_start(i))]
                    for i, words in enumerate(self.words)
                ]
            for in_clause, mentions in zip(by_clause, mentions_of, strict=True):
                in_clause += [(m, name) for m in mentions]
        return [
            [
                (m, n)
                for m, n in in_clause
                if not any(_is_covered(m, n, *rival) for rival in in_clause) and not self._one_of(i, m, in_clause)
            ]
            for i, in_clause in enumerate(_resolve_roundings(by_clause))
        ]

    def _one_of(self, index: int, mention: Mention, in_clause: Sequence[tuple[Mention, str]]) -> bool:
        """Return whether the mention is part of a list of symbols that also holds one of no reference."""
        text, answer_start = self.clauses[index].text, self._answer_start(index)
        if answer_start is None or mention.start < answer_start or self.polar:
            return False
        after, before = _JOINED_AFTER.match(text, mention.end), _JOINED_BEFORE.search(text, answer_start, mention.start)
        neighbours = [match for match in (after, before) if match and is_symbol(match[1])]
        return any(not any(m.start <= b.start(1) < m.end for m, _ in in_clause) for b in neighbours)

    def _answer_start(self, index: int) -> int | None:
        """Return where in the clause the answer itself begins: after "the answer is", or at 0 if there is no other clause."""
        explicit = _EXPLICIT.search(self.clauses[index].masked)
        return explicit.end() if explicit else 0 if len(self.clauses) == 1 else None

    def _quoted(self, reference: Reference, words: ClauseWords) -> list[Mention]:
        number = self.every.index(reference)
        return self._marked(words.clause.text, number)

    def _marked(self, text: str, number: int | None) -> list[Mention]:
        """Return the marks in a clause that stand for reference number ``number``, or for a date or time of none."""
        return [Mention(at, at + 1) for at, c in enumerate(text) if c in self.marks and self.marks[c][1] == number]

    def _cue(self, index: int) -> str:
        """Return the clause as the answer has it, for the verdict's reason."""
        return "".join(self.marks[c][0] if c in self.marks else c for c in self.entire[index].text.strip())

    def _standing_mentions(self, index: int) -> list[tuple[Mention, str]]:
        """Return the mentions that the clause does not retract."""
        words, last = self.words[index], index + 1 == len(self.clauses)
        return [
            (m, n)
            for m, n in self.mentions[index]
            if not is_retracted(words, m.start, m.end, numeric=self.numeric, spanned=self._spans_both(index, m, n))
            and (last or not words.clause.text.startswith("?", m.end))
        ]

    def _spans_both(self, index: int, mention: Mention, name: str) -> bool:
        """Return whether the mention and another source's are the ends of a range: "$246 - $329" names both."""
        text, values = self.clauses[index].masked, {q.start: q.value for q in self.words[index].quantities}
        if "=" in text or any(r.is_year for r in self.every):
            return False
        rivals = (m for m, rival in self.mentions[index] if rival != name and mention.exact and m.exact)
        pairs = (sorted((mention, rival), key=lambda m: m.start) for rival in rivals)
        return any(
            _SPAN.fullmatch(text, a.end, b.start) and values.get(a.start, 0.0) < values.get(b.start, 0.0)
            for a, b in pairs
        )

    def _rival(self, index: int) -> Mention | None:
        """Return the last value of the references' kind that belongs to no reference: another number, another month."""
        words = self.words[index]
        kinds = [k for k in KINDS for r in self.every if len(r.tokens) == 1 and r.tokens[0].stem in k]
        known_stems = {t.stem for r in self.every for t in r.tokens} | self.question.content
        numbers = (q for q in reversed(words.quantities) if self.numeric and self._competes(q, index))
        names = (t for t in reversed(words.tokens) if t.stem not in known_stems and any(t.stem in k for k in kinds))
        moments = self._marked(words.clause.text, None)
        mentions = chain(moments, (Mention(v.start, v.end) for v in chain[Quantity | Token](numbers, names)))
        return next((m for m in mentions if not is_retracted(words, m.start, m.end, numeric=self.numeric)), None)

    def _competes(self, quantity: Quantity, index: int) -> bool:
        words = self.words[index]
        small = quantity.spelled and quantity.value <= 2 and quantity.kind == "number"
        if (
            small
            or quantity.kind == "ordinal"
            or _LABEL.search(words.clause.text[max(0, quantity.start - 20) : quantity.start])
        ):
            return False
        if any(q.value == quantity.value for q in self.question.quantities):
            return False
        if any(m.start < quantity.end and quantity.start < m.end for m, _ in self.mentions[index]):
            return False
        comparable = any(_comparable(r, quantity) for r in self.every)
        return comparable and not any(r.agrees(quantity, words) for r in self.every)

    # --- one clause ------------------------------------------------------------------------------

    def _clause(self, index: int) -> list[Event]:
        text = self._without_mentions(index)
        standing = self._standing_mentions(index)
        events: list[Event] = []
        cue = self.revisions[index]
        if cue:
            events.append(Event(index, "revision", strength=EXPLICIT if cue.outright else PLAIN, cue=self._cue(index)))
        conflict = _CONFLICT.search(text) if self.compares else None
        if len({n for _, n in standing}) > 1:
            conflict = conflict or _UNDECIDED.search(text)
        if conflict:
            events.append(Event(index, "conflict", cue=conflict[0]))
        refusal, doubt = _REFUSAL.search(text), _DOUBT.search(text)
        if refusal:
            events.append(Event(index, "doubt" if _HEDGE.search(text) else "refusal", cue=refusal[0]))
        elif doubt and not _HEDGE.search(doubt[0]):
            events.append(Event(index, "doubt", cue=doubt[0]))
        if self.compares and _AGREEMENT.search(text) and not _NEGATION.search(text):
            events.append(Event(index, "agreement"))
        if standing:
            events += self._statements(index, standing)
        elif restores_statement(text) and not self._rival(index):
            events.append(Event(index, "restored", cue=self._cue(index)))
        elif all(e.kind in ("agreement", "revision") for e in events):
            events += self._other_value(index)
        return events if any(e.kind == "commit" for e in events) else events + self._choice(index)

    def _without_mentions(self, index: int) -> str:
        """Return the clause with the references' values blanked: "Don't know" may be an answer of a survey."""
        text = self.clauses[index].masked
        for mention, _ in self.mentions[index]:
            if mention.exact:
                text = text[: mention.start] + "x" * (mention.end - mention.start) + text[mention.end :]
        return text

    def _statements(self, index: int, standing: Sequence[tuple[Mention, str]]) -> list[Event]:
        clause = self.clauses[index]
        speakers = {name: self._speaker_of(index, mention) for mention, name in standing}
        events = []
        for name, speaker in speakers.items():
            if speaker:
                events.append(self._reported(index, name, speaker, single=len(speakers) == 1))
        plain_indexes = frozenset(n for n, speaker in speakers.items() if not speaker)
        if plain_indexes and clause.lead in cues.CONCEDING and len(self.clauses) > 1:
            events.append(Event(index, "report", plain_indexes, REPORTED, "", self._cue(index)))
        elif plain_indexes:
            strength, alone = self._strength(index, [m for m, n in standing if n in plain_indexes])
            events.append(Event(index, "commit", plain_indexes, strength, "", self._cue(index), alone))
        return events

    def _reported(self, index: int, name: str, speaker: str, *, single: bool) -> Event:
        clause = self.clauses[index]
        concluded = _EXPLICIT.search(clause.masked) or clause.lead in _CONCLUSIVE
        if single and concluded and speaker != CONDITIONAL and not quotes_answer(clause.masked):
            return Event(index, "commit", frozenset({name}), EXPLICIT, speaker, self._cue(index))
        strength = STRESSED if single and self.attribution.contrasted(index) else REPORTED
        return Event(index, "report", frozenset({name}), strength, speaker, self._cue(index))

    def _speaker_of(self, index: int, mention: Mention) -> str:
        if is_earlier_statement(self.clauses[index].masked, mention.start, mention.end):
            return EARLIER
        speaker, located = self.attribution.speaker_of(index, mention.start, mention.end)
        if speaker or not located:
            return speaker
        sentence = self.clauses[index].sentence
        names = {n for i, c in enumerate(self.clauses) if c.sentence == sentence for _, n in self.mentions[i]}
        return located if names - {located, OTHER, "both"} else ""

    def _strength(self, index: int, mentions: Sequence[Mention]) -> tuple[float, bool]:
        words, clause = self.words[index], self.clauses[index]
        outer_tokens = [t for t in words.tokens if not any(m.start <= t.start < m.end for m in mentions)]
        other_numbers = any(not any(m.start <= q.start < m.end for m in mentions) for q in words.quantities)
        whole_sentence = not index or sum(1 for c in self.clauses if c.sentence == clause.sentence) == 1
        bare = (
            whole_sentence
            and not other_numbers
            and sum(1 for t in outer_tokens if t.stem not in _FILLERS) <= self.numeric
        )
        start, end = mentions[0].start, mentions[-1].end
        head, tail = clause.masked[: start + 1], clause.masked[end:].lstrip(" *\"')")
        concluded = _EXPLICIT.search(head) or _CONCLUDING.search(clause.masked[:start]) or _TRAILING.match(tail)
        if concluded or self.revisions[index]:
            return EXPLICIT, bare
        if clause.lead == "(" or (clause.lead in ("which", "who", "whose") and not _RESULTING.match(clause.masked)):
            return PLAIN, bare
        opens = self.polar and not clause.text[:start].strip(" *\"'(")
        return (ECHOED if bare or opens or self._echoes(index) else PLAIN), bare

    def _echoes(self, index: int, least: float = _ECHO) -> bool:
        """Return whether the sentence repeats the question: enough of its words, or its superlative."""
        shared = self.question.content & self.sentences[self.clauses[index].sentence]
        if least == _ECHO and any(w.endswith("est") and len(w) > 4 for w in shared):
            return True
        return bool(shared) and len(shared) / len(self.question.content) >= least

    def _other_value(self, index: int) -> list[Event]:
        """Return the commitment to a value of no reference, if the clause makes one."""
        words, clause = self.words[index], self.clauses[index]
        values, cue = frozenset({OTHER}), self._cue(index)
        explicit = _EXPLICIT.search(clause.masked)
        rival = self._rival(index) if clause.lead != "(" else None
        if rival:
            speaker = self._speaker_of(index, rival)
            if speaker and not explicit:
                strength = STRESSED if self.attribution.contrasted(index) else REPORTED
                return [Event(index, "report", values, strength, speaker, cue)]
            strength = PLAIN if self._is_other_entry(index, rival) else self._strength(index, [rival])[0]
            return [Event(index, "commit", values, strength, speaker, cue)]
        if self.mentions[index] or clause.lead == "(" or find_sources(clause.masked):
            return []
        if explicit and content_stems([t for t in words.tokens if t.start >= explicit.end()]):
            return [Event(index, "commit", values, EXPLICIT, "", cue)]
        if self.numeric or self.polar or _NEGATION.search(clause.masked):
            return []
        if clause.lead and not self.revisions[index]:
            return []
        new = set(content_stems(words.tokens)) - self.question.content
        copula = _COPULA.search(clause.masked) or self.replacing[index]
        names = new and copula and self._echoes(index, _CLOSE_ECHO)
        return [Event(index, "commit", values, ECHOED, "", cue)] if names or self._is_bare_name(index) else []

    def _is_other_entry(self, index: int, rival: Mention) -> bool:
        """Return whether the clause is an entry of a list, "Tax: 2" or "Tax (2)", whose name the question does not have."""
        entry = _ENTRY.match(self.clauses[index].masked)
        if not entry or entry.end() != rival.start or _EXPLICIT.search(entry[0]) or _CONCLUDING.search(entry[0]):
            return False
        names = set(content_stems([t for t in self.words[index].tokens if t.start < rival.start])) - _FILLERS
        return len(self.clauses) > 1 and bool(names) and names.isdisjoint(self.question.content)

    def _replacing(self) -> list[bool]:
        """Return whether each clause is close enough after a cue to be the statement that replaces another."""
        near, latest = [], -_REVISED_BEFORE - 1
        for clause, cue in zip(self.clauses, self.revisions, strict=True):
            latest = clause.sentence if cue else latest
            near.append(clause.sentence - latest <= _REVISED_BEFORE)
        return near

    def _is_bare_name(self, index: int) -> bool:
        """Return whether the clause replaces a statement by a bare name: "sorry, I meant Greece"."""
        present = self.words[index].tokens
        new = set(content_stems(present))
        short = 0 < len(new) <= _LONGEST_NAME and not any(t.stem in _COMMENTING for t in present)
        return short and index > 0 and self.replacing[index] and not new <= self.question.content

    def _choice(self, index: int) -> list[Event]:
        """Return the choice of a source by name, if the clause makes one."""
        text = self._without_mentions(index)
        nouns = find_sources(text)
        if not nouns or _CONDITION.search(text):
            return []
        choice = ""
        verbs = [m.end() for m in _CHOOSING.finditer(text)]
        by_verb = next(
            (m for m in nouns for v in verbs if v < m.start() and len(text[v : m.start()].split()) <= 3), None
        )
        trusted, distrusted = _TRUSTED.search(text, nouns[0].end()), _DISTRUSTED.search(text, nouns[0].end())
        if by_verb and not _NEGATION.search(text[: by_verb.start()]):
            choice = source_of(by_verb)
        elif trusted and not _NEGATION.search(text):
            choice = source_of(nouns[0])
        elif distrusted and len({source_of(m) for m in nouns}) == 1:
            choice = "text" if source_of(nouns[0]) == "image" else "image"
        return [Event(index, "choice", strength=ECHOED, speaker=choice, cue=self._cue(index))] if choice else []

    def _implied(self) -> list[Event]:
        """Return the yes or no that sentences without either amount to."""
        events: list[Event] = []
        for index, words in enumerate(self.words):
            text = words.clause.masked
            doubts = _DOUBT.search(text) and not _EXISTENCE.match(self.question.folded)
            if doubts or _REFUSAL.search(text) or self.attribution.speaker_of(index, len(text), len(text))[0]:
                continue
            polarity = implied_polarity(words, self.question)
            values = frozenset(n for n, rs in self.references.items() if any(r.polarity is polarity for r in rs))
            if polarity is not None and values:
                strength = EXPLICIT if _CONCLUDING.search(text) else PLAIN
                events.append(Event(index, "commit", values, strength, "", self._cue(index)))
        return events


def _resolve(event: Event, events: Sequence[Event]) -> Event:
    """Return a choice of a source as a commitment to that source's value, and a restored statement as one to its value."""
    if event.kind == "restored":
        first = next((e for e in events if e.values and e.index < event.index), None)
        return replace(event, kind="commit", values=first.values, strength=EXPLICIT) if first else event
    if event.kind != "choice":
        return event
    values = [e.values for e in events if e.speaker == event.speaker and e.values]
    values += [e.values & {event.speaker} for e in events if event.speaker in e.values]
    return replace(event, kind="commit", values=values[-1], speaker="") if values else event


def _resolve_roundings(by_clause: Sequence[Sequence[tuple[Mention, str]]]) -> list[list[tuple[Mention, str]]]:
    """Return the mentions of each clause, with every rounding of two sources' values assigned to one source.

    It is assigned to the source whose value the answer also states in full, otherwise to the nearer value.
    """
    exact_names = {name for in_clause in by_clause for m, name in in_clause if m.exact}

    def farther(mention: Mention, name: str, other: Mention, rival: str) -> bool:
        if mention.start != other.start or mention.exact or other.exact or name == rival:
            return False
        if (name in exact_names) != (rival in exact_names):
            return rival in exact_names
        return other.distance < mention.distance * (1 - _TIED)

    return [
        [(m, n) for m, n in in_clause if not any(farther(m, n, *rival) for rival in in_clause)]
        for in_clause in by_clause
    ]


def _is_covered(mention: Mention, name: str, other: Mention, other_name: str) -> bool:
    """Return whether another source's mention covers this one and is longer, or is the same and more exact."""
    if name == other_name or not other.exact or not (other.start <= mention.start and mention.end <= other.end):
        return False
    return (other.end - other.start) > (mention.end - mention.start) or not mention.exact


def _comparable(reference: Reference, quantity: Quantity) -> bool:
    expected = reference.quantity
    if expected is None:
        return False
    if reference.is_year:
        return quantity.looks_like_a_year
    if expected.dimension and quantity.dimension and expected.dimension != quantity.dimension:
        return False
    return not quantity.looks_like_a_year or expected.looks_like_a_year or quantity.value < 1500
