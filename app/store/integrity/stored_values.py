"""Validation of stored values: a run's database may come from elsewhere, so its contents are checked like any input.

Each function here raises ValueError, with the reason as a phrase, for a value that Rashomon does not write.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypedDict, cast, get_args, get_origin, get_type_hints, is_typeddict

from app.store.integrity.digests import COLUMNS
from benchmarks.errors import StoreError
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

_DEPTH = 32
_TOKEN_BYTES = array("I").itemsize
_YEAR_9999 = 253_370_764_800.0


# --- meta and engines ------------------------------------------------------------------------------------------------


class StoredObject(dict[str, Any]):
    """A JSON object of a run's database; a missing key raises StoreError, since the database is at fault."""

    def __missing__(self, key: str) -> Any:
        raise StoreError(
            f"a stored value of this run lacks {key!r}; the run is damaged, run `rashomon doctor RUN` to find out where."
        )


class _Decoding(TypedDict, total=False):
    max_tokens: int
    temperature: float
    top_p: float
    max_pixels: int | None


class _Spec(TypedDict, total=False):
    benchmark: str
    model: str
    prompt_set: str
    prompt: dict[str, str]
    data: str | None
    judge: list[str]
    conditions: list[str]
    strata: dict[str, list[str]]
    limit: int | None
    seed: int
    name: str | None
    exact: bool
    fresh: bool
    score: str
    protocol: str
    samples: int
    kv_bits: int
    restarts: int
    decoding: _Decoding
    api: dict[str, Any]


class _Identity(TypedDict, total=False):
    benchmark: str | None
    model: str | None
    engine: str | None
    device: str | None
    quantisation: str | None


class _State(TypedDict, total=False):
    state: str
    note: str
    pid: int


class _Excluded(TypedDict, total=False):
    total: int
    of: int
    by: dict[str, int]
    conditions: dict[str, int]


class _Trained(TypedDict, total=False):
    examples: int
    of: int
    model: str


class _Proof(TypedDict, total=False):
    at: float
    model: str
    way: str
    cases: int
    tokens: int
    noise: float
    failed: dict[str, str]
    lacks: str
    shift: float
    key: str
    checked_at: float | None
    confirmed: int


class _StoredSight(TypedDict, total=False):
    key: str
    checked_at: float | None
    confirmed: int
    family: str
    forced: bool


class _Sight(_StoredSight):
    at: float
    requests: int
    images: int
    repeated: float
    changed: float
    problem: str


class _EndpointDetails(TypedDict, total=False):
    remark: str
    evidence: str
    probe_tokens: int | None
    question_tokens: int | None
    model: str | None
    seconds: float
    spot_checks: int


class _Endpoint(_EndpointDetails):
    at: float
    problem: str
    calls: int
    prompt_tokens: int
    completion_tokens: int


class _WorkTime(TypedDict, total=False):
    answered: int
    seconds: float
    answers: int
    continues: bool


class _Work(_WorkTime):
    prompts: int
    prompt_tokens: int
    distinct_tokens: int
    computed_tokens: int
    images: int
    distinct_images: int
    encoded: int
    from_disk: int


class _DeathCause(TypedDict, total=False):
    memory: bool


class _Death(_DeathCause):
    cause: str
    at: float
    width: int | None
    suspects: list[str]
    failed: list[str]


class _FirstNode(TypedDict):
    name: str
    state: str
    note: str
    answers: int
    errors: int
    held: int
    per_second: float | None
    peak_memory: int


class _Node(_FirstNode, total=False):
    memory: int
    judge: str


class _Labelling(TypedDict, total=False):
    n: int
    seed: int
    sample: list[str]


class _Machine(TypedDict, total=False):
    chip: str
    memory: int
    system: str


class _Engine(TypedDict, total=False):
    engine: str
    model: str
    device: str
    versions: dict[str, str] | None
    machine: _Machine | None
    weights_bytes: int | None


class _Origin(TypedDict):
    run: str
    name: str
    instance: str
    same: bool | None


class _Lending(TypedDict):
    after: int
    code: str


_META: Mapping[str, Any] = {
    "spec": _Spec,
    "identity": _Identity,
    "data": str | None,
    "conditions": list[str],
    "correct": dict[str, list[str]],
    "scores": dict[str, dict[str, float]],
    "counts flags": bool,
    "created": float,
    "state": _State,
    "excluded": _Excluded,
    "remarks": list[str],
    "trained on": _Trained,
    "canary": list[_Proof],
    "sight": list[_Sight],
    "endpoint": list[_Endpoint],
    "work": list[_Work],
    "lending": list[_Lending],
    "judges": dict[str, dict[str, Any]],
    "suspects": list[int],
    "deaths": list[_Death],
    "nodes": list[_Node],
    "order": str,
    "reached": float | None,
    "digests since": int,
}


_CLOSED = (_Decoding, _Excluded, _Trained, _Death, _Node, _Work, _Origin)
"""Objects that become the arguments of a class, which must not have unknown keys."""


def meta_value(key: str, text: Any) -> Any:
    """Return the value of a row of ``meta``."""
    value = _json(text)
    kind = _Labelling if key.startswith("labelling ") else _META.get(key)
    if kind is not None:
        _validate(kind, value)
    if key == "created" and not 0 <= value < _YEAR_9999:
        raise ValueError("it is no time")
    if key in ("canary", "sight") and not all(0 <= (check.get("checked_at") or 0) < _YEAR_9999 for check in value):
        raise ValueError("a check has no time")
    if key == "spec" and not value.get("judge"):
        raise ValueError("it names no judge")
    if key == "data" and value is not None and "\0" in value:
        raise ValueError("it is no path")
    return value


