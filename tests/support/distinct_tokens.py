"""Number of distinct tokens of several prompts, by which shared prefixes are measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from mlx_backends.core.saved_work import shared_prefix_length


def count_distinct_tokens(prompts: Sequence[Any]) -> int:
    """Return the number of distinct tokens of prompts, given by their ``content``: the nodes of their prefix tree."""
    ordered_prompts = sorted(prompts, key=lambda prompt: prompt.tolist())
    return sum(map(len, ordered_prompts)) - sum(
        shared_prefix_length(prompt, other) for prompt, other in pairwise(ordered_prompts)
    )
