"""The contract of every command's JSON: its schema, no folder of this machine, and the keys of tables' columns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from app.cli.cli_options import asks_for_events
from app.json_output.json_envelope import plain
from app.json_output.json_schemas import RESULTS, adapter
from benchmarks.registry import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ROOT / "docs" / "schemas" / "columns.json"
RECORD = "RASHOMON_RECORD_COLUMNS"
"""The variable with which unknown columns are recorded instead of refused; `pytest --record-columns` sets it."""

_adapter = cache(adapter)


def check_json(arguments: Sequence[str], output: str, folders: Sequence[Path]) -> None:
    """Fail if a command printed other JSON than its schema has, or a path below ``folders`` or the repository."""
    if asks_for_events(arguments):
        lines = output.splitlines()
        for line in lines:
            checked(line, "batch", folders)
        events = [json.loads(line)["event"] for line in lines]
        assert events.index("outcome") == len(events) - 1, output
    elif "--json" in arguments and output and (command := _command(arguments)) in RESULTS:
        values = checked(output, command, folders)
        assert values["command"] == command
        if values["benchmark"] in (None, *BUILT_IN):  # no other package's
            for table in _tables(values["result"]):
                check_columns(table["name"], table["columns"])


def checked(text: str, command: str, folders: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the JSON of a command, or a line of it. Fails if it has another type than its schema, more keys, or a folder."""
    values: dict[str, Any] = json.loads(text)
    assert plain(_adapter(command).validate_json(text, strict=True)) == values, f"keys that {command}'s schema lacks"
    written = json.dumps(values, ensure_ascii=False)
    for folder in (*folders, ROOT):
        assert str(folder) not in written, f"{folder} is in the JSON of {command}:\n{written}"
    return values


def _command(arguments: Sequence[str]) -> str:
    """Return the name of a command with its subcommand, if that prints JSON of its own."""
    names = {name for command in RESULTS for name in command.split()}
    words = [word for word in arguments if word in names]
    pair = " ".join(words[:2])
    return pair if pair in RESULTS else " ".join(words[:1])


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the tables in a result."""
    if isinstance(value, dict):
        if {"name", "columns", "rows"} <= value.keys():
            yield value
        else:
            for item in value.values():
                yield from _tables(item)
    elif isinstance(value, list):
        for item in value:
            yield from _tables(item)


def recorded_columns() -> dict[str, dict[str, str] | str]:
    """Return the title of each known column by its key, by table; of a table with other columns each time, why they are."""
    columns: dict[str, dict[str, str] | str] = json.loads(COLUMNS.read_text("utf-8"))
    return columns


def check_columns(table: str, columns: Sequence[dict[str, str]]) -> None:
    """Fail if a known table has a column with another key than the recorded ones."""
    recorded = recorded_columns()
    known = recorded.get(table)
    if isinstance(known, str):
        return
    new = {column["key"]: column["title"] for column in columns if column["key"] not in (known or {})}
    if RECORD in os.environ:
        recorded[table] = {**(known or {}), **new}
        COLUMNS.write_text(json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    else:
        assert known is None or not new, (
            f"the table {table} has the new columns {new}. If a title changed, keep its key; if the columns are new, "
            "record them with `pytest --record-columns -n 0`."
        )
