"""The values that a clause states: whose they are, who is said to state them, and how plainly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.values.clean_text import fold
from benchmarks.values.name_words import word_set, words_of
from benchmarks.values.parse_value import NO_WORDS, YES_WORDS, Polarity, Words, parse
from judges.cmc_rules import cue_words
from judges.cmc_rules.answer_clauses import Clause
from judges.cmc_rules.cue_words import source_named
from judges.cmc_rules.reference_values import OTHER, UNCLEAR, References
from judges.cmc_rules.value_mentions import Mention

_STATING_VERBS = (
    r"rose|ris\w+|increas\w+|gr[eo]w\w*|fell|fall\w*|drop\w*|declin\w+|decreas\w+|went|climb\w+|jump\w+|chang\w+|equal\w*"
    r"|amount\w*|points?|close|adds? up|comes?|total\w*|up|down|value|share|rate|number|consists?|average|total|sum|maximum"
    r"|minimum|peak|height|price|cost|length|speed|reading|score|temperature|population"
)
_CHANGE = re.compile(rf"\b(?:{_STATING_VERBS}) (?:from \S+ )?(?:to|of)\s*(?:the |an? |about |around |by )?\W*$")
"""Before a value, "rose to", "a share of" and the like state it."""
_BETWEEN = re.compile(r"\b(?:between|zwischen|entre)\s+(?:\S+(?: \S+)? (?:and|und|et|y) )?(?:the )?[$€£]?$")
_COMPARED = re.compile(r"\s*(?:the |an? |about |around |by )?\W*")
_TURN = re.compile(r",|\bbut\b")
_TURN_OR_COLON = re.compile(r"[:;,]|\bbut\b")
_OPERAND = r"\s*(?:%|[a-z°]{1,6})?\s*"
_OPERATED = "minus|plus|times|divided by|multiplied by"
_OPERATION_AFTER = re.compile(rf"{_OPERAND}(?:[+*/x×÷=]|-(?= ?[0-9$€£])|{_OPERATED})\s*[(\d$€£]")
_OPERATION_BEFORE = re.compile(rf"[0-9]{_OPERAND}(?:[+*/x×÷]|- |{_OPERATED})\s*$")
_YES_NO = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(sorted(w for w in YES_WORDS | NO_WORDS if w.isascii() or w == 'sí'))})(?![^\W_])"
    r"|はい|いいえ|是的|不是"
)
_JUDGED = re.compile(r"(?:true|false|\w*correct|right|wrong|negative|affirmative)\b")
_CLAIM = re.compile(r"\b(?:answer|it|that|this|statement|claim) is$")
_YES_OR_NO = re.compile(r"\byes or no\b")
_ANSWERED_BY = re.compile(
    r"(?:according to|as per|per the|given|because|since|based on|it|they|he|she|there|this|that|the|as)\b"
)
_BEFORE_ANSWER = word_set("and is say says answer so therefore thus hence meant mean be clearly states")
_FREE_ANSWERS = word_set("yes nope yep ja nein oui non")
_AVERAGED = re.compile(
    r"\b(?:average|mean|sum|difference|midpoint|middle) (?:of|between)\b(?:(?!\b(?:is|was|equals?)\b|=).)*$"
)
_CHOSEN = re.compile(r"\s+(?:the |this |that |what |my )?(?:\w+ )?(\w+)")
_NOT_CHOSEN = re.compile(r"\b(?:let us|must|should|not|never|cannot|neither|if|whether|should i)\b")
_PARTICLE = "(?:of |de |von |van )?"
_NAME = rf"([A-Z][^\W_]*(?:[ -]{_PARTICLE}[A-Z][^\W_]*){{0,3}}[ -]?{_PARTICLE})"
_NAME_AFTER = re.compile(
    rf"\b(?:is|was|are|were|by|called|named|to)\s+(?:the )?{_NAME}(?=[.,;(]|$| (?:with|at|in|on|for|and)\b)"
)
_NAME_BEFORE = re.compile(
    rf"(?!(?:There|This|That|These|They|Here|It|The|One|No|He|She|We|You) ){_NAME}"
    r"(?:is|was|has|had|leads?|led|won|wins|comes?|came)\b"
)
_SOURCE_AFTER = re.compile(
    r"[\s)\"'*%\w]{0,20}?(?:,? (?:according to|as per|per|as (?:stated|shown|given|mentioned) in|in|from)|\()"
    r"\s*(?:the |this |provided |retrieved )*(\w+)"
)
_SOURCE_BEFORE = re.compile(r"(?:according to|as per|per|in|from|laut|selon|según) (?:\w+ ){0,3}$")
_SOURCE_COLON = re.compile(r"(?: evidence| source| value)*\s*[:(=]\s*\W*")
_SOURCES_JOINED = re.compile(r"(?: evidence)?(?: and|,| as well as| &| und| et)(?: the| der| die| le| la)?(?: \w+)?\s*")
_BASED_ON = re.compile(r"\b(?:based on|from looking at|looking at|judging by)\W+(?:\w+ ){0,3}$")
_NO_CONFLICT = re.compile(r"\bno (?:\w+ )?(?:conflict|contradict|discrep|inconsist)")
_TAKING_BACK_NO = re.compile(r"[,.?;!—-]\s*(?:oh,? )?no(?:[,.!]|$)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A value that the clause ``index`` states: who is said to state it, and how plainly."""

    index: int
    name: str
    start: int
    speaker: str = ""
    """The source, "" if the answer itself states it, "if" if it is no statement but a condition or an earlier one."""
    explicit: bool = False
    """It is stated as the answer."""
    standing: bool = True
    """False if the clause negates, rejects or only compares it."""
    echoes: bool = False
    """The clause has words of the question."""

    @property
    def commits(self) -> bool:
        """The answer itself states it, and does not set it aside."""
        return self.standing and not self.speaker


