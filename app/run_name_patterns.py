"""Patterns for the names of runs: ``nightly-{date}-{model}``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from mlx_backends.models.adapter_folder import adapter_name, split_adapter

LONGEST = 80
"""Characters of the longest name of a run."""

NAME = rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST - 1}}}$"
NAME_ADVICE = "use letters from a to z, digits, '.', '_' and '-', at most 80, beginning with a letter or digit"
PATTERN = r"^(?:[A-Za-z0-9]|\{(?:date|time|model)\})(?:[A-Za-z0-9._-]|\{(?:date|time|model)\}){0,79}$"
"""A name, or a pattern for names; in braces, nothing but these three placeholders."""
_PLACEHOLDER = re.compile(r"\{(date|time|model)\}")
_MOMENT = {"date": "[0-9]{4}-[0-9]{2}-[0-9]{2}", "time": "[0-9]{6}"}


class Moment(NamedTuple):
    """The values of ``{date}`` and ``{time}``, such as 2026-11-29 and 231500, by the machine's clock and time zone."""

    date: str
    time: str

    @classmethod
    def now(cls) -> Self:
        """Return the present moment."""
        now = time.localtime()
        return cls(time.strftime("%Y-%m-%d", now), time.strftime("%H%M%S", now))


def is_pattern(name: str | None) -> bool:
    """Return whether a name has a placeholder."""
    return name is not None and "{" in name


def name_at(pattern: str, moment: Moment, model: str) -> str:
    """Return the name of a run of ``model`` that begins at a moment. It may be no valid one."""
    values = {**moment._asdict(), "model": model_slug(model)}
    return _PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], pattern)


def moment_of(pattern: str, name: str, models: Iterable[str]) -> Moment | None:
    """Return the moment in the name of a run of one of ``models``; None for a name of another pattern.

    A part of the moment that the pattern leaves out is empty.
    """
    slugs = "|".join(re.escape(model_slug(model)) for model in models)
    groups: dict[str, str] = {"model": f"(?:{slugs})"}
    expression = ""
    for piece in re.split(r"(\{[a-z]+\})", pattern):
        key = piece.strip("{}") if _PLACEHOLDER.fullmatch(piece) else ""
        expression += groups.get(key, f"(?P<{key}>{_MOMENT[key]})" if key in _MOMENT else re.escape(piece))
        if key in _MOMENT:
            groups[key] = f"(?P={key})"
    match = re.fullmatch(expression, name)
    return None if match is None else Moment(**{"date": "", "time": "", **match.groupdict()})


def model_slug(model: str) -> str:
    """Return a model's name in the characters of a run's name, with its adapter's."""
    folder, adapter = split_adapter(model)
    name = Path(folder).name if "/" in folder else folder
    # The end of a long name is cut off, and it tells an adapter's runs from those of its base.
    name = name if adapter is None else f"{name[:30]}-{adapter_name(adapter)[:17]}"
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:48]
