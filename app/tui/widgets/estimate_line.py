"""Estimate of the New run form: size, time, memory, intervals and cost of its runs, or the problems that prevent it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from textual.content import Content

from app.new_run.preflight import Preflight, RunPreflight
from app.new_run.run_estimate import half_width
from app.report.progress.remaining_time import duration
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL, RIGHT, WRONG

_MAX_LISTED = 3
_LABEL_WIDTH = 8
FIELD_WORDS = {
    "model": "models",
    "prompt_set": "prompts",
    "strata": "scope",
    "limit": "limit",
    "max_tokens": "max new tokens",
    "top_p": "top p",
    "kv_bits": "key-value cache",
    "score": "likelihood",
    "data": "build",
}
"""The words for keys of a spec whose fields are not called like them."""


def field_word(key: str) -> str:
    """Return the word for a spec's key."""
    return FIELD_WORDS.get(key, key.replace("_", " "))


def form_summary(
    problems: Mapping[str, str],
    missing: Mapping[str, str],
    preflight: Preflight | None,
    command: str | None,
    *,
    assumed: bool = False,
) -> Content:
    """Return the form's problems, what is still missing, the estimate of its runs, and the equivalent command line.

    The estimate is for one model yet to be selected if it is ``assumed``.
    """
    lines = [_problem("✗ ", WRONG, key, text) for key, text in list(problems.items())[:_MAX_LISTED]]
    lines += [_problem("○ ", PARTIAL, key, text) for key, text in list(missing.items())[:_MAX_LISTED]]
    if preflight is not None and preflight.runs:
        lines += _runs(preflight, ready=not problems and not missing, assumed=assumed)
        lines += [_line("cost", literal(line, limit=300)) for line in preflight.costs]
        lines += [Content.styled("! ", PARTIAL) + literal(line, limit=300) for line in preflight.warnings]
    if command is not None:
        lines.append(Content.styled("$ ", DIM) + literal(command, DIM, limit=2_000))
    return Content("\n").join(lines)


def _problem(glyph: str, colour: str, key: str, text: str) -> Content:
    return Content.styled(glyph, colour) + literal(f"{field_word(key)}: {text}", limit=300)


def _line(label: str, content: Content) -> Content:
    return Content.styled(f"{label:<{_LABEL_WIDTH}}", DIM) + content


def _runs(preflight: Preflight, *, ready: bool, assumed: bool) -> list[Content]:
    runs = preflight.runs
    first = runs[0]
    examples, instances = first.estimate.examples, sum(run.estimate.answers for run in runs)
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    sign = Content.styled("✓ ", RIGHT) if ready else Content("  ")
    lines = [sign + Content(f"{count}, {examples:,} examples, {instances:,} instances")]
    calls = first.estimate.calls_per_answer
    if calls > 1:
        left = sum(run.estimate.left for run in runs)
        lines.append(_line("calls", Content(f"{calls * left:,}, {calls} for each answer")))
    lines.append(_line("time", literal("depends on the model" if assumed else _time(runs), limit=300)))
    lines.append(_line("memory", literal("depends on the model" if assumed else _memory(preflight))))
    lines.append(_line("95% CI", literal(_precision(first), limit=300)))
    if not assumed:
        lines += [Content.styled(sign, DIM) + literal(text, limit=200) for sign, text in _existing(runs)]
    return lines


def _existing(runs: Sequence[RunPreflight]) -> Iterator[tuple[str, str]]:
    """Yield what happens to the runs that exist, each with a sign."""
    finished = [run.name for run in runs if run.finished]
    judged = [run.name for run in runs if run.exists and not run.finished and not run.estimate.left]
    resumed = [
        f"{run.name}, {run.estimate.done:,} of {run.estimate.answers:,} answered"
        for run in runs
        if run.exists and run.estimate.left
    ]
    if finished:
        yield "✓ ", f"finished already, nothing is run: {', '.join(finished)}"
    if judged:
        yield "○ ", f"answered before, will be judged: {', '.join(judged)}"
    if resumed:
        yield "○ ", f"started before, will resume: {'; '.join(resumed)}"


def _memory(preflight: Preflight) -> str:
    return "no model is loaded here" if preflight.memory is None else memory_words(*preflight.memory)


def memory_words(needed: int, available: int) -> str:
    """Return the memory that a model needs, and what there is for it."""
    return f"{needed / 1e9:.1f} GB of {available / 1e9:.1f} GB, {'fits' if needed <= available else 'does not fit'}"


def _precision(run: RunPreflight) -> str:
    """Return the largest possible half-width of the 95% interval of a share under each condition."""
    counts = run.estimate.conditions
    by_count: dict[int, list[str]] = {}
    for name in run.contents.benchmark.conditions:
        if name in counts:
            by_count.setdefault(counts[name], []).append(name)
    most = max(by_count.values(), key=len)
    groups = []
    for count, names in by_count.items():
        width = f"{_half_width(count)} at n={count:,}"
        named = ", ".join(names) if len(names) < _MAX_LISTED else f"{len(names)} conditions"
        groups.append(width if names is most else f"{width} ({named})")
    pages = run.estimate.pages
    if 0 < pages < min(counts.values()):
        groups.append(f"{_half_width(pages)} if the answers to each of {pages:,} pages agree")
    return "; ".join(groups)


def _half_width(n: int) -> str:
    return f"±{half_width(n):.3f}".replace("±0.", "±.")


def _time(runs: tuple[RunPreflight, ...]) -> str:
    if len(runs) == 1:
        return runs[0].estimate.describe_duration()
    known = [run.estimate.seconds for run in runs if run.estimate.seconds is not None]
    unknown = len(runs) - len(known)
    if not known:
        return "unknown: no earlier run of these models on this benchmark"
    return f"about {duration(sum(known))}" + (f", plus {unknown} runs of unknown duration" if unknown else "")
