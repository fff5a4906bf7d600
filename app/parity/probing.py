"""Having the models of runs probed where they can be loaded, each in a process of its own, or taking what was kept earlier."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.parity import probe_store
from app.parity.outputs import RunOutputs, told
from app.parity.probe_store import StoredProbes
from app.parity.worker import ENDPOINT, ProbeOrder
from app.system.logs import Log
from benchmarks.errors import RashomonError, StoreError
from mlx_backends import remote
from mlx_backends.policy import PREFIX
from mlx_backends.registry import IMPORTED, describe

PROBES = 16
"""How many requests are looked at, where nobody says otherwise."""

FORCED = 32
"""At most so many tokens of an answer a model is led through."""

KEPT_PIXELS = 4
"""Of so many requests the processed pixels are kept: an image of a megapixel takes some tens of megabytes."""

_WEIGHTS = "weights digest"


def _quiet(line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How models are looked at: ``probes`` requests, 0 none, whose media lie in ``builds``.

    ``force`` loads a model even if it does not seem to fit; ``say`` is told what is under way.
    """

    probes: int = PROBES
    builds: Sequence[Path] = ()
    force: bool = False
    say: Callable[[str], None] = _quiet


@dataclass(frozen=True)
class ProbeResult:
    """What was seen of one side; ``why`` is a sentence where that is nothing."""

    kept: StoredProbes | None
    why: str = ""


Known = tuple[RunOutputs, StoredProbes | None]
"""A run, and what was kept in its folder by then."""


def known_runs(folders: Sequence[Path], look: ProbeOptions) -> list[Known]:
    """The runs in ``folders``, each with what was kept of its model, which is read only where models are looked at."""
    return [(told(folder), probe_store.load(folder) if look.probes else None) for folder in folders]


def choose(a: Known, b: Known, count: int, differing: Sequence[str]) -> list[str]:
    """The instances to look at: half of them from those whose answers differ, the others from all, evenly spread.

    Of a run whose model is elsewhere only those that were looked at there can be.
    """
    (one, _), (other, _) = a, b
    shared = [
        i for i, record in one.records.items() if record.answer and i in other.records and other.records[i].answer
    ]
    for run, known in (a, b):
        if known is not None and elsewhere(run):
            shared = [i for i in shared if known.digests.get((of := run.request(i)).id) == of.digest]
    differing = [i for i in differing if i in set(shared)]
    first = _spread(differing, min(len(differing), count // 2))
    rest = [i for i in shared if i not in set(first)]
    return first + _spread(rest, min(len(rest), count - len(first)))


def probe(before: Known, asked: Mapping[str, Sequence[Sequence[int]]], look: ProbeOptions) -> ProbeResult:
    """What the model of a run makes of the instances ``asked``, each led through those answers."""
    run, known = before
    model = run.spec.model
    why = elsewhere(run)
    if known is not None and (why or _has(known, run, asked)):
        return ProbeResult(known)
    if why:
        return ProbeResult(None, why)
    look.say(f"looking at what {Path(model).name or model} makes of {len(asked)} requests of {run.folder.name}")
    order = ProbeOrder(run.folder, model, tuple(look.builds), asked, KEPT_PIXELS, look.force)
    message = _run(order)
    if message:
        return ProbeResult(known, "" if known else message)
    return ProbeResult(probe_store.load(run.folder))


def elsewhere(run: RunOutputs) -> str:
    """Why the model of a run cannot be probed here, in a sentence; empty where it can."""
    model = run.spec.model
    if model.startswith((PREFIX, IMPORTED)):
        return f"{model} has no model to look at."
    try:
        info = describe(model)
    except RashomonError as error:
        return str(error)
    if remote.is_remote(model) and info.engine != ENDPOINT:
        return f"{model} does not show what it makes of a prompt."
    if remote.is_remote(model) and probe_store.place_of(run.folder)[0] != run.folder:
        return (
            f"{run.folder.name} was not made on this machine, and {model} is not asked on its behalf; adopt it first."
        )
    before = run.identity.get(_WEIGHTS)
    if before and info.weights != before:
        return f"the model of that name here has other weights than the run ({model})."
    return ""


def _has(known: StoredProbes, run: RunOutputs, asked: Mapping[str, Sequence[Sequence[int]]]) -> bool:
    """Whether what was kept answers what is asked, by the same engine."""
    if known.engine != probe_store.plain(describe(run.spec.model)):
        return False
    for instance, answers in asked.items():
        request = run.request(instance)
        if known.digests.get(request.id) != request.digest:
            return False
        if (refused := known.refused.get(request.id)) is not None and refused.lost:
            return False  # it may have been put back
        if request.id in known.alone or refused is not None:
            continue
        if any(known.of(request.id, forced) is None for forced in answers or ((),)):
            return False
    return True


def _run(order: ProbeOrder) -> str:
    """Run the worker; why it failed, empty where it did not."""
    try:
        folder, inside = probe_store.make_place(order.run)
        log = Log(folder, f"{inside}parity.log")
    except (StoreError, OSError) as error:
        return f"{error} What a model makes of its prompts is kept in its run's folder."
    with log.pump("worker") as pump:
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "app.parity.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=pump.fileno(),
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(f"{order.to_json()}\n".encode())
            worker.stdin.flush()
            said = worker.stdout.read()
            worker.wait()
        finally:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
            worker.stdin.close()
            worker.stdout.close()
    pump.finish()
    log.close()
    try:
        return str(json.loads(said.splitlines()[-1])["message"])
    except (IndexError, ValueError, KeyError):
        return f"the process that looked at {order.model} ended with code {worker.returncode}; {log.path} says more."


def _spread(every: Sequence[str], count: int) -> list[str]:
    return [every[i * len(every) // count] for i in range(count)] if count else []
