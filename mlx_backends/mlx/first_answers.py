"""First answers of a vision-language model as evidence: what they show is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.vocabulary import Request
from mlx_backends.core.batch_invariance import (
    BatchInvariance,
    ModeCheck,
    ReferenceAnswer,
    check_batch_invariance,
    check_sharing,
    reference_answer,
    reference_answers,
    select_pair,
    select_requests,
    shared_media,
)
from mlx_backends.core.expected_time import ExpectedTime, Mode
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.core.observed_answers import ObservedAnswers
from mlx_backends.core.reuse import Reuse, shared_prefix_length

if TYPE_CHECKING:
    from mlx_backends.mlx.vlm_batch import SharedWork, VLMRows

DOZENS = 24
"""Requests from which a third answer, to other media, is compared before prefixes are shared."""

_FEWEST_CASES = 2
""":func:`check_sharing` of one request would compare nothing that was shared."""


class FirstAnswers:
    """What the first answers of a run show, and the work on their prompts that later ones share.

    ``rows`` makes rows of width one for :class:`SharedWork`, which ``caches`` makes, and counts in a :class:`Reuse`; ``force``
    forces cases in rows; ``content`` returns the content of a request's prompt.
    """

    def __init__(
        self,
        rows: Callable[[SharedWork, Reuse], VLMRows],
        caches: Callable[[], SharedWork],
        force: Callable[[VLMRows, Sequence[ReferenceAnswer]], list[Any]],
        content: Callable[[Request], Any],
        device: str,
    ) -> None:
        self.answers = ObservedAnswers()
        self.expected: Mode | None = None
        """The mode that is expected to be the fastest; None where nothing was observed."""
        self.compared: Sequence[Request] = ()
        """The requests whose answers the check compares."""
        self.exact = False
        self._rows = rows
        self._caches = caches
        self._force = force
        self._content = content
        self._device = device
        self._repeats: dict[str, Any] = {}
        self._work: tuple[SharedWork, Reuse] | None = None

    def repeated(self, request: Request) -> Any | None:
        """Return the logits of an observed answer when its prompt is read again, into caches; None where that fails.

        The caches are used if prefixes are shared afterwards.
        """
        observed = self.answers.get(request)
        if observed is None or self.exact:
            return None
        if request.id not in self._repeats:
            logits = self._shared([reference_answer(request, observed)])
            if logits is None:
                return None
            (self._repeats[request.id],) = logits
        return self._repeats[request.id]

    @property
    def has_answers(self) -> bool:
        return bool(self.answers.values())

    def is_worth_checking(self, requests: Sequence[Request], total: int, *, is_stored: bool) -> bool:
        """Decide which mode to check by the answers so far; return False if the sequential one is expected to be the fastest.

        ``requests`` are the first of ``total``. ``is_stored`` says that a check of batches has only to be confirmed.
        """
        self.compared = ()
        pair, answers = self._pair(requests), self.answers.values()
        expected = ExpectedTime.of(answers, total, self._shared_part(requests, pair), self._device, is_stored=is_stored)
        self.expected = expected.best
        if self.expected == "shared":
            self.compared = pair if total >= DOZENS else pair[:2]
        elif self.expected == "batched" and expected.gives_references and not is_stored:
            self.compared = select_requests(requests)
        return self.expected != "sequential"

    def check_sharing(self, check: ModeCheck, way: str) -> BatchInvariance | None:
        """Return the result for the mode ``way``, sequential with shared prefixes, by the answers to :attr:`compared`.

        ``check`` has what the whole check does, for what was not observed, and for the noise where that has to be known. None
        where fewer than two requests can be answered, or if it is to stop.
        """
        cases = reference_answers(self.compared, check.answer, check.stop)
        if len(cases) < _FEWEST_CASES:
            return None
        repeats = [self._repeats.get(case.request.id) for case in cases]
        later = self._shared([case for case, repeat in zip(cases, repeats, strict=True) if repeat is None])
        if later is not None:
            remaining = iter(later)
            logits = [next(remaining) if repeat is None else repeat for repeat in repeats]
            if (result := check_sharing(cases, logits, way)) is not None:
                return result
        self.drop_work()
        modes = {way: check.modes[way]}
        return check_batch_invariance(cases, check.padded, modes, check.unpadded, modes)

    def take_work(self) -> tuple[SharedWork | None, Reuse]:
        """Return the caches that the checks have filled, None if there are none, and the count of that work; keep neither."""
        work, self._work = self._work, None
        return work or (None, Reuse())

    def drop_work(self) -> None:
        """Forget the caches, and the logits that were computed with them."""
        self._work = None
        self._repeats.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.drop_work()
        self.answers.clear()
        self.expected, self.compared = None, ()

    def _pair(self, requests: Sequence[Request]) -> list[Request]:
        first = next((request for request in requests if self.answers.get(request) is not None), requests[0])
        return select_pair(requests, first)

    def _shared_part(self, requests: Sequence[Request], pair: Sequence[Request]) -> float:
        """Return the share of the prompts' tokens that earlier prompts begin with, estimated from one pair of them."""
        try:
            first, second = map(self._content, pair[:2])
        except Exception as error:  # one that cannot be prepared becomes an error in its turn
            if metal_fault(error) is not None:
                raise
            return 0.0
        return shared_media(requests) * shared_prefix_length(first, second) / len(second)

    def _shared(self, cases: Sequence[ReferenceAnswer]) -> list[Any] | None:
        """Return the logits of ``cases``, one after the other, with shared prefixes; None where that fails."""
        if not cases:
            return []
        try:
            self._work = self._work or (self._caches(), Reuse())
            return self._force(self._rows(*self._work), cases)
        except Exception as error:
            self.drop_work()  # which may be wrong by now
            if metal_fault(error) is not None:
                raise
            return None
