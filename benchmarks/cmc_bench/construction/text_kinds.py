"""Kinds of answers in words: members of a known set, or what the question asks for, and other members of the same kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import LANGUAGES
from benchmarks.values.name_words import ARTICLES, OTHER_NAMES, canonical, territories, word_set

_CHARTED = """
US CN JP DE GB FR IN IT BR CA RU KR AU ES MX ID NL SA TR CH PL SE BE AR NO AT IE DK SG IL ZA TH EG PH FI CL PT CZ RO NZ VN PE
GR HU UA KE NG PK BD MA CO MY
"""
"""The countries that charts show most, from which one is taken where no other answer provides one."""

_SETS = """
colour: red, blue, green, yellow, orange, purple, pink, brown, black, gray, white, navy, teal, cyan, gold, maroon, turquoise
colour: red, blue, green, yellow, orange, purple, pink, brown, black, grey, white, navy, teal, cyan, gold, maroon, turquoise
colour: light blue, dark blue, light green, dark green, light gray, dark gray, light red, dark red, light purple, dark orange
colour: navy blue, sky blue, dark blue, light blue, royal blue
colour: lime green, olive green, dark green, light green, sea green
colour: rot, blau, grün, gelb, orange, lila, rosa, braun, schwarz, grau, weiß, türkis, violett
colour: rouge, bleu, vert, jaune, orange, violet, rose, marron, noir, gris, blanc
colour: rojo, azul, verde, amarillo, naranja, morado, rosa, marrón, negro, gris, blanco
continent: Africa, Asia, Europe, North America, South America, Oceania
continent: Afrika, Asien, Europa, Nordamerika, Südamerika, Ozeanien
region: Asia Pacific, Europe, North America, Latin America, Middle East and Africa, Western Europe, Eastern Europe
direction: north, south, east, west
direction: Northeast, Midwest, South, West
direction: Norden, Süden, Osten, Westen
season: spring, summer, autumn, winter
season: Frühling, Sommer, Herbst, Winter
state: California, Texas, Florida, New York, Pennsylvania, Illinois, Ohio, Georgia, North Carolina, Michigan, New
  Jersey, Virginia, Washington, Arizona, Massachusetts, Tennessee, Indiana, Missouri, Maryland, Wisconsin, Colorado,
  Minnesota, South Carolina, Alabama, Louisiana, Kentucky, Oregon, Oklahoma, Connecticut, Utah, Iowa, Nevada, Arkansas,
  Mississippi, Kansas, New Mexico, Nebraska, Idaho, West Virginia, Hawaii, New Hampshire, Maine, Montana, Rhode Island,
  Delaware, South Dakota, North Dakota, Alaska, Vermont, Wyoming
