"""What an answer to a yes/no question says: our reading, and POPE's own."""

from __future__ import annotations

import re
from itertools import dropwhile

_UNSURE = "it is unsure"
_BOTH = "it says both words"
_NEITHER = "it says neither yes nor no"

_LONGEST = 2_000
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SAYS = {
    **dict.fromkeys(("yes", "yeah", "yep", "yup"), "yes"),
    **dict.fromkeys(("no", "nope", "nah"), "no"),
}


def _words(*patterns: str) -> re.Pattern[str]:
    """Any of the patterns, between the ends of words; for text in lower case with one space between words."""
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b")


_NOT = r"(?:not|cannot|never|\w+n't|unable to|impossible to|(?:hard|difficult) to|no way (?:to|of)|too (?:\w+ ){1,2}to)"
_SLIGHTLY = r"(?:(?:be|been|it|quite|so|at|all|able|to|\w+ly) ){0,3}"
_GIVES = r"(?: (?:have|has|provide|give|contain|offer|include|any|the|more|enough|sufficient|much))*"
_PICTURE = r"(?:image|picture|photo)s?(?! of)"
_SEES = r"(?:see|view|access|open|load|process|have|receive|given)(?: access to)?(?: (?:the|an|any|this|that|your))?"

_ABSTAINS = _words(
    r"unclear|unsure|uncertain|unknown|undetermined|inconclusive|ambiguous|insufficient|impossible",
    r"whether|depends|maybe|possibly|perhaps|may|might|could(?! not)",
    r"disagrees?|contradict(?:s|ory)?|conflict(?:s|ing)?",
    rf"{_NOT} {_SLIGHTLY}(?:know(?:ing)?|tell(?:ing)?|told|sure|certain|clear|possible|say|said|help|assist|applicable)",
    rf"{_NOT} {_SLIGHTLY}(?:determined?|decided?|confirm(?:ed)?|verify|verified|assess|conclude|answer(?:ed)?)",
    rf"(?:{_NOT}|no|lacks?|without){_GIVES} (?:information|context)",
    rf"{_NOT} {_SEES} {_PICTURE}",
    rf"no (?:idea|clue|{_PICTURE})",
)
_DOUBTLESS = _words(
    r"(?:there is )?no (?:doubt|question)(?: that)?",
    r"without (?:a |any )?doubt",
    r"not (?:only|just)",
    r"nothing but",
)
_DENIES = _words(
    r"no|not|cannot|never|none|nothing|neither|nor|without|unable|lacks?|absent|\w+n't",
    r"(?:hardly|scarcely|barely) any",
)
_STATES = re.compile(
    r"(?:(?:in|on|based on|looking at) (?:the|this) (?:image|picture|photo) |of course |certainly )?"
    r"(?:there(?:'s| (?:is|are|(?:appear|seem)s? to be))|(?:i|i can|you can|we can) see"
    r"|(?:the|this) (?:image|picture|photo) (?:shows|contains|depicts)"
    r"|(?:an?|the|one|two|some|several) .*\b(?:is|are) (?:\w+ly )?(?:visible|present|shown))\b"
)
_ANSWERS_LATER = re.compile(
    rf"\W*(?:(?:so|the|my|final|answer|is|therefore)\W+)*({'|'.join(_SAYS)})\b"
    r"(?=\W*\Z|\s*[,;:!]|\s+(?:there|it|i|the|an?)\b)"
)


def read_yes_no(answer: str) -> tuple[str | None, str]:
    """``yes``, ``no`` or None for what an answer says, and the rule that reads it; docs/pope.md has the rules.

    The first sentence that is no question decides, and where it says nothing (`Let me look.`) a later one that begins with
    the word. An answer that is unsure, or abstains, says neither.
    """
    asserted = [
        (sentence, words)
        for sentence in _BETWEEN_SENTENCES.split(answer.strip()[:_LONGEST])
        if (words := _words_of(sentence)) and not sentence.endswith("?")
    ]
    if not asserted:
        return None, "it asserts nothing"
    said, rule = _read(asserted[0][1])
    if rule != _NEITHER:
        return said, rule
    for sentence, words in asserted[1:]:
        if found := _ANSWERS_LATER.match(sentence.casefold()):
            return _SAYS[found[1]], "a later sentence begins with the word"
        if _ABSTAINS.search(words):
            return None, _UNSURE
    return None, _NEITHER


def official(answer: str) -> str:
    """``yes`` or ``no`` as POPE's published evaluation reads an answer: everything without No, not or no is a yes.

    Its rule: the text before the first full stop, commas taken out, parted at spaces.
    """
    words = answer.split(".", 1)[0].replace(",", "").split(" ")
    return "no" if "No" in words or "not" in words or "no" in words else "yes"


def _words_of(sentence: str) -> str:
    """The words in lower case with one space between, from the first that is no number (`1. Yes`)."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(sentence)]
    return " ".join(dropwhile(str.isdecimal, words))


def _read(words: str) -> tuple[str | None, str]:
    words = _DOUBTLESS.sub(" ", words).strip()
    each = words.split()
    said = {_SAYS[word] for word in each if word in _SAYS}
    if each and each[0] in _SAYS and not _ABSTAINS.match(words):
        # "Yes or no", "yes/no"
        other = {_SAYS.get(word) for word in each[1 : 3 if each[1:2] == ["or"] else 2]} - {None, _SAYS[each[0]]}
        return (None, _BOTH) if other else (_SAYS[each[0]], "it begins with the word")
    if _ABSTAINS.search(words):
        return None, _UNSURE
    if len(said) == 2:
        return None, _BOTH
    if said:
        return said.pop(), "its first sentence has the word"
    if _DENIES.search(words):
        return "no", "its first sentence is a negation"
    if _STATES.match(words):
        return "yes", "its first sentence is a statement"
    return None, _NEITHER
