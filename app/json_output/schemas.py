"""JSON Schemas of the commands' JSON, made from the types of their results; ``docs/schemas`` has a copy of each.

A change of meaning raises :data:`app.json_output.envelope.FORMAT`: a key that goes, or that means something else. A new key
does not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from app.json_output.envelope import Envelope
from benchmarks.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from pydantic import TypeAdapter

RESULTS: Mapping[str, str] = {
    "answer": "people:HumanBaseline",
    "audit": "audit:AuditResult",
    "benchmarks": "catalog:BenchmarkList",
    "build": "builds:BuildResult",
    "bundle": "bundles:WrittenBundle",
    "check": "check:CheckResult",
    "cite": "published:CiteResult",
    "compare": "comparison:CompareResult",
    "data": "catalog:DataList",
    "doctor": "catalog:MachineChecks",
    "export": "export:ExportResult",
    "history": "question_sets:HistoryResult",
    "judges": "catalog:JudgeList",
    "judges check": "judging:ExaminationResult",
    "learning-curve": "training:LearningCurveJson",
    "models": "catalog:ModelsResult",
    "open": "bundles:OpenedBundle",
    "parity": "parity:ParityResult",
    "passages": "builds:DesignResult",
    "prompts": "catalog:PromptsResult",
    "published": "published:PublishedResult",
    "recommend": "recommendation:RecommendResult",
    "review": "people:ReviewResult",
    "runs": "runs:RunsResult",
    "sets": "catalog:SetList",
    "show": "show:ShowResult",
    "training": "training:WrittenTrainingSet",
    "trainings": "training:TrainingList",
    "try": "question_sets:TryResult",
    "vary": "builds:DesignResult",
}
"""The type of each command's result, as MODULE:NAME below ``app.json_output``."""

EVENTS = ("batch", "resume", "judge", "demo", "import", "baselines")
"""The commands that print no JSON but the lines of ``--display json``, which those of ``try`` are like."""


def schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a command's JSON, or of a line of it. Raises SpecError for one without JSON."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def field_is_required(self, field: Any, total: bool) -> bool:
            return True  # all are printed, those with their default too

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False  # it would repeat the key

    return {
        **adapter(command).json_schema(mode="serialization", schema_generator=Generator),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"rashomon {command} {'--display json' if command in EVENTS else '--json'}",
    }


def adapter(command: str) -> TypeAdapter[Any]:
    """Return the type of a command's JSON, or of a line of it. Raises SpecError for a command without JSON."""
    from pydantic import TypeAdapter

    commands = {**RESULTS, **dict.fromkeys(EVENTS, "events:Event")}
    if command not in commands:
        raise SpecError(f"{command!r} prints no JSON; {did_you_mean(command, commands)}")
    module, _, name = commands[command].partition(":")
    result: Any = getattr(import_module(f"app.json_output.{module}"), name)
    _describe_fields()
    envelope: Any = Envelope
    return TypeAdapter(result if command in EVENTS else envelope[result])


def _describe_fields() -> None:
    """Have pydantic take the docstrings of fields as their descriptions."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("app.json_output."):
            for value in vars(module).values():
                if isinstance(value, type) and is_dataclass(value):
                    value.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[attr-defined]
