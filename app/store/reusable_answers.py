"""Lending: a run's answers, as other runs of this machine may reuse them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

from app.store.answer_sums import ENDPOINT_KEY
from app.store.integrity import stored_values
from app.store.run_store import RunStore
from benchmarks.vocabulary import Generation, Origin

_NAMED = 3
"""The most runs that a sentence names."""

LENDING_KEY = "lending"
"""The meta key of the code that gave a run's answers: entries with ``code``, and the id of the answer ``after`` which it did.

The code is "" where it is not known, as on a cluster. A run without entries, such as an adopted one, lends nothing.
"""


@dataclass(frozen=True, slots=True)
class LoanTerms:
    """Facts that two answers must share, besides their request, for one to be reused as the other.

    ``engine`` is the JSON of what answers, with its weights, versions and machine; ``code`` identifies Rashomon's own code.
    """

    model: str
    exact: bool
    kv_bits: int | None
    engine: str
    code: str


class Loan(NamedTuple):
    """A reused answer with its origin, and the time at which it was given, in seconds since 1970."""

    generation: Generation
    finished_at: float


class Lender(RunStore):
    """A run that may lend its answers; opened through :meth:`read`."""

    @cached_property
    def _id(self) -> str:
        return str(self.meta("id"))

    def engine_on(self, terms: LoanTerms) -> tuple[int, int] | None:
        """Return the number of the engine whose answers may be lent, and the id after which these come; None if none may.

        No answer is of a run that was made elsewhere, that repeats its instances, or whose model was not shown its pictures.
        """
        spec, entries = self.meta("spec"), self.meta(LENDING_KEY, [])
        settings = spec.get("model"), spec.get("exact", False), spec.get("kv_bits"), spec.get("repeats", 1)
        if not entries or entries[-1]["code"] != terms.code or not self.own:
            return None
        checks = [*self.meta(ENDPOINT_KEY, []), *self.meta("sight", [])]
        if settings != (terms.model, terms.exact, terms.kv_bits, 1) or any(check.get("problem") for check in checks):
            return None
        engines = (int(row["id"]) for row in self._whole("engine") if row["info"] == terms.engine)
        return next(((engine, int(entries[-1]["after"])) for engine in engines), None)

    def offers(self, engine: int, after: int) -> Iterator[tuple[str, int, float]]:
        """Yield the digest of the request, the id and the time of every answer that may be lent, not verified yet."""
        yield from self._streamed(
            "SELECT request, id, finished_at FROM generation WHERE accepted AND engine = ? AND id > ?"
            " AND finish_reason != 'error'",
            (engine, after),
        )

    def loan(self, number: int, request: str, engine: int) -> Loan | None:
        """Return the answer with this id, verified; None if it is not the ``engine``'s accepted answer to ``request``.

        Raises DamagedError.
        """
        for row in self._stored("generation", "WHERE r.id = ? AND r.accepted", (number,)):
            if (row["engine"], row["request"]) != (engine, request) or row["finish_reason"] == "error":
                continue
            for instance in self._stored("instance", "WHERE r.ordinal = ?", (row["instance"],)):
                answer = self._parsed("generation", tuple(row.values()), partial(stored_values.generation, ""))
                own = Origin(self._id, self.folder.name, instance["id"])
                origin = answer.origin if answer.is_reused else own
                return Loan(replace(answer.without_call(), origin=origin), row["finished_at"])
        return None


@dataclass(frozen=True, slots=True)
class ReusedAnswers:
    """Counts of a run's reused answers, and of the requests that were repeated to check that.

    Attributes:
        run: The run's own id.
        answers: The number of its answers so far.
        lenders: The number of its answers by the id of the run that gave them.
        names: The names of those runs, at the time.
        checked: The number of repeated requests.
        differing: The number of these that were answered differently.
        exact: True if all runs answered each request by itself on this machine, so that no answer can differ.
    """

    run: str
    answers: int
    lenders: Mapping[str, int]
    names: Mapping[str, str]
    checked: int
    differing: int
    exact: bool

    @classmethod
    def load(cls, store: RunStore) -> Self:
        """Return the counts of a run. Raises DamagedError."""
        lenders, names, checks = Counter[str](), dict[str, str](), Counter[bool]()
        for origin, is_last in store.origins():
            if origin.same is not None:
                checks[origin.same] += 1
            elif is_last:
                lenders[origin.run] += 1
                names[origin.run] = origin.name
        exact = bool(store.meta("spec").get("exact")) and store.meta("identity", {}).get("device") != "remote"
        done = sum(p.done for p in store.progress())
        return cls(store.meta("id"), done, lenders, names, checks.total(), checks[False], exact)

    @property
    def sentence(self) -> str:
        """The numbers of answers reused, and of those that a fresh run gives differently; "" if none was reused."""
        if not self.lenders:
            return ""
        if len(self.lenders) == 1:
            source = "".join(self.names.values())
        else:
            most = Counter(self.lenders).most_common(_NAMED)
            source = ", ".join(f"{self.names[run]} ({count:,})" for run, count in most)
            source += f" and {len(self.lenders) - _NAMED} more" if len(self.lenders) > _NAMED else ""
        reused = f"{sum(self.lenders.values()):,} of {self.answers:,} answers reused from {source}"
        if self.exact:
            return f"{reused}, as --exact gives them again"
        if not self.checked:
            return f"{reused}; none was asked again to check that"
        differ = f"{self.differing or 'none'} differ{'s' * (self.differing < 2)}"
        return f"{reused}; of {self.checked:,} asked again to check that, {differ}"


def note_lending(store: RunStore, code: str) -> None:
    """Record the code that gives a run's answers from now on."""
    entries: list[dict[str, Any]] = store.meta(LENDING_KEY, [])
    if not entries or entries[-1]["code"] != code:
        store.set_meta(LENDING_KEY, [*entries, {"after": store.version()[0], "code": code}])