@dataclass(frozen=True)
class Place:
    """A clause of an answer, among the others, and the mentions in it."""

    index: int
    clauses: Sequence[Clause]
    mentions: Sequence[Mention]
    references: References

    @property
    def clause(self) -> Clause:
        """The clause itself."""
        return self.clauses[self.index]


def read_clause(place: Place) -> list[Statement]:
    """Return what a clause states, in order."""
    references, folded, mentions = place.references, place.clause.folded, place.mentions
    if not mentions and references.polar and not place.clause.holds(cue_words.BOTH):
        return _polar(place)
    choice = _choice(place)
    if not mentions:
        return choice or _framed(place)
    answers = [m.end() for m in cue_words.ANSWER.finditer(folded)]
    earlier = list(cue_words.EARLIER.finditer(folded))
    echoes = not references.subject.isdisjoint(words_of(_mask(folded, mentions, " ")))
    conditional = cue_words.CONDITIONS.match(place.clause.lead) is not None or place.clause.lead in (
        "who",
        "whose",
        "which",
    )
    statements = []
    for i, mention in enumerate(mentions):
        answered = any(end <= mention.start + 1 for end in answers)
        speaker = "" if answered or choice else _speaker(place, mention.start, mention.end)
        if conditional or any(
            m.start() > mention.start or not _TURN_OR_COLON.search(folded[m.end() : mention.start]) for m in earlier
        ):
            speaker = "if"
        explicit = (answered or place.clause.concludes) and not speaker
        standing = not is_set_aside(place.clause, mentions, i, typed=references.typed)
        statements.append(Statement(place.index, mention.name, mention.start, speaker, explicit, standing, echoes))
    return statements


def refuses(clause: Clause, references: References, mentions: Iterable[Mention] = (), *, hedging: bool = True) -> bool:
    """Return whether a clause says that the question cannot be answered.

    With ``hedging``, as beside a value, "the exact value cannot be read" does not say so.
    """
    text = _mask(clause.folded, mentions, "x")
    refused = cue_words.REFUSALS.search(text) or (not references.polar and cue_words.LACKS.search(text))
    return bool(refused) and not (hedging and cue_words.HEDGES.search(text))


def conflicts(clause: Clause, mentions: Iterable[Mention]) -> bool:
    """Return whether a clause says that the sources conflict."""
    text = _mask(clause.folded, mentions, "x")
    return cue_words.CONFLICTS.search(text) is not None and not _NO_CONFLICT.search(clause.folded)


def revises(clause: Clause, index: int, references: References) -> bool:
    """Return whether a clause takes back what was said before it, or in it."""
    begins = cue_words.REVISIONS.match(clause.folded.lstrip(" \"'(-.,"))
    denies = begins is not None and begins[0].startswith("no")
    if begins and index and not (denies and references.polar):
        return True
    taken_back = not references.polar and _TAKING_BACK_NO.search(clause.folded)
    return bool(taken_back) or clause.holds(cue_words.TAKEN_BACK)


def is_set_aside(clause: Clause, mentions: Sequence[Mention], i: int, *, typed: bool) -> bool:
    """Return whether the mention ``i`` is negated, rejected, an operand, or the lesser side of a comparison."""
    mention, folded = mentions[i], clause.folded
    if _BETWEEN.search(folded[: mention.start]):
        return True
    if _OPERATION_AFTER.match(folded[mention.end :]) or _OPERATION_BEFORE.search(folded[: mention.start]):
        return True
    if _AVERAGED.search(folded[: mention.start]):
        return True
    before = folded[max(mentions[i - 1].end if i else 0, mention.start - 60) : mention.start]
    for negation in list(cue_words.NEGATIONS.finditer(before))[-1:]:
        between = before[negation.end() :]
        if len(between.split()) <= 4 and not _TURN.search(between):
            return True
    for comparison in list(cue_words.COMPARISONS.finditer(before))[-1:] if typed else ():
        if _COMPARED.fullmatch(before[comparison.end() :]) and not _CHANGE.search(before):
            return True
    end = mentions[i + 1].start if i + 1 < len(mentions) else len(folded)
    after = folded[mention.end : min(end, mention.end + 60)]
    rejected = cue_words.REJECTIONS.search(after)
    return rejected is not None and len(after[: rejected.start()].split()) <= 4


