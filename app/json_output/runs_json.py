"""JSON of the list of runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.report.progress.running_accuracy import judging_progress
from app.report.runs.portable_facts import portable_message
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress, NodeStatus
from app.store.workspace import Workspace
from mlx_backends.portable_model_names import without_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run of a workspace. ``benchmark``, ``model`` and ``prompt_set`` are null for one that cannot be read."""

    name: str
    title: str
    """The name that the user gave the run; empty if there is none."""
    state: str
    note: str
    """The reason for the state, such as why the run stopped."""
    problem: str | None
    """The reason why the run could not be read."""
    own: bool
    """Flag for a run made on this machine; any other is only read."""
    created: float | None
    """Seconds since 1970."""
    benchmark: str | None
    model: str | None
    prompt_set: str | None
    done: int
    total: int
    reused: int
    """The answers among ``done`` that are another run's."""
    errors: int
    failed_judgements: int
    """The failures of all judges, each in its newest version."""
    cut_reasoning: int
    """The judged answers that ended at the limit of tokens within their reasoning."""
    cells: int
    """The cells of a varied build in which each example is repeated."""
    judging: tuple[str, ...]
    """The progress of each judge that is not done, in words."""
    conditions: tuple[ConditionProgress, ...]
    nodes: tuple[NodeStatus, ...]


RunsResult = tuple[ListedRun, ...]
"""The runs, oldest first."""


def listed_run(run: RunSummary, workspace: Workspace) -> ListedRun:
    """Return a run of the workspace as listed."""
    spec = run.spec
    return ListedRun(
        name=run.name,
        title=run.title,
        state=run.state,
        note=portable_message(run.note, workspace.path, spec),
        problem=None if run.problem is None else portable_message(run.problem, workspace.path, spec),
        own=run.own,
        created=run.created,
        benchmark=spec.get("benchmark"),
        model=without_folders(spec["model"]) if "model" in spec else None,
        prompt_set=spec.get("prompt_set"),
        done=run.done,
        total=run.total,
        reused=run.reused,
        errors=run.errors,
        failed_judgements=run.failed_judgements,
        cut_reasoning=run.cut_reasoning,
        cells=run.cells,
        judging=tuple(judging_progress(run)),
        conditions=run.progress,
        nodes=tuple(replace(node, note=portable_message(node.note, workspace.path, spec)) for node in run.nodes),
    )
