"""Check of shared prefixes without batches: a prompt that is continued from another one's cache must be answered as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.vocabulary import Request
from mlx_backends.core.batch_invariance import (
    MAX_NOISE_SHARE,
    BatchInvariance,
    ReferenceAnswer,
    as_compared,
    difference,
    largest_shift,
    media_of,
)
from mlx_backends.core.observed_answers import ObservedAnswer


def find_sibling(requests: Sequence[Request], first: Request) -> Request | None:
    """Return the next of ``requests`` with another prompt that shows the media of ``first``; None if there is none."""
    others = (request for request in requests if request.messages != first.messages)
    return next((as_compared(request) for request in others if media_of(request) == media_of(first)), None)


def find_other(requests: Sequence[Request], first: Request) -> Request | None:
    """Return the next of ``requests`` that shows other media than ``first``; None if there is none."""
    return next((request for request in requests if media_of(request) != media_of(first)), None)


def shared_media(requests: Sequence[Request]) -> float:
    """Return the share of ``requests`` that show the media of an earlier one."""
    media = [media_of(request) for request in requests]
    return 1 - len(set(media)) / len(media) if media else 0.0


def reference_answer(request: Request, observed: ObservedAnswer) -> ReferenceAnswer:
    """Return an observed answer as the reference for ``request``, up to its token limit."""
    compared = as_compared(request)
    limit = compared.decoding.max_tokens
    return ReferenceAnswer(compared, observed.tokens[:limit], observed.logits[:limit])


def check_sharing(cases: Sequence[ReferenceAnswer], logits: Sequence[Any], way: str) -> BatchInvariance | None:
    """Return the result for the mode ``way``, sequential and with shared prefixes, by its ``logits`` of the ``cases``.

    None if another token became the likeliest, or if a logit moved by more than rounding: whether that is still in order
    follows from the noise alone, which :func:`check_batch_invariance` measures.
    """
    import numpy as np

    pairs = [(case, np.asarray(values)) for case, values in zip(cases, logits, strict=True)]
    shift = max(largest_shift(case.logits, values) for case, values in pairs)
    deviation = float(np.median([case.logits.std(axis=-1).mean() for case in cases]))
    if any(difference(case, values, 0.0, "") for case, values in pairs) or not shift <= MAX_NOISE_SHARE * deviation:
        return None
    return BatchInvariance(way, len(cases), sum(len(case.tokens) for case in cases), shift=shift)