scale: very likely, somewhat likely, not too likely, not at all likely
scale: strongly agree, somewhat agree, somewhat disagree, strongly disagree
scale: agree, disagree
scale: very satisfied, satisfied, dissatisfied, very dissatisfied
scale: excellent, good, only fair, poor
scale: excellent, good, fair, poor
scale: very good, somewhat good, somewhat bad, very bad
scale: very favorable, somewhat favorable, somewhat unfavorable, very unfavorable
scale: very important, somewhat important, not too important, not at all important
scale: very concerned, somewhat concerned, not too concerned, not at all concerned
scale: a great deal, a fair amount, not too much, none at all
scale: a lot, some, not much, nothing at all
scale: major problem, minor problem, not a problem
scale: a lot better, a little better, about the same, a little worse, a lot worse
scale: better, worse, about the same
scale: too much, too little, about right
scale: very confident, somewhat confident, not too confident, not at all confident
scale: more likely, less likely, no difference
scale: strongly favor, favor, oppose, strongly oppose
scale: high, medium, low
scale: hoch, mittel, niedrig
scale: always, often, sometimes, rarely, never
scale: immer, oft, manchmal, selten, nie
scale: daily, weekly, monthly, yearly
scale: small, medium, large
pair: favor, oppose
pair: favorable, unfavorable
pair: approve, disapprove
pair: satisfied, dissatisfied
pair: important, not important
pair: confident, not confident
pair: positive, negative
pair: more, less
pair: increase, decrease
pair: increased, decreased
pair: increasing, decreasing
pair: rising, falling
pair: up, down
pair: higher, lower
pair: above, below
pair: left, right
pair: first, last
pair: male, female
pair: men, women
pair: boys, girls
pair: urban, rural
pair: import, export
pair: imports, exports
pair: public, private
pair: online, offline
pair: single, married
pair: employed, unemployed
pair: Democrat, Republican
pair: Democrats, Republicans
pair: better, worse
pair: good, bad
pair: true, false
pair: yes, no
pair: ja, nein
pair: oui, non
pair: sí, no
pair: gestiegen, gesunken
pair: männlich, weiblich
pair: Männer, Frauen
"""
"""Sets that no library has, one a line, without the subsets that belong together only by meaning: a wrong value is a member of
the first set that holds the right one."""

_NOUNS = {
    "colour": "color colour shade farbe couleur",
    "country": "country nation land pays país",
    "state": "state",
    "month": "month monat mois",
    "weekday": "day weekday tag",
    "language": "language sprache",
    "currency": "currency währung",
}
"""The nouns under which a member of a set that is also another name, such as orange and May, belongs to it."""
_SHARED_NAMES = frozenset({"colour", "month", "weekday", "language", "direction", "season", "pair", "scale"})
_PROPER = word_set("""
company brand firm manufacturer retailer team club player artist singer actor author director person athlete university school
product app platform website browser bank airline newspaper magazine publisher store restaurant chain film movie show song album
operator provider vendor carrier supplier
""")
"""Nouns of proper names, to which months, colours and other words are names, too."""

_GENERIC = word_set("""
one thing category group bar line option response factor type item part area label value label name color colour series segment
slice answer kind element data field section column row entry choice topic issue subject legend graph chart pie result place data
""")
"""Nouns that say nothing about what they name: only the same picture, document or group has other values of their kind."""

_ASKED = re.compile(
    r"\b(?:which|what|welche[rsnm]?|quel(?:le)?s?|qué|cuál)(?: of the| two| three| five| other| following| is the| are the"
    r"| was the| were the| name of the| 's the|'s the|s the| is| was| are)*\s+((?:\w[\w'’-]*\s*){1,5})",
    re.IGNORECASE,
)
_NOUN_END = word_set("""
is are was were has have had do does did can could will would should shall may in of on at by for from with to that who whose
which when where represent represents represented shows show showed showing shown denote denotes indicate indicates depict
depicts recorded had got made makes saw sees gives given being produced produces received presented topped reached contributed
contributes accounted accounts holds held uses used leads led among between across per as during after before over under than
ranked rank came come claimed said favor and or hat haben ist sind war waren wird im in der den dem
""")
_SUPERLATIVE = re.compile(
    r".+est$|most|least|second|third|first|last|top|biggest|no|leading|main|largest|overall|common|popular"
)
_WHO = re.compile(r"\bwho(?:m|se)?\b|\bwer\b|\bqui\b|\bquién\b", re.IGNORECASE)
_WHERE = re.compile(r"\bwhere\b|\bwo\b", re.IGNORECASE)
_OR = re.compile(
    r"\s*,?\s*(?:\bor\b|\band\b|\bvs\b\.?|\bversus\b|\boder\b|\bund\b|/)\s*(?:the |die |der |das )?", re.IGNORECASE
)
_CHOICE_END = re.compile(
    r"[?,.;:()\n]|\s(?:is|are|was|were|has|have|had|in|over|across|during|for|on|at|by|who|that|with|from|does|do|did|to)\b"
)
_CHOICE_START = re.compile(
    r"[?,.;:()\n]|\b(?:of|between|is|are|was|were|which|either|than|does|do|did|for|in|the|from|to|group|category|more|less)\s",
    re.IGNORECASE,
)
_LONGEST_CHOICE = 5


@dataclass(frozen=True, slots=True)
class TextKind:
    """The kind of an answer in words.

    ``is_specific`` is False if the kind's name does not say what its members are; only rows about the same picture, document
    or group then hold others. ``members`` are those of its set, if it has one. ``narrower`` is what only another value of the
    same picture need not share: tech of a tech company, or that few charts show a country.
    """

    name: str
    is_specific: bool
    members: tuple[str, ...] = ()
    narrower: str = ""

    def others(self, answer: str) -> list[str]:
        """Return its members beside ``answer``, in capitals where it is."""
        key = _key(answer)
        return [in_case(member, answer) for member in self.members if _key(member) != key]


def text_kind(answer: str, question: str) -> TextKind:
    """Return the kind of an answer in words to a question."""
    adjectives, noun = asked_noun(question)
    key = _key(answer)
    asked = next((kind for kind, nouns in _NOUNS.items() if {*noun.split()} & {*nouns.split()}), "")
    sets = [s for s in _sets_of(key) if not (noun in _PROPER and s[0] in _SHARED_NAMES)]
    unclear = _unclear_kinds(noun, {kind for kind, _ in sets})
    sets = [s for s in sets if s[0] == asked] or [s for s in sets if s[0] not in unclear]
    if not sets and asked in ("country", "state"):  # one that the list does not know
        sets = list(_sets_of({"country": "france", "state": "ohio"}[asked])[:1])
    for kind, members in sets:
        name = kind if kind in _NOUNS else f"{kind} {members[0]}"
        return TextKind(name, True, members, "" if key in map(_key, members) else "of few charts")
    is_specific = bool(noun) and noun not in _GENERIC
    form = " (...)" if answer.rstrip().endswith(")") else ""
    return TextKind(f"noun {noun}{form}" if is_specific else f"noun{form}", is_specific, (), adjectives)


def _unclear_kinds(noun: str, kinds: set[str]) -> set[str]:
    """Return the kinds that a name is of only where the question asks for one: Georgia, a city in New York."""
    unclear = {"language"}
    if noun.split()[-1:] and noun.split()[-1] not in _GENERIC:
        unclear.add("state")
    return unclear | {"country", "state"} if {"country", "state"} <= kinds else unclear


def _key(answer: str) -> str:
    return fold(clean(answer)).strip(" .\"'")


@lru_cache(maxsize=2048)
def asked_noun(question: str) -> tuple[str, str]:
    """Return the adjectives and the noun that a question asks for, in the singular, or "": tech, company; "", age group."""
    text = clean(question)
    if match := _ASKED.search(text):
        words = []
        for word in fold(match[1]).split():
            if word.strip("'’,") in _NOUN_END or word.endswith(("'s", "’s")):
                break
            words.append(canonical(word.strip(",?'’")))
        words = [w for w in words if w and w not in ARTICLES and not w[0].isdigit() and not _SUPERLATIVE.fullmatch(w)]
        if words:
            size = 2 if words[-1] in _GENERIC else 1
            return " ".join(words[:-size]), " ".join(words[-size:])
    # "Who was the leading supplier?" may be a company.
    return "", "one" if _WHO.search(text) else "place" if _WHERE.search(text) else ""


def named_alternatives(answer: str, question: str) -> Iterator[str]:
    """Yield what the question offers beside the answer: "New Zealand" of "Is it higher in Belgium or New Zealand?"."""
    text = " ".join(question.split())
    at = re.search(rf"(?<!\w){re.escape(' '.join(answer.split()))}(?!\w)", text, re.IGNORECASE)
    if at is None:
        return
    before, after = text[: at.start()], text[at.end() :]
    if following := _OR.match(after):
        rest = after[following.end() :]
        end = _CHOICE_END.search(rest)
        yield from _choice(rest[: end.start()] if end else rest, answer)
    preceding = list(_OR.finditer(before))
    if preceding and preceding[-1].end() == len(before):
        rest = before[: preceding[-1].start()]
        starts = list(_CHOICE_START.finditer(rest))
        yield from _choice(rest[starts[-1].end() :] if starts else rest, answer)


def _choice(text: str, answer: str) -> Iterator[str]:
    words = text.strip(" \"'").split()
    if 0 < len(words) <= _LONGEST_CHOICE and not any(w.casefold() in ("or", "and") for w in words):
        yield in_case(" ".join(words), answer)


def in_case(text: str, like: str) -> str:
    """Return ``text`` in capitals, small letters or with a first capital, as ``like`` is."""
    if like.isupper() and len(like) > 3:
        return text.upper()
    if like.islower():
        return text.lower()
    if text.islower() and like.istitle() and " " in like:
        return text.title()
    return text[:1].upper() + text[1:] if like[:1].isupper() and text.islower() else text


def _sets_of(key: str) -> Sequence[tuple[str, tuple[str, ...]]]:
    return _index().get(key, ())


@lru_cache(maxsize=1)
def _index() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return the sets that each folded member belongs to, with their kinds."""
    from babel import Locale

    sets: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    for line in _SETS.replace("\n  ", " ").strip().splitlines():
        kind, _, listing = line.partition(": ")
        listed = tuple(listing.split(", "))
        sets.append((kind, listed, listed))
    for language in LANGUAGES:
        locale = Locale(language)
        countries = {code: name for code, name in locale.territories.items() if len(code) == 2 and code.isalpha()}
        sets.append(("country", tuple(countries[code] for code in _CHARTED.split()), tuple(countries.values())))
        for kind, names_by_width in (("month", locale.months["format"]), ("weekday", locale.days["format"])):
            for width in ("wide", "abbreviated"):
                names = tuple(names_by_width[width].values())
                sets.append((kind, names, names))
        for kind, names_by_code, charted in (
            ("language", locale.languages, LANGUAGES),
            ("currency", locale.currencies, ("USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD")),
        ):
            sets.append((kind, tuple(names_by_code[code] for code in charted), tuple(names_by_code.values())))
    english = next(offered for kind, offered, _ in sets if kind == "country")
    sets.append(("country", english, tuple(n for n, name in OTHER_NAMES.items() if name in territories())))
    index: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for kind, offered, members in sets:
        for member in members:
            index.setdefault(_key(member), []).append((kind, offered))
    return index
