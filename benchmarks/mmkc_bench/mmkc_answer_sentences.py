"""Open answers in sentences: their assertions, and whether two of them give the same value.

Pure functions of hostile text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from benchmarks.text.normal_form import normalise
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
"""Words that cannot tell one person, brand or building from another."""

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


def remove_rejected(text: str) -> str:
    """Return ``text`` without what it rejects: "1977, not 1976" asserts 1977."""
    return _CALLED_WRONG.sub(" ", _REJECTED.sub(" ", text[:_LONGEST]))


def remove_reported(text: str) -> str:
    """Return ``text`` without mere reports: "the text says 1973, but ...", "although ..., ...", "I thought ...".

    An answer "according to the text" is adopted from it, and stays.
    """
    return _REPORTED.sub(" ", text[:_LONGEST])


def has_content(text: str, question: str) -> bool:
    """Return whether ``text`` has a word that is neither in the question nor common to all answers."""
    return bool(_content(text, _words(question)))


def same_content(answer: str, other: str, question: str) -> bool:
    """Return whether two answers to ``question`` give the same value, each as a value or within a sentence.

    Years decide if both answers give some; nationalities decide if the question asks for one. Otherwise more than half
    of the words of the shorter answer must occur in the other, ignoring words of the question and words common to all
    answers; a country counts as its nationality. The first sentences with content are compared before the whole
    answers.
    """
    question_words = _words(question)
    first = [_first_content(text, question_words) for text in (answer, other)]
    for texts in (first, (answer, other)):
        words = [_content(text, question_words) for text in texts]
        years = [set(_YEAR.findall(text)) for text in texts]
        nations = [_NATIONS.intersection(stems) for stems in words] if _NATION_ASKED.search(question) else []
        for values in (years, nations):
            if values and all(values):
                return bool(values[0] & values[1])
        if all(words) and 2 * len(words[0] & words[1]) > min(map(len, words)):
            return True
    return False


def contains_value(text: str, value: str, question: str) -> bool:
    """Return whether all words of a short ``value`` occur in ``text``, in any order."""
    words = _content(value, _words(question))
    return bool(words) and words <= _content(text, frozenset())


def more_complete_value(text: str, value: str, other: str, question: str) -> str | None:
    """Return the value that ``text`` gives, of two that share words: the one that occurs in full, or the longer one.

    "Soft drink" and "carbonated soft drink" can both occur in an answer without contradiction. None if the values share
    no word, or if neither is more complete.
    """
    question_words = _words(question)
    content, first, second = (_content(item, question_words) for item in (text, value, other))
    complete = [(len(words), candidate) for words, candidate in ((first, value), (second, other)) if words <= content]
    if not first & second or not complete:
        return None
    longest = max(length for length, _ in complete)
    values = [candidate for length, candidate in complete if length == longest]
    return values[0] if len(values) == 1 else None


def _first_content(text: str, ignored: Collection[str]) -> str:
    return next((sentence for sentence in _SENTENCE_END.split(text) if _content(sentence, ignored)), text)


def _content(text: str, ignored: Collection[str]) -> set[str]:
    return {_agent_stem(word) for word in _words(text) if word not in _EMPTY and word not in ignored}


def _words(text: str) -> frozenset[str]:
    folded = _COUNTRY.sub(lambda country: _NATIONALITY[country[0]], normalise(text[:_LONGEST]))
    return frozenset(_WORD.findall(folded))


def _agent_stem(word: str) -> str:
    """Return the stem of a word, reducing an agent noun to its verb: "player", "plays"."""
    stemmed = stem(word)
    return stemmed[:-2] if len(stemmed) > 5 and stemmed.endswith(("er", "or")) else stemmed
