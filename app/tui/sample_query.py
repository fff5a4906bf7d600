"""What is typed to choose samples: ``is:wrong condition:image-correct type:factual "the bar"``, read into a SampleFilter.

Words without a key are looked for in id, question and answer. Several values of one key, with commas between or the key said
twice, are alternatives; different keys must all fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.store.samples import FATES, ORDERS, SampleFilter
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError
from judges.base import newest

_TOKEN = re.compile(r'(?:(?P<key>[^\s":]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<plain>[^\s"]+))')
FLAGS = ("disagree", "overridden", "cut", "mismatch")
KEYS = ("is", "label", "condition", "judge", "disagree", "order")
"""The keys beside the strata."""


@dataclass(frozen=True, slots=True)
class QueryVocabulary:
    """What there is in a run to choose by. ``judges`` are the ids that have judged; ``default`` whose labels count."""

    conditions: Sequence[str] = ()
    labels: Sequence[str] = ()
    strata: Mapping[str, Sequence[str]] | None = None
    judges: Sequence[str] = ()
    default: tuple[str, ...] = ()


def parse_query(text: str, known: QueryVocabulary) -> SampleFilter:
    """The filter that ``text`` says. Raises SpecError for a key or value that is not there, with the nearest that is."""
    words: list[str] = []
    said: dict[str, list[str]] = {}
    strata = dict(known.strata or {})
    for found in _TOKEN.finditer(text):
        key = found["key"]
        value = found["plain"] if found["quoted"] is None else found["quoted"]
        if key is None:
            words += [value] if value else []
            continue
        if key not in KEYS and key not in strata:
            raise SpecError(f"there is no key {key[:40]!r}; {did_you_mean(key[:40], [*KEYS, *strata])}")
        # In quotes a comma belongs to the value.
        said.setdefault(key, []).extend([value] if found["quoted"] is not None else value.split(","))
    flags = [word for word in said.get("is", []) if word in FLAGS]
    fates = _of("is", [word for word in said.get("is", []) if word not in FLAGS], [*FATES, *FLAGS])
    order = _of("order", said.get("order", ["run"])[-1:], list(ORDERS))[0]
    return SampleFilter(
        judges=tuple(_judge(one, known) for one in said["judge"]) if "judge" in said else known.default,
        conditions=_of("condition", said.get("condition", []), known.conditions),
        strata=tuple((key, one) for key, values in strata.items() for one in _of(key, said.get(key, []), values)),
        labels=_of("label", [one.upper() for one in said.get("label", [])], known.labels),
        fates=tuple(fate for fate in FATES if fate in fates),
        words=tuple(words),
        disputing=tuple(_judge(one, known) for one in said.get("disagree", [])),
        disagree="disagree" in flags or "disagree" in said,
        overridden="overridden" in flags,
        cut="cut" in flags,
        mismatch="mismatch" in flags,
        order=next(one for one in ORDERS if one == order),
    )


def hint(known: QueryVocabulary) -> str:
    """What can be typed here, in a line."""
    values = {
        "is": [*FATES, *FLAGS],
        "label": known.labels,
        "condition": known.conditions,
        **(known.strata or {}),
        "judge": known.judges,
        "order": list(ORDERS),
    }
    return "   ".join(f"{key}: {', '.join(each[:12])}" for key, each in values.items() if each)


def _of(key: str, words: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    for word in words:
        if word not in there:
            raise SpecError(f"{key}:{word[:40]} is nothing here; {did_you_mean(word[:40], there)}")
    return tuple(words)


def _judge(name: str, known: QueryVocabulary) -> str:
    if name in known.judges:
        return name
    found = newest(name, known.judges)
    if found is None:
        raise SpecError(f"the judge {name[:40]!r} has labelled nothing here; {did_you_mean(name[:40], known.judges)}")
    return found
