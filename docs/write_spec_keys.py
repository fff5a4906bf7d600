"""The table of a spec's keys: ``.venv/bin/python docs/write_spec_keys.py`` writes it anew in ``docs/running.md``."""

from __future__ import annotations

import re
import sys
from operator import attrgetter
from pathlib import Path

from app.key_declarations import DeclaredKey
from app.spec_keys import spec_keys

PAGE = Path(__file__).parent / "running.md"
_HEAD = "| key | default | meaning |\n|---|---|---|\n"


def table() -> str:
    """Return the table as Markdown; keys without a meaning of their own are in the row of the key before."""
    rows: list[list[DeclaredKey]] = []
    for key in filter(attrgetter("key.help"), spec_keys().values()):
        if key.key.meaning:
            rows.append([])
        rows[-1].append(key)
    return _HEAD + "".join(map(_row, rows))


def _row(keys: list[DeclaredKey]) -> str:
    first = keys[0]
    section = f"`[{first.section}]` " if first.section else ""
    names = ", ".join(f"`{key.name}`" for key in keys)
    defaults = ", ".join(dict.fromkeys(key.key.default for key in keys))
    return f"| {section}{names} | {defaults} | {first.key.meaning} |\n"


def with_table(page: str) -> str:
    """Return the text of the page with the present table."""
    return re.sub(re.escape(_HEAD) + r"(?:\|.*\n)*", lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"the keys are in {PAGE}\n")
