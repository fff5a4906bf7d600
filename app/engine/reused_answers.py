"""Reuse by content: answers of other runs of this machine to requests that equal a run's own."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from app.run_spec import RunSpec
from app.store.file_locks import FileLock
from app.store.reusable_answers import Lender, Loan, LoanTerms, note_lending
from app.store.run_database import storable
from app.store.run_store import RunStore
from app.store.store_types import PendingInstance
from app.store.workspace import Workspace
from app.system.version import rashomon_version
from benchmarks.errors import StoreError
from benchmarks.vocabulary import Generation, Request, canonical_json, digest
from mlx_backends import remote
from mlx_backends.base import Backend
from mlx_backends.stored_checks import circumstances

LOAN_SECONDS = 24 * 60 * 60
"""The age up to which the answer of a remote model without a dated revision is reused."""

CHECK_EVERY = 20
"""One in so many requests that could be reused is repeated, to measure how many answers a fresh run would give differently."""

_SCHEMA = "CREATE TABLE offer (request TEXT PRIMARY KEY, lender INTEGER, answer INTEGER, at REAL) WITHOUT ROWID"
_log = logging.getLogger("rashomon.reuse")


class Lenders:
    """The answers of other runs that a run may reuse, by the digest of their request.

    Their places are read from the runs' databases into a temporary one, which may be larger than memory; an answer is read from
    its run, and verified, when it is reused. Only greedy answers are, and none in place of one that was set aside. ``expires``
    limits their age to :data:`LOAN_SECONDS`, ``checks`` repeats one request in :data:`CHECK_EVERY`. ``clock`` returns seconds
    since 1970.
    """

    def __init__(
        self, store: RunStore, terms: LoanTerms, *, expires: bool, checks: bool, clock: Callable[[], float] = time.time
    ) -> None:
        self._borrower: str = store.meta("id")
        self._terms, self._expires, self._checks, self._clock = terms, expires, checks, clock
        self._repeated = store.repeated()
        self._places: list[tuple[Path, int]] = []  # the lenders' folders, each with the number of its engine
        self._open: Lender | None = None
        self._damaged: set[Path] = set()  # the lenders that were reported
        self._index = sqlite3.connect("")
        self._index.execute(_SCHEMA)

    @classmethod
    def of(cls, store: RunStore, spec: RunSpec, backend: Backend, engine: Mapping[str, Any]) -> Self:
        """Return the lenders of a run in its workspace, and record that ``backend`` answers it from now on, as ``engine``.

        They offer nothing to a ``fresh`` run, or to one with ``repeats``.
        """
        code = lending_code(backend)
        note_lending(store, code)
        terms = LoanTerms(spec.model, spec.exact, spec.kv_bits, storable(canonical_json(engine)), code)
        is_remote = backend.info.device == "remote"
        expires = is_remote and not remote.is_dated(backend.info)
        lenders = cls(store, terms, expires=expires, checks=is_remote or not spec.exact)
        if code and not spec.fresh and spec.repeats == 1:
            lenders.read(Workspace(store.folder.parent.parent))
        return lenders

    @property
    def has_offers(self) -> bool:
        """True if other runs have answers that may be reused."""
        return bool(self._index.execute("SELECT EXISTS (SELECT 1 FROM offer)").fetchone()[0])

    def read(self, workspace: Workspace) -> None:
        """Read the offers of all runs of a workspace on which no process works."""
        for name in workspace.run_names():
            self._add(workspace.runs_folder / name)
        ((newest,),) = self._index.execute("SELECT coalesce(max(at), 0) FROM offer")
        if self._expires and newest > self._clock():  # the clock went back, so the age of no answer is known
            self._index.execute("DELETE FROM offer")

    def lend(self, pending: PendingInstance, request: Request) -> Loan | None:
        """Return the answer to reuse for a request; None if there is none, or the request is repeated as a check."""
        return None if self._is_check(request) else self._loan(pending, request)

    def checked(self, pending: PendingInstance, request: Request, answer: Generation) -> Generation:
        """Return an answer to a request; one that repeats another as a check has that as its origin."""
        if answer.finish_reason == "error" or not self._is_check(request) or not (loan := self._loan(pending, request)):
            return answer
        lent = loan.generation
        assert lent.origin is not None
        same = (lent.text, lent.finish_reason) == (answer.text, answer.finish_reason)
        return replace(answer, origin=replace(lent.origin, same=same))

    def release(self) -> None:
        """Close the run that was read last."""
        if self._open is not None:
            self._open.close()
        self._open = None

    def close(self) -> None:
        """Close everything."""
        self.release()
        self._index.close()

    def _add(self, folder: Path) -> None:
        """Add the offers of a run; of equal requests, the newest answer's."""
        try:
            if FileLock(folder / "lock").holder() is not None:
                return
            with Lender.read(folder) as lender:
                lends = lender.engine_on(self._terms)
                if lends is None:
                    return
                with self._index:
                    self._index.executemany(
                        "INSERT INTO offer VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
                        " SET lender = excluded.lender, answer = excluded.answer, at = excluded.at WHERE excluded.at > at",
                        ((request, len(self._places), number, at) for request, number, at in lender.offers(*lends)),
                    )
        except (StoreError, sqlite3.Error) as error:
            _log.warning("%s lends no answers: %s", folder.name, error)
            return
        self._places.append((folder, lends[0]))

    def _is_check(self, request: Request) -> bool:
        return self._checks and int(digest([self._borrower, request.digest])[:8], 16) % CHECK_EVERY == 0

    def _loan(self, pending: PendingInstance, request: Request) -> Loan | None:
        if request.decoding.temperature or pending.ordinal in self._repeated:
            return None
        key = request.digest
        place = self._index.execute("SELECT lender, answer FROM offer WHERE request = ?", (key,)).fetchone()
        if place is None:
            return None
        folder, engine = self._places[place[0]]
        try:
            if self._open is None or self._open.folder != folder:
                self.release()
                self._open = Lender.read(folder)
            loan = self._open.loan(place[1], key, engine)
        except StoreError as error:
            if folder not in self._damaged:
                _log.warning("answers of %s are not reused: %s", folder.name, error)
            self._damaged.add(folder)
            return None
        if loan is None or (self._expires and not 0 <= self._clock() - loan.finished_at < LOAN_SECONDS):
            return None
        origin = loan.generation.origin
        return None if origin is None or origin.run == self._borrower else loan  # a copy of this run is no other one


def lending_code(backend: Backend) -> str:
    """Return what identifies the code that answers, "" for a backend whose answers are not lent.

    They are if the backend is ours, and either the digest of its weights is known or the model is a provider's.
    """
    info, is_ours = backend.info, type(backend).__module__.startswith("mlx_backends.")
    if not is_ours or (info.weights is None and info.device != "remote"):
        return ""
    return digest([rashomon_version(), circumstances()])
