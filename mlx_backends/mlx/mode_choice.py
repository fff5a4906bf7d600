"""Choice of the mode in which a vision-language model answers, by a check that its answers stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.vocabulary import Request
from mlx_backends.core.batch_invariance import (
    BATCHED,
    CHECK,
    AnsweringMode,
    BatchInvariance,
    ModeCheck,
    ReferenceAnswer,
    length_class,
    select_prepared,
)
from mlx_backends.core.prefix_sharing_check import reference_answer
from mlx_backends.mlx.first_answers import DOZENS, FirstAnswers
from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery
from mlx_backends.mlx.teacher_forcing import TeacherForcing
from mlx_backends.models.memory_and_cache_sizes import device_name
from mlx_backends.stored_checks import StoredChecks

BATCHED_SHARED = "in batches, with shared prefixes computed once"
EQUAL_SHARED = "in batches of prompts of equal length, with shared prefixes computed once"
SEQUENTIAL_SHARED = "one at a time, with shared prefixes computed once"
SHARED = (BATCHED_SHARED, EQUAL_SHARED, SEQUENTIAL_SHARED)


class ModeChoice:
    """Choice of the mode of one loaded model. ``width`` is that of the batches of the last check.

    It takes functions that return how many of some requests fit in a batch, by others that are checked, and the tokens of a
    prompt.
    """

    def __init__(
        self,
        forcing: TeacherForcing,
        recovery: FaultRecovery,
        first: FirstAnswers,
        fitting: Callable[[Sequence[Request], Sequence[Request]], int],
        prompt_tokens: Callable[[Request], int],
        kv_bits: int | None,
    ) -> None:
        self.width = 1
        self._forcing = forcing
        self._recovery = recovery
        self._first = first
        self._fitting = fitting
        self._prompt_tokens = prompt_tokens
        self._kv_bits = kv_bits

    def is_worth_checking(self, requests: Sequence[Request], total: int, stored_checks: StoredChecks | None) -> bool:
        """Return whether the mode that is expected to be the fastest for ``total`` requests has to be checked."""
        requests = [request.unscored for request in requests]
        is_stored = total >= DOZENS and self._is_stored(requests, stored_checks)
        return self._recovery.repeat(lambda: self._first.is_worth_checking(requests, total, is_stored=is_stored))

    def check(
        self, requests: Sequence[Request], stored_checks: StoredChecks | None, stop: Callable[[], bool]
    ) -> BatchInvariance | None:
        """Return the result for the best of the modes that are worth their check; None if there is nothing to compare.

        The work of a check with shared prefixes is kept for the answers.
        """
        requests = [request.unscored for request in requests]
        if self._first.expected == "shared":
            check = self._check(requests, self._first.compared, 0, stop)
            return self._first.check_sharing(check, SEQUENTIAL_SHARED)
        self._first.drop_work()
        selected, longest = self._select(requests)
        return self._check(requests, selected, longest, stop).run(stored_checks) if selected else None

    def _select(self, requests: Sequence[Request]) -> tuple[list[Request], int]:
        return select_prepared(requests, self._recovery.repeating(self._prompt_tokens))

    def _is_stored(self, requests: Sequence[Request], stored_checks: StoredChecks | None) -> bool:
        """Return whether the check of batches for these requests is stored."""
        if stored_checks is None or not stored_checks.has(CHECK):
            return False
        selected, longest = self._select(requests)
        if not selected:
            return False
        return self._check(requests, selected, longest, lambda: False).stored(stored_checks) is not None

    def _check(
        self, requests: Sequence[Request], selected: Sequence[Request], longest: int, stop: Callable[[], bool]
    ) -> ModeCheck:
        """Return the check of all modes for ``requests`` by those ``selected``, of at most ``longest`` tokens."""
        repeating, forcing, new_work = self._recovery.repeating, self._forcing, self._first.new_work
        self.width = width = self._fitting(requests, selected)
        modes: dict[str, AnsweringMode] = {}
        unpadded_modes: dict[str, AnsweringMode] = {}
        if width > 1:
            modes[BATCHED_SHARED] = repeating(forcing.mode(width, new_work))
            modes[BATCHED] = repeating(forcing.mode(width, None))
            unpadded_modes[EQUAL_SHARED] = repeating(forcing.mode(width, new_work, equal=True))
        modes[SEQUENTIAL_SHARED] = unpadded_modes[SEQUENTIAL_SHARED] = repeating(forcing.mode(1, new_work))
        conditions = {
            "width": width,
            "prompt_tokens": length_class(longest),
            "gpu": device_name(),
            "kv_bits": self._kv_bits,
        }
        return ModeCheck(
            selected,
            repeating(self._reference),
            repeating(partial(forcing.padded, width=width)),
            modes,
            conditions,
            stop,
            repeating(forcing.unpadded),
            unpadded_modes,
        )

    def _reference(self, request: Request) -> ReferenceAnswer:
        """Return the sequential answer to ``request``: as it was given, or else computed now."""
        observed = self._first.answers.get(request)
        return self._forcing.case(request) if observed is None else reference_answer(request, observed)
