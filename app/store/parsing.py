"""Stored values as outside data: what a run's database holds is checked before anything is made of it.

Whoever sent a run decides what stands in it. Each function here raises ValueError with the reason, a phrase, for what
Rashomon does not write.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints, is_typeddict

from benchmarks.base import Generation, Instance, Modality, Part, Text, Verdict, part_from_json
from benchmarks.errors import StoreError
from benchmarks.words import FinishReason, VerdictStatus

_DEPTH = 32
_YEAR_9999 = 253_370_764_800.0
_T = TypeVar("_T")


# --- meta and engines ------------------------------------------------------------------------------------------------


class StoredObject(dict[str, Any]):
    """A JSON object of a run's database. A key that it should have and has not is the database's fault."""

    def __missing__(self, key: str) -> Any:
        raise StoreError(
            f"a stored value of this run lacks {key!r}; the run is damaged, `rashomon doctor RUN` says where."
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
    data: str | None
    judge: list[str]
    conditions: list[str]
    strata: dict[str, list[str]]
    limit: int | None
    seed: int
    name: str | None
    exact: bool
    score: str
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


class _Proof(TypedDict, total=False):
    at: float
    model: str
    way: str
    cases: int
    tokens: int
    noise: float
    failed: dict[str, str]
    lacks: str


class _Death(TypedDict):
    cause: str
    at: float
    width: int | None
    suspects: list[str]
    failed: list[str]


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


_META: Mapping[str, Any] = {
    "spec": _Spec,
    "identity": _Identity,
    "data": str | None,
    "conditions": list[str],
    "correct": dict[str, list[str]],
    "created": float,
    "state": _State,
    "excluded": _Excluded,
    "remarks": list[str],
    "canary": list[_Proof],
    "judges": dict[str, dict[str, Any]],
    "suspects": list[int],
    "deaths": list[_Death],
    "order": str,
    "reached": float | None,
    "digests since": int,
}


_CLOSED = (_Decoding, _Excluded, _Death)
"""Objects that become the arguments of a class: a key that it does not know would be a mistake of the program."""


def meta_value(key: str, text: Any) -> Any:
    """Return the value of a row of ``meta``."""
    value = _json(text)
    kind = _Labelling if key.startswith("labelling ") else _META.get(key)
    if kind is not None:
        _validate(kind, value)
    if key == "created" and not 0 <= value < _YEAR_9999:
        raise ValueError("it is no time")
    if key == "spec" and not value.get("judge"):
        raise ValueError("it names no judge")
    if key == "data" and value is not None and "\0" in value:
        raise ValueError("it is no path")
    return value


def engine_info(text: Any) -> dict[str, Any]:
    """Return what a row of ``engine`` says."""
    value = _json(text)
    _validate(_Engine, value)
    return cast(dict[str, Any], value)


def _validate(kind: Any, value: Any, place: str = "it") -> None:
    """Raise ValueError unless a JSON value is of a type: of str, int, float, None, lists, objects and their unions."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        fields = get_type_hints(kind)
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


_WORDS = {str: "text", int: "whole number", float: "number", bool: "yes or no"}


