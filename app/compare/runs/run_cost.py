"""The cost of a run's answers: time, tokens and memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from app.store.run_store import RunStore
from app.store.stored_answers import StepUsage
from benchmarks.errors import StoreError


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a run's answers: seconds and tokens of the timed ones, peak memory in bytes, and the number of answers."""

    answers: int = 0
    timed: int = 0
    seconds: float = 0.0
    decode_s: float = 0.0
    decoded: int = 0
    peak_memory: int | None = None
    metered: int = 0
    tokens: int = 0
    """The tokens of prompts and answers, of all steps of the ``metered`` answers."""
    unmeasured: int = 0
    """The answers that were reused from runs that are not there. If these are most, times and memory are unknown."""

    @property
    def tokens_per_answer(self) -> float | None:
        return self.tokens / self.metered if self.metered else None

    @property
    def seconds_per_answer(self) -> float | None:
        return self.seconds / self.timed if self.timed else None

    @property
    def tokens_per_second(self) -> float | None:
        return self.decoded / self.decode_s if self.decode_s else None


class CostSum:
    """The cost of the answers added so far, errors excluded."""

    def __init__(self) -> None:
        self._answers = self._timed = self._decoded = self._metered = self._tokens = 0
        self._seconds = self._decode_s = 0.0
        self._peak: int | None = None

    def add(self, steps: Sequence[StepUsage]) -> None:
        """Add an answer, given by its steps; none if there is no answer yet."""
        if not steps or steps[-1].finish_reason == "error":
            return
        self._answers += 1
        seconds, is_timed = 0.0, False
        for _, _, completion_tokens, prefill_s, decode_s, peak_memory in steps:
            seconds += (prefill_s or 0) + (decode_s or 0)
            is_timed = is_timed or decode_s is not None
            if decode_s and completion_tokens:
                # Where the engine reports the prefill time, that includes the first token.
                self._decode_s += decode_s
                self._decoded += completion_tokens - (prefill_s is not None)
            if peak_memory is not None:
                self._peak = max(self._peak or 0, peak_memory)
        tokens = [count for step in steps for count in (step.prompt_tokens, step.completion_tokens)]
        known_tokens = [count for count in tokens if count is not None]
        if len(known_tokens) == len(tokens):
            self._metered += 1
            self._tokens += sum(known_tokens)
        if is_timed:
            self._timed += 1
            self._seconds += seconds

    def total(self) -> RunCost:
        """Return the cost."""
        return RunCost(
            self._answers,
            self._timed,
            self._seconds,
            self._decode_s,
            self._decoded,
            self._peak,
            self._metered,
            self._tokens,
        )


def with_lent(cost: RunCost, store: RunStore, conditions: Collection[str]) -> RunCost:
    """Return a run's cost with the times and memory that its reused answers took in the runs beside it that gave them."""
    lent: dict[tuple[str, str], set[str]] = {}
    for origin, is_last in store.origins():
        if is_last and origin.same is None:
            lent.setdefault((origin.run, origin.name), set()).add(origin.instance)
    if not lent:
        return cost
    of_lenders, expected = CostSum(), sum(map(len, lent.values()))
    for (run, name), instances in lent.items():
        # A name in an origin is hostile; one that is no single part names no run.
        with suppress(StoreError), RunStore.read(store.folder.parent / Path(name).name) as lender:
            if lender.meta("id") != run:
                continue
            for page in lender.pages():
                for row in page.instances:
                    if row[1] in instances:
                        steps = page.generations.get(row[0], ()) if row[2] in conditions else ()
                        of_lenders.add([StepUsage(step[6], *step[8:13]) for step in steps])
                        expected -= 1
    if 2 * expected > cost.answers:
        return replace(cost, timed=0, seconds=0.0, decode_s=0.0, decoded=0, peak_memory=None, unmeasured=expected)
    total = of_lenders.total()
    return replace(
        cost,
        timed=cost.timed + total.timed,
        seconds=cost.seconds + total.seconds,
        decode_s=cost.decode_s + total.decode_s,
        decoded=cost.decoded + total.decoded,
        peak_memory=max((p for p in (cost.peak_memory, total.peak_memory) if p is not None), default=None),
        unmeasured=expected,
    )
