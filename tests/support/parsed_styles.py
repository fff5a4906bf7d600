"""Style sheets parsed once for all apps of a process: parsing them takes a sixth of a short test of a screen."""

from __future__ import annotations

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

_parse_rules = Stylesheet._parse_rules
_parsed: dict[tuple[Any, ...], list[RuleSet]] = {}


def share_parsed_styles() -> None:
    """Have every style sheet take the rules of texts that were parsed before with the same variables."""
    Stylesheet._parse_rules = _parse_once  # type: ignore[assignment, method-assign]


def _parse_once(sheet: Stylesheet, css: str, *arguments: Any, **options: Any) -> list[RuleSet]:
    key = (css, arguments, frozenset(options.items()), frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, css, *arguments, **options)
    return _parsed[key]
