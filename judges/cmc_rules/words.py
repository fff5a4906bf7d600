"""Words as the match judge compares them: stems, meaning, synonyms and opposites."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_STOP_WORDS = """
a an the of in on at to for from by with and or is are was were be been being do does did has have had it its this that
these those there what which who whom whose when where why how many much any each as than then so if into their they he
she his her we you i my your our can could would should will may might must shall not no yes very just only also both
per between during
"""
# Spellings and near words, each line led by what it is read as.
_SYNONYMS = """
united states: usa us america
united kingdom: uk britain
united arab emirates: uae
european union: eu
netherlands: holland
gray: grey
barely: hardly scarcely
increase: rise rises rising rose increases increased increasing grows grew growing
decrease: fall falls falling fell decreases decreased decreasing declines declined declining drops dropped
january: jan
february: feb
march: mar
april: apr
june: jun
july: jul
august: aug
september: sep sept
october: oct
november: nov
december: dec
monday: mon
tuesday: tue
wednesday: wed
thursday: thu
friday: fri
car: automobile
versus: vs
"""
# Words of which one denies the others.
_OPPOSITES = """
more: fewer less
larger: smaller
greater: smaller less lower
bigger: smaller
higher: lower
above: below under beneath lower
taller: shorter
longer: shorter
faster: slower
older: younger newer
heavier: lighter
wider: narrower
increase: decrease shrink
exceed: lower below less fewer smaller
exceeds: lower below less fewer smaller
before: after
earlier: later
first: last
left: right
best: worst
most: least fewest
highest: lowest
largest: smallest
positive: negative
always: never sometimes
all: none
cheaper: pricier dearer expensive
hotter: colder cooler
warmer: colder cooler
stronger: weaker
better: worse
over: under below
high: low
elastic: inelastic
same: different
equal: different unequal larger smaller higher lower greater less more
majority: minority
north: south
east: west
outside: inside
demand: supply
positively: negatively
clockwise: counterclockwise anticlockwise
"""
# Names of one kind: in the place of one of them, another one is another answer.
_KINDS = """
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
red blue green yellow orange purple pink brown black white gray teal maroon violet cyan magenta turquoise
north south east west
spring summer autumn winter
africa asia europe oceania antarctica
left right top bottom
"""
# Ending, what it becomes, and how many letters must stand before it; the first that fits is taken.
_ENDINGS = """
isation iz 4; ization iz 4; isms - 3; ists - 3; ism - 3; ist - 3; ations at 4; ation at 4; ated at 4; ates at 4
ate at 4; ating at 4; sses ss 2; ies y 2; ches ch 2; shes sh 2; xes x 1; ings - 4; ing - 4; edly - 4; ed - 4; ised iz 3
ses s 3; ss ss 1; us us 2; is is 2; es - 4; s - 2; our or 3; e - 4; ly - 4
"""

_TOKEN = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_LINKS = "to|of|and|or|is|are|was|were|in|on|at|from|by|with|than|only|has|have"
_LETTER = re.compile(rf"a(?! [^\W_]|\w)|a(?= (?:{_LINKS})\b)|i(?! [^\W_]|\w)|i(?= (?:and|or|only|is|ii|iii|iv)\b)")
_SYMBOL = re.compile(r"letter .|[^\W_]|.*[0-9].*|[ivx]{2,4}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word's stem and where it stands."""

    stem: str
    start: int
    end: int


def _led(table: str) -> Mapping[str, list[str]]:
    lines = (line.partition(":") for line in table.strip().split("\n"))
    return {head: rest.split() for head, _, rest in lines}


_READ_AS = {word: head for head, words in _led(_SYNONYMS).items() for word in words}
_RULES = [
    (ending, "" if becomes == "-" else becomes, int(least))
    for ending, becomes, least in (rule.split() for rule in _ENDINGS.strip().replace("\n", ";").split(";"))
]


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without accent, possessive, plural and the commonest endings; different words can share a stem."""
    word = word.removesuffix("'s")
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if unicodedata.category(c) != "Mn")
    for ending, becomes, least in _RULES:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: len(word) - len(ending)] + becomes
    return word


STOP_STEMS = frozenset(_STOP_WORDS.split()) | {stem(w) for w in _STOP_WORDS.split()}
ARTICLES = frozenset({"the", "a", "an"})
KINDS = [frozenset(stem(w) for w in line.split()) for line in _KINDS.strip().split("\n")]

_OPPOSITE: dict[str, set[str]] = {}
for _one, _others in _led(_OPPOSITES).items():
    for _other in _others:
        _OPPOSITE.setdefault(stem(_one), set()).add(stem(_other))
        _OPPOSITE.setdefault(stem(_other), set()).add(stem(_one))
COMPARING = frozenset(_OPPOSITE) - {stem("same"), stem("equal")}


def tokens(folded: str) -> tuple[Token, ...]:
    """The words of a folded text as stems; a synonym of two words gives two tokens at one place."""
    return tuple(Token(s, m.start(), m.end()) for m in _TOKEN.finditer(folded) for s in (_letter(m) or _stems(m[0])))


def _stems(word: str) -> list[str]:
    return [stem(w) for w in _READ_AS.get(word, word).split(" ")]


def _letter(match: re.Match[str]) -> list[str]:
    """The letter or numeral that "a" and "i" are where they are no words: "point A", "Bipolar I disorder"."""
    return [f"letter {match[0]}"] if match[0] in ("a", "i") and _LETTER.match(match.string, match.start()) else []


def symbolic(stem: str) -> bool:
    """Whether a token is a number, a letter or a numeral: never left out, and no other can stand for it."""
    return _SYMBOL.fullmatch(stem) is not None


def symbols(words: Sequence[Token]) -> list[str]:
    """The numbers, letters and numerals among the words, in order."""
    return [t.stem for t in words if t.stem not in STOP_STEMS and symbolic(t.stem)]


def content(words: Sequence[Token]) -> tuple[str, ...]:
    """The stems that carry meaning."""
    return tuple(t.stem for t in words if t.stem not in STOP_STEMS)


def opposed(one: str, other: str) -> bool:
    """Whether two stems deny each other."""
    return other in _OPPOSITE.get(one, ())


def derived(one: str, other: str) -> bool:
    """Whether one word begins with the other, as "corruption" with "corrupt"."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and len(long) - len(short) <= 4 and long.startswith(short)


def one_letter_off(one: str, other: str) -> bool:
    """Whether two words differ by one letter put in, left out or changed."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return short[at + (len(long) == len(short)) :] == long[at + 1 :]
