"""``rashomon cite``: BibTeX of the tool, benchmarks and data of runs, and the licences of data and models."""

from __future__ import annotations

from collections.abc import Sequence

from app.json_output.json_envelope import print_json
from app.report.runs.citations import cite
from app.store.run_references import run_folders
from app.store.workspace import Workspace
from app.text.text_escaping import clean


def cite_runs(workspace: Workspace, runs: Sequence[str], *, as_json: bool) -> None:
    """Print the citations of ``runs`` as a BibTeX file, whose comments have the licences."""
    folders = run_folders(workspace, runs)
    citations = cite(workspace, folders)
    if as_json:
        print_json("cite", citations, folders=folders)
    else:
        print(clean(citations.bibtex(), newlines=True), end="")
