"""A process that probes one model: it loads it, looks at some requests of a run, keeps what it saw in the run's folder, and ends.

Started by :mod:`app.parity.probing`, which writes the order to its standard input and holds that open: when it closes, this
process ends. Its last line of standard output is a JSON object of the exit code and a message.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from app.engine.workers.device_lock import acquire_device
from app.parity import probe_store
from app.parity.outputs import told
from app.parity.probe_store import RefusedRequest, StoredProbes
from app.system.logs import write_single_lines
from benchmarks.base import Media, Request
from benchmarks.build import media_path
from benchmarks.errors import MediaError, ModelError, RashomonError
from benchmarks.media import MISSING
from mlx_backends.base import Backend
from mlx_backends.core.probe import Probe
from mlx_backends.registry import describe, load_backend

ENDPOINT = "endpoint"
"""The engine whose server is asked again, one answer at a time, since it shows nothing of what it reads."""


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """What is to be probed: of the ``run``, the first requests of the instances in ``wanted``, each led through those answers.

    ``builds`` are the folders in which its media may lie; of the first ``keep`` requests with images the pixels are kept.
    """

    run: Path
    model: str
    builds: tuple[Path, ...]
    wanted: Mapping[str, Sequence[Sequence[int]]]
    keep: int
    force: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> ProbeOrder:
        """The inverse of :meth:`to_json`."""
        given = json.loads(text)
        run, builds = Path(given.pop("run")), tuple(map(Path, given.pop("builds")))
        return cls(run=run, builds=builds, **given)


def work(order: ProbeOrder) -> None:
    """Probe, and keep it. Raises RashomonError."""
    run = told(order.run)
    requests = [run.request(instance) for instance in order.wanted]

    def media(medium: Media) -> Path:
        problem = MediaError(f"the {medium.modality} {medium.name!r}", MISSING)
        for build in order.builds:
            try:
                return media_path(build, medium)
            except MediaError as error:
                problem = error if error.reason != MISSING else problem
        raise problem

    info = describe(order.model)
    lease = None
    if info.needs_device:
        lease = acquire_device(f"parity of {order.run.name}", waiting=_say, stop=lambda: False)
    try:
        terms = replace(run.spec.api.terms(None), concurrency=1)
        backend = load_backend(order.model, media, force=order.force, terms=terms)
        try:
            digests = {request.id: request.digest for request in requests}
            engine = probe_store.plain(backend.info)
            if info.engine == ENDPOINT:
                probe_store.save(order.run, StoredProbes(engine, digests=digests, alone=alone(backend, requests)))
                return
            probes, refused = _probes(backend, requests, order)
            probe_store.save(order.run, StoredProbes(engine, probes, digests, refused=refused))
        finally:
            backend.close()
    finally:
        if lease is not None:
            lease.release()


def alone(backend: Backend, requests: Sequence[Request]) -> dict[str, str]:
    """The answers to ``requests``, asked one after the other with nothing else under way; errors are left out."""
    found: dict[str, str] = {}
    for request in requests:
        backend.submit(request)
        while not (done := backend.step()):
            pass
        found |= {one.request_id: one.text for one in done if one.finish_reason != "error"}
    return found


def _probes(
    backend: Backend, requests: Sequence[Request], order: ProbeOrder
) -> tuple[list[Probe], dict[str, RefusedRequest]]:
    probes: list[Probe] = []
    refused: dict[str, RefusedRequest] = {}
    pictured = 0
    for number, request in enumerate(requests):
        _say(f"{number + 1} of {len(requests)}")
        images = any(isinstance(part, Media) for message in request.messages for part in message.parts)
        keep = images and pictured < order.keep
        pictured += keep
        try:
            for forced in order.wanted[request.instance_id] or ((),):
                probes.append(backend.probe(request, forced, keep=keep))
                keep = False
        except (MediaError, ModelError) as error:
            lost = isinstance(error, MediaError) and error.reason == MISSING
            refused[request.id] = RefusedRequest(str(error), lost)
    if refused and not probes:
        raise ModelError(next(iter(refused.values())).why)
    return probes, refused


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> None:
    """The process's entry."""
    order = ProbeOrder.from_json(sys.stdin.readline())
    report = os.fdopen(os.dup(1), "w")  # libraries print
    os.dup2(2, 1)
    write_single_lines()
    sys.stdout = sys.stderr
    threading.Thread(target=_watch_parent, daemon=True).start()
    code, message = 0, ""
    try:
        work(order)
    except RashomonError as error:
        code, message = error.exit_code, str(error)
    print(json.dumps({"code": code, "message": message}), file=report, flush=True)
    sys.stderr.flush()
    os._exit(code)


def _watch_parent() -> None:
    sys.stdin.read()
    os._exit(130)


if __name__ == "__main__":
    main()
