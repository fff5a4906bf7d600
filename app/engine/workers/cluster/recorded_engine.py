"""Device and versions that a run, or a judge of it, records: on a cluster, those of the first node that works for it."""

from __future__ import annotations

from dataclasses import replace

from app.engine.run_identity import engine_in, with_engine
from app.engine.workers.cluster.node_sameness import differences
from app.store.run_store import RunStore
from benchmarks.errors import SpecError
from judges.rubric_judge import RubricJudge
from mlx_backends.base import EngineInfo


def recorded_engine(store: RunStore, judge: RubricJudge | None, info: EngineInfo) -> EngineInfo | None:
    """Return ``info`` with the device and versions of a run's answers, or a ``judge``'s verdicts; None while there are none."""
    if judge is None:
        return engine_in(store.meta("identity"), info) if store.has_answers else None
    identity = store.meta("judges")[judge.id]
    has_verdicts = any(judge.id in progress.judged for progress in store.progress())
    return replace(info, device=identity["device"], versions=identity["versions"]) if has_verdicts else None


def record_engine(
    store: RunStore, judge: RubricJudge | None, recorded: EngineInfo | None, info: EngineInfo, *, accept: bool
) -> None:
    """Store the device and versions of what answers or judges from now on, unless some are ``recorded`` already.

    Raises SpecError if those are others, unless they are to be ``accept``ed.
    """
    if recorded is not None:
        _, others = differences(recorded, info)
        if others and not accept:
            raise SpecError(
                f"the nodes do not have the engine of {store.folder.name}: {'; '.join(others)}; add --accept-engine to "
                "continue anyway."
            )
    elif judge is None:
        store.change_meta("identity", lambda known: with_engine(known or {}, info))
    else:
        engine = {"device": info.device, "versions": dict(info.versions)}
        store.change_meta("judges", lambda known: {**known, judge.id: {**known[judge.id], **engine}})
