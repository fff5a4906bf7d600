"""Row of a batch of a vision-language model: an answer in progress, with the inputs of its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
from mlx_vlm.generate import ar

from benchmarks.vocabulary import FinishReason
from mlx_backends.core.saved_work import shared_prefix_length
from mlx_backends.mlx.mlx_preprocess import PreparedInputs
from mlx_backends.mlx.prefix_cache import Cache

FEATURES, MASK = "deepstack_visual_embeds", "visual_pos_masks"
"""Names of the embedded inputs that have entries for images alone."""


@dataclass(eq=False)
class VLMRow:
    """An answer in progress: its inputs, its token limit, its logits processors, and the tokens so far.

    ``failed`` is why it could not be answered in a batch; ``read`` how many of its prompt's tokens ``cache`` holds, or will hold
    without being computed, while it waits for another row.
    ``is_continued`` says that rows whose prompts begin with this one will follow, ``is_shared`` that a row has taken over its
    cache.
    """

    inputs: PreparedInputs
    max_tokens: int
    processors: Sequence[Any] = ()
    is_continued: bool = False
    is_shared: bool = False
    tokens: list[int] = field(default_factory=list)
    finished: FinishReason | None = None
    failed: Exception | None = None
    read: int = 0
    cache: Cache = field(default_factory=list)
    embedded: dict[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """Return the position of the prompt's last token."""
        return len(self.inputs.content) - 1

    def shared_length(self, other: VLMRow) -> int:
        """Return the number of first tokens of its prompt, but for the last one, that another one has too."""
        return min(shared_prefix_length(self.inputs.content, other.inputs.content), self.last, other.last)

    def piece(self, start: int, end: int) -> dict[str, Any]:
        """Return the model's inputs with the prompt's tokens from ``start`` to ``end``."""
        embedded = dict(self.embedded)
        length = len(self.inputs.content)
        features, mask = embedded.pop(FEATURES, None), embedded.get(MASK)
        inputs = {
            name: ar._slice_sequence_aligned_prompt_kwarg(name, value, start, end)
            if _aligned(name, value, length)
            else value
            for name, value in embedded.items()
        }
        if mask is not None:
            before, after = (int(mask[:, :position].sum()) for position in (start, end))
            if before == after:
                del inputs[MASK]
            elif features is not None:
                inputs[FEATURES] = [layer[before:after] for layer in features]
        return inputs


def padded(inputs: Mapping[str, Any], length: int, longest: int) -> dict[str, Any]:
    """Return a row's piece of ``length`` tokens, padded on the right to ``longest``."""
    return {
        name: ar._pad_sequence_aligned_prompt_kwarg(name, value, longest, left=False)
        if _aligned(name, value, length)
        else value
        for name, value in inputs.items()
    }


def _aligned(name: str, value: Any, length: int) -> bool:
    """Return whether ``value`` has an entry for each of a prompt's ``length`` tokens."""
    if name == "inputs_embeds":
        return True
    return isinstance(value, mx.array) and bool(ar._is_sequence_aligned_prompt_kwarg(name, value, length))
