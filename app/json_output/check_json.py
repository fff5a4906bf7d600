"""JSON of ``rashomon check``."""

from __future__ import annotations

from dataclasses import dataclass

from app.compare.question_sets.regression_gate import Gate, GateTest


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The outcome of a gate.

    ``verdict`` is "passed", "regressed", "inconclusive" or "failed", which is more than ``allowed_errors`` errors among the
    run's answers. ``baseline`` is a run, or the paper's row as it was typed. ``rows`` are those of the run, and ``baseline_rows``
    those of a baseline that is a run; the tests rest on those that are common.
    """

    verdict: str
    exit_code: int
    sentence: str
    basis: str
    run: str
    baseline: str
    compared_by: str
    max_loss: float
    errors: int
    allowed_errors: int
    rows: int
    baseline_rows: int | None
    tests: tuple[GateTest, ...]
    remarks: tuple[str, ...]
    notes: tuple[str, ...]


def check_result(gate: Gate, exit_code: int) -> CheckResult:
    """Return the JSON of a gate."""
    rows, *of_baseline = gate.rows
    return CheckResult(
        verdict=gate.verdict,
        exit_code=exit_code,
        sentence=gate.sentence,
        basis=gate.basis,
        run=gate.run,
        baseline=gate.baseline,
        compared_by=gate.compared,
        max_loss=gate.max_loss,
        errors=gate.errors,
        allowed_errors=gate.allowed,
        rows=rows,
        baseline_rows=of_baseline[0] if of_baseline else None,
        tests=gate.tests,
        remarks=gate.remarks,
        notes=gate.table.notes,
    )
