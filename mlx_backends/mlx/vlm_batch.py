"""Rows of a model of mlx-vlm: answers in a batch, with every shared prefix of their prompts read once.

Each prompt is read up to its last token but one (:mod:`mlx_backends.mlx.prompt_reading`). The last tokens are handed to mlx-vlm's
BatchGenerator, with the rows' caches, and it generates the answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx
from mlx_vlm.generate import ar

from mlx_backends.core.saved_work import Reuse
from mlx_backends.mlx.metal.metal_fault_recovery import dropping
from mlx_backends.mlx.patches.qwen3_vl_deepstack import apply_patch
from mlx_backends.mlx.prefix_cache import merged_cache
from mlx_backends.mlx.prompt_reading import PromptReader, SharedWork
from mlx_backends.mlx.vlm_row import VLMRow

MAX_PADDING_FACTOR = 1.25
"""Most tokens of a batch of suffixes with padding, as a multiple of those without: padding is computed too."""

NO_PADDING = 1.0
"""The multiple for models that cannot handle padding: their batches hold prompts of equal length."""


class VLMRows:
    """The rows that one model works on: up to ``width`` at a time, any number waiting.

    With ``shared``, the key-value caches and image features of shared prefixes are computed once; otherwise each prompt is read
    whole. Rows start in the order in which they are added. ``reuse`` counts the work.
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        width: int,
        shared: SharedWork | None = None,
        *,
        join: bool = True,
        max_padding: float = MAX_PADDING_FACTOR,
        kv_bits: int | None = None,
        reuse: Reuse | None = None,
    ) -> None:
        """Take a loaded model and its processor.

        With ``join``, suffixes of several prompts may be read in one pass, with up to ``max_padding`` times their tokens; with
        :data:`NO_PADDING`, rows start together with those of the same length alone. ``kv_bits`` quantises the caches.
        """
        apply_patch()
        self._max_padding = max_padding
        self.width = width
        self.reuse = reuse or Reuse()
        self._language_model = model.language_model
        self._reader = PromptReader(
            model, shared, self.reuse, join=join and width > 1, max_padding=max_padding, kv_bits=kv_bits
        )
        self._waiting: deque[VLMRow] = deque()
        self._started: list[VLMRow] = []
        self._reading: Iterator[Sequence[VLMRow]] | None = None
        self._live: dict[int, VLMRow] = {}
        self._generator: Any = ar.BatchGenerator(
            self._language_model,
            processor,
            completion_batch_size=width,
            prefill_step_size=None,
            compute_logprobs=False,
            sampler=lambda logprobs: mx.argmax(
                logprobs, axis=-1
            ),  # our own, so that no model-specific shortcut applies
        )
        self._generator._build_mixed_prompt_batch = self._prompt_batch

    @property
    def is_idle(self) -> bool:
        """True while no row is being read or answered, whether any waits or not."""
        return self._reading is None and not self._live

    def add(self, row: VLMRow, *, first: bool = False) -> None:
        """Take a row; it starts as soon as there is room, with ``first`` before all that wait."""
        self._waiting.insert(0 if first else len(self._waiting), row)

    def work(self) -> Sequence[VLMRow]:
        """Read a piece of a prompt, else give every row past its prompt a token; return the rows that moved on."""
        with mx.stream(self._generator.stream):
            if self._reading is None and (starting := self._next()):
                self._started = starting
                self._reading = self._reader.read(starting, self._waiting)
            if self._reading is not None:
                worked = next(self._reading, None)
                if worked is not None:
                    return worked
                self._reading = None
                self._insert([row for row in self._started if row.failed is None])
                if failed := [row for row in self._started if row.failed is not None]:
                    return failed
        worked = list(self._live.values())
        for response in self._generator.next()[1] if worked else ():
            row = self._live[response.uid]
            row.tokens.append(int(response.token))
            row.finished = response.finish_reason
            if row.finished is not None:
                del self._live[response.uid]
        return worked

    def _next(self) -> list[VLMRow]:
        """Take the waiting rows that start now; rows of equal length wait for all others to end."""
        is_equal = self._max_padding == NO_PADDING
        room = 0 if is_equal and self._live else self.width - len(self._live)
        starting = [row for row in self._waiting if not is_equal or row.last == self._waiting[0].last][:room]
        for row in starting:
            self._waiting.remove(row)
        return starting

    def drop(self, row: VLMRow) -> None:
        """Drop a row."""
        if row in self._waiting:
            self._waiting.remove(row)
        if row in self._started:
            self._started.remove(row)
        for uid in [uid for uid, live_row in self._live.items() if live_row is row]:
            self._generator.remove(uid)
            del self._live[uid]

    def close(self) -> None:
        """Release everything held, but not the caches if others hold them too."""
        with dropping():
            self._generator.close()
        del self._generator
        self._reading, self._started, self._live = None, [], {}
        self._waiting.clear()
        self._reader.close()

    def _insert(self, rows: Sequence[VLMRow]) -> None:
        if not rows:
            return
        self._generator.prefill_batch_size = len(rows)  # else it waits until that many can start
        uids = self._generator.insert(
            [[int(row.inputs.ids[0, -1])] for row in rows],
            max_tokens=[row.max_tokens for row in rows],
            prompt_kwargs=[row.piece(row.last, row.last + 1) for row in rows],
            logits_processors=[list(row.processors) for row in rows],
        )
        self._live.update(zip(uids, rows, strict=True))
        self.reuse.computed_tokens += len(rows)

    def _prompt_batch(self, sequences: Sequence[Any]) -> Any:
        """Replace BatchGenerator's own start of rows by one with caches that hold all but the last tokens."""
        uids, ids, limits, prompt_kwargs, processors, thinking = map(list, zip(*sequences, strict=True))
        rows = [self._live[uid] for uid in uids]
        embeddings, joined_kwargs = ar._merge_prefill_prompt_kwargs(prompt_kwargs, ids)
        batch = ar.PromptProcessingBatch(
            model=self._language_model,
            uids=uids,
            input_ids=ids,
            max_tokens=limits,
            inputs_embeds=embeddings,
            prompt_kwargs=joined_kwargs,
            logits_processors=processors,
            thinking_budget_criteria=thinking,
            prefill_step_size=None,
            warm_cache=merged_cache([row.cache for row in rows]),
        )
        for row in rows:
            row.cache, row.embedded = [], {}
        return batch
