"""Open answers in sentences: what they assert, and whether two of them give the same value. Pure functions of hostile text."""

from __future__ import annotations

import re
from collections.abc import Collection

from benchmarks.text.answer_equality import normalise
from benchmarks.text.stemming import stem

_LONGEST = 20_000
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"(?<![0-9])(?:1[0-9]|20)[0-9]{2}(?![0-9])")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)\s+(?=[^\W\d_]|[\"'(])|\n+")

_UP_TO_BREAK = r"(?:(?!\bbut\b|[.,;:!?](?:\s|$)|\n).){0,200}"
_REJECTED = re.compile(
    rf"\b(?:not(?! only\b| sure\b| certain\b)|(?:is|was|are|were|does|did|do)n['’]t|rather than|instead of|as opposed to"
    rf"|neither|nor|never)\b{_UP_TO_BREAK}",
    re.IGNORECASE,
)
_CALLED_WRONG = re.compile(
    r"(?:(?<=[.,;:!?]\s)|\A)(?:(?![.,;:!?](?:\s|$)|\n).){0,200}"
    r"\b(?:(?:is|was|are) (?:\w+ )?(?:incorrect|wrong|false|mistaken|outdated|untrue|an? (?:mistake|error)))\b",
    re.IGNORECASE,
)
_SOURCE = r"(?:the|this|that) (?:\w+ )?(?:text|document|description|passage|article|context|caption|evidence|information|source)"
_REPORTED = re.compile(
    rf"\b(?:{_SOURCE} (?:\w+ )?(?:says?|claims?|states?|mentions?|suggests?|gives?|describes?|indicates?)"
    rf"|(?:although|though|while|whereas|despite|contrary to)|(?:I|we) (?:thought|believed|assumed|expected|would have)"
    rf"|my (?:\w+ )?(?:thought|belief|guess|assumption))\b{_UP_TO_BREAK}",
    re.IGNORECASE,
)

_EMPTY_WORDS = """
a an the this that these those it its he she they him her his hers their them i me my we our you your who whom whose
which what when where how there here and or but so as if then than of in on at to for from by with about into over under
behind after before since until around is are was were be been being am do does did has have had having will would can
could may might must shall should s t d m re ve ll let look looking see seen seems seem appears appear looks like likely
probably possibly perhaps maybe think thinks believe believed guess say says said tell know known knows far also just
very really well actually indeed certainly clearly correct right answer called named name names one yes based according
text document image images picture photo photograph shown shows show depicts depicted person people man woman someone
individual entity figure brand logo company corresponding associated business born birth birthday year years date day
founded founder founders established establish created creator started start began begin begun set up launched dates
back existed exist exists history nationality national nationals citizen citizenship comes came country native origin
occupation job profession professional professionally works work worked working earns earning living career employed
decades main mainly major primarily product products produce produces producing makes make making made sells sell
selling offers offer manufactures famous popular means mean meaning indicates located situated hold holds celebrity star
belong belongs maker recognise recognize identify money core range
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
"""Words that say nothing of a person, a brand or a building by which two could be told apart."""

_COUNTRIES = """
american: united states of america|united states|usa|u.s.a|u.s|america
british: united kingdom|great britain|britain|uk|u.k|briton
english: england
scottish: scotland|scot
canadian: canada
mexican: mexico
german: germany
french: france|frenchman
italian: italy
spanish: spain|spaniard
portuguese: portugal
dutch: the netherlands|netherlands|holland
swiss: switzerland
swedish: sweden|swede
norwegian: norway
danish: denmark|dane
finnish: finland|finn
polish: poland|pole
russian: russia
ukrainian: ukraine
greek: greece
turkish: turkey|türkiye|turk
irish: ireland
austrian: austria
australian: australia
new zealander: new zealand
belgian: belgium
hungarian: hungary
czech: czech republic|czechia
romanian: romania
serbian: serbia|serb
croatian: croatia|croat
chinese: china
japanese: japan
korean: south korea|republic of korea|korea|south korean
indian: india
pakistani: pakistan
israeli: israel
iranian: iran
egyptian: egypt
nigerian: nigeria
kenyan: kenya
south african: south africa
brazilian: brazil
argentine: argentina|argentinian
colombian: colombia
chilean: chile
peruvian: peru
cuban: cuba
jamaican: jamaica
barbadian: barbados
thai: thailand
vietnamese: vietnam
filipino: the philippines|philippines
indonesian: indonesia
malaysian: malaysia
taiwanese: taiwan
"""
_NATIONALITY = {
    country: nationality.replace(" ", "")
    for line in _COUNTRIES.strip().splitlines()
    for nationality, _, countries in [line.partition(": ")]
    for country in (nationality, *countries.split("|"))
}
_NATIONS = frozenset(map(stem, _NATIONALITY.values()))
_NATION_ASKED = re.compile(r"\bnationalit|\bcitizen|\bcountry\b", re.IGNORECASE)
_COUNTRY = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(_NATIONALITY, key=len, reverse=True)))})(?![^\W_])")


def asserted(text: str) -> str:
    """Return ``text`` without what it rejects: "1977, not 1976" asserts 1977."""
    return _CALLED_WRONG.sub(" ", _REJECTED.sub(" ", text[:_LONGEST]))


def committed(text: str) -> str:
    """Return ``text`` without what it only reports: "the text says 1973, but ...", "although ..., ...", "I thought ...".

    What is said "according to the text" is taken over from it, and stays.
    """
    return _REPORTED.sub(" ", text[:_LONGEST])


def says_something(text: str, question: str) -> bool:
    """Return whether there is a word in ``text`` that neither the question has nor every answer may have."""
    return bool(_content(text, _words(question)))


def same_content(one: str, other: str, question: str) -> bool:
    """Return whether two answers to ``question`` give the same value, each a value or a sentence around one.

    Years decide where both give some, and nationalities where the question asks for one. Otherwise more than half of the
    words of the one that says less stand in the other; words of the question and those that any answer may have are left
    aside, and a country is its nationality. The first sentences that say something are compared before the whole.
    """
    asked = _words(question)
    first = [_first_content(text, asked) for text in (one, other)]
    for texts in (first, (one, other)):
        words = [_content(text, asked) for text in texts]
        years = [set(_YEAR.findall(text)) for text in texts]
        nations = [_NATIONS.intersection(each) for each in words] if _NATION_ASKED.search(question) else []
        for values in (years, nations):
            if values and all(values):
                return bool(values[0] & values[1])
        if all(words) and 2 * len(words[0] & words[1]) > min(map(len, words)):
            return True
    return False


def has_content_of(text: str, value: str, question: str) -> bool:
    """Return whether all words of a short ``value`` stand in ``text``, in any order."""
    words = _content(value, _words(question))
    return bool(words) and words <= _content(text, frozenset())


def fuller(text: str, one: str, other: str, question: str) -> str | None:
    """Return which of two values with words in common ``text`` gives: the one whose words all stand in it, or the longer.

    "Soft drink" and "carbonated soft drink" stand in one answer without contradiction. None for values without a word in
    common, and where neither is the fuller.
    """
    asked = _words(question)
    here, first, second = (_content(each, asked) for each in (text, one, other))
    whole = [(len(words), value) for words, value in ((first, one), (second, other)) if words <= here]
    if not first & second or not whole:
        return None
    longest = max(length for length, _ in whole)
    values = [value for length, value in whole if length == longest]
    return values[0] if len(values) == 1 else None


def _first_content(text: str, asked: Collection[str]) -> str:
    return next((sentence for sentence in _SENTENCE_END.split(text) if _content(sentence, asked)), text)


def _content(text: str, asked: Collection[str]) -> set[str]:
    return {_stem(word) for word in _words(text) if word not in _EMPTY and word not in asked}


def _words(text: str) -> frozenset[str]:
    folded = _COUNTRY.sub(lambda country: _NATIONALITY[country[0]], normalise(text[:_LONGEST]))
    return frozenset(_WORD.findall(folded))


def _stem(word: str) -> str:
    """The stem of a word, that of who does something being that of what they do: "player", "plays"."""
    stemmed = stem(word)
    return stemmed[:-2] if len(stemmed) > 5 and stemmed.endswith(("er", "or")) else stemmed
