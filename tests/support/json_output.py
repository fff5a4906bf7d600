"""The JSON of commands, read as their schemas have it."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter

from app.json_output.envelope import Envelope, plain
from app.json_output.schemas import RESULTS


def json_result(text: str) -> Any:
    """Return the result in a command's JSON, which has the type of that command's results and no other key."""
    printed = json.loads(text)
    assert plain(_adapter(printed["command"]).validate_json(text, strict=True)) == printed
    return printed["result"]


@cache
def _adapter(command: str) -> TypeAdapter[Any]:
    module, _, name = RESULTS[command].partition(":")
    envelope: Any = Envelope
    return TypeAdapter(envelope[getattr(import_module(f"app.json_output.{module}"), name)])


def named(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the values of facts by their names."""
    return {fact["name"]: fact["value"] for fact in facts}


def cells_of(table: dict[str, Any], row: int = 0) -> dict[str, Any]:
    """Return the cells of a row of a table by the titles of their columns."""
    return {column["title"]: table["rows"][row]["cells"][column["key"]] for column in table["columns"]}
