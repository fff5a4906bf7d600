"""Batch-invariance check: comparison of a model's batched answers to its sequential ones, on a run's own first requests.

Each of a few requests is answered alone. Then the model is forced through the very same tokens, with the requests in a
batch and their shared prefixes reused, and its logits are compared at every step. Only the last bits may differ. How much
these move anyway is measured too: by the same requests, each next to a longer row that pads it, with nothing shared.

The result is stored for later runs of the same model under the same conditions (:mod:`mlx_backends.stored_checks`). Such a run
compares one request only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Decoding, Media, Request
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.core.observed_answers import OBSERVED_TOKENS
from mlx_backends.stored_checks import StoredCheck, StoredChecks, is_measure, report_unconfirmed

COMPARED_TOKENS = OBSERVED_TOKENS
"""Number of tokens of each answer that are compared."""

CONFIRMED_TOKENS = 2
"""Number of tokens that confirm a stored check: the first follows the prompt, the second a step of the batch."""

MARGIN_FACTOR = 4
"""Largest margin, as a multiple of the noise, that rounding can overturn: two logits move, each by up to twice the noise seen."""

MAX_NOISE_SHARE = 0.2
"""Most noise, as a share of the logits' standard deviation, that counts as rounding; with more, the model cannot handle padding.

Padding that is read like any token moves the logits of tiny models of four architectures by 0.23 to 1.7 of it, rounding by
less than 0.0001 on a CPU; a step of bf16 is some 0.04 of it for logits of real models.
"""

CHECK = "batches"
"""The check's name among the stored checks."""

_EVIDENCE = ("way", "cases", "tokens", "noise", "shift", "failed")
_REQUESTS_OF_SETS, _TEXT_REQUESTS, _MIN_REQUESTS = (2, 2, 1), 1, 4
"""Requests for each set of images, without images, and the fewest in all.

Those of three sets are needed, because the first prompt of a batch may be read before the others, which are then read together.
"""

_TOP_LOGITS = 10
SEQUENTIAL = "one at a time"
BATCHED = "in batches, without shared prefixes"


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceAnswer:
    """A request answered alone: its tokens, and the logits each was chosen from, of the shape (tokens, vocabulary)."""

    request: Request
    tokens: Sequence[int]
    logits: Any


AnsweringMode = Callable[[Sequence[ReferenceAnswer]], Sequence[Any]]
"""Function that forces each case through its tokens in one mode, such as in a batch, and returns its logits."""


@dataclass(frozen=True, slots=True)
class BatchInvariance:
    """Result of the check: the ``way`` in which answers may be given, and the reason why each better one may not (``failed``).

    ``noise`` is the most by which padding alone moved one of the ten highest logits, ``shift`` the most by which ``way`` did;
    ``cases`` requests and ``tokens`` tokens were compared. ``lacks`` names in a sentence an optimisation that the model does
    not support in that way; it costs time and changes no answer. ``repeatable`` is False if a mode failed for another reason
    than what the model computes, such as a lack of memory.

    ``key`` and ``checked_at`` (seconds since 1970) identify the stored check; the key is empty for one that is not stored. If
    it was stored by an earlier run, this run compared ``confirmed`` tokens again.
    """

    way: str
    cases: int = 0
    tokens: int = 0
    noise: float = 0.0
    failed: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""
    shift: float = 0.0
    repeatable: bool = True
    key: str = ""
    checked_at: float | None = None
    confirmed: int = 0

    def remarks(self, model: str) -> Sequence[str]:
        """Return a sentence on the answering mode for readers of the answers; none where the best mode is used."""
        reasons = "; ".join(f"{way}: {reason}" for way, reason in self.failed.items())
        return (
            (f"{model} answered {self.way}, because its answers changed in a faster mode ({reasons}).",)
            if reasons
            else ()
        )


