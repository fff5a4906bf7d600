"""Time of perfect sharing: a lower bound, from doing nothing but computing each image, distinct token and decoding step once."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mlx_backends.core.saved_work import shared_prefix_length
from mlx_backends.mlx.mlx_preprocess import PreparedInputs
from mlx_backends.mlx.prefix_cache import Cache, merged_cache, trimmed_copy
from mlx_backends.mlx.prompt_reading import SharedWork
from mlx_backends.mlx.vlm_backend import VLMBackend
from mlx_backends.mlx.vlm_batch import VLMRows
from mlx_backends.mlx.vlm_row import VLMRow
from mlx_backends.models.memory_and_cache_sizes import CacheSizes
from tests.performance.measuring import timed

ROOM = 2**40


@dataclass
class PerfectSharing:
    """The work of answering prompts in batches of ``width``, each answer of ``answer_tokens``, with a perfect oracle.

    A prompt has at most one image; each image goes through the tower once. Of each prompt, the model reads what no earlier one
    begins with, up to the last token, on a cache that holds the rest; the batch then takes ``answer_tokens`` steps. This is done,
    and not extrapolated, and its seconds are added up in ``seconds`` by kind. Copying caches, preparing images, choosing tokens
    and waiting cost nothing here.
    """

    backend: VLMBackend
    inputs: Sequence[PreparedInputs]
    width: int
    answer_tokens: int
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)

    def parts(self) -> Iterator[tuple[int, float]]:
        """Do the work part by part, in the order of the prompts; yield the number of the batch and the part's seconds."""
        import mlx.core as mx
        from mlx_vlm.models.cache import make_prompt_cache

        model, tower = self.backend._model, SharedWork(self.backend._rows._encoder, CacheSizes(0, ROOM))
        rows = VLMRows(model, self.backend._processor, 1, tower)
        prefixes = [self._longest_prefix(number) for number in range(len(self.inputs))]
        last_use = {source: number for number, (source, _) in enumerate(prefixes)}
        caches: dict[int, Cache] = {}
        seen: set[str] = set()
        for batch, first in enumerate(range(0, len(self.inputs), self.width)):
            together: list[VLMRow] = []
            for number in range(first, min(first + self.width, len(self.inputs))):
                item, (source, length) = self.inputs[number], prefixes[number]
                if set(item.images) - seen:
                    seen.update(item.images)
                    yield batch, self._timed("images", len(item.images), partial(self._see, item))
                row = VLMRow(item, self.answer_tokens, read=length)
                rows._reader.embed(row)
                if length:
                    row.cache = trimmed_copy(caches[source], self.inputs[source].content.size - 1 - length)
                else:
                    row.cache = make_prompt_cache(model.language_model)
                _settle(row.cache)
                mx.eval([value for value in row.embedded.values() if isinstance(value, mx.array)])
                read = partial(rows._reader.advance, row, row.last)
                yield batch, self._timed("tokens", row.last - length, lambda read=read: deque(read(), 0))
                together.append(row)
                caches[number] = row.cache
                caches = {key: cache for key, cache in caches.items() if last_use.get(key, -1) > number}
            yield batch, self._timed("steps", self.answer_tokens, self._decode(together))
        rows.close()

    def summary(self) -> str:
        """Return what was done and its seconds, by kind."""
        return ", ".join(f"{self.counts[kind]} {kind} {self.seconds[kind]:.1f} s" for kind in self.counts)

    def _longest_prefix(self, number: int) -> tuple[int, int]:
        """Return the earlier prompt that shares the longest prefix with this one, but for both last tokens, and its length."""
        content = self.inputs[number].content[:-1]
        shared = [
            (shared_prefix_length(content, other.content[:-1]), n) for n, other in enumerate(self.inputs[:number])
        ]
        length, source = max(shared, default=(0, -1))
        return source, length

    def _timed(self, kind: str, count: int, work: Any) -> float:
        seconds = timed(work)[1]
        self.seconds[kind] += seconds
        self.counts[kind] += count
        return seconds

    def _see(self, item: PreparedInputs) -> None:
        import mlx.core as mx

        mx.eval(self.backend._model.vision_tower(item.tensors["pixel_values"], item.tensors["image_grid_thw"]))

    def _decode(self, rows: Sequence[VLMRow]) -> Any:
        """Return the steps of a batch, each on the token that the one before chose."""
        import mlx.core as mx

        model = self.backend._model
        cache = merged_cache([row.cache for row in rows])
        _settle(cache)
        delta = mx.concatenate([row.embedded["rope_deltas"] for row in rows])
        last = mx.concatenate([row.inputs.ids[:, -1:] for row in rows])

        def steps() -> None:
            tokens = last
            for _ in range(self.answer_tokens):
                tokens = model.language_model(tokens, cache=cache, rope_deltas=delta).logits[:, -1:].argmax(-1)
                mx.eval(tokens)

        return steps


def _settle(cache: Cache) -> None:
    """Compute what a cache still has to copy."""
    import mlx.core as mx

    mx.eval([entry.state for entry in cache if not entry.empty()])
