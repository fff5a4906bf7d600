"""The published scoring of OK-VQA and GQA, as pure functions of text that may be hostile."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.vqa.vqa_constants import OKVQA_SCORES

_LONGEST = 500
_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_PERIOD = re.compile(r"\.(?!\d)")
_NUMBER_COMMA = re.compile(r"\d,\d")
_ARTICLES = frozenset({"a", "an", "the"})
_NUMBERS = {
    "none": "0",
    **dict(
        zip(
            ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
            map(str, range(11)),
            strict=True,
        )
    ),
}
_CONTRACTED = """
ain't aren't can't could've couldn't didn't doesn't don't hadn't hasn't haven't he'd he's how'd how'll how's i'm i've isn't
it'd it'll ma'am might've mightn't must've mustn't needn't not've o'clock oughtn't shan't should've shouldn't somebody's
someone's that'd that's there'd there're there's they'd they'll they're they've wasn't we've weren't what'll what're what's
when's where'd where's who'd who'll who's why's won't would've wouldn't y'all you'd you'll you're you've
"""
_CONTRACTIONS = {word.replace("'", ""): word for word in _CONTRACTED.split()}
"""The contractions that VQA's evaluation completes, without its misspelt ones."""


def vqa_accuracy(answer: str, answers: Sequence[str]) -> float:
    """Return the VQA accuracy of an answer (Antol et al., 2015): the mean over people of min(1, n / 3).

    n is how many of the *other* people gave the answer. Both sides lose punctuation and articles, get digits for number
    words, and get back apostrophes, as in the published evaluation since its correction of 2021 (a013f00).
    """
    given = normalise_answer(answer)
    matches = [normalise_answer(other) == given for other in answers]
    n = sum(matches)
    return sum(min(1.0, (n - match) / 3) for match in matches) / len(matches) if matches else 0.0


def vqa_label(answer: str, answers: Sequence[str]) -> tuple[str, float]:
    """Return the label whose score is nearest to the VQA accuracy, and the accuracy."""
    value = vqa_accuracy(answer, answers)
    return min(OKVQA_SCORES, key=lambda label: abs(OKVQA_SCORES[label] - value)), value


def strip_punctuation(text: str) -> str:
    """Return the text as VQA's evaluation processes punctuation: some marks go, others become spaces.

    A mark goes if it stands at a space anywhere in the text, or if the text has a comma in a number.
    """
    text = " ".join(text[:_LONGEST].split())
    out = text
    has_number_comma = _NUMBER_COMMA.search(text) is not None
    for mark in _PUNCTUATION:
        at_space = f"{mark} " in text or f" {mark}" in text
        out = out.replace(mark, "" if at_space or has_number_comma else " ")
    return _PERIOD.sub("", out).strip()


def normalise_answer(text: str) -> str:
    """Return an answer as VQA's evaluation compares it: punctuation, digits for number words, articles, contractions."""
    words = [_NUMBERS.get(word, word) for word in strip_punctuation(text).lower().split() if word not in _ARTICLES]
    return " ".join(_CONTRACTIONS.get(word, word) for word in words)


def gqa_equal(answer: str, gold: str) -> bool:
    """Return whether an answer is GQA's, in lower case and without a final full stop (as LLaVA-1.5 prepares it)."""
    return _plain(answer) == _plain(gold)


def _plain(text: str) -> str:
    return " ".join(text[:_LONGEST].lower().split()).rstrip(".").rstrip()
