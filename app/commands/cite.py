"""``rashomon cite``: BibTeX of the tool, benchmarks and data of runs, and the licences of data and models."""

from __future__ import annotations

import json
from collections.abc import Sequence

from app.report.citations import cite
from app.store.run_references import run_folders
from app.store.workspace import Workspace
from app.text.escape import clean


def cite_runs(workspace: Workspace, runs: Sequence[str], *, as_json: bool) -> None:
    """Print the citations of ``runs`` as a BibTeX file, whose comments have the licences."""
    citations = cite(workspace, run_folders(workspace, runs))
    if as_json:
        facts = {"entries": dict(citations.entries), "data": dict(citations.data), "models": dict(citations.models)}
        print(json.dumps({**facts, "unknown": list(citations.unknown)}, indent=2))
    else:
        print(clean(citations.bibtex(), newlines=True), end="")