def _json(text: Any, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of a JSON text; of objects without a ``decoder`` of one's own a missing key is told."""
    if not isinstance(text, str):
        raise ValueError("it is no text")
    try:
        value = (decoder or _OBJECTS).decode(_utf8(text))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if decoder is None and not _is_shallow(value):
        raise ValueError("it is nested too deeply")
    return _visible(value) if "\\ud" in text.lower() else value


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _number(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word[:20]} is no number")
    return value


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
    """The value with its lone surrogates as visible escapes, as they are stored elsewhere: nothing can write them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_visible(inner) for inner in value]
    if isinstance(value, dict):
        return type(value)({_visible(key): _visible(inner) for key, inner in value.items()})
    return value


# --- instances, answers, verdicts ------------------------------------------------------------------------------------


def instance(row: Mapping[str, Any]) -> Instance:
    """Return the instance of a row of ``instance``."""
    _whole("ordinal", row["ordinal"])
    _whole("done", row["done"], most=1)
    _optional(_whole, "basis", row["basis"])
    value = _json(row["body"], _PLAIN)
    if not isinstance(value, dict):
        raise ValueError("body: it is no object")
    read = Instance(
        id=_text("body.id", value.get("id")),
        group=_text("body.group", value.get("group")),
        condition=_text("body.condition", value.get("condition")),
        question=_text("body.question", value.get("question")),
        parts=tuple(_part(part) for part in _list("body.parts", value.get("parts"))),
        references={
            key: tuple(_text("body.references", word) for word in _list("body.references", words))
            for key, words in _object("body.references", value.get("references")).items()
        },
        strata={key: _text("body.strata", word) for key, word in _object("body.strata", value.get("strata")).items()},
    )
    if (read.id, read.condition) != (row["id"], row["condition"]):
        raise ValueError("body: it is of another instance")
    return read


def _part(value: Any) -> Part:
    part = _object("body.parts", value)
    if "text" in part:
        return Text(_text("body.parts.text", part["text"]))
    if not set(part) <= {"sha256", "suffix", "modality", "marks"} or part.get("modality") not in get_args(Modality):
        raise ValueError("body.parts: it is no medium")
    for key in ("sha256", "suffix"):
        _text(f"body.parts.{key}", part.get(key))
    for mark in _list("body.parts.marks", part.get("marks", [])):
        box = _list("body.parts.marks", _object("body.parts.marks", mark).get("box"))
        if len(box) != 4 or not all(type(number) in (int, float) for number in box) or set(mark) != {"label", "box"}:
            raise ValueError("body.parts.marks: it is no mark")
        _text("body.parts.marks", mark["label"])
    return part_from_json(part)


def generation(instance_id: str, row: Mapping[str, Any]) -> Generation:
    """Return the answer of a row of ``generation``."""
    tokens = array("I")
    if not isinstance(row["tokens"], bytes) or len(row["tokens"]) % tokens.itemsize:
        raise ValueError("tokens: they are no numbers")
    tokens.frombytes(row["tokens"])
    _whole("instance", row["instance"])
    _whole("accepted", row["accepted"], most=1)
    _whole("engine", row["engine"])
    _text("request", row["request"])
    _real("finished_at", row["finished_at"])
    if row["finish_reason"] not in get_args(FinishReason):
        raise ValueError("finish_reason: it is none there is")
    reason: FinishReason = row["finish_reason"]
    return Generation(
        f"{instance_id}#{_whole('step', row['step'])}",
        _text("text", row["text"]),
        reason,
        tuple(tokens),
        _optional(_whole, "prompt_tokens", row["prompt_tokens"]),
        _optional(_whole, "completion_tokens", row["completion_tokens"]),
        _optional(_real, "prefill_s", row["prefill_s"]),
        _optional(_real, "decode_s", row["decode_s"]),
        _optional(_whole, "peak_memory", row["peak_memory"]),
        _optional(_text, "error", row["error"]),
        _whole("calls", row["calls"]),
        _optional(_whole, "active_memory", row["active_memory"]),
        _optional(_whole, "cache_memory", row["cache_memory"]),
        _scores(row["scores"]),
    )


def _scores(text: Any) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        scores = _list("scores", json.loads(_text("scores", text)))
    except (ValueError, RecursionError):
        raise ValueError("scores: they are no list of numbers") from None
    if not all(type(score) in (int, float) and score == score for score in scores):
        raise ValueError("scores: they are no list of numbers")
    return tuple(scores)


def verdict(row: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a row of ``verdict``."""
    _whole("generation", row["generation"])
    _whole("accepted", row["accepted"], most=1)
    _real("judged_at", row["judged_at"])
    if row["status"] not in get_args(VerdictStatus):
        raise ValueError("status: it is none there is")
    status: VerdictStatus = row["status"]
    label = _optional(_text, "label", row["label"])
    if (status == "labelled") != (label is not None):
        raise ValueError(f"label: it does not fit the status {status}")
    flags = _json(row["flags"], _PLAIN)
    return Verdict(
        _text("judge", row["judge"]),
        status,
        label,
        _text("reason", row["reason"]),
        _optional(_text, "raw", row["raw"]),
        tuple(_text("flags", flag) for flag in _list("flags", flags)),
        _whole("calls", row["calls"]),
        _whole("prompt_tokens", row["prompt_tokens"]),
        _whole("completion_tokens", row["completion_tokens"]),
    )


# --- counters --------------------------------------------------------------------------------------------------------


def counts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row of ``progress`` or ``judged``, without its digest."""
    values = {key: value for key, value in row.items() if key != "digest"}
    for key, value in values.items():
        if key in ("condition", "judge"):
            _text(key, value)
        elif key == "seconds":
            _real(key, value)
        else:
            _whole(key, value)
    if values.get("done", 0) > values.get("total", values.get("done", 0)):
        raise ValueError("done: more than there are")
    return values


# --- single values ---------------------------------------------------------------------------------------------------


def _optional(read: Callable[[str, Any], _T], key: str, value: Any) -> _T | None:
    return None if value is None else read(key, value)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key}: it is no text")
    return _utf8(value)


def _utf8(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("it is no UTF-8") from None
    return text


def _whole(key: str, value: Any, *, most: int = 2**63) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{key}: it is no count")
    return value


def _real(key: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError(f"{key}: it is no number")
    return cast(float, value)


def _list(key: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{key}: it is no list")
    return value


def _object(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{key}: it is no object")
    return value
