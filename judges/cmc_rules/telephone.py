"""Telephone numbers: the same digits, however grouped, with or without a country's prefix."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\+?[0-9(][0-9 ().-]{5,24}[0-9]")
_GROUPED = re.compile(r"[0-9)][ ().-]+[0-9(]")
_LEAST, _MOST = 7, 15
_GAP = r"[ ().-]{0,3}"


def telephone_pattern(folded: str) -> re.Pattern[str] | None:
    """Return the pattern of a folded reference that is a telephone number written in groups, or None if it is none.

    A number may have "+" and one to three digits for its leading zero.
    """
    digits = re.sub(r"[^0-9]", "", folded)
    grouped = len(_GROUPED.findall(folded)) >= 2
    if not (_LEAST <= len(digits) <= _MOST and grouped and _NUMBER.fullmatch(folded)):
        return None
    body = _GAP.join(digits)
    if folded.startswith("+"):
        body = rf"\+?{body}"
    elif digits.startswith("0"):
        body = rf"(?:{body}|\+[0-9]{{1,3}}{_GAP}(?:\(0\)){{0,1}}{_GAP}{_GAP.join(digits[1:])})"
    return re.compile(rf"(?<![0-9+]){body}(?!{_GAP}[0-9])")