def _mask(folded: str, mentions: Iterable[Mention], mark: str) -> str:
    """Return the text of a clause with a mark for each character of a mention."""
    for m in mentions:
        folded = folded[: m.start] + mark * (m.end - m.start) + folded[m.end :]
    return folded


def _polar(place: Place) -> list[Statement]:
    """Return what a clause says to a yes-or-no question; only a yes or no that stands as an answer counts."""
    folded, statements = place.clause.folded, []
    answer = cue_words.ANSWER.search(folded)
    for match in _YES_NO.finditer(_YES_OR_NO.sub(lambda m: "x" * len(m[0]), folded)):
        value = parse(match[0])
        if isinstance(value, Polarity) and _stands(folded, match):
            name, _ = place.references.classify("yes" if value.truth else "no")
            explicit = answer is not None and answer.end() <= match.start() + 1
            speaker = "" if explicit else _speaker(place, *match.span())
            statements.append(Statement(place.index, name or UNCLEAR, match.start(), speaker, explicit, echoes=True))
    return statements


def _stands(text: str, match: re.Match[str]) -> bool:
    """Return whether a yes or no is an answer and not a determiner ("no increase")."""
    before, after, word = text[: match.start()].rstrip(), text[match.end() :].lstrip(" "), match[0]
    judged = _JUDGED.fullmatch(word) and before.endswith(" is") and not _CLAIM.search(before)
    if judged or before.split()[-1:] in (["not"], ["than"]):
        return False  # "the image is correct" is no yes
    closed = not after or after[0] in ",.;:!?)(\"'-*\n]>" or _ANSWERED_BY.match(after) is not None
    opened = not before or before[-1] in ",.;:!?(\"'-*\n[=>" or before.split()[-1] in _BEFORE_ANSWER
    if not word.isascii() or (opened and (closed or word == "yes")):
        return True
    return closed and word in _FREE_ANSWERS and bool(before)


def _choice(place: Place) -> list[Statement]:
    """Return the statement of a clause that chooses a source by name: its value is the answer's."""
    folded = place.clause.folded
    for match in cue_words.CHOOSING.finditer(folded):
        chosen = _CHOSEN.match(folded[match.end() :])
        name = next((n for w in chosen[0].split() if (n := source_named(w))), "") if chosen else ""
        named = name and any(r.name == name for r in place.references.every)
        if named and not _NOT_CHOSEN.search(folded[: match.start()]):
            return [Statement(place.index, name, match.start(), explicit=True, echoes=True)]
    return []


def _framed(place: Place) -> list[Statement]:
    """Return the name of no reference that a clause gives where it takes up the question: "The winner is Leeds"."""
    clause, references = place.clause, place.references
    if not all(isinstance(r.value, Words) and r.value.capital for r in references.every):
        return []
    match = _NAME_AFTER.search(clause.text) or _NAME_BEFORE.match(clause.text)
    if not match or not references.takes_up(words_of(clause.folded)) or refuses(clause, references):
        return []
    name, _ = references.classify(match[1])
    is_asked = not references.question.words.isdisjoint(words_of(fold(match[1])))
    if is_asked or (name == OTHER and not references.is_rival(parse(match[1]))):
        return []
    return [Statement(place.index, name or UNCLEAR, match.start(1), _speaker(place, *match.span(1)), echoes=True)]


def _speaker(place: Place, start: int, end: int) -> str:
    """Return the source that a value from ``start`` to ``end`` is said to be of; "" if the answer states it itself."""
    if own := _source_before(place.clause.folded, start):
        return own
    after = _SOURCE_AFTER.match(place.clause.folded[end:])
    if after and (name := source_named(after[1])):
        return name
    if place.index and place.clauses[place.index - 1].sentence == place.clause.sentence:
        previous = place.clauses[place.index - 1].folded
        if cue_words.REPORTING.match(previous.lstrip()):
            return _source_before(previous, len(previous))
    return ""


def _source_before(folded: str, end: int) -> str:
    """Return the last source named before ``end`` whose words are reported there; "" if two are joined or none is."""
    named = [
        (m.end(), name, m.start()) for name, table in cue_words.SOURCES.items() for m in table.finditer(folded[:end])
    ]
    if not named:
        return ""
    at, name, begin = max(named)
    joined = any(other != name and _SOURCES_JOINED.fullmatch(folded[stop:begin]) for stop, other, _ in named)
    if joined or _BASED_ON.search(folded[:begin]):
        return ""
    between = folded[at:end]
    reported = cue_words.REPORTING.search(between) or _SOURCE_COLON.fullmatch(between)
    return name if reported or _SOURCE_BEFORE.search(folded[:begin]) else ""
