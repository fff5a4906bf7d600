"""A notebook as a page of the site: its texts, its code, and what its cells displayed when they were last run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def notebook_page(file: Path) -> str:
    """Return the notebook in ``file`` as Markdown."""
    lines: list[str] = []
    for cell in json.loads(file.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
        else:
            lines += ["```python", source, "```", ""]
            for output in cell["outputs"]:
                lines += _output(output)
    return "\n".join(lines)


def _output(output: dict[str, Any]) -> Iterator[str]:
    data = output.get("data", {})
    if "image/png" in data:
        yield f"![Output of the cell](data:image/png;base64,{''.join(data['image/png']).strip()})"
    elif "text/html" in data:
        yield "".join(data["text/html"])
    else:
        yield "```text"
        yield "".join(data.get("text/plain", output.get("text", "")))
        yield "```"
    yield ""
