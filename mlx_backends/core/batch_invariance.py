"""Batch-invariance check: comparison of a model's batched answers to its sequential ones, on a run's own first requests.

Each of a few requests is answered alone. Then the model is forced through the very same tokens, with the requests in a
batch and their shared prefixes reused, and its logits are compared at every step. Only the last bits may differ. How much
these move anyway is measured too: by the same requests, each next to a longer row that pads it, with nothing shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.vocabulary import Decoding, Media, Request
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault

COMPARED_TOKENS = 8
"""Number of tokens of each answer that are compared."""

MARGIN_FACTOR = 4
"""Largest margin, as a multiple of the noise, that rounding can overturn: two logits move, each by up to twice the noise seen."""

MAX_NOISE_SHARE = 0.2
"""Most noise, as a share of the logits' standard deviation, that counts as rounding; with more, the model cannot handle padding.

Padding that is read like any token moves the logits of tiny models of four architectures by 0.23 to 1.7 of it, rounding by
less than 0.0001 on a CPU; a step of bf16 is some 0.04 of it for logits of real models.
"""

_IMAGE_SETS, _REQUESTS_PER_SET, _MIN_REQUESTS = 3, 2, 4
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

    ``noise`` is the most by which padding alone moved one of the ten highest logits; ``cases`` requests and ``tokens``
    tokens were compared. ``lacks`` names in a sentence an optimisation that the model does not support in that way; it costs
    time and changes no answer.
    """

    way: str
    cases: int = 0
    tokens: int = 0
    noise: float = 0.0
    failed: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""

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

    These are two for each of three sets of images, and more of these sets where that makes fewer than four.
    """
    by_images: dict[tuple[Media, ...], list[Request]] = {}
    for request in requests:
        images = tuple(part for message in request.messages for part in message.parts if isinstance(part, Media))
        if images in by_images or len(by_images) < _IMAGE_SETS:
            by_images.setdefault(images, []).append(request)
    selected = [request for group in by_images.values() for request in group[:_REQUESTS_PER_SET]]
    selected += [request for group in by_images.values() for request in group[_REQUESTS_PER_SET:]][
        : max(0, _MIN_REQUESTS - len(selected))
    ]
    return [replace(request, decoding=_greedy(request.decoding), form=None) for request in selected]


def reference_answers(
    requests: Sequence[Request], answer: Callable[[Request], ReferenceAnswer], stop: Callable[[], bool]
) -> list[ReferenceAnswer]:
    """Return the :func:`select_requests` of ``requests``, each answered by ``answer``; none if ``stop`` returns True meanwhile.

    A request that cannot be answered is left out: it becomes an error in its turn. A fault of the GPU is raised.
    """
    cases: list[ReferenceAnswer] = []
    for request in select_requests(requests):
        if stop():
            return []
        try:
            cases.append(answer(request))
        except Exception as error:
            if metal_fault(error) is not None:
                raise
    return cases


def check_batch_invariance(
    cases: Sequence[ReferenceAnswer], padded: AnsweringMode, modes: Mapping[str, AnsweringMode]
) -> BatchInvariance:
    """Return the result with the first of ``modes`` that agrees with ``cases``, else with the sequential one.

    An error in a mode rules the mode out, except for a fault of the GPU, which is raised.
    """
    import numpy as np

    token_count = sum(len(case.tokens) for case in cases)
    deviation = float(np.median([case.logits.std(axis=-1).mean() for case in cases]))
    noise = measured_change = 0.0
    failed: dict[str, str] = {}
    try:
        noise = max(_largest_shift(case.logits, logits) for case, logits in zip(cases, padded(cases), strict=False))
    except Exception as error:
        if metal_fault(error) is not None:
            raise
        measured_change, reason = float("inf"), one_line(error)
    else:
        measured_change, reason = noise, f"padding alone moves its logits by {noise:.3g} of a spread of {deviation:.3g}"
    if measured_change > MAX_NOISE_SHARE * deviation:
        return BatchInvariance(SEQUENTIAL, len(cases), token_count, noise, dict.fromkeys(modes, reason))
    for name, mode in modes.items():
        try:
            pairs = zip(cases, mode(cases), strict=True)
            reason = next(filter(None, (_difference(case, logits, noise) for case, logits in pairs)), "")
        except Exception as error:
            if metal_fault(error) is not None:
                raise
            reason = one_line(error)
        if not reason:
            return BatchInvariance(name, len(cases), token_count, noise, failed)
        failed[name] = reason
    return BatchInvariance(SEQUENTIAL, len(cases), token_count, noise, failed)


class ForcedAnswer:
    """Logits processor that forces an answer through ``tokens`` and records the ``logits`` on the way."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tokens
        self.logits: list[Any] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        import mlx.core as mx

        if len(self.logits) == len(self._tokens):  # engines compute one token ahead
            return logits
        forced = self._tokens[len(self.logits)]
        self.logits.append(_to_numpy(logits))
        return mx.where(mx.arange(logits.shape[-1]) == forced, logits, mx.array(-float("inf"), logits.dtype))


class LogitsRecorder:
    """Logits processor that records the ``logits`` of an answer and changes nothing."""

    def __init__(self) -> None:
        self.logits: list[Any] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        self.logits.append(_to_numpy(logits))
        return logits


def _to_numpy(logits: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    return np.array(logits.astype(mx.float32)).reshape(-1)


def _greedy(decoding: Decoding) -> Decoding:
    return Decoding(min(decoding.max_tokens, COMPARED_TOKENS), max_pixels=decoding.max_pixels)


def _largest_shift(sequential: Any, other: Any) -> float:
    """Return the most by which one of the ten highest logits of a step moved."""
    import numpy as np

    highest = np.argpartition(sequential, -_TOP_LOGITS, axis=-1)[:, -_TOP_LOGITS:]
    differences = np.abs(np.take_along_axis(sequential - other, highest, axis=-1))
    rounding = np.abs(sequential).max() * np.finfo(np.float32).eps
    return float(max(differences.max(), rounding))


def _difference(case: ReferenceAnswer, logits: Any, noise: float) -> str:
    """Return where the top token changed by more than noise explains, as a reason; empty where it nowhere did."""
    import numpy as np

    for step, (reference, other) in enumerate(zip(case.logits, np.asarray(logits), strict=True)):
        top, other_top = int(reference.argmax()), int(other.argmax())
        margin = float(reference[top] - reference[other_top])
        if margin > MARGIN_FACTOR * noise:
            return (
                f"token {step + 1} of an answer was another one, by a margin of {margin:.3g} "
                f"where padding moves a logit by {noise:.3g}"
            )
    return ""
