"""First answers of a vision-language model as evidence: what they show is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.vocabulary import Generation, Request
from mlx_backends.core.batch_invariance import (
    BatchInvariance,
    ModeCheck,
    ReferenceAnswer,
    check_batch_invariance,
    reference_answers,
    select_requests,
)
from mlx_backends.core.expected_time import ExpectedTime, Mode
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.core.observed_answers import ObservedAnswers, key_of
from mlx_backends.core.prefix_sharing_check import (
    check_sharing,
    find_other,
    find_sibling,
    reference_answer,
    shared_media,
)
from mlx_backends.core.saved_work import Reuse, shared_prefix_length

if TYPE_CHECKING:
    from mlx_backends.mlx.mlx_preprocess import Preprocessor
    from mlx_backends.mlx.prompt_reading import SharedWork
    from mlx_backends.mlx.sequential_answers import SequentialRequest
    from mlx_backends.mlx.teacher_forcing import TeacherForcing

DOZENS = 24
"""Requests from which an answer to other media is compared, too, before prefixes are shared."""


class FirstAnswers:
    """Evidence from the first answers of a run, and the work on their prompts that later ones share.

    ``caches`` makes empty caches for that work.
    """

    def __init__(
        self, forcing: TeacherForcing, caches: Callable[[], SharedWork], preprocessor: Preprocessor, device: str
    ) -> None:
        self.answers = ObservedAnswers()
        self.expected: Mode | None = None
        """The mode that is expected to be the fastest; None where nothing was observed."""
        self.compared: Sequence[Request] = ()
        """The requests whose answers the check compares."""
        self._coming: Sequence[Request] = ()
        self._forcing = forcing
        self._caches = caches
        self._preprocessor = preprocessor
        self._device = device
        self._repeats: dict[Any, Any] = {}
        self._work: tuple[SharedWork, Reuse] | None = None

    def observe(self, requests: Sequence[Request], coming: Sequence[Request]) -> None:
        """Observe the next answers to ``requests``, of those that are ``coming``, the first ones of the run."""
        self.answers.expect(requests)
        self._coming = coming

    def add(self, work: SequentialRequest, generation: Generation) -> None:
        """Take the answer to a request that was to be observed."""
        if work.observer is not None:
            observed = work.observer.observed(generation.tokens, work.prefill_s, work.decode_s)
            self.answers.add(work.request, observed)

    def repeated(self, request: Request) -> Any | None:
        """Return the logits of an observed answer when its prompt is continued from that of a sibling; None where that fails.

        The sibling's prompt is read first, as for its answer, which uses the caches if prefixes are shared afterwards. A sibling
        shows the same media; without one, the prompt is read as a whole.
        """
        observed = self.answers.get(request)
        if observed is None or not self._coming:
            return None
        if (key := key_of(request)) not in self._repeats:
            case = reference_answer(request, observed)
            sibling = find_sibling(self._coming, request)
            if sibling is not None and self._shared([ReferenceAnswer(sibling, case.tokens[:1], None)]) is None:
                return None
            logits = self._shared([case])
            if logits is None:
                return None
            (self._repeats[key],) = logits
        return self._repeats[key]

    @property
    def has_answers(self) -> bool:
        return bool(self.answers.values())

    def is_worth_checking(self, requests: Sequence[Request], total: int, *, is_stored: bool) -> bool:
        """Decide which mode to check by the answers so far; return False if the sequential one is expected to be the fastest.

        ``requests`` are the first of ``total``. ``is_stored`` says that a check of batches has only to be confirmed.
        """
        self.compared = ()
        first = self._observed_with_sibling(requests)
        shared = 0.0 if first is None else self._shared_part(requests, first)
        answers = self.answers.values()
        expected = ExpectedTime.of(answers, total, shared, self._device, is_stored=is_stored)
        self.expected = expected.best
        if self.expected == "shared" and first is None:  # nothing to compare
            self.expected = "sequential"
        elif self.expected == "shared" and first is not None:
            other = find_other(requests, first) if total >= DOZENS else None
            self.compared = [first] if other is None else [first, other]
        elif self.expected == "batched" and expected.gives_references and not is_stored:
            self.compared = select_requests(requests)
        return self.expected != "sequential"

    def check_sharing(self, check: ModeCheck, way: str) -> BatchInvariance | None:
        """Return the result for the mode ``way``, sequential with shared prefixes, by the answers to :attr:`compared`.

        The first of these is continued from a sibling's prompt. ``check`` has what the whole check does, for what was not
        observed, and for the noise where that has to be known. None if it is to stop, or if a request cannot be answered.
        """
        first = self.compared[0]
        cases = reference_answers(self.compared, check.answer, check.stop)
        if len(cases) < len(self.compared):
            return None
        repeated, later = self.repeated(first), self._shared(cases[1:])
        if repeated is not None and later is not None:
            result = check_sharing(cases, [repeated, *later], way)
            if result is not None:
                return result
        self.drop_work()
        sibling = find_sibling(self._coming, first)
        more = [] if sibling is None else reference_answers([sibling], check.answer, check.stop)
        modes = {way: check.modes[way]}
        return check_batch_invariance([*more, *cases], check.padded, modes, check.unpadded, modes)

    def new_work(self) -> tuple[SharedWork, Reuse]:
        """Return empty caches, and the count of the work in them, and keep both."""
        self.drop_work()
        self._work = self._caches(), Reuse()
        return self._work

    def take_work(self) -> tuple[SharedWork | None, Reuse]:
        """Return the caches that the checks have filled, None if there are none, and the count of that work; keep neither.

        The prompts that were read are not counted, nor the last token of each, which no cache holds: no answer followed.
        """
        work, self._work = self._work, None
        if work is None:
            return None, Reuse()
        caches, reuse = work
        cached = reuse.computed_tokens - reuse.prompts
        return caches, replace(reuse, computed_tokens=cached, prompts=0, prompt_tokens=0, images=0)

    def drop_work(self) -> None:
        """Forget the caches, and the logits that were computed with them."""
        self._work = None
        self._repeats.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.drop_work()
        self.answers.clear()
        self.expected, self.compared, self._coming = None, (), ()

    def _observed_with_sibling(self, requests: Sequence[Request]) -> Request | None:
        observed = (request for request in requests if self.answers.get(request) is not None)
        return next((request for request in observed if find_sibling(requests, request) is not None), None)

    def _shared_part(self, requests: Sequence[Request], first: Request) -> float:
        """Return the share of the prompts' tokens that earlier prompts begin with, estimated from ``first`` and its sibling."""
        sibling = find_sibling(requests, first)
        try:
            content = self._preprocessor.inputs(first).content
            other = content[:0] if sibling is None else self._preprocessor.inputs(sibling).content
        except Exception as error:  # one that cannot be prepared becomes an error in its turn
            if metal_fault(error) is not None:
                raise
            return 0.0
        return shared_media(requests) * shared_prefix_length(content, other) / len(content)

    def _shared(self, cases: Sequence[ReferenceAnswer]) -> list[Any] | None:
        """Return the logits of ``cases``, one after the other, with shared prefixes; None where that fails."""
        if not cases:
            return []
        try:
            return self._forcing.shared(cases, self._work or self.new_work())
        except Exception as error:
            self.drop_work()  # which may be wrong by now
            if metal_fault(error) is not None:
                raise
            return None
