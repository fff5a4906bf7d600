"""Multiple-choice matching, strict and relaxed (CLASH, Appendix A.1)."""

from __future__ import annotations

import re

from benchmarks.clash.constants import DISTRACTOR, IMAGE, LETTERS, ROLES, TEXT, Role, letter_key
from judges.string_match.role_matches import References, RoleMatches, match_words

_BRACKETED = re.compile(r"\(([A-D])\)")


def strict_choice(answer: str, references: References) -> RoleMatches:
    """Return the option whose letter is bracketed in ``answer``; none if no letter is, or several different ones are."""
    return _bracketed(answer, references) or ((), "strict choice matching: no letter in brackets")


def relaxed_choice(answer: str, references: References) -> RoleMatches:
    """Return the option by the three steps of Appendix A.1, in order: a bracketed letter, a lone letter, an option's words.

    As in the published code, a lone letter is the whole answer and may be lower case, and the conflict option is not
    matched by its words. The words of several options can occur in one answer.
    """
    bracketed = _bracketed(answer, references)
    if bracketed is not None:
        return bracketed
    if len(answer) == 1 and answer.upper() in LETTERS:
        return _option(answer.upper(), references), f"relaxed choice matching: the letter {answer} alone"

    def stands(words: str) -> bool:
        return re.search(rf"\b{re.escape(words)}\b", answer, re.IGNORECASE) is not None

    candidates = {role: references.get(role, ()) for role in (IMAGE, TEXT, DISTRACTOR)}
    return match_words("relaxed choice matching", candidates, stands)


def _bracketed(answer: str, references: References) -> RoleMatches | None:
    letters = sorted(set(_BRACKETED.findall(answer)))
    if not letters:
        return None
    if len(letters) > 1:
        return (), f"choice matching: several letters in brackets, ({'), ('.join(letters)})"
    return _option(letters[0], references), f"choice matching: ({letters[0]})"


def _option(letter: str, references: References) -> tuple[Role, ...]:
    return tuple(role for role in ROLES if letter in references.get(letter_key(role), ()))
