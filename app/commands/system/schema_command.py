"""``rashomon schema``: the JSON Schemas of the commands' JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from app.json_output.json_schemas import EVENTS, RESULTS, schema


def print_schema(command: Sequence[str]) -> None:
    """Print the schema of a command by its words; without any, the commands that have one. Raises SpecError for another."""
    print(json.dumps(schema(" ".join(command)), indent=2) if command else "\n".join(sorted((*RESULTS, *EVENTS))))
