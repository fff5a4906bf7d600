"""Validation of stored values: a run's database may come from elsewhere, so its rows are checked like any input.

Each function here raises ValueError, with the reason as a phrase, for a value that Rashomon does not write.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, get_args

from app.store.integrity.row_digests import COLUMNS
from app.store.integrity.stored_json import PLAIN, TYPE_WORDS, check_list, check_object, check_texts, parse_json
from app.store.integrity.stored_meta import StoredOrigin, validate
from benchmarks.vocabulary import (
    BEHAVIOURS,
    FinishReason,
    Generation,
    Instance,
    Modality,
    Origin,
    Part,
    Text,
    Verdict,
    VerdictStatus,
    part_from_json,
)

_TOKEN_BYTES = array("I").itemsize


# --- instances, answers, verdicts ------------------------------------------------------------------------------------


def instance(row: Sequence[Any]) -> Instance:
    """Return the instance of a row of ``instance``."""
    _, name, condition, body, *_ = row
    value = parse_json(body, PLAIN)
    if type(value) is not dict:
        raise ValueError("body: it is no object")
    check_instance(row, value.get("id"), value.get("condition"))
    check_texts("body", (value.get("group"), value.get("question")))
    strata = check_object("body.strata", value.get("strata"))
    check_texts("body.strata", strata.values())
    references = check_object("body.references", value.get("references"))
    for words in references.values():
        check_texts("body.references", check_list("body.references", words))
    return Instance(
        name,
        value["group"],
        condition,
        value["question"],
        tuple([_part(part) for part in check_list("body.parts", value.get("parts"))]),
        {key: tuple(words) for key, words in references.items()},
        strata,
    )


def check_instance(row: Sequence[Any], body_id: Any, body_condition: Any) -> None:
    """Check a row of ``instance`` against the id and the condition in its body."""
    if row[4] > 1:
        raise ValueError("done: it is no count")
    if (body_id, body_condition) != (row[1], row[2]):
        raise ValueError("body: it is of another instance")


def _part(value: Any) -> Part:
    part = check_object("body.parts", value)
    text = part.get("text")
    if type(text) is str:
        return Text(text)
    if not set(part) <= {"sha256", "suffix", "modality", "marks"} or part.get("modality") not in _MODALITIES:
        raise ValueError("body.parts: it is no medium")
    check_texts("body.parts", (part.get("sha256"), part.get("suffix")))
    for mark in check_list("body.parts.marks", part.get("marks", [])):
        box = check_list("body.parts.marks", check_object("body.parts.marks", mark).get("box"))
        if len(box) != 4 or not all(type(number) in (int, float) for number in box) or set(mark) != {"label", "box"}:
            raise ValueError("body.parts.marks: it is no mark")
        check_texts("body.parts.marks", (mark["label"],))
    return part_from_json(part)


def generation(instance_id: str, row: Sequence[Any]) -> Generation:
    """Return the answer of a row of ``generation``."""
    check_generation(row)
    step, _, _, text, finish_reason, token_bytes, *usage = row[2:17]
    tokens = array("I")
    tokens.frombytes(token_bytes)
    return Generation(  # type: ignore[misc]
        f"{instance_id}#{step}",
        text,
        finish_reason,
        tuple(tokens),
        *usage,
        scores=() if row[17] is None else scores(row[17]),
        origin=None if row[20] is None else origin(row[20]),
    )


def check_generation(row: Sequence[Any]) -> None:
    """Check a row of ``generation``, all but its scores."""
    if row[3] > 1 or len(row[7]) % _TOKEN_BYTES:
        raise ValueError("accepted, tokens: they are no numbers")
    if row[6] not in _FINISH_REASONS:
        raise ValueError("finish_reason: it is none there is")


def token_count(row: Sequence[Any]) -> int:
    """Return the number of tokens of a row of ``generation``."""
    return len(row[7]) // _TOKEN_BYTES


def origin(text: str) -> Origin:
    """Return the origin of a row of ``generation``. Raises ValueError where it is none."""
    value = parse_json(text)
    validate(StoredOrigin, value)
    return Origin(**value)


def scores(text: str) -> tuple[float | None, ...]:
    """Return the scores of a row of ``generation``. Raises ValueError where they are none."""
    try:
        values = check_list("scores", json.loads(text))
    except (ValueError, RecursionError):
        raise ValueError("scores: they are no list of numbers") from None
    if not all(score is None or (type(score) in (int, float) and score == score) for score in values):
        raise ValueError("scores: they are no list of numbers")
    try:
        return tuple(None if score is None else float(score) for score in values)
    except OverflowError:
        raise ValueError("scores: a number is too large") from None


def verdict(row: Sequence[Any]) -> Verdict:
    """Return the verdict of a row of ``verdict``."""
    (
        _,
        _,
        judge,
        accepted,
        status,
        label,
        reason,
        raw,
        flags,
        calls,
        prompt_tokens,
        completion_tokens,
        _,
        behaviour,
        *_,
    ) = row
    if accepted > 1:
        raise ValueError("accepted: it is no count")
    if status not in _STATUSES:
        raise ValueError("status: it is none there is")
    if (status == "labelled") != (label is not None):
        raise ValueError(f"label: it does not fit the status {status}")
    if behaviour is not None and behaviour not in BEHAVIOURS:
        raise ValueError("behaviour: it is none there is")
    return Verdict(
        judge,
        status,
        label,
        reason,
        raw,
        flags_of(flags),
        calls,
        prompt_tokens,
        completion_tokens,
        behaviour,
    )


def flags_of(text: str) -> tuple[str, ...]:
    """Return the flags of a row of ``verdict``."""
    if text == "[]":
        return ()
    flags = check_list("flags", parse_json(text, PLAIN))
    check_texts("flags", flags)
    return tuple(flags)


# --- counters --------------------------------------------------------------------------------------------------------


def counts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row of ``progress`` or ``judged``, without its digest."""
    values = {key: value for key, value in row.items() if key != "digest"}
    if values.get("done", 0) > values.get("total", values.get("done", 0)):
        raise ValueError("done: more than there are")
    return values


