"""Summary under the New run form: problems, or size, time and cost of the runs."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from app.new_run.preflight import Preflight, RunPreflight
from app.new_run.run_estimate import half_width
from app.report.throughput import duration
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL, RIGHT, WRONG

_MAX_LISTED = 3


def form_summary(problems: Mapping[str, str], preflight: Preflight | None, command: str | None) -> Content:
    """Return the form's problems or else a summary of its runs, and the equivalent command line."""
    lines: list[Content] = []
    for key, problem in list(problems.items())[:_MAX_LISTED]:
        lines.append(Content.styled("✗ ", WRONG) + literal(f"{key.replace('_', ' ')}: {problem}", limit=300))
    if not problems and preflight is None and command is not None:
        lines.append(Content.styled("◐ checking ...", DIM))
    if not problems and preflight is not None:
        lines += _runs(preflight)
        lines += [literal(f"cost: {line}", limit=300) for line in preflight.costs]
        lines += [Content.styled("! ", PARTIAL) + literal(line, limit=300) for line in preflight.warnings]
    if command is not None:
        lines.append(Content.styled("$ ", DIM) + literal(command, DIM, limit=2_000))
    return Content("\n").join(lines)


def _runs(preflight: Preflight) -> list[Content]:
    runs = preflight.runs
    first = runs[0]
    examples, instances = first.estimate.examples, sum(len(run.estimate.instances) for run in runs)
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    lines = [Content.styled("✓ ", RIGHT) + Content(f"{count}, {examples:,} examples, {instances:,} instances")]
    lines.append(Content(_precision(first)))
    lines.append(literal(f"time: {_time(runs)}", limit=300))
    existing = [run.name for run in runs if run.exists]
    if existing:
        lines.append(
            Content.styled("○ ", DIM) + literal(f"started before, will resume: {', '.join(existing)}", limit=200)
        )
    return lines


def _precision(run: RunPreflight) -> str:
    """Return the largest possible half-width of the 95% interval of a share under each condition."""
    counts = run.estimate.conditions
    by_count: dict[int, list[str]] = {}
    for name in run.contents.benchmark.conditions:
        if name in counts:
            by_count.setdefault(counts[name], []).append(name)
    groups = []
    for count, names in by_count.items():
        group = ", ".join(names) if len(names) < _MAX_LISTED else f"each of {len(names)} conditions"
        groups.append(f"{group} {count:,} ±{half_width(count):.3f}")
    return f"answers and widest 95% interval: {'; '.join(groups)}"


def _time(runs: tuple[RunPreflight, ...]) -> str:
    if len(runs) == 1:
        return runs[0].estimate.describe_duration()
    known = [run.estimate.seconds for run in runs if run.estimate.seconds is not None]
    unknown = len(runs) - len(known)
    if not known:
        return "unknown: no earlier run of these models on this benchmark"
    return f"about {duration(sum(known))}" + (f", plus {unknown} runs of unknown duration" if unknown else "")
