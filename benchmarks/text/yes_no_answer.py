"""Parsers of answers to yes/no questions: our rules, and POPE's published rule."""

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
    """Return a pattern of any of ``patterns`` at word boundaries, for lower-case text with single spaces."""
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
    """Return ``yes``, ``no`` or None (neither) for an answer, and the rule that decided; docs/pope.md lists the rules.

    The first sentence that is not a question decides; if it says neither (`Let me look.`), a later sentence that starts with
    the word does. An answer that is unsure or abstains says neither.
    """
    asserted = [
        (sentence, words)
        for sentence in _BETWEEN_SENTENCES.split(answer.strip()[:_LONGEST])
        if (words := _words_of(sentence)) and not sentence.endswith("?")
    ]
    if not asserted:
        return None, "it asserts nothing"
    answer_word, rule = _read_sentence(asserted[0][1])
    if rule != _NEITHER:
        return answer_word, rule
    for sentence, words in asserted[1:]:
        if match := _ANSWERS_LATER.match(sentence.casefold()):
            return _SAYS[match[1]], "a later sentence begins with the word"
        if _ABSTAINS.search(words):
            return None, _UNSURE
    return None, _NEITHER


def parse_official(answer: str) -> str:
    """Return ``yes`` or ``no`` by the rule of POPE's published evaluation: an answer without No, not or no is a yes.

    The rule splits the text before the first full stop at spaces, after removing commas.
    """
    words = answer.split(".", 1)[0].replace(",", "").split(" ")
    return "no" if "No" in words or "not" in words or "no" in words else "yes"


def _words_of(sentence: str) -> str:
    """Return the words in lower case with single spaces, without leading numbers (`1. Yes`)."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(sentence)]
    return " ".join(dropwhile(str.isdecimal, words))


def _read_sentence(sentence: str) -> tuple[str | None, str]:
    """Return ``yes``, ``no`` or None for the words of one sentence, and the rule that decided."""
    sentence = _DOUBTLESS.sub(" ", sentence).strip()
    words = sentence.split()
    answers = {_SAYS[word] for word in words if word in _SAYS}
    if words and words[0] in _SAYS and not _ABSTAINS.match(sentence):
        # "Yes or no", "yes/no"
        other = {_SAYS.get(word) for word in words[1 : 3 if words[1:2] == ["or"] else 2]} - {None, _SAYS[words[0]]}
        return (None, _BOTH) if other else (_SAYS[words[0]], "it begins with the word")
    if _ABSTAINS.search(sentence):
        return None, _UNSURE
    if len(answers) == 2:
        return None, _BOTH
    if answers:
        return answers.pop(), "its first sentence has the word"
    if _DENIES.search(sentence):
        return "no", "its first sentence is a negation"
    if _STATES.match(sentence):
        return "yes", "its first sentence is a statement"
    return None, _NEITHER
