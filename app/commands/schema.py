"""``rashomon schema``: the JSON Schemas of the commands' JSON."""

from __future__ import annotations

import json

from app.json_output.schemas import EVENTS, RESULTS, schema


def print_schema(command: str) -> None:
    """Print the schema of a command, or if it is empty, the commands that have one. Raises SpecError for another."""
    print(json.dumps(schema(command), indent=2) if command else "\n".join(sorted((*RESULTS, *EVENTS))))
