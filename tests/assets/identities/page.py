"""Generated blocks of docs/published.md, and their insertion into the page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from app.papers.published_results import published_cells, published_names
from tests.assets.identities import clash, cmc_bench, contra4, crosscheck_bench, mmkc_bench
from tests.assets.identities.base import rendered

PAGE = Path(__file__).resolve().parents[3] / "docs" / "published.md"
_BLOCK = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def blocks() -> dict[str, str]:
    """Each block's Markdown, by its name."""
    papers = {
        "cmc-bench": cmc_bench,
        "clash": clash,
        "crosscheck-bench": crosscheck_bench,
        "mmkc-bench": mmkc_bench,
        "contra4": contra4,
    }
    tables = {name: rendered(module.identities(), module.claims()) for name, module in papers.items()}
    return {"counts": counts(), "mpb": cmc_bench.bounds_table(), **tables}


def counts() -> str:
    """Return the number of cells in each paper's tables, in Markdown."""
    lines = ["| paper | cells | by table |", "|---|---|---|"]
    total = 0
    for name in published_names():
        cells = published_cells(name)
        total += len(cells)
        of = ", ".join(f"{table} ({n})" for table, n in Counter(cell["table"] for cell in cells).items())
        lines.append(f"| {cells[0]['paper']} (`rashomon published {name}`) | {len(cells)} | {of} |")
    return "\n".join([*lines, f"| all | {total:,} | |"]) + "\n"


def with_blocks(page: str, blocks_by_name: Mapping[str, str]) -> str:
    """Return ``page`` with its blocks replaced. Raises KeyError for a block that is not in ``blocks_by_name``."""
    return _BLOCK.sub(lambda match: f"{match[1]}\n{blocks_by_name[match[2]]}\n{match[3]}", page)


def named(page: str) -> list[str]:
    """Return the names of the page's blocks."""
    return [match[2] for match in _BLOCK.finditer(page)]
