"""Porter's stemmer (Porter, An algorithm for suffix stripping, 1980) with NLTK's extensions.

CLASH was scored with NLTK's stemmer, whose extensions decide labels: the published algorithm stems ``one`` to ``on``, so the
answer "One" would match every "on the table", and it does not conflate ``fly`` and ``flies``.
"""

from __future__ import annotations

from functools import lru_cache

_VOWELS = frozenset("aeiou")

_FORMS = {
    "sky": ("sky", "skies"),
    "die": ("dying",),
    "lie": ("lying",),
    "tie": ("tying",),
    "news": ("news",),
    "inning": ("inning", "innings"),
    "outing": ("outing", "outings"),
    "canning": ("canning", "cannings"),
    "howe": ("howe",),
    "proceed": ("proceed",),
    "exceed": ("exceed",),
    "succeed": ("succeed",),
}
_IRREGULAR = {form: stem for stem, forms in _FORMS.items() for form in forms}
"""Words to which NLTK applies no rule."""

_STEP_1A = (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))

_STEP_2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
)

_STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)

_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion"),
    *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of the lower-case ``word``, in time linear in its length."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _step_1c(_step_1b(_step_1a(word)))
    return _step_5(_step_4(_step_3(_step_2(word))))


def _step_1a(word: str) -> str:
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]  # NLTK: ties -> tie
    for suffix, replacement in _STEP_1A:
        if word.endswith(suffix):
            return word.removesuffix(suffix) + replacement
    return word


def _step_1b(word: str) -> str:
    if word.endswith("ied"):  # NLTK: died -> die, spied -> spi
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        base = word.removesuffix(suffix)
        if base != word and "v" in _shape(base):
            return _restored(base)
    return word


def _restored(base: str) -> str:
    """Return a word without ``-ed`` or ``-ing`` with its original ending restored."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if len(base) > 1 and base[-1] == base[-2] and _shape(base)[-1] == "c":
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if _measure(base) == 1 and _ends_short(base) else base


def _step_1c(word: str) -> str:
    # NLTK: only after a consonant that is not the first letter, so that enjoy stays and fly becomes fli, as flies does.
    return word[:-1] + "i" if word.endswith("y") and len(word) > 2 and _shape(word)[-2] == "c" else word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])  # NLTK: applied again to the word without -ly
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word  # NLTK measures the stem including its l
    return _replaced(word, _STEP_2)


def _step_3(word: str) -> str:
    return _replaced(word, _STEP_3)


def _step_4(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            base = word.removesuffix(suffix)
            applies = _measure(base) > 1 and (suffix != "ion" or base[-1] in "st")
            return base if applies else word
    return word


def _step_5(word: str) -> str:
    base = word.removesuffix("e")
    if base != word:
        measure = _measure(base)
        word = base if measure > 1 or (measure == 1 and not _ends_short(base)) else word
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    """Return ``word`` after the first rule whose suffix it has; unchanged if its stem is too short for that rule."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            base = word.removesuffix(suffix)
            return base + replacement if _measure(base) > 0 else word
    return word


def _shape(word: str) -> str:
    """Return ``word`` with ``v`` for each vowel and ``c`` for each consonant; y is a vowel after a consonant."""
    shape: list[str] = []
    for letter in word:
        vowel = letter in _VOWELS or (letter == "y" and bool(shape) and shape[-1] == "c")
        shape.append("v" if vowel else "c")
    return "".join(shape)


def _measure(word: str) -> int:
    """Return Porter's m, the number of times a consonant follows a vowel."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    """Return Porter's ``*o``: consonant, vowel, consonant other than w, x, y; for NLTK also a vowel and a consonant alone."""
    shape = _shape(word)
    return (shape.endswith("cvc") and word[-1] not in "wxy") or shape == "vc"
