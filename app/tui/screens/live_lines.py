"""Lines on a run's state, progress, result and judges, and the end of its log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.report.progress.remaining_time import duration
from app.report.progress.running_accuracy import conflict_result, overall_accuracy
from app.report.tables.table_rendering import short_value
from app.store.run_facts import judge_progress
from app.store.run_summary import RunSummary
from app.tui.theme import RIGHT
from app.tui.widgets.text_bars import Parts, progress_bar, sparkline
from app.tui.workspace_watcher import WatchedRun
from benchmarks.untrusted.safe_files import UnsafeFileError, open_read

_LOG_BYTES = 64 * 1024


def situation(run: WatchedRun, awaited: bool) -> str:
    """Return the run's state and what to do about it, in one line; ``awaited`` if a process is about to start it."""
    state, note = run.summary.state, run.summary.note
    if awaited:
        return "planned, starts by itself" if state == "planned" else "resumes in a moment"
    reason = f": {note}" if note else ""
    texts = {
        "planned": f"planned{reason or ', not started'}; R starts it",
        "queued": f"queued{reason}",
        "loading": f"loading the model{reason}",
        "running": "answering",
        "judging": f"judging{reason}",
        "paused": "paused, model still in memory; R resumes, x stops",
        "interrupted": f"interrupted{reason}; R resumes it",
        "partial": "some conditions are done; R runs the rest",
        "stopped": f"stopped early{reason}; R answers the rest",
        "failed": f"failed{reason} R resumes it",
        "done": "done",
    }
    return texts.get(state, state)


def progress_parts(run: WatchedRun, width: int, speeds: Sequence[float]) -> Parts:
    """Return the run's progress and speed; the speeds of the last changes are bars."""
    summary = run.summary
    line: Parts = [*progress_bar(summary.done, summary.total, width), (f" {summary.done}/{summary.total}", "")]
    if summary.reused:
        line.append((f"  {summary.reused} reused", ""))
    if run.answers_per_second is not None:
        line.append((f"  {60 * run.answers_per_second:.4g} answers/min", ""))
        line.append((f" {sparkline([*speeds], width)}", RIGHT))
    if run.tokens_per_second is not None:
        line.append((f"  {run.tokens_per_second:.0f} tokens/s", ""))
    if run.seconds_left is not None and summary.done < summary.total:
        line.append((f"  {duration(run.seconds_left)} left", ""))
    return line


def result_so_far(run: WatchedRun, rule: str | None) -> str:
    """Return the accuracy so far under conflict, and over all conditions; on the user's own data, what answers do."""
    summary = run.summary
    conflict, overall = conflict_result(summary, run.acts, rule), overall_accuracy(summary)
    if run.acts is not None:
        return "; ".join(filter(None, (conflict.own_sentence, conflict.hint)))
    if overall.value is None:
        return "no label yet"
    estimates = {"overall": overall}
    if conflict.of_conflicts:
        estimates = {"under conflict": conflict.estimate, "overall": overall}
    pooled = f" over {summary.cells:,} cells" if summary.cells > 1 else ""
    texts = [f"{where} {short_value(value)}{pooled}, n={value.n}" for where, value in estimates.items()]
    return f"accuracy {', '.join(texts)}"


def judge_lines(summary: RunSummary) -> list[str]:
    """Return one line for each judge, with its counts of labelled, waiting, unparsed, undecided and failed answers."""
    lines = []
    for p in judge_progress(summary.spec, summary.progress):
        waiting, judged = max(0, p.now - p.judged), p.counts
        if not p.judged and not waiting:
            continue
        counts = [f"{judged.labelled} labelled"]
        counts += [f"{waiting} waiting"] * bool(waiting)
        counts += [f"{judged.unparsed} unparsed"] * bool(judged.unparsed)
        counts += [f"{judged.undecided} undecided"] * bool(judged.undecided)
        counts += [f"{judged.failed} failed"] * bool(judged.failed)
        lines.append(f"{p.judge}: {', '.join(counts)}")
    return lines


def log_tail(path: Path) -> str:
    """Return the end of a log; empty if there is none."""
    try:
        with open_read(path.parent, path.name) as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(0, size - _LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except UnsafeFileError as error:
        return str(error)
    except OSError:
        return ""
    return "\n".join(lines[-200:])
