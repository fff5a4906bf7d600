"""Parts of the JSON of commands, whose schemas are checked as they are read."""

from __future__ import annotations

import json
from typing import Any

from tests.support.json_contract import checked


def json_result(text: str) -> Any:
    """Return the result in a command's JSON. Fails unless it is as the command's schema has it."""
    return checked(text, json.loads(text)["command"])["result"]


def named(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the values of facts by their names."""
    return {fact["name"]: fact["value"] for fact in facts}


def cells_of(table: dict[str, Any], row: int = 0) -> dict[str, Any]:
    """Return the cells of a row of a table by the titles of their columns."""
    return {column["title"]: table["rows"][row]["cells"][column["key"]] for column in table["columns"]}
