"""The schemas of the commands' JSON: printed, in ``docs/schemas``, and with keys that are no display text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.json_output.json_schemas import EVENTS, RESULTS, schema
from app.json_output.tables_json import keys
from docs.write_schemas import FOLDER, files
from tests.support.command import Rashomon
from tests.support.json_contract import RECORD, check_columns, check_json, recorded_columns

COMMANDS = (*RESULTS, *EVENTS)
OUTCOME = {"format": 1, "event": "outcome", "exit_code": 0, "runs": [], "message": "nothing was to do"}
DEMO = ("demo", "--display", "json")


def properties(value: Any) -> Iterator[str]:
    """Yield the keys of all objects that a schema describes, other than those of mappings."""
    if isinstance(value, dict):
        if value.get("type") == "object":
            yield from value.get("properties", {})
        for item in value.values():
            yield from properties(item)
    elif isinstance(value, list):
        for item in value:
            yield from properties(item)


def test_the_copies_in_the_documentation_are_up_to_date() -> None:
    copies = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json") if path.name != "columns.json"}
    assert copies == files(), "run `.venv/bin/python docs/write_schemas.py`"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_key_is_in_snake_case_and_required(command: str) -> None:
    described = schema(command)
    names = list(properties(described))
    assert names
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names), names
    objects = [described, *described["$defs"].values()]
    assert all(list(item["properties"]) == item["required"] for item in objects if "properties" in item)


def test_the_schemas_are_listed_and_printed(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    assert rashomon.run("schema").stdout.split("\n")[:-1] == sorted(COMMANDS)
    assert json.loads(rashomon.run("schema", "judges", "check").stdout) == schema("judges check")
    assert "models" in rashomon.run("schema", "model", code=2).stderr
    assert rashomon.run("schema", "completion", code=2).stdout == ""


def test_a_known_column_keeps_its_key() -> None:
    for table, columns in recorded_columns().items():
        if not isinstance(columns, str):
            for key, title in columns.items():
                assert re.sub(r"_\d+$", "", key) == re.sub(r"_\d+$", "", keys((title,))[0]), (table, title)


def test_a_changed_title_of_a_known_column_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RECORD, raising=False)
    check_columns("cost", [{"key": "chip", "title": "chip"}])
    with pytest.raises(AssertionError, match="record-columns"):
        check_columns("cost", [{"key": "share_that_agrees", "title": "share that agrees"}])
    check_columns("no table of ours", [{"key": "new", "title": "new"}])


@pytest.mark.parametrize(
    ("values", "arguments"),
    [
        (OUTCOME | {"note": "new"}, DEMO),  # a key that the schema lacks
        (OUTCOME | {"exit_code": "0"}, DEMO),  # another type
        (OUTCOME | {"message": "wrote /home/ann/ws/runs"}, DEMO),  # a path of this machine
        ({key: value for key, value in OUTCOME.items() if key != "runs"}, DEMO),  # a key that is missing
        ([{"name": "match"}], ("judges", "--json")),  # no envelope
    ],
)
def test_the_check_of_all_commands_finds_what_breaks_the_contract(values: Any, arguments: tuple[str, ...]) -> None:
    check_json(DEMO, json.dumps(OUTCOME), [Path("/home/ann")])
    with pytest.raises((AssertionError, ValueError, TypeError)):
        check_json(arguments, json.dumps(values), [Path("/home/ann")])


@pytest.mark.parametrize("lines", [[], [OUTCOME, OUTCOME], [OUTCOME, {"event": "progress"}]])
def test_the_outcome_is_the_last_line_and_the_only_one(lines: list[dict[str, Any]]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check_json(DEMO, "".join(f"{json.dumps(line)}\n" for line in lines), [])
