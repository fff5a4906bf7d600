"""Worker process that probes one model on some requests of a run, stores the probes in the run's folder, and ends.

Started by :mod:`app.parity.model_probing`, which writes the order to its standard input and holds that open: when it closes, this
process ends. Its last line of standard output is a JSON object of the exit code and a message.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from app.engine.workers.device_lock import acquire_device
from app.parity import probe_store
from app.parity.output_stages import load_outputs
from app.parity.probe_store import RefusedRequest, StoredProbes
from app.system.worker_logs import write_single_lines
from benchmarks.build import media_path
from benchmarks.errors import MediaError, ModelError, RashomonError
from benchmarks.media import MISSING
from benchmarks.vocabulary import Media, Request
from mlx_backends.base import Backend
from mlx_backends.core.engine_probe import Probe
from mlx_backends.engine_registry import describe, load_backend

ENDPOINT = "endpoint"
"""The engine whose server answers again sequentially instead, since it exposes neither inputs nor logits."""


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """An order to probe the first requests of the instances in ``answers``, each under teacher forcing with its answers.

    ``builds`` are the folders with its media; the pixels of the first ``pixel_requests`` requests with images are stored.
    """

    run: Path
    model: str
    builds: tuple[Path, ...]
    answers: Mapping[str, Sequence[Sequence[int]]]
    pixel_requests: int
    force: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> ProbeOrder:
        """Read an order written by :meth:`to_json`."""
        fields = json.loads(text)
        run, builds = Path(fields.pop("run")), tuple(map(Path, fields.pop("builds")))
        return cls(run=run, builds=builds, **fields)


def run_order(order: ProbeOrder, waiting: Callable[[str], None]) -> None:
    """Probe the model and store the probes; ``waiting`` receives the holder of the device.

    Raises:
        RashomonError: The model cannot be probed, or the probes cannot be written.
    """
    run = load_outputs(order.run)
    requests = [run.request(instance) for instance in order.answers]

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
        lease = acquire_device(f"parity of {order.run.name}", waiting=waiting, stop=lambda: False)
    try:
        options = replace(run.spec.api.remote_options(None), concurrency=1)
        kv_bits = run.spec.kv_bits if order.model == run.spec.model else None
        backend = load_backend(order.model, media, force=order.force, remote=options, kv_bits=kv_bits)
        try:
            digests = {request.id: request.digest for request in requests}
            engine = probe_store.engine_json(backend.info)
            if info.engine == ENDPOINT:
                probe_store.save(
                    order.run, StoredProbes(engine, digests=digests, alone=answer_sequentially(backend, requests))
                )
                return
            probes, refusals = _probes(backend, requests, order)
            probe_store.save(order.run, StoredProbes(engine, probes, digests, refused=refusals))
        finally:
            backend.close()
    finally:
        if lease is not None:
            lease.release()


def answer_sequentially(backend: Backend, requests: Sequence[Request]) -> dict[str, str]:
    """Return the answers to ``requests``, requested one after the other; errors are left out."""
    answers: dict[str, str] = {}
    for request in requests:
        backend.submit(request)
        while not (done := backend.step()):
            pass
        answers |= {answer.request_id: answer.text for answer in done if answer.finish_reason != "error"}
    return answers


def _probes(
    backend: Backend, requests: Sequence[Request], order: ProbeOrder
) -> tuple[list[Probe], dict[str, RefusedRequest]]:
    probes: list[Probe] = []
    refusals: dict[str, RefusedRequest] = {}
    with_pixels = 0
    for number, request in enumerate(requests):
        _report(f"{number + 1} of {len(requests)}")
        images = any(isinstance(part, Media) for message in request.messages for part in message.parts)
        keep = images and with_pixels < order.pixel_requests
        with_pixels += keep
        try:
            for forced in order.answers[request.instance_id] or ((),):
                probes.append(backend.probe(request, forced, keep=keep))
                keep = False
        except (MediaError, ModelError) as error:
            lost = isinstance(error, MediaError) and error.reason == MISSING
            refusals[request.id] = RefusedRequest(str(error), lost)
    if refusals and not probes:
        raise ModelError(next(iter(refusals.values())).why)
    return probes, refusals


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Run the order on standard input."""
    order = ProbeOrder.from_json(sys.stdin.readline())
    report = os.fdopen(os.dup(1), "w")  # libraries print to standard output
    os.dup2(2, 1)
    write_single_lines()
    sys.stdout = sys.stderr
    threading.Thread(target=_watch_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the model is freed on the way out
    code, message = 0, ""
    try:
        run_order(order, lambda holder: print(json.dumps({"waiting": holder}), file=report, flush=True))
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
