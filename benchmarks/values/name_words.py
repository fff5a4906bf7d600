"""Words of names and short texts: other names, titles, spellings, plurals, and words that make another value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from benchmarks.values.dates_and_times import LANGUAGES


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that blanks separate."""
    return frozenset(text.split())


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[%&+#]")
_INITIALS = re.compile(r"\b[^\W\d_](?:\.[^\W\d_])+(?![^\W_])\.?")
ARTICLES = word_set("the a an of la le les l el los las der die das den dem il lo gli i un une ein eine")
_TITLES = word_set("mr mrs ms miss dr prof professor sir dame inc ltd llc corp corporation co company gmbh ag plc sa")

_OTHER_NAMES = """
united states: usa, us, america, united states of america; united kingdom: uk, britain, great britain; european union: eu
united arab emirates: uae; czech republic: czechia; netherlands: holland; south korea: republic of korea
russia: russian federation; new york city: nyc; mount: mt; saint: st; department: dept; number: nr; versus: vs; film: movie
television: tv; car: automobile; bicycle: bike; couch: sofa; telephone: phone; airplane: aeroplane
"""
OTHER_NAMES = {
    other: name
    for entry in _OTHER_NAMES.strip().replace("\n", "; ").split("; ")
    for name, _, others in [entry.partition(": ")]
    for other in others.split(", ")
}
"""Names by another name of the same, beside those of countries in other languages, which Babel knows."""

_SIZES = {"s": "small", "m": "medium", "l": "large", "xl": "extra large", "xs": "extra small"}

OTHER_WITH = word_set("""
new north south east west northern southern eastern western northeast northwest southeast southwest central upper lower outer
inner great greater lesser grand old young elder junior senior jr sr ii iii iv
not no non un never none nothing without neither cannot n't
very strongly somewhat slightly extremely mostly fairly rather quite highly too barely hardly more less most least little
moderately partly partially completely fully totally mildly severely only almost nearly under over
dark light bright pale deep
major minor main primary secondary high low first second third last anti pre post sub
""")
"""With one of these more, words are another value: New Mexico, not significant, very likely, dark blue."""

_SPELLINGS = (
    (re.compile(r"our(?=$|s$|ed$|ing$|ful$|able$|ite)"), "or"),
    (re.compile(r"is(?=e$|ed$|es$|ing$|er$|ation)"), "iz"),
    (re.compile(r"ys(?=e$|ed$|es$|ing$)"), "yz"),
    (re.compile(r"tre(?=s?$)"), "ter"),
    (re.compile(r"(?<=[lm])logue(?=s?$)|(?<=a)logue(?=s?$)"), "log"),
    (re.compile(r"ence(?=s?$)"), "ense"),
    (re.compile(r"aluminium"), "aluminum"),
    (re.compile(r"grey"), "gray"),
    (re.compile(r"^sulph"), "sulf"),
    (re.compile(r"ae(?=[mns])|oe(?=[ds])"), "e"),
    (re.compile(r"programme"), "program"),
    (re.compile(r"ll(?=ed$|ing$|er$|or$)"), "l"),
)
_PLURALS = """
men:man women:woman children:child people:person feet:foot teeth:tooth mice:mouse geese:goose leaves:leaf wolves:wolf knives:knife
bacteria:bacterium mitochondria:mitochondrion phenomena:phenomenon criteria:criterion nuclei:nucleus fungi:fungus stimuli:stimulus
larvae:larva vertices:vertex indices:index matrices:matrix hypotheses:hypothesis analyses:analysis cities:city
"""
_IRREGULAR = dict(pair.split(":") for pair in _PLURALS.split())
_SIBILANT = ("ches", "shes", "xes", "sses", "zes")


def words_of(folded: str) -> list[str]:
    """Return the words of a folded text, each with its other names, spelling and number made one."""
    return [canonical(word) for word in _WORD.findall(folded.replace("n't", " not"))]


def name_words(folded: str) -> tuple[str, ...]:
    """Return the words of a name without articles and titles, unless nothing else is left."""
    words = words_of(_INITIALS.sub(lambda m: m[0].replace(".", ""), folded))
    # A letter at the end is no article: Exit A.
    named = [w for i, w in enumerate(words) if w not in ARTICLES or (len(w) == 1 and i == len(words) - 1)]
    kept = [w for w in named if w not in _TITLES] or named or words
    text = _SIZES.get(" ".join(kept), " ".join(kept))
    return tuple(words_of(OTHER_NAMES.get(text, text)))


@lru_cache(maxsize=8192)
def canonical(word: str) -> str:
    """Return one form of a word: its other name if it has one, American spelling, singular."""
    word = word.removesuffix("'s").replace("'", "").replace("’", "")
    if word in OTHER_NAMES and " " not in OTHER_NAMES[word]:
        return OTHER_NAMES[word]
    for pattern, replacement in _SPELLINGS:
        word = pattern.sub(replacement, word) if len(word) > 4 or word == "grey" else word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        if word.endswith("ies") and len(word) > 4:
            return word[:-3] + "y"
        return word[:-2] if word.endswith(_SIBILANT) else word[:-1]
    return word


def same_letters(a: str, b: str) -> bool:
    """Return whether two words are equal or, from six letters on, differ by one letter as by a slip of the pen."""
    if min(len(a), len(b)) < 6 or abs(len(a) - len(b)) > 1 or a.isdigit() or b.isdigit():
        return a == b
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[at + 1 :] == b[at + 1 :] or a[at:] == b[at + 1 :] or a[at + 1 :] == b[at:]


def initials(words: Sequence[str]) -> str:
    """Return the first letters of the words."""
    return "".join(w[0] for w in words)


@lru_cache(maxsize=1)
def territories() -> dict[str, str]:
    """Return the code of each country by its folded name, in the languages that answers are in."""
    from babel import Locale

    return {
        name.casefold(): code
        for language in (*LANGUAGES, "zh", "ja")
        for code, name in Locale(language).territories.items()
        if len(code) == 2
    }