def select_requests(requests: Sequence[Request]) -> list[Request]:
    """Return the requests to check, of the first of a run, with greedy decoding and no form.

    These are two for each of two sets of images, one for a third and one without images, and more of these where that makes
    fewer than four. The last one shows the images of the first: it starts when the others have, and continues what they left.
    """
    by_images: dict[tuple[Media, ...], list[Request]] = {}
    for request in requests:
        images = media_of(request)
        if images in by_images or not images or sum(map(bool, by_images)) < len(_REQUESTS_OF_SETS):
            by_images.setdefault(images, []).append(request)
    groups = [by_images[images] for images in sorted(by_images, key=lambda images: not images)]
    counts = (*_REQUESTS_OF_SETS[: sum(map(bool, by_images))], _TEXT_REQUESTS)
    first: list[Request] = []
    more: list[Request] = []
    for group, count in zip(groups, counts, strict=False):
        first += group[:count]
        more += group[count:]
    selected = [*first, *more[: max(0, _MIN_REQUESTS - len(first))]]
    if len(selected) > 1 and media_of(selected[0]) == media_of(selected[1]):
        selected.append(selected.pop(1))
    return list(map(as_compared, selected))


def as_compared(request: Request) -> Request:
    """Return a request with greedy decoding, no form and the tokens that are compared."""
    return replace(request, decoding=_greedy(request.decoding), form=None)


@dataclass(frozen=True, slots=True)
class ModeCheck:
    """A backend's part of the check: the selected ``requests``, and functions to answer them.

    Attributes:
        requests: The :func:`select_requests` that can be prepared.
        answer: Answers one of them sequentially.
        padded: Forces cases with padding alone.
        modes: The faster modes, the best first.
        conditions: What the result depends on besides the engine and the requests, such as the width of the batches.
        stop: Returns True if the check is to end.
        unpadded: Forces cases next to others of equal length.
        unpadded_modes: The modes for a model that cannot handle padding, the best first.
    """

    requests: Sequence[Request]
    answer: Callable[[Request], ReferenceAnswer]
    padded: AnsweringMode
    modes: Mapping[str, AnsweringMode]
    conditions: Mapping[str, Any]
    stop: Callable[[], bool] = lambda: False
    unpadded: AnsweringMode | None = None
    unpadded_modes: Mapping[str, AnsweringMode] = field(default_factory=dict)

    def run(self, stored_checks: StoredChecks | None) -> BatchInvariance | None:
        """Return the result: a stored one that is confirmed, else a new one, which is then stored.

        None if no request can be answered, or if ``stop`` returns True meanwhile. A fault of the GPU is raised.
        """
        if stored_checks is not None and (stored := self.stored(stored_checks)) is not None:
            earlier = _parse(stored)
            if earlier is not None and (confirmed := self._confirm(earlier)) is not None:
                return confirmed
            report_unconfirmed(stored)
        cases = reference_answers(self.requests, self.answer, self.stop)
        if not cases:
            return None
        result = check_batch_invariance(cases, self.padded, self.modes, self.unpadded, self.unpadded_modes)
        if stored_checks is None or not result.repeatable:
            return result
        evidence = {name: getattr(result, name) for name in _EVIDENCE}
        new = stored_checks.save(CHECK, self._whole_conditions, evidence)
        return result if new is None else replace(result, key=new.key, checked_at=new.at)

    def stored(self, stored_checks: StoredChecks) -> StoredCheck | None:
        """Return the stored result under the same conditions; None if there is none."""
        return stored_checks.find(CHECK, self._whole_conditions)

    @property
    def _whole_conditions(self) -> Mapping[str, Any]:
        return {**self.conditions, "requests": request_kinds(self.requests)}

    def _confirm(self, earlier: BatchInvariance) -> BatchInvariance | None:
        """Return ``earlier`` if its mode still agrees on a request, next to others in a batch; None if not."""
        import numpy as np

        if earlier.way == SEQUENTIAL:  # which needs no proof
            return earlier
        modes = {**self.unpadded_modes, **self.modes}
        if earlier.way not in modes:
            return None
        compared, neighbours = _confirming_requests(self.requests)
        try:
            case = self.answer(_shortened(compared))
            others = [ReferenceAnswer(_shortened(request), case.tokens, None) for request in neighbours]
            *_, logits = modes[earlier.way]([*others, case])
        except Exception as error:
            if metal_fault(error) is not None:
                raise
            return None
        most = MAX_NOISE_SHARE * float(case.logits.std(axis=-1).mean())
        shift = largest_shift(case.logits, np.asarray(logits))
        if earlier.noise > most or shift > min(most, MARGIN_FACTOR * max(earlier.noise, earlier.shift)):
            return None
        return replace(earlier, confirmed=len(case.tokens))


