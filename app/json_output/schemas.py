"""JSON Schemas of the commands' ``--json``, made from the types of their results; ``docs/schemas/`` has a copy of each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from app.json_output.envelope import Envelope
from benchmarks.errors import SpecError, did_you_mean

RESULTS: Mapping[str, str] = {
    "audit": "audit:AuditResult",
    "cite": "published:CiteResult",
    "compare": "comparison:CompareResult",
    "export": "export:ExportResult",
    "history": "question_sets:HistoryResult",
    "parity": "parity:ParityResult",
    "published": "published:PublishedResult",
    "recommend": "recommendation:RecommendResult",
    "runs": "runs:RunsResult",
    "show": "show:ShowResult",
    "try": "question_sets:TryResult",
}
"""The type of each command's result, as MODULE:NAME below ``app.json_output``."""


def schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a command's JSON. Raises SpecError for a command without one."""
    from pydantic import TypeAdapter

    if command not in RESULTS:
        raise SpecError(f"{command!r} prints no JSON; {did_you_mean(command, RESULTS)}")
    module, _, name = RESULTS[command].partition(":")
    envelope: Any = Envelope
    result = getattr(import_module(f"app.json_output.{module}"), name)
    return {
        **TypeAdapter(envelope[result]).json_schema(mode="serialization"),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"rashomon {command} --json",
    }
