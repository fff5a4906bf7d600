"""The schemas of the commands' JSON: ``.venv/bin/python docs/write_schemas.py`` writes ``docs/schemas`` anew.

A change of meaning raises ``FORMAT`` in ``app/json_output/json_envelope.py``: a key that goes, or that means something else. A
new key does not. ``columns.json`` is written by ``pytest --record-columns``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from app.json_output.json_schemas import EVENTS, RESULTS, schema

FOLDER = Path(__file__).parent / "schemas"


def files() -> dict[str, str]:
    """Return the content of each file by its name."""
    return {
        f"{command.replace(' ', '-')}.json": json.dumps(schema(command), indent=1) + "\n"
        for command in sorted((*RESULTS, *EVENTS))
    }


if __name__ == "__main__":
    schemas = files()
    for name, text in schemas.items():
        (FOLDER / name).write_text(text, "utf-8")
    sys.stdout.write(f"{len(schemas)} schemas in {FOLDER}\n")