def request_kinds(requests: Sequence[Request]) -> list[str]:
    """Return the kinds of ``requests``, by their media: "text", "image", "image, shared", "images" ...

    A kind is "shared" if another of the requests has the same media. Models compute these in different ways: texts without the
    encoder, several images with more positions, shared ones from a cache.
    """
    media = [media_of(request) for request in requests]
    kinds = set()
    for parts in media:
        counts = Counter(part.modality for part in parts)
        name = " and ".join(kind + "s" * (count > 1) for kind, count in sorted(counts.items()))
        kinds.add(f"{name}, shared" if name and media.count(parts) > 1 else name or "text")
    return sorted(kinds)


def select_prepared(requests: Sequence[Request], length: Callable[[Request], int]) -> tuple[list[Request], int]:
    """Return the :func:`select_requests` of ``requests`` that can be prepared, and the tokens of their longest prompt.

    ``length`` returns a request's prompt tokens. A fault of the GPU is raised.
    """
    selected, longest = [], 0
    for request in select_requests(requests):
        try:
            longest = max(longest, length(request))
            selected.append(request)
        except Exception as error:
            if metal_fault(error) is not None:
                raise
    return selected, longest


def length_class(tokens: int) -> int:
    """Return the power of two that a prompt of so many tokens does not exceed: longer ones are read in more pieces."""
    return 1 << max(0, tokens - 1).bit_length()


def reference_answers(
    requests: Sequence[Request], answer: Callable[[Request], ReferenceAnswer], stop: Callable[[], bool]
) -> list[ReferenceAnswer]:
    """Return ``requests``, each answered by ``answer``; none if ``stop`` returns True meanwhile.

    A request that cannot be answered is left out: it becomes an error in its turn. A fault of the GPU is raised.
    """
    cases: list[ReferenceAnswer] = []
    for request in requests:
        if stop():
            return []
        try:
            cases.append(answer(request))
        except Exception as error:
            if metal_fault(error) is not None:
                raise
    return cases


def check_batch_invariance(
    cases: Sequence[ReferenceAnswer],
    padded: AnsweringMode,
    modes: Mapping[str, AnsweringMode],
    unpadded: AnsweringMode | None = None,
    unpadded_modes: Mapping[str, AnsweringMode] = MappingProxyType({}),
    *,
    cause: str = "padding",
) -> BatchInvariance:
    """Return the result with the first of ``modes`` that agrees with ``cases``, else with the sequential one.

    Of a model that cannot handle padding (the ``cause`` of the noise that ``padded`` measures), ``unpadded_modes`` are checked
    instead, by the noise that ``unpadded`` measures. An error in a mode rules the mode out, except for a fault of the GPU, which
    is raised.
    """
    import numpy as np

    deviation = float(np.median([case.logits.std(axis=-1).mean() for case in cases]))
    result = BatchInvariance(SEQUENTIAL, len(cases), sum(len(case.tokens) for case in cases))
    try:
        measured = _measured(cases)
        noise = max(largest_shift(case.logits, logits) for case, logits in zip(measured, padded(measured), strict=True))
    except Exception as error:
        if metal_fault(error) is not None:
            raise
        return replace(
            result, failed=dict.fromkeys(modes, one_line(error)), repeatable=isinstance(error, RashomonError)
        )
    result = replace(result, noise=noise)
    if noise > MAX_NOISE_SHARE * deviation:
        reason = f"{cause} alone moves its logits by {noise:.3g} of a spread of {deviation:.3g}"
        if unpadded is None:
            return replace(result, failed=dict.fromkeys(modes, reason))
        result = check_batch_invariance(cases, unpadded, unpadded_modes, cause="another prompt in the batch")
        return replace(
            result, failed={**{name: reason for name in modes if name not in unpadded_modes}, **result.failed}
        )
    failed: dict[str, str] = {}
    for name, mode in modes.items():
        try:
            pairs = list(zip(cases, mode(cases), strict=True))
            reason = next(filter(None, (difference(case, logits, noise, cause) for case, logits in pairs)), "")
            shift = max(largest_shift(case.logits, np.asarray(logits)) for case, logits in pairs)
        except Exception as error:
            if metal_fault(error) is not None:
                raise
            reason, shift = one_line(error), 0.0
            result = replace(result, repeatable=result.repeatable and isinstance(error, RashomonError))
        if not reason:
            return replace(result, way=name, failed=failed, shift=shift)
        failed[name] = reason
    return replace(result, failed=failed)


