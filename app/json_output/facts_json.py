"""Facts of runs as names with values: specs, identities, engines and checks, whose keys differ from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.json_output.tables_json import snake_case

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact. A dot in its name, which is in snake_case, stands before the key of a part: ``decoding.max_tokens``."""

    name: str
    value: Scalar | tuple[Scalar, ...]


def facts(values: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return stored values as facts. They may come from another machine: a list in a list becomes text."""
    return tuple(_facts((snake_case(str(key)), value) for key, value in values.items()))


def _facts(items: Iterator[tuple[str, Any]]) -> Iterator[Fact]:
    for name, value in items:
        if isinstance(value, Mapping):
            yield from _facts((f"{name}.{key}", part) for key, part in value.items())
        elif isinstance(value, list | tuple):
            yield Fact(name=name, value=tuple(map(_scalar, value)))
        else:
            yield Fact(name=name, value=_scalar(value))


def _scalar(value: Any) -> Scalar:
    return value if isinstance(value, Scalar) else str(value)
