"""Confidence of answers: what a model's scores say about its answer, its preference and its doubt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.vocabulary import CANDIDATES, SHOWN_TEXT, Instance, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_IMAGE, _TEXT, _CONFLICT = "image", "text", "conflict"


class Confidence(NamedTuple):
    """Three numbers of an answer; nan where its scores do not give one.

    Attributes:
        answer: The confidence in the answer: of an option, its share of all options' probability; of a generated answer, the
            geometric mean of its tokens' probabilities (Malinin and Gales 2021, section 3: length-normalised).
        preference: The log-odds of the image's value against the text's, in nats. Values that are equal give none.
        abstention: The log-odds of an abstention against the answer that was given, in nats.
    """

    answer: float
    preference: float
    abstention: float


UNKNOWN = Confidence(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Confidences:
    """The confidences of a run's answers, each of shape (records,)."""

    answer: NDArray[np.float64]
    preference: NDArray[np.float64]
    abstention: NDArray[np.float64]

    def at(self, positions: NDArray[np.int64]) -> Confidences:
        """Return the confidences of the records at these positions."""
        return Confidences(self.answer[positions], self.preference[positions], self.abstention[positions])


def confidence_of(
    instance: Instance,
    options: Sequence[str],
    scores: Sequence[float | None],
    *,
    tokens: int,
    finish_reason: str | None,
) -> Confidence:
    """Return the confidence of an answer of so many ``tokens`` from its ``scores``; see :class:`Generation`."""
    if finish_reason == "error" or not scores:
        return UNKNOWN
    if options:
        is_scored = len(scores) == len(options) and any(score is not None for score in scores)
        return _of_options(instance, options, scores) if is_scored else UNKNOWN
    if len(scores) != len(CANDIDATES):
        return UNKNOWN
    image, text, abstention, answer = scores
    length = max(1, tokens - (finish_reason == "stop"))  # policies have no tokens
    values = [_first(instance.references, name) for name in (_IMAGE, SHOWN_TEXT, _TEXT)]
    same = _equal(values[0], values[1] or values[2])
    return Confidence(
        math.exp(min(0.0, answer / length)) if answer is not None else math.nan,
        image - text if image is not None and text is not None and not same else math.nan,
        abstention - answer if abstention is not None and answer is not None else math.nan,
    )


def _of_options(instance: Instance, options: Sequence[str], scores: Sequence[float | None]) -> Confidence:
    """Return the confidence of an answer by its options' scores; an option without one was never chosen."""
    logs = [-math.inf if score is None else score for score in scores]
    best = max(logs)
    share = 1 / sum(math.exp(score - best) for score in logs)
    places: dict[str, int] = {}
    for source, key in ((_IMAGE, "image letter"), (_TEXT, "text letter"), (_CONFLICT, "conflict letter")):
        if source == _TEXT and _first(instance.references, f"{SHOWN_TEXT} letter"):
            key = f"{SHOWN_TEXT} letter"
        letter = _first(instance.references, key)
        matches = [place for place, option in enumerate(options) if letter and option.strip("()") == letter]
        if matches:
            places[source] = matches[0]
    image, text, conflict = (places.get(source) for source in (_IMAGE, _TEXT, _CONFLICT))
    others = [score for place, score in enumerate(logs) if place != conflict]
    return Confidence(
        share,
        _log_odds(logs[image], logs[text]) if image is not None and text is not None and image != text else math.nan,
        _log_odds(logs[conflict], max(others)) if conflict is not None and others else math.nan,
    )


def _log_odds(score: float, other: float) -> float:
    difference = score - other
    return difference if math.isfinite(difference) else math.nan


def _first(references: Mapping[str, Sequence[str]], key: str) -> str:
    return (*references.get(key, ()), "")[0]


def _equal(value: str, other: str) -> bool:
    return value.strip().casefold() == other.strip().casefold()


def likelihood_remarks(record: Record, options: Sequence[str]) -> tuple[str, ...]:
    """Return a remark on the likelihoods of a record: those of its options, or of its candidates; none without any."""
    answer = record.answer
    if answer is None or len(answer.scores) != len(options or CANDIDATES):
        return ()
    scores = ", ".join(
        f"{name} {'n/a' if score is None else f'{score:.2f}'}"
        for name, score in zip(options or CANDIDATES, answer.scores, strict=True)
    )
    confidence = confidence_of(
        record.instance, options, answer.scores, tokens=len(answer.tokens), finish_reason=answer.finish_reason
    )
    sure = "" if math.isnan(confidence.answer) else f"; confidence {confidence.answer:.3f}"
    return (f"logprobs: {scores}{sure}",)