def _measured(cases: Sequence[ReferenceAnswer]) -> list[ReferenceAnswer]:
    """Return the cases that measure the noise: the first, and the one with the fewest media, which is quickly read."""
    return [*cases[:1], *sorted(cases[1:], key=lambda case: len(media_of(case.request)))[:1]]


def media_of(request: Request) -> tuple[Media, ...]:
    """Return the media of a request, in order."""
    return tuple(part for message in request.messages for part in message.parts if isinstance(part, Media))


def _confirming_requests(requests: Sequence[Request]) -> tuple[Request, list[Request]]:
    """Return a request to compare, and its neighbours in the batch: two with other media, and one with the same.

    The first ones show whether media of different requests are kept apart, the last whether what is shared is the same.
    """
    media = [media_of(request) for request in requests]
    pairs = [(media.index(parts), number) for number, parts in enumerate(media) if media.index(parts) < number]
    sibling, compared = next((pair for pair in pairs if media[pair[0]]), pairs[0] if pairs else (0, 0))
    others = {parts: number for number, parts in enumerate(media) if parts != media[compared]}
    first_others = sorted(others.values(), key=lambda number: not media[number])[:2]
    neighbours = [number for number in (*first_others, sibling) if number != compared]
    return requests[compared], [requests[number] for number in neighbours]


def _shortened(request: Request) -> Request:
    tokens = min(request.decoding.max_tokens, CONFIRMED_TOKENS)
    return replace(request, decoding=replace(request.decoding, max_tokens=tokens))


def _parse(stored: StoredCheck) -> BatchInvariance | None:
    """Return a stored result; None for a damaged one."""
    match stored.result:
        case {
            "way": str(way),
            "cases": int(cases),
            "tokens": int(tokens),
            "noise": noise,
            "shift": shift,
            "failed": dict(failed),
        } if all(map(is_measure, (cases, tokens, noise, shift))) and _are_texts([*failed, *failed.values()]):
            result = BatchInvariance(way, cases, tokens, float(noise), failed, shift=float(shift))
            return replace(result, key=stored.key, checked_at=stored.at)
    return None


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _greedy(decoding: Decoding) -> Decoding:
    return Decoding(min(decoding.max_tokens, COMPARED_TOKENS), max_pixels=decoding.max_pixels)


def largest_shift(sequential: Any, other: Any) -> float:
    """Return the most by which one of the ten highest logits of a step moved."""
    import numpy as np

    highest = np.argpartition(sequential, -_TOP_LOGITS, axis=-1)[:, -_TOP_LOGITS:]
    differences = np.abs(np.take_along_axis(sequential - other, highest, axis=-1))
    rounding = np.abs(sequential).max() * np.finfo(np.float32).eps
    return float(max(differences.max(), rounding))


def difference(case: ReferenceAnswer, logits: Any, noise: float, cause: str) -> str:
    """Return where the top token changed by more than noise explains, as a reason; empty where it nowhere did."""
    import numpy as np

    for step, (reference, other) in enumerate(zip(case.logits, np.asarray(logits), strict=True)):
        top, other_top = int(reference.argmax()), int(other.argmax())
        margin = float(reference[top] - reference[other_top])
        if margin > MARGIN_FACTOR * noise:
            return (
                f"token {step + 1} of an answer was another one, by a margin of {margin:.3g} "
                f"where {cause} moves a logit by {noise:.3g}"
            )
    return ""
