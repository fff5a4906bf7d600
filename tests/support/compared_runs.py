"""Runs for comparisons, made of labels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.compare.decision.target_metric import target_metric
from app.compare.decision.target_shares import TargetShares
from app.compare.runs.packed_answers import LabelledAnswer
from app.compare.runs.run_cost import RunCost
from app.compare.runs.run_view import RunView, RunViews
from app.engine.answer_loop import AnswerLoop
from app.engine.run_plan import check_spec, plan_run
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.registry import get_benchmark
from benchmarks.stats.clusters import Clusters
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.base import Backend
from mlx_backends.models.host_machine import host_info
from mlx_backends.policy_engine import PolicyBackend

CONDITIONS = ("aligned", "image-correct", "text-correct", "both-wrong")
RIGHT = {"aligned": "BOTH", "image-correct": "IMAGE", "text-correct": "TEXT", "both-wrong": "ABSTAIN"}
WRONG = {"aligned": "NEITHER", "image-correct": "TEXT", "text-correct": "IMAGE", "both-wrong": "IMAGE"}


def answered(
    workspace: Workspace, name: str, model: str, limit: int, *, backend: Backend | None = None, **more: Any
) -> None:
    """A run of a policy, or of another ``backend``, answered and judged in this process."""
    (spec,) = BatchSpec(benchmark="cmc-bench", model=(model,), name=name, limit=limit, **more).runs()
    judge, backend = get_judge("match"), backend or PolicyBackend(model)
    assert isinstance(judge, FunctionJudge)
    with RunStore.open(plan_run(workspace, check_spec(workspace, spec)).folder) as store:
        store.use_engine({**asdict(backend.info), "machine": asdict(host_info())})
        AnswerLoop(store, backend, spec.to_protocol(), [judge], get_benchmark("cmc-bench")).run()
        store.set_meta("state", {"state": "done"})


def side(name: str, labels: Mapping[tuple[str, str], str], *, cost: RunCost | None = None, **more: Any) -> RunView:
    """A run of CMC-Bench; ``labels`` maps (example, condition) to what came of it."""
    answers = {f"{e}/{c}": LabelledAnswer(e, c, outcome, 0) for (e, c), outcome in labels.items()}
    identity = {"model": name, "quantisation": None, **more.pop("identity", {})}
    spec = {"model": name, "prompt_set": "paper", "benchmark": "cmc-bench", "judge": ["match"], "seed": 0}
    engines: tuple[dict[str, Any], ...] = more.pop("engines", ())
    return RunView(
        name, name, more.pop("state", "done"), spec, identity, engines, answers, cost or RunCost(), judged=True
    )


def sides(*runs: RunView) -> RunViews:
    """Return the runs, compared by ``match``."""
    return RunViews(get_benchmark("cmc-bench"), "match@4", runs, seed=0)


def basis_of(right: NDArray[np.bool_], costs: Sequence[RunCost] | None = None) -> TargetShares:
    """A basis of right and wrong answers, of shape (examples, conditions, runs)."""
    examples, conditions, runs = right.shape
    of = sides(*(side(f"run {i}", {}, cost=costs[i] if costs else None) for i in range(runs)))
    code = {label: i for i, label in enumerate(of.label_metrics.labels)}
    kinds = np.array([[code[WRONG[c]], code[RIGHT[c]]] for c in CONDITIONS[:conditions]])
    condition = np.tile(np.arange(conditions), examples)
    label = kinds[condition[:, None], right.reshape(-1, runs).astype(int)]
    group = np.repeat(np.arange(examples), conditions)
    return TargetShares(of, target_metric(of, None), group, Clusters.of(group), condition, label)


def simulated(
    random: np.random.Generator, examples: int, conditions: int, worse_by: Sequence[float], *, noise: float = 0.1
) -> NDArray[np.bool_]:
    """Right and wrong answers, shape (examples, conditions, 1 + len(worse_by)): a first run that is right on 70% of answers, and
    others whose accuracy is in truth lower by so much. An example's answers hang together, and so do the changes in it.

    Of a run's changes, ``noise`` of the wrong answers become right; as many right ones become wrong as the truth demands.
    """
    mean = 0.7
    ability = random.beta(mean * 3, (1 - mean) * 3, size=(examples, 1))
    first = random.random((examples, conditions)) < ability
    runs = [first]
    for less in worse_by:
        unstable = random.gamma(4, 1 / 4, size=(examples, 1))  # some examples change more than others
        lost, gained = ((1 - mean) * noise + less) / mean, noise
        change = random.random((examples, conditions)) < np.minimum(1, np.where(first, lost, gained) * unstable)
        runs.append(first ^ change)
    return np.stack(runs, -1)
