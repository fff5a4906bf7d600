"""Runs for parity, asked and looked at in this process: seconds instead of the minute that real processes take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from app.engine.answer_loop import AnswerLoop
from app.engine.run_plan import create_run, identity_of, open_build
from app.parity import model_probing, probe_worker
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Instance
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.base import Backend
from mlx_backends.engine_registry import describe, load_backend


def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have models looked at here instead of in processes of their own."""

    def work(order: probe_worker.ProbeOrder, report: Callable[[str], None]) -> str:
        try:
            probe_worker.run_order(order, report)
        except RashomonError as error:
            return str(error)
        return ""

    monkeypatch.setattr(model_probing, "_run", work)


def finished_run(
    workspace: Workspace,
    name: str,
    model: Path | str,
    instances: Sequence[Instance],
    *,
    max_tokens: int = 6,
    before: Callable[[Backend], None] = lambda backend: None,
) -> Path:
    """A finished run of ``model`` on ``instances`` of CMC-Bench; ``before`` is done to the backend before it is asked."""
    (spec,) = BatchSpec(
        benchmark="cmc-bench",
        model=(str(model),),
        name=name,
        decoding={"max_tokens": max_tokens},  # type: ignore[arg-type]
    ).runs()
    build, benchmark, judge = open_build(workspace, spec), get_benchmark("cmc-bench"), get_judge("match")
    assert isinstance(judge, FunctionJudge)
    workspace.make()
    folder = workspace.runs_folder / name
    create_run(workspace, spec, folder, identity_of(spec, build, describe(spec.model)), instances, data=build.path)
    backend = load_backend(spec.model, build.media_path)
    backend.use_sequential_mode()
    before(backend)
    with RunStore.open(folder) as store:
        store.use_engine(asdict(backend.info))
        AnswerLoop(store, backend, benchmark.protocol(spec.to_decoding()), [judge], benchmark).run()
        store.set_meta("state", {"state": "done"})
    backend.close()
    return folder
