"""Words as the match judge compares them: stems, content words, synonyms and opposites."""

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
# Spellings and synonyms; the first word of a line is the one they are read as.
_SYNONYMS = """
united states: usa us america
united kingdom: uk britain
czech republic: czechia
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
bicycle: bike
film: movie
television: tv
telephone: phone
airplane: aeroplane plane
couch: sofa
lorry: truck
mount: mt
saint: st
approximately: approx
versus: vs
"""
# Plurals that no ending shows: each word is read as the one before its colon.
_PLURALS = """
bacterium: bacteria
mitochondrion: mitochondria
phenomenon: phenomena
criterion: criteria
nucleus: nuclei
fungus: fungi
stimulus: stimuli
radius: radii
larva: larvae
vertebra: vertebrae
vertex: vertices
index: indices
matrix: matrices
hypothesis: hypotheses
analysis: analyses
man: men
woman: women
child: children
foot: feet
tooth: teeth
mouse: mice
goose: geese
leaf: leaves
wolf: wolves
knife: knives
"""
# Substances by formula.
_SUBSTANCES = """
oxygen: o2
ozone: o3
hydrogen: h2
nitrogen: n2
water: h2o
carbon dioxide: co2
methane: ch4
ammonia: nh3
glucose: c6h12o6
sodium chloride: nacl
hydrogen chloride: hcl
sulfuric acid: h2so4
"""
# Titles and legal forms that a name may have or lack.
_TITLES = "mr mrs ms dr prof professor sir inc ltd llc corp corporation gmbh plc"
# Numbers as digits, words and numerals within a name: "Type 2", "type two", "Type II".
_NUMERALS = """
1 one letter_i
2 two ii
3 three iii
4 four iv
5 five
6 six vi
7 seven vii
8 eight viii
9 nine ix
10 ten
"""
# Opposites: the first word of a line denies the others.
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
# Names of one kind: replacing one by another changes the answer.
_KINDS = """
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
red blue green yellow orange purple pink brown black white gray teal maroon violet cyan magenta turquoise
north south east west
spring summer autumn winter
africa asia europe oceania antarctica
left right top bottom
"""
# Ending, replacement, and least number of letters before it; the first match applies.
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
    """A word's stem and its span."""

    stem: str
    start: int
    end: int


def _read_table(table: str) -> Mapping[str, list[str]]:
    lines = (line.partition(":") for line in table.strip().split("\n"))
    return {head: rest.split() for head, _, rest in lines}


_READ_AS = {
    word: head
    for table in (_SYNONYMS, _PLURALS, _SUBSTANCES)
    for head, words in _read_table(table).items()
    for word in words
}
SUBSTANCES = frozenset(formula for formulas in _read_table(_SUBSTANCES).values() for formula in formulas)
_RULES = [
    (ending, "" if becomes == "-" else becomes, int(least))
    for ending, becomes, least in (rule.split() for rule in _ENDINGS.strip().replace("\n", ";").split(";"))
]


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return a word without accent, possessive, plural and the commonest endings; different words can share a stem."""
    word = word.removesuffix("'s")
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if unicodedata.category(c) != "Mn")
    for ending, becomes, least_measure in _RULES:
        if word.endswith(ending) and len(word) - len(ending) >= least_measure:
            return word[: len(word) - len(ending)] + becomes
    return word


STOP_STEMS = frozenset(_STOP_WORDS.split()) | {stem(w) for w in _STOP_WORDS.split()}
ARTICLES = frozenset({"the", "a", "an"})
TITLES = frozenset(map(stem, _TITLES.split()))
_NUMBERS = [[stem(w).replace("_", " ") for w in line.split()] for line in _NUMERALS.strip().split("\n")]
NUMERALS = {notation: notations for notations in _NUMBERS for notation in notations}
KINDS = [frozenset(stem(w) for w in line.split()) for line in _KINDS.strip().split("\n")]

_OPPOSITE: dict[str, set[str]] = {}
for _word, _opposites in _read_table(_OPPOSITES).items():
    for _opposite in _opposites:
        _OPPOSITE.setdefault(stem(_word), set()).add(stem(_opposite))
        _OPPOSITE.setdefault(stem(_opposite), set()).add(stem(_word))
COMPARING = frozenset(_OPPOSITE) - {stem("same"), stem("equal")}


def tokenize(folded: str) -> tuple[Token, ...]:
    """Return the words of a folded text as stems; a synonym of two words gives two tokens at one place."""
    return tuple(
        Token(s, m.start(), m.end()) for m in _TOKEN.finditer(folded) for s in (_letter_token(m) or _stems(m[0]))
    )


def _stems(word: str) -> list[str]:
    return [stem(w) for w in _READ_AS.get(word, word).split(" ")]


def _letter_token(match: re.Match[str]) -> list[str]:
    """Return the letter or numeral that "a" or "i" is where it is not a word: "point A", "Bipolar I disorder"."""
    return [f"letter {match[0]}"] if match[0] in ("a", "i") and _LETTER.match(match.string, match.start()) else []


def is_symbol(stem: str) -> bool:
    """Return whether a token is a number, a letter or a numeral: never omitted, and never replaced by another."""
    return _SYMBOL.fullmatch(stem) is not None


def find_symbols(words: Sequence[Token]) -> list[str]:
    """Return the numbers, letters and numerals among the words, in order."""
    return [t.stem for t in words if t.stem not in STOP_STEMS and is_symbol(t.stem)]


def content_stems(words: Sequence[Token]) -> tuple[str, ...]:
    """Return the stems that carry meaning."""
    return tuple(t.stem for t in words if t.stem not in STOP_STEMS)


def are_opposites(stem_a: str, stem_b: str) -> bool:
    """Return whether two stems deny each other."""
    return stem_b in _OPPOSITE.get(stem_a, ())


def is_derived(word: str, other: str) -> bool:
    """Return whether one word begins with the other, as "corruption" with "corrupt"."""
    short, long = sorted((word, other), key=len)
    return len(short) >= 4 and len(long) - len(short) <= 4 and long.startswith(short)


def one_letter_off(word: str, other: str) -> bool:
    """Return whether two words differ by one letter inserted, omitted or changed."""
    short, long = sorted((word, other), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return short[at + (len(long) == len(short)) :] == long[at + 1 :]
