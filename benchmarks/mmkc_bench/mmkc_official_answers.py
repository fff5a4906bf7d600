"""Answers to a multiple choice under conflict as the published evaluation pairs and labels them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.mmkc_bench.mmkc_constants import CONFLICT_CONDITIONS, ORIGINAL_CONDITIONS
from benchmarks.mmkc_bench.mmkc_parse_answer import label_of_letters
from benchmarks.mmkc_bench.mmkc_reading import ALREADY_COUNTER, NO_OWN_ANSWER, MMKCReading
from benchmarks.protocols.repeats import REPEAT
from benchmarks.vocabulary import Verdict

_RowName = tuple[str, str, str]
"""The type of a row and its field ``instance``, the key by which the published evaluation joins files; and the repeat."""


def official_answers(answers: Answers, judge: str) -> Answers:
    """Return an answer under conflict for each pair that the published evaluation counts, with its label as that of ``judge``.

    It maps answers under conflict by the field ``instance``, so that of several rows with one name only the last
    remains, and compares every row of the original setting with that one. A row of the original setting is filtered by
    its own letters, and labelled by those of the remaining row.
    """
    originals: dict[_RowName, list[tuple[AnswerKind, int]]] = defaultdict(list)
    remaining: dict[tuple[str, _RowName], tuple[AnswerKind, int, int]] = {}
    letters: dict[tuple[str, int], Sequence[str]] = {}
    for place, (number, group) in enumerate(zip(answers.kind.tolist(), answers.group.tolist(), strict=True)):
        kind = answers.kinds[number]
        if kind.condition in CONFLICT_CONDITIONS:
            letters[kind.condition, group] = kind.reading.counters
        if not kind.is_answered:
            continue
        name = (kind.strata.get("type", ""), kind.strata.get("instance", ""), kind.strata.get(REPEAT, ""))
        if kind.condition == ORIGINAL_CONDITIONS[0]:
            originals[name].append((kind, group))
        elif kind.condition in CONFLICT_CONDITIONS and kind.condition.endswith("-mc"):
            remaining[kind.condition, name] = kind, group, place
    pairs: list[tuple[AnswerKind, int]] = []
    for (condition, name), (kind, group, place) in remaining.items():
        if name not in originals:
            pairs.append((_labelled(kind, judge, left_out=NO_OWN_ANSWER), place))
        counters = letters[condition, group]
        for original, original_group in originals.get(name, ()):
            before, after = original.reading, kind.reading
            if before.is_letter and before.letter in letters.get((condition, original_group), counters):
                pair = _labelled(kind, judge, left_out=ALREADY_COUNTER)
            else:
                pair = _labelled(kind, judge, label_of_letters(after.letter, before.letter, counters))
            pairs.append((pair, place))
    places = np.array([place for _, place in pairs], dtype=np.int64)
    kinds, kind = [kind for kind, _ in pairs], np.arange(len(pairs), dtype=np.int32)
    return replace(answers.at(places), kinds=kinds, kind=kind, confidence=None)


def _labelled(kind: AnswerKind, judge: str, label: str | None = None, left_out: str = "") -> AnswerKind:
    """Return an answer with this label, or this reason why it cannot be compared; unparsed without either."""
    verdict = Verdict(judge, "labelled" if label else "unparsed", label)
    return replace(kind, verdicts={judge: verdict}, reading=MMKCReading(left_out))
