"""Plain data sets: published rows of conflicts, each declared in a module of its own; CONTRIBUTING.md says how to add one."""

from __future__ import annotations

from collections.abc import Mapping

DATA_SETS: Mapping[str, str] = {
    "chart-conflicts": "benchmarks.plain.chart_conflicts:ChartConflicts",
    "mmmc": "benchmarks.plain.mmmc:Mmmc",
    "phd": "benchmarks.plain.phd:Phd",
    "mc2": "benchmarks.plain.mc2:MC2",
    "words-or-vision": "benchmarks.plain.words_or_vision:WordsOrVision",
    "conflict-vis": "benchmarks.plain.conflict_vis:ConflictVis",
    "math-conflicts": "benchmarks.plain.math_conflicts:MathConflicts",
}
"""The data sets by name, as "module:class"."""
