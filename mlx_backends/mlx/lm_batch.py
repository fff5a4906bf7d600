"""Rows of a model of mlx-lm: answers in progress, several at a time or one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.vocabulary import FinishReason
from mlx_backends.mlx.metal.metal_fault_recovery import dropping, settle

PREFILL_TOKENS = 512
"""Most tokens of a prompt that are read in one pass."""

BATCH_INVARIANT_MODELS = frozenset(
    {"gemma3_text", "granite", "lfm2", "llama", "phi3", "qwen2", "qwen3", "qwen3_moe", "smollm3"}
)
"""The modules of mlx-lm whose greedy answers are known to be the same in a batch as alone, token for token in fp32.

Batch invariance is a property of a model's code (positions, masks, state), not of the type of its cache, so each of them is
tested. All others answer one request at a time.
"""


@dataclass(eq=False)
class TextRow:
    """An answer in progress: the prompt's token ids, how tokens are chosen, and the tokens so far."""

    prompt: list[int]
    max_tokens: int
    sampler: Any
    processors: Sequence[Any]
    tokens: list[int] = field(default_factory=list)
    finished: FinishReason | None = None


class TextRows(ABC):
    """The rows that one model works on; ``width`` of them at most."""

    width: int

    @abstractmethod
    def add(self, row: TextRow) -> None:
        """Start a row; it may join others in progress."""

    @abstractmethod
    def work(self) -> None:
        """Read a piece of the prompts, and give every row that is past its prompt a token."""

    @abstractmethod
    def drop(self, row: TextRow) -> None:
        """Drop a row in progress."""

    def close(self) -> None:  # noqa: B027 - a stream holds nothing
        """Release what the machine holds for generating."""


def make_rows(model: Any, ends: Collection[int], width: int, kv_bits: int | None = None) -> TextRows:
    """Return rows for ``model``: ``width`` in a batch where that is proven to change no answer, else one at a time.

    With ``kv_bits``, their caches are quantised, of which mlx-lm makes no batches.
    """
    if kv_bits is not None:
        return SequentialTextRows(model, ends, kv_bits)
    proven = type(model).__module__ in {f"mlx_lm.models.{name}" for name in BATCH_INVARIANT_MODELS}
    return BatchedTextRows(model, ends, width) if width > 1 and proven else SequentialTextRows(model, ends)


class BatchedTextRows(TextRows):
    """Rows in continuous batches by mlx-lm's BatchGenerator."""

    def __init__(self, model: Any, ends: Collection[int], width: int) -> None:
        from mlx_lm.generate import BatchGenerator

        self.width = width
        self._rows: dict[int, TextRow] = {}
        self._generator: Any = BatchGenerator(
            model,
            stop_tokens=[[token] for token in ends],
            completion_batch_size=width,
            prefill_batch_size=width,
            prefill_step_size=PREFILL_TOKENS,
        )

    def add(self, row: TextRow) -> None:
        (uid,) = self._generator.insert(
            [row.prompt],
            max_tokens=[row.max_tokens],
            samplers=[row.sampler],
            logits_processors=[list(row.processors)],
        )
        self._rows[uid] = row

    def work(self) -> None:
        for response in self._generator.next()[1]:
            row = self._rows[response.uid]
            row.tokens.append(int(response.token))
            row.finished = response.finish_reason
            if row.finished is not None:
                del self._rows[response.uid]

    def drop(self, row: TextRow) -> None:
        for uid in [uid for uid, live_row in self._rows.items() if live_row is row]:
            self._generator.remove([uid])
            del self._rows[uid]

    def close(self) -> None:
        with dropping():
            self._generator.close()
        self._rows.clear()


class SequentialTextRows(TextRows):
    """Rows one after the other by mlx-lm's generate_step, with caches of a single row."""

    width = 1

    def __init__(self, model: Any, ends: Collection[int], kv_bits: int | None = None) -> None:
        self._model = model
        self._ends = ends
        self._kv_bits = kv_bits
        self._row: TextRow | None = None
        self._stream: Generator[int, None, None] | None = None

    def add(self, row: TextRow) -> None:
        self._row, self._stream = row, self._tokens(row)

    def work(self) -> None:
        row, stream = self._row, self._stream
        if row is None or stream is None:
            return
        row.tokens.append(next(stream))
        if row.tokens[-1] in self._ends:
            row.finished = "stop"
        elif len(row.tokens) >= row.max_tokens:
            row.finished = "length"
        if row.finished is not None:
            settle()
            self.drop(row)

    def drop(self, row: TextRow) -> None:
        if row is self._row and self._stream is not None:
            stream, self._row, self._stream = self._stream, None, None
            with dropping():
                stream.close()

    def close(self) -> None:
        if self._row is not None:
            self.drop(self._row)

    def _tokens(self, row: TextRow) -> Generator[int, None, None]:
        import mlx.core as mx
        from mlx_lm.generate import generate_step, generation_stream, wired_limit

        from mlx_backends.mlx.kv_quantization import make_text_cache

        stream: Any = generation_stream
        with wired_limit(self._model, [stream]):
            for token, _ in generate_step(
                mx.array(row.prompt),
                self._model,
                max_tokens=row.max_tokens,
                sampler=row.sampler,
                logits_processors=list(row.processors),
                prefill_step_size=PREFILL_TOKENS,
                prompt_cache=make_text_cache(self._model, self._kv_bits),
            ):
                yield int(token)
