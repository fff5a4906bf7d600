"""What a spec will be, in the few lines under a form."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from app.new_run.preflight import Preflight, RunPreflight
from app.new_run.run_estimate import half_width
from app.store.throughput import duration
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL, RIGHT, WRONG

_SHOWN = 3


def told(wrong: Mapping[str, str], prospects: Preflight | None, command: str | None) -> Content:
    """What is wrong, else what the runs will be; under it the command line that means the same."""
    lines: list[Content] = []
    for key, sentence in list(wrong.items())[:_SHOWN]:
        lines.append(Content.styled("✗ ", WRONG) + literal(f"{key.replace('_', ' ')}: {sentence}", limit=300))
    if not wrong and prospects is None and command is not None:
        lines.append(Content.styled("◐ looking ...", DIM))
    if not wrong and prospects is not None:
        lines += _runs(prospects)
        lines += [literal(f"cost: {line}", limit=300) for line in prospects.costs]
        lines += [Content.styled("! ", PARTIAL) + literal(line, limit=300) for line in prospects.warnings]
    if command is not None:
        lines.append(Content.styled("$ ", DIM) + literal(command, DIM, limit=2_000))
    return Content("\n").join(lines)


def _runs(prospects: Preflight) -> list[Content]:
    runs = prospects.runs
    first = runs[0]
    examples, instances = first.outlook.examples, sum(len(run.outlook.instances) for run in runs)
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    lines = [Content.styled("✓ ", RIGHT) + Content(f"{count}, {examples:,} examples, {instances:,} instances")]
    lines.append(Content(_sure(first)))
    lines.append(literal(f"time: {_time(runs)}", limit=300))
    there = [run.name for run in runs if run.found]
    if there:
        lines.append(Content.styled("○ ", DIM) + literal(f"begun before, and goes on: {', '.join(there)}", limit=200))
    return lines


def _sure(run: RunPreflight) -> str:
    """The 95% interval of a share under each condition, as wide as it can be."""
    counts = run.outlook.conditions
    alike: dict[int, list[str]] = {}
    for name in run.contents.benchmark.conditions:
        if name in counts:
            alike.setdefault(counts[name], []).append(name)
    each = (
        f"{', '.join(names) if len(names) < _SHOWN else f'each of {len(names)} conditions'} {count:,} ±{half_width(count):.3f}"
        for count, names in alike.items()
    )
    return f"answers and their interval at most: {'; '.join(each)}"


def _time(runs: tuple[RunPreflight, ...]) -> str:
    if len(runs) == 1:
        return runs[0].outlook.told()
    known = [run.outlook.seconds for run in runs if run.outlook.seconds is not None]
    unknown = len(runs) - len(known)
    if not known:
        return "not known yet: no earlier run of these models and this benchmark was timed"
    return f"about {duration(sum(known))}" + (f", and {unknown} of the runs not known yet" if unknown else "")
