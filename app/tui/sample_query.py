"""Query language of the Samples screen: ``is:wrong condition:image-correct type:factual "the bar"``.

Words without a key are searched for in id, question and answer. Several values of one key, separated by commas or by
repeating the key, are alternatives; different keys must all match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.store.sample_lists import ORDERS, SAMPLE_OUTCOMES, SampleFilter
from benchmarks.errors import SpecError, did_you_mean
from judges.base import newest

_TOKEN = re.compile(r'(?:(?P<key>[^\s":]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<plain>[^\s"]+))')
FLAGS = ("disagree", "overridden", "truncated", "mismatch")
_FORMER_FLAGS = {"cut": "truncated"}
"""Flags of earlier versions, and their present names."""
_HINT_VALUES = 12
KEYS = ("is", "label", "condition", "judge", "disagree", "order")
"""The keys of a query; every stratum is a further one."""


@dataclass(frozen=True, slots=True)
class QueryVocabulary:
    """The values that a run's samples can be filtered by.

    ``judges`` are the ids of the judges with verdicts; ``default`` are those whose labels count without a ``judge:`` key.
    """

    conditions: Sequence[str] = ()
    labels: Sequence[str] = ()
    strata: Mapping[str, Sequence[str]] | None = None
    judges: Sequence[str] = ()
    default: tuple[str, ...] = ()


def parse_query(text: str, known: QueryVocabulary) -> SampleFilter:
    """Parse a query into a filter.

    Raises:
        SpecError: If a key or value does not exist; the message names the closest ones.
    """
    strata = dict(known.strata or {})
    words, terms = _words_and_terms(text, [*KEYS, *strata])
    states = [_FORMER_FLAGS.get(word, word) for word in terms.get("is", [])]
    flags = [word for word in states if word in FLAGS]
    fates = _checked("is", [word for word in states if word not in FLAGS], [*SAMPLE_OUTCOMES, *FLAGS])
    order = _checked("order", terms.get("order", ["run"])[-1:], list(ORDERS))[0]
    return SampleFilter(
        judges=tuple(_judge(name, known) for name in terms["judge"]) if "judge" in terms else known.default,
        conditions=_checked("condition", terms.get("condition", []), known.conditions),
        strata=tuple(
            (key, value) for key, values in strata.items() for value in _checked(key, terms.get(key, []), values)
        ),
        labels=_checked("label", [label.upper() for label in terms.get("label", [])], known.labels),
        outcomes=tuple(fate for fate in SAMPLE_OUTCOMES if fate in fates),
        words=tuple(words),
        disputing=tuple(_judge(name, known) for name in terms.get("disagree", [])),
        disagree="disagree" in flags or "disagree" in terms,
        overridden="overridden" in flags,
        truncated="truncated" in flags,
        mismatch="mismatch" in flags,
        order=next(name for name in ORDERS if name == order),
    )


def _words_and_terms(text: str, keys: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the words of a query and its values by key. Raises SpecError for a key that is none of ``keys``."""
    words: list[str] = []
    terms: dict[str, list[str]] = {}
    for match in _TOKEN.finditer(text):
        key = match["key"]
        value = match["plain"] if match["quoted"] is None else match["quoted"]
        if key is None:
            words += [value] if value else []
            continue
        if key not in keys:
            raise SpecError(f"no key {key[:40]!r}; {did_you_mean(key[:40], keys)}")
        # In quotes a comma belongs to the value.
        terms.setdefault(key, []).extend([value] if match["quoted"] is not None else value.split(","))
    return words, terms


def query_hint(known: QueryVocabulary) -> dict[str, Sequence[str]]:
    """Return the keys of a query, each with its first values."""
    values = {
        "is": [*SAMPLE_OUTCOMES, *FLAGS],
        "label": known.labels,
        "condition": known.conditions,
        **(known.strata or {}),
        "judge": known.judges,
        "order": list(ORDERS),
    }
    return {key: options[:_HINT_VALUES] for key, options in values.items() if options}


def _checked(key: str, values: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Return ``values``. Raises SpecError for one that is not ``allowed``."""
    for value in values:
        if value not in allowed:
            raise SpecError(f"this run has no {key}:{value[:40]}; {did_you_mean(value[:40], allowed)}")
    return tuple(values)


def _judge(name: str, known: QueryVocabulary) -> str:
    if name in known.judges:
        return name
    judge = newest(name, known.judges)
    if judge is None:
        raise SpecError(f"no labels by the judge {name[:40]!r} in this run; {did_you_mean(name[:40], known.judges)}")
    return judge