def engine_info(text: Any) -> dict[str, Any]:
    """Return the engine of a row of ``engine``."""
    value = _json(text)
    _validate(_Engine, value)
    return cast(dict[str, Any], value)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the types of a typed dictionary's fields; evaluating them takes longer than a validation."""
    return get_type_hints(kind)


def _validate(kind: Any, value: Any, place: str = "it") -> None:
    """Raise ValueError unless a JSON value has the type ``kind``: str, int, float, None, lists, objects and unions."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        fields = _fields(kind)
        lacking = kind.__required_keys__ - _object(place, value).keys()
        if lacking:
            raise ValueError(f"{place}: it lacks {min(lacking)!r}")
        if kind in _CLOSED and (unknown := value.keys() - fields.keys()):
            raise ValueError(f"{place}: {min(unknown)!r:.60} is nothing it has")
        for key in value.keys() & fields.keys():
            _validate(fields[key], value[key], key)
    elif origin is UnionType:
        if not (value is None and NoneType in inner):
            _validate(next(option for option in inner if option is not NoneType), value, place)
    elif origin is list:
        for item in _list(place, value):
            _validate(inner[0], item, place)
    elif origin is dict:
        for key, item in _object(place, value).items():
            _validate(inner[1], item, key)
    elif kind is not Any and type(value) is not kind and not (kind is float and type(value) is int):
        raise ValueError(f"{place:.60}: it is no {_WORDS[kind]}")


def _json(text: Any, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of a JSON text; objects are :class:`StoredObject` unless there is a ``decoder``."""
    if not isinstance(text, str):
        raise ValueError("it is no text")
    try:
        value, end = (decoder or _OBJECTS).raw_decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if end != len(text):
        raise ValueError("more follows its end")
    if decoder is None and not _is_shallow(value):
        raise ValueError("it is nested too deeply")
    return _visible(value) if "\\" in text and _SURROGATE.search(text) else value


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _number(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word[:20]} is no number")
    return value


_SURROGATE = re.compile(r"\\u[dD]")
_PLAIN = json.JSONDecoder(parse_constant=_no_number, parse_float=_number)
_OBJECTS = json.JSONDecoder(parse_constant=_no_number, parse_float=_number, object_hook=StoredObject)


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def _visible(value: Any) -> Any:
    """Return the value with lone surrogates, which cannot be written, as visible escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_visible(inner) for inner in value]
    if isinstance(value, dict):
        return type(value)({_visible(key): _visible(inner) for key, inner in value.items()})
    return value


# --- instances, answers, verdicts ------------------------------------------------------------------------------------


def instance(row: Sequence[Any]) -> Instance:
    """Return the instance of a row of ``instance``."""
    _, name, condition, body, *_ = row
    value = _json(body, _PLAIN)
    if type(value) is not dict:
        raise ValueError("body: it is no object")
    check_instance(row, value.get("id"), value.get("condition"))
    _texts("body", (value.get("group"), value.get("question")))
    strata = _object("body.strata", value.get("strata"))
    _texts("body.strata", strata.values())
    references = _object("body.references", value.get("references"))
    for words in references.values():
        _texts("body.references", _list("body.references", words))
    return Instance(
        name,
        value["group"],
        condition,
        value["question"],
        tuple([_part(part) for part in _list("body.parts", value.get("parts"))]),
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
    part = _object("body.parts", value)
    text = part.get("text")
    if type(text) is str:
        return Text(text)
    if not set(part) <= {"sha256", "suffix", "modality", "marks"} or part.get("modality") not in _MODALITIES:
        raise ValueError("body.parts: it is no medium")
    _texts("body.parts", (part.get("sha256"), part.get("suffix")))
    for mark in _list("body.parts.marks", part.get("marks", [])):
        box = _list("body.parts.marks", _object("body.parts.marks", mark).get("box"))
        if len(box) != 4 or not all(type(number) in (int, float) for number in box) or set(mark) != {"label", "box"}:
            raise ValueError("body.parts.marks: it is no mark")
        _texts("body.parts.marks", (mark["label"],))
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
    value = _json(text)
    _validate(_Origin, value)
    return Origin(**value)


def scores(text: str) -> tuple[float | None, ...]:
    """Return the scores of a row of ``generation``. Raises ValueError where they are none."""
    try:
        values = _list("scores", json.loads(text))
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
    flags = _list("flags", _json(text, _PLAIN))
    _texts("flags", flags)
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
"""The types of the columns of :data:`app.store.integrity.digests.COLUMNS`, and of the digest after them."""

_WORDS = {str: "text", int: "whole number", float: "number", bool: "yes or no", bytes: "sequence of bytes"}
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
            raise ValueError(f"{column}: it is no {_WORDS[next(kind for kind in kinds if kind is not NoneType)]}")
        if not kinds.isdisjoint(_NUMBERS):
            numbers = [*filter(None, values)]
            if numbers and (min(numbers) < 0 or max(numbers) == math.inf):
                raise ValueError(f"{column}: it is no count")


def _texts(key: str, values: Iterable[Any]) -> None:
    if not _TEXT.issuperset(map(type, values)):
        raise ValueError(f"{key}: it is no text")


def _list(key: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{key}: it is no list")
    return value


def _object(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{key}: it is no object")
    return value
