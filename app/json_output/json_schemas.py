"""JSON Schemas of the commands' JSON, made from the types of their results; ``docs/schemas`` has a copy of each.

A change of meaning raises :data:`app.json_output.json_envelope.FORMAT`: a key that goes, or that means something else. A new key
does not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from app.json_output.json_envelope import Envelope
from benchmarks.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from pydantic import TypeAdapter

RESULTS: Mapping[str, str] = {
    "answer": "people_json:HumanBaseline",
    "audit": "audit_json:AuditResult",
    "benchmarks": "catalog_json:BenchmarkList",
    "build": "builds_json:BuildResult",
    "bundle": "bundles_json:WrittenBundle",
    "check": "check_json:CheckResult",
    "cite": "published_json:CiteResult",
    "compare": "comparison_json:CompareResult",
    "data": "catalog_json:DataList",
    "doctor": "catalog_json:MachineChecks",
    "export": "export_json:ExportResult",
    "history": "question_sets_json:HistoryResult",
    "judges": "catalog_json:JudgeList",
    "judges check": "judging_json:ExaminationResult",
    "learning-curve": "training_json:LearningCurveJson",
    "models": "catalog_json:ModelsResult",
    "open": "bundles_json:OpenedBundle",
    "parity": "parity_json:ParityResult",
    "passages": "builds_json:DesignResult",
    "prompts": "catalog_json:PromptsResult",
    "published": "published_json:PublishedResult",
    "recommend": "recommendation_json:RecommendResult",
    "review": "people_json:ReviewResult",
    "runs": "runs_json:RunsResult",
    "sets": "catalog_json:SetList",
    "show": "show_json:ShowResult",
    "training": "training_json:WrittenTrainingSet",
    "trainings": "training_json:TrainingList",
    "try": "question_sets_json:TryResult",
    "vary": "builds_json:DesignResult",
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

    commands = {**RESULTS, **dict.fromkeys(EVENTS, "json_events:Event")}
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