# --- single values ---------------------------------------------------------------------------------------------------

_WHOLE, _REAL, _TEXT, _BYTES = (frozenset({kind}) for kind in (int, float, str, bytes))
_ANY_WHOLE, _ANY_REAL, _ANY_TEXT, _DIGEST = (kinds | {NoneType} for kinds in (_WHOLE, _REAL, _TEXT, _BYTES))
_TYPES: Mapping[str, tuple[frozenset[type], ...]] = {
    "instance": (_WHOLE, _TEXT, _TEXT, _TEXT, _WHOLE, _ANY_WHOLE, _DIGEST),
    "generation": (
        *(_WHOLE, _WHOLE, _WHOLE, _WHOLE, _TEXT, _TEXT, _TEXT, _BYTES, _ANY_WHOLE),
        *(_ANY_WHOLE, _ANY_REAL, _ANY_REAL, _ANY_WHOLE, _ANY_TEXT, _WHOLE, _ANY_WHOLE),
        *(_ANY_WHOLE, _ANY_TEXT, _WHOLE, _REAL, _ANY_TEXT, _DIGEST),
    ),
    "verdict": (
        *(_WHOLE, _WHOLE, _TEXT, _WHOLE, _TEXT, _ANY_TEXT, _TEXT, _ANY_TEXT, _TEXT, _WHOLE),
        *(_WHOLE, _WHOLE, _REAL, _ANY_TEXT, _DIGEST),
    ),
    "progress": (_TEXT, _WHOLE, _WHOLE, _WHOLE, _WHOLE, _WHOLE, _REAL, _WHOLE, _WHOLE, _DIGEST),
    "judged": (_TEXT, _TEXT, _WHOLE, _WHOLE | _REAL, _WHOLE, _WHOLE, _WHOLE, _DIGEST),
}
"""The types of the columns of :data:`app.store.integrity.row_digests.COLUMNS`, and of the digest after them."""

_NUMBERS = frozenset({int, float})
_FINISH_REASONS, _STATUSES, _MODALITIES = (
    frozenset(get_args(kind)) for kind in (FinishReason, VerdictStatus, Modality)
)


def check(table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Raise ValueError unless all values have their columns' types, and numbers are neither negative nor infinite.

    Checking whole columns takes a fifth of the time of checking values one by one.
    """
    for column, kinds, values in zip((*COLUMNS[table], "digest"), _TYPES.get(table, ()), zip(*rows)):  # noqa: B905
        if not kinds.issuperset(map(type, values)):
            raise ValueError(f"{column}: it is no {TYPE_WORDS[next(kind for kind in kinds if kind is not NoneType)]}")
        if not kinds.isdisjoint(_NUMBERS):
            numbers = [*filter(None, values)]
            if numbers and (min(numbers) < 0 or max(numbers) == math.inf):
                raise ValueError(f"{column}: it is no count")
