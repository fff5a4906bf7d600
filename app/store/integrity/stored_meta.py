"""Validation of what a run's database stores about the run and its engines.

Each function here raises ValueError, with the reason as a phrase, for a value that Rashomon does not write.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypedDict, cast, get_args, get_origin, get_type_hints, is_typeddict

from app.store.integrity.stored_json import TYPE_WORDS, check_list, check_object, parse_json

_YEAR_9999 = 253_370_764_800.0


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


class StoredOrigin(TypedDict):
    """The origin of a reused answer."""

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


_CLOSED = (_Decoding, _Excluded, _Trained, _Death, _Node, _Work, StoredOrigin)
"""Objects that become the arguments of a class, which must not have unknown keys."""


def meta_value(key: str, text: Any) -> Any:
    """Return the value of a row of ``meta``."""
    value = parse_json(text)
    kind = _Labelling if key.startswith("labelling ") else _META.get(key)
    if kind is not None:
        validate(kind, value)
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
    value = parse_json(text)
    validate(_Engine, value)
    return cast(dict[str, Any], value)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the types of a typed dictionary's fields; evaluating them takes longer than a validation."""
    return get_type_hints(kind)


def validate(kind: Any, value: Any, place: str = "it") -> None:
    """Raise ValueError unless a JSON value has the type ``kind``: str, int, float, None, lists, objects and unions."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        fields = _fields(kind)
        lacking = kind.__required_keys__ - check_object(place, value).keys()
        if lacking:
            raise ValueError(f"{place}: it lacks {min(lacking)!r}")
        if kind in _CLOSED and (unknown := value.keys() - fields.keys()):
            raise ValueError(f"{place}: {min(unknown)!r:.60} is nothing it has")
        for key in value.keys() & fields.keys():
            validate(fields[key], value[key], key)
    elif origin is UnionType:
        if not (value is None and NoneType in inner):
            validate(next(option for option in inner if option is not NoneType), value, place)
    elif origin is list:
        for item in check_list(place, value):
            validate(inner[0], item, place)
    elif origin is dict:
        for key, item in check_object(place, value).items():
            validate(inner[1], item, key)
    elif kind is not Any and type(value) is not kind and not (kind is float and type(value) is int):
        raise ValueError(f"{place:.60}: it is no {TYPE_WORDS[kind]}")
