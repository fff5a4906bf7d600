"""Probing of the models of runs, each in its own process, with stored probes where they suffice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.engine.workers.worker_stop_time import end_worker, held_memory, stop_seconds
from app.parity import probe_store
from app.parity.output_stages import RunOutputs, load_outputs
from app.parity.probe_store import StoredProbes
from app.parity.probe_worker import ENDPOINT, ProbeOrder
from app.system.worker_logs import Log
from benchmarks.errors import RashomonError, StoreError
from mlx_backends import remote
from mlx_backends.baseline_engine import WITHOUT_REQUESTS
from mlx_backends.engine_registry import describe
from mlx_backends.mlx.metal.metal_switches import with_full_fp32
from mlx_backends.policy_engine import PREFIX

DEFAULT_PROBES = 16
"""The default number of requests to probe."""

MAX_FORCED_TOKENS = 32
"""The most tokens of an answer that are forced through a model."""

PIXEL_REQUESTS = 4
"""The number of requests whose processed pixels are stored: a megapixel image takes tens of megabytes."""

_WEIGHTS = "weights digest"


def _quiet(line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Options of probing: the number of requests (0 for none), and the folders with their media.

    ``force`` loads a model even if it does not seem to fit; ``report`` receives progress messages.
    """

    probes: int = DEFAULT_PROBES
    builds: Sequence[Path] = ()
    force: bool = False
    report: Callable[[str], None] = _quiet


@dataclass(frozen=True)
class ProbeResult:
    """The probes of one run; ``why`` is a sentence where there are none."""

    stored: StoredProbes | None
    why: str = ""


RunWithProbes = tuple[RunOutputs, StoredProbes | None]
"""A run with its stored probes."""

ForcedAnswers = Mapping[str, Sequence[Sequence[int]]]
"""The answers to force through a model, as tokens, by instance."""


def load_with_probes(folders: Sequence[Path], options: ProbeOptions) -> list[RunWithProbes]:
    """Return the runs in ``folders`` with their stored probes, which are read only if models are probed."""
    return [(load_outputs(folder), probe_store.load(folder) if options.probes else None) for folder in folders]


def choose_instances(a: RunWithProbes, b: RunWithProbes, count: int, differing: Sequence[str]) -> list[str]:
    """Return the instances to probe: up to half of them with differing answers, the others evenly spread.

    Where a run's model is unavailable, only the instances with stored probes can be chosen.
    """
    records_a, records_b = a[0].records, b[0].records
    shared = [i for i, record in records_a.items() if record.answer and i in records_b and records_b[i].answer]
    for run, stored_probes in (a, b):
        if stored_probes is not None and unavailable_reason(run):
            shared = [i for i in shared if stored_probes.digests.get((request := run.request(i)).id) == request.digest]
    differing = [i for i in differing if i in set(shared)]
    first = _spread(differing, min(len(differing), count // 2))
    rest = [i for i in shared if i not in set(first)]
    return first + _spread(rest, min(len(rest), count - len(first)))


def probe_run(known: RunWithProbes, answers: ForcedAnswers, options: ProbeOptions) -> ProbeResult:
    """Probe the model of a run on the instances in ``answers``, unless its stored probes cover them."""
    run, stored_probes = known
    model = run.spec.model
    unavailable = unavailable_reason(run)
    if stored_probes is not None and (unavailable or _covers(stored_probes, run, answers)):
        return ProbeResult(stored_probes)
    if unavailable:
        return ProbeResult(None, unavailable)
    options.report(f"probing {Path(model).name or model} with {len(answers)} requests of {run.folder.name}")
    order = ProbeOrder(run.folder, model, tuple(options.builds), answers, PIXEL_REQUESTS, options.force)
    message = _run(order, options.report)
    if message:
        return ProbeResult(stored_probes, "" if stored_probes else message)
    return ProbeResult(probe_store.load(run.folder))


def unavailable_reason(run: RunOutputs) -> str:
    """Return why the model of a run cannot be probed here, a sentence; empty where it can."""
    model = run.spec.model
    if model.startswith((PREFIX, *WITHOUT_REQUESTS)):
        return f"{model} has no model to probe."
    try:
        info = describe(model)
    except RashomonError as error:
        return str(error)
    if remote.is_remote(model) and info.engine != ENDPOINT:
        return f"{model} is a remote model, which does not expose its inputs or logits."
    if remote.is_remote(model) and probe_store.probe_location(run.folder)[0] != run.folder:
        return (
            f"{run.folder.name} was not made on this machine, so {model} gets no requests for it; adopt the run first."
        )
    weights = run.identity.get(_WEIGHTS)
    if weights and info.weights != weights:
        return f"the model {model} on this machine has other weights than the run's."
    return ""


def _covers(stored: StoredProbes, run: RunOutputs, answers: ForcedAnswers) -> bool:
    """Return whether the stored probes cover ``answers``, by the same engine."""
    if stored.engine != probe_store.engine_json(describe(run.spec.model)):
        return False
    for instance, forced_answers in answers.items():
        request = run.request(instance)
        if stored.digests.get(request.id) != request.digest:
            return False
        if (refusal := stored.refused.get(request.id)) is not None and refusal.lost:
            return False  # the file may be back
        if request.id in stored.alone or refusal is not None:
            continue
        if any(stored.forced_probe(request.id, forced) is None for forced in forced_answers or ((),)):
            return False
    return True


def _run(order: ProbeOrder, report: Callable[[str], None]) -> str:
    """Run the worker; return why it failed, empty where it did not. ``report`` receives what it waits for."""
    try:
        folder, prefix = probe_store.make_probe_location(order.run)
        log = Log(folder, f"{prefix}parity.log")
    except (StoreError, OSError) as error:
        return f"{error} Probes are stored in the run's folder."
    with log.pump("worker") as pump:
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "app.parity.probe_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=pump.fileno(),
            env={**with_full_fp32(os.environ), "PYTHONUNBUFFERED": "1"},
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(f"{order.to_json()}\n".encode())
            worker.stdin.flush()
            outcome: Mapping[str, Any] = {}
            for line in worker.stdout:
                outcome = _parsed(line)
                if "waiting" in outcome:
                    report(f"waiting for {outcome['waiting']}")
            worker.wait()
        finally:
            end_worker(worker, stop_seconds(held_memory([order.model])))
            worker.stdin.close()
            worker.stdout.close()
    pump.finish()
    log.close()
    if "message" in outcome:
        return str(outcome["message"])
    return f"the process that probed {order.model} ended with code {worker.returncode}; see {log.path}."


def _parsed(line: bytes) -> Mapping[str, Any]:
    """Return a line of the worker's report; empty for one that it was killed in."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _spread(instances: Sequence[str], count: int) -> list[str]:
    return [instances[i * len(instances) // count] for i in range(count)] if count else []
