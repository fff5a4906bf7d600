"""Placement of a batch's models on the nodes of a cluster by memory: side by side where they fit on different nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.engine.workers.cluster.cluster_interface import Cluster, WorkerLostError
from benchmarks.errors import ModelError
from mlx_backends.pytorch.torch_names_and_devices import wants_gpu

SURVEY_SECONDS = 60.0
"""The seconds that nodes have to report their memory; those that are busy with another run may not answer."""

_STEP_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """A node's report of the bytes that each model of a batch may take there; without those that it cannot run at all."""

    id: str
    name: str
    available: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Survey:
    """The nodes that reported their memory; ``complete`` if that is all of them."""

    nodes: Sequence[NodeMemory]
    complete: bool


def survey_memory(cluster: Cluster, models: Sequence[str], *, clock: Callable[[], float] = time.monotonic) -> Survey:
    """Return the memory of the cluster's nodes for ``models``. Raises ModelError if the cluster cannot be reached."""
    places = cluster.members()
    members = {member.node: member for member in reversed(places)}
    with_gpu = {member.node for member in places if member.has_gpu}
    asked: dict[int, str] = {}
    workers = []
    nodes = []
    try:
        for node, member in members.items():
            try:
                workers.append(cluster.start(member))
            except WorkerLostError:
                continue
            asked[cluster.call(workers[-1], "memory", tuple(models))] = node
        until = clock() + SURVEY_SECONDS
        while asked and clock() < until:
            for call, outcome in cluster.poll(_STEP_SECONDS):
                node = asked.pop(call, "")
                if node and isinstance(outcome, dict):
                    elsewhere = with_gpu and node not in with_gpu
                    memory = {name: size for name, size in outcome.items() if not (elsewhere and wants_gpu(name))}
                    nodes.append(NodeMemory(node, members[node].name.partition(" GPU ")[0], memory))
    finally:
        for worker in workers:
            cluster.release(worker)
    return Survey(sorted(nodes, key=lambda node: node.name), len(nodes) == len(members))


def check_fits(survey: Survey, needs: Mapping[str, int]) -> None:
    """Raise ModelError if models, given with the bytes that they need, fit on no node."""
    lost = [model for model in needs if not any(_fits(node, model, needs[model]) for node in survey.nodes)]
    if lost and survey.nodes and survey.complete:
        largest = max(survey.nodes, key=lambda node: max(node.available.values(), default=0))
        most = max(largest.available.values(), default=0)
        models = ", ".join(f"{model} (needs {needs[model] / 1e9:.1f} GB)" for model in lost)
        raise ModelError(
            f"no node has the memory, or the engine, for {models}; the largest is {largest.name} with {most / 1e9:.1f} GB. "
            "Leave these out, choose smaller quantisations, or add --force."
        )


def _fits(node: NodeMemory, model: str, need: int) -> bool:
    return model in node.available and need <= node.available[model]


class Placement:
    """The nodes that the jobs of a batch use now.

    A job may start if every one of its models fits on a node that no other job uses; it then uses the nodes on which one of
    them fits. Without a ``survey``, one job uses everything. Jobs are any keys.
    """

    def __init__(self, survey: Survey | None = None, needs: Mapping[str, int] | None = None) -> None:
        self._nodes = {node.id: node for node in survey.nodes} if survey is not None else {}
        self._needs = needs or {}
        self._used: dict[object, set[str]] = {}

    def size(self, models: Sequence[str]) -> int:
        """Return the need of the largest of ``models``: larger ones are placed first. 0 if there is nothing to place."""
        return max((self._needs.get(model, 0) for model in models), default=0) if len(self._nodes) > 1 else 0

    def fitting(self, model: str) -> list[str]:
        """Return the names of the nodes on which ``model`` fits."""
        return [node.name for node in self._nodes.values() if _fits(node, model, self._needs.get(model, 0))]

    def start(self, job: object, models: Sequence[str]) -> bool:
        """Return whether ``job`` can start now; it then uses its nodes until :meth:`end`."""
        free = [node for node in self._nodes.values() if not any(node.id in used for used in self._used.values())]
        fits = [{model for model in models if _fits(node, model, self._needs.get(model, 0))} for node in free]
        if self._used and not (models and set(models) <= set().union(*fits)):
            return False
        fitting = {node.id for node, models_there in zip(free, fits, strict=True) if models_there}
        self._used[job] = fitting or {node.id for node in free}  # of a model that is to be tried all the same
        return True

    def avoided(self, job: object) -> tuple[str, ...]:
        """Return the nodes that ``job`` leaves to others."""
        others = (used for other, used in self._used.items() if other != job)
        return tuple(sorted(set().union(*others) - self._used.get(job, set())))

    def end(self, job: object) -> None:
        """Take back the nodes of ``job``."""
        self._used.pop(job, None)

    def share(self) -> dict[object, list[str]]:
        """Give nodes that no job uses to all running jobs; return them for each job."""
        free = [node for node in self._nodes if not any(node in used for used in self._used.values())]
        for used in self._used.values():
            used.update(free)
        return dict.fromkeys(self._used, free) if free else {}
