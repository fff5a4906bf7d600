"""Examination of the server behind a remote model, and its record in a run's store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from app.store.answer_sums import ENDPOINT_KEY
from app.store.run import RunStore
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Request
from mlx_backends.remote.backend import RemoteBackend
from mlx_backends.remote.errors import EndpointChangedError
from mlx_backends.remote.examination import EndpointCheck
from mlx_backends.sight_check import sight_requests


def examine_endpoint(
    store: RunStore, backend: RemoteBackend, requests: Sequence[Request], stop: Callable[[], bool], *, force: bool
) -> None:
    """Examine the server of ``backend`` by the first of a run's ``requests`` with pictures, once a run.

    An examination without a problem by an earlier worker is taken over. Raises ModelError if the server is shown not to give
    the model its pictures, unless ``force``.
    """
    selected = sight_requests(requests)
    if not selected:
        return
    checks = store.meta(ENDPOINT_KEY, [])
    if checks and not checks[-1]["problem"]:
        known = {field.name for field in fields(EndpointCheck)} - {
            "calls",
            "prompt_tokens",
            "completion_tokens",
            "seconds",
        }
        backend.resume_examination(EndpointCheck(**{name: checks[-1][name] for name in known & checks[-1].keys()}))
        return
    try:
        check = backend.examine(selected[0], stop)
    finally:
        record_check(store, backend)
    if check is not None and check.problem and not force:
        raise ModelError(
            f"{backend.info.model} is refused: {check.problem}. Repair its server, or add --force to get its answers."
        )


@contextmanager
def confirmed_answers(store: RunStore, backend: object, stop: Callable[[], bool]) -> Iterator[None]:
    """Check the server once more when the block ends, and record its examination.

    If the server no longer gives the model its pictures, the answers since the last check are set aside, to be requested again.
    """
    if not isinstance(backend, RemoteBackend):
        yield
        return
    try:
        yield
        if not stop():
            backend.confirm(stop)
    except EndpointChangedError as error:
        store.repeat(instances=error.unconfirmed)
        raise
    finally:
        record_check(store, backend)


def record_check(store: RunStore, backend: RemoteBackend) -> None:
    """Store the examination so far of this worker's backend with the run."""
    check = backend.endpoint_check
    if check is None or not check.calls:
        return
    entry = {"at": backend.opened_at, **asdict(check)}

    def updated(known: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
        return [*(other for other in known or [] if other["at"] != entry["at"]), entry]

    store.change_meta(ENDPOINT_KEY, updated)
