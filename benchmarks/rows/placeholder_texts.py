"""Texts that people and programs write into a cell that has no value."""

from __future__ import annotations

import re

from benchmarks.values.name_words import word_set

_LONGEST = 30
_LONGEST_SENTENCE = 60
_WRITTEN = word_set("""
n/a n.a n.v k.a k/a tbd tba todo null nan nil undefined unknown unbekannt (blank) (leer) keineangabe keineangaben nodata
keinedaten notavailable notapplicable nichtverfügbar nichtbekannt notknown missing notgiven
""")
"""Placeholders without spaces and the points at their ends."""
_MARKS = re.compile(r"[-–—−_.…?]+")
_UNANSWERABLE = re.compile(
    r"(?:not answerable|unanswerable|no answer|(?:it |this )?(?:cannot|can't) be (?:answered|determined)|nicht beantwortbar)\b.*",
    re.DOTALL,
)


def is_placeholder(value: object) -> bool:
    """Return whether a text stands for no value; "None", which may be an answer, does not."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return False
    joined = "".join(value.split())
    if joined.isdecimal():
        return False
    return joined == "NA" or joined.casefold().rstrip(".") in _WRITTEN or bool(_MARKS.fullmatch(joined))


def is_unanswerable(text: str) -> bool:
    """Return whether an answer says that the sources answer nothing."""
    return len(text) <= _LONGEST_SENTENCE and bool(_UNANSWERABLE.match(text.strip().casefold()))
