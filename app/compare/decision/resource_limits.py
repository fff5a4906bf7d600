"""Limits on a recommended run: memory, seconds an answer, and disk space at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from app.compare.runs.run_view import RunView
from benchmarks import number_ranges as ranges

_GB = 1e9


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a run may take: peak memory and disk space in GB (10^9 bytes), and seconds an answer. None is no limit."""

    memory: float | None = None
    seconds: float | None = None
    disk: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            ranges.COST.check(field.name, getattr(self, field.name))

    def violations(self, run: RunView) -> list[str]:
        """Return in words which limits a run exceeds; a value that was not measured exceeds its limit."""
        peak, disk = run.cost.peak_memory, run.weights_bytes
        checks = (
            ("a peak memory", None if peak is None else peak / _GB, self.memory, "GB"),
            ("a time per answer", run.cost.seconds_per_answer, self.seconds, "s"),
            ("a size on disk", None if disk is None else disk / _GB, self.disk, "GB"),
        )
        return [
            f"{what} that was not measured" if value is None else f"{what} of {value:.3g} {unit} (at most {limit:g})"
            for what, value, limit, unit in checks
            if limit is not None and (value is None or value > limit)
        ]

    def __str__(self) -> str:
        units = {"memory": "GB of memory", "seconds": "s per answer", "disk": "GB on disk"}
        given = ((getattr(self, name), unit) for name, unit in units.items())
        return ", ".join(f"{limit:g} {unit}" for limit, unit in given if limit is not None)


NO_LIMITS = Limits()


def within_limits(runs: Sequence[RunView], limits: Limits) -> tuple[tuple[RunView, ...], list[str]]:
    """Return the runs within ``limits``, and a sentence on each of the others."""
    violations = {run.label: limits.violations(run) for run in runs}
    sentences = [f"{label} is left out: it has {' and '.join(why)}." for label, why in violations.items() if why]
    return tuple(run for run in runs if not violations[run.label]), sentences
