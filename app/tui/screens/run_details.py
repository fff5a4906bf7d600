"""Details of a run in a few lines: its setup, what is left, and its result."""

from __future__ import annotations

from textual.content import Content

from app.report.progress.remaining_time import duration
from app.report.progress.running_accuracy import ConflictResult, conflict_result, judging_progress
from app.report.tables.table_rendering import short_value
from app.store.bundles.bundle_opening import is_opened_bundle
from app.tui.hostile_text import literal
from app.tui.theme import DIM, WRONG, state_appearance
from app.tui.widgets.truncate_text import elide_middle
from app.tui.workspace_watcher import WatchedRun

_LEAST_MODEL = 20
"""The least characters of a model's name that the details of a run have."""


def run_details(run: WatchedRun, resuming: str, width: int, rule: str | None) -> Content:
    """Return four lines of details about a run; ``resuming`` is said of one that can be resumed, ``rule`` by the user."""
    summary, state = run.summary, state_appearance(run.summary.state)
    first = literal(f"{state} ", state.colour) + literal(run.name, "bold")
    if summary.title:
        first += literal(f"  {summary.title}", DIM)
    if summary.problem is not None:
        return first + "\n" + literal(summary.problem, WRONG, limit=400)
    spec = summary.spec
    setup = ", ".join([f"prompts {spec['prompt_set']}", f"judged by {', '.join(spec['judge'])}"])
    model = elide_middle(str(spec["model"]), max(_LEAST_MODEL, width - len(f"{spec['benchmark']}, , {setup}")))
    setup = f"{spec['benchmark']}, {model}, {setup}"
    truncated = sum(p.truncated for p in summary.progress)
    facts = (
        [f"{summary.reused} reused"] * bool(summary.reused)
        + [f"{summary.errors} error{'s' * (summary.errors > 1)}"] * bool(summary.errors)
        + [f"{truncated} truncated"] * bool(truncated)
        + [f"{summary.cut_reasoning} cut while reasoning"] * bool(summary.cut_reasoning)
        + judging_progress(summary)
    )
    if run.seconds_left:
        facts.insert(0, f"{duration(run.seconds_left)} left")
    if not summary.own:
        is_bundled = is_opened_bundle(run.folder.parent.parent)
        facts.append("received, read-only" if is_bundled else "received, read-only: a adopts it")
    elif run.resumable:
        facts.append(resuming)
    note = f"{summary.note.rstrip('.')}; " if summary.note and facts else summary.note
    reason = literal(f"{note}{', '.join(facts)}", limit=300)
    conflict = conflict_result(summary, run.acts, rule)
    result = literal(_result_sentence(conflict, summary.cells))
    return Content("\n").join(
        [line for line in (first, literal(setup), reason, result, literal(conflict.hint)) if line]
    )


def _result_sentence(accuracy: ConflictResult, cells: int) -> str:
    """Return the accuracy with the conditions and cells that it is over; on the user's own data, what answers do."""
    if accuracy.measure in ("rule", "acts"):
        return accuracy.own_sentence
    if accuracy.estimate.value is None:
        return "no label yet"
    where = "under conflict" if accuracy.of_conflicts else "over all conditions, none of which has a conflict"
    conditions = f" ({', '.join(accuracy.conditions)})" if accuracy.of_conflicts else ""
    pooled = f" over all {cells:,} cells" if cells > 1 else ""
    name = accuracy.metric or f"accuracy {where}"
    return f"{name} {short_value(accuracy.estimate)}{pooled}, n={accuracy.counted}{conditions}"
