"""The canary: whether a model says the same about its own first requests together as it does alone.

Each of a few requests is answered alone. Then the model is led through the very same tokens again, with the requests together
and what they have in common reused, and its logits are compared at every step. Only the last bits may differ. How much those
move by themselves is measured too: by the same requests alone but beside a longer row, which pads them, with nothing shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.base import Decoding, Media, Request
from mlx_backends.mlx.load import one_line

TOKENS = 8
"""How many tokens of each answer are compared."""

MULTIPLE = 4
"""How many times the noise a margin may be and still be lost: two logits move, and either may move twice as far as was seen."""

SPREAD = 0.2
"""Noise of more than this share of the logits' standard deviation is no rounding: the model does not bear padding.

Padding that is read like any token moves the logits of tiny models of four architectures by 0.23 to 1.7 of it, rounding by less
than 0.0001 on a CPU; a step of bf16 is some 0.04 of it for logits of real models.
"""

_SETS, _EACH, _LEAST = 3, 2, 4
_HIGHEST = 10
ALONE = "one at a time"
BATCHED = "together, with nothing shared"


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceAnswer:
    """A request answered alone: its tokens, and the logits each was chosen from, of the shape (tokens, vocabulary)."""

    request: Request
    tokens: Sequence[int]
    logits: Any


Way = Callable[[Sequence[ReferenceAnswer]], Sequence[Any]]
"""A way of answering: the logits of each case, led through its tokens."""


@dataclass(frozen=True, slots=True)
class BatchInvariance:
    """What the canary found: the ``way`` in which answers may be given, and why each better one may not (``failed``).

    ``noise`` is by how much padding alone moved one of the ten highest logits, at most; ``cases`` requests and ``tokens``
    tokens were compared. ``lacks`` is what the model cannot have in that way, a sentence; it costs time and changes no answer.
    """

    way: str
    cases: int = 0
    tokens: int = 0
    noise: float = 0.0
    failed: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""

    def remarks(self, model: str) -> Sequence[str]:
        """What whoever reads what ``model`` said must know, a sentence each."""
        why = "; ".join(f"{way}: {reason}" for way, reason in self.failed.items())
        return (
            (f"{model} was asked {self.way}, because it did not say the same in a better way ({why}).",) if why else ()
        )


def chosen(requests: Sequence[Request]) -> list[Request]:
    """The requests that are tried, of the first of a run, greedy and free in form.

    Two of each of three sets of images, and more of them where that makes fewer than four.
    """
    sets: dict[tuple[Media, ...], list[Request]] = {}
    for request in requests:
        images = tuple(part for message in request.messages for part in message.parts if isinstance(part, Media))
        if images in sets or len(sets) < _SETS:
            sets.setdefault(images, []).append(request)
    tried = [request for each in sets.values() for request in each[:_EACH]]
    tried += [request for each in sets.values() for request in each[_EACH:]][: max(0, _LEAST - len(tried))]
    return [replace(one, decoding=_greedy(one.decoding), form=None) for one in tried]


def answered(
    requests: Sequence[Request], alone: Callable[[Request], ReferenceAnswer], stop: Callable[[], bool]
) -> list[ReferenceAnswer]:
    """The :func:`chosen` of ``requests``, each answered ``alone``; none where ``stop`` said so meanwhile.

    One that cannot be answered is left out: it will be an error in its turn.
    """
    cases: list[ReferenceAnswer] = []
    for request in chosen(requests):
        if stop():
            return []
        with suppress(Exception):
            cases.append(alone(request))
    return cases


def prove(cases: Sequence[ReferenceAnswer], padded: Way, ways: Mapping[str, Way]) -> BatchInvariance:
    """The first of ``ways`` that agrees with ``cases``, else one at a time."""
    import numpy as np

    compared = sum(len(case.tokens) for case in cases)
    spread = float(np.median([case.logits.std(axis=-1).mean() for case in cases]))
    noise = failed_noise = 0.0
    failed: dict[str, str] = {}
    try:
        noise = max(_moved(case.logits, logits) for case, logits in zip(cases, padded(cases), strict=False))
    except Exception as error:
        failed_noise, reason = float("inf"), one_line(error)
    else:
        failed_noise, reason = noise, f"padding alone moves its logits by {noise:.3g} of a spread of {spread:.3g}"
    if failed_noise > SPREAD * spread:
        return BatchInvariance(ALONE, len(cases), compared, noise, dict.fromkeys(ways, reason))
    for way, answer in ways.items():
        try:
            found = zip(cases, answer(cases), strict=True)
            reason = next(filter(None, (_differs(case, logits, noise) for case, logits in found)), "")
        except Exception as error:
            reason = one_line(error)
        if not reason:
            return BatchInvariance(way, len(cases), compared, noise, failed)
        failed[way] = reason
    return BatchInvariance(ALONE, len(cases), compared, noise, failed)


class ForcedAnswer:
    """A logits processor that leads an answer through ``tokens`` and keeps the ``logits`` it met."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tokens
        self.logits: list[Any] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        import mlx.core as mx

        if len(self.logits) == len(self._tokens):  # engines compute one token ahead
            return logits
        forced = self._tokens[len(self.logits)]
        self.logits.append(_plain(logits))
        return mx.where(mx.arange(logits.shape[-1]) == forced, logits, mx.array(-float("inf"), logits.dtype))


class Watch:
    """A logits processor that keeps the ``logits`` of an answer and changes nothing."""

    def __init__(self) -> None:
        self.logits: list[Any] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        self.logits.append(_plain(logits))
        return logits


def _plain(logits: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    return np.array(logits.astype(mx.float32)).reshape(-1)


def _greedy(decoding: Decoding) -> Decoding:
    return Decoding(min(decoding.max_tokens, TOKENS), max_pixels=decoding.max_pixels)


def _moved(alone: Any, other: Any) -> float:
    """By how much, at most, one of the ten highest logits of a step moved."""
    import numpy as np

    highest = np.argpartition(alone, -_HIGHEST, axis=-1)[:, -_HIGHEST:]
    differences = np.abs(np.take_along_axis(alone - other, highest, axis=-1))
    rounding = np.abs(alone).max() * np.finfo(np.float32).eps
    return float(max(differences.max(), rounding))


def _differs(case: ReferenceAnswer, logits: Any, noise: float) -> str:
    """Where another token is the top one although it was not near; empty where there is no such place."""
    import numpy as np

    for number, (alone, other) in enumerate(zip(case.logits, np.asarray(logits), strict=True)):
        top, found = int(alone.argmax()), int(other.argmax())
        margin = float(alone[top] - alone[found])
        if margin > MULTIPLE * noise:
            return (
                f"token {number + 1} of an answer was another one, by a margin of {margin:.3g} "
                f"where padding moves a logit by {noise:.3g}"
            )
    return ""
