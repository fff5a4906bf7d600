"""Examination of the server behind a remote model, and its record in a run's store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from app.store.answer_sums import ENDPOINT_KEY
from app.store.run_store import RunStore
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Request
from mlx_backends.base import Backend
from mlx_backends.remote.endpoint_examination import EVIDENCE, TRUNCATES, EndpointCheck, Evidence, has_pictures
from mlx_backends.remote.remote_errors import EndpointChangedError
from mlx_backends.remote.remote_names_and_media import parse
from mlx_backends.remote.server_presets import PRESETS

if TYPE_CHECKING:
    from mlx_backends.remote.remote_backend import RemoteBackend


def as_remote(backend: Backend) -> RemoteBackend | None:
    """Return ``backend`` if a server answers behind it; None for any other."""
    if backend.info.device != "remote":
        return None
    from mlx_backends.remote.remote_backend import RemoteBackend

    return backend if isinstance(backend, RemoteBackend) else None


def examine_endpoint(
    store: RunStore, backend: RemoteBackend, requests: Iterable[Request], stop: Callable[[], bool], *, force: bool
) -> None:
    """Examine the server of ``backend`` by the first of a run's ``requests`` with pictures, once a run.

    An examination without a problem by an earlier worker is taken over; after one with a problem, the server must show the
    strongest evidence again that it ever showed in this run. Raises ModelError if the server is shown not to give
    the model its pictures, unless ``force``.
    """
    checks = store.meta(ENDPOINT_KEY, [])
    if checks and not checks[-1]["problem"]:
        known = {field.name for field in fields(EndpointCheck)} - {
            "calls",
            "prompt_tokens",
            "completion_tokens",
            "seconds",
            "spot_checks",
        }
        backend.resume_examination(EndpointCheck(**{name: checks[-1][name] for name in known & checks[-1].keys()}))
        return
    request = next(filter(has_pictures, requests), None)
    if request is None:
        return
    try:
        check = backend.examine(request, stop, _strongest_evidence(checks))
    finally:
        record_check(store, backend)
    if check is not None and check.problem and not force:
        repair = _repair(store.meta("spec")["model"], check.problem)
        raise ModelError(
            f"{backend.info.model} is refused: {check.problem}. {repair}, or add --force to get its answers."
        )


def _strongest_evidence(checks: Iterable[Mapping[str, Any]]) -> Evidence:
    return min((check.get("evidence", "") for check in checks), key=EVIDENCE.index, default="")


def _repair(model: str, problem: str) -> str:
    """Return what to do about a problem of the server of ``model``, as the beginning of a sentence."""
    preset = PRESETS.get(parse(model).preset or "")
    if preset is None:
        return "Repair the server"
    advice = preset.context if problem.startswith(TRUNCATES) else preset.pictures
    return advice[0].upper() + advice[1:]


@contextmanager
def confirmed_answers(store: RunStore, backend: RemoteBackend | None, stop: Callable[[], bool]) -> Iterator[None]:
    """Check the server, if there is one, once more when the block ends, and record its examination.

    If the server no longer gives the model its pictures, the answers since the last check are set aside, to be requested again.
    """
    if backend is None:
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
