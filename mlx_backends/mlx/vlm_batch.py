"""Rows: answers that a model of mlx-vlm writes together, every distinct beginning of their prompts read once.

Prompts are read row by row, each from the longest beginning that is kept (:mod:`mlx_backends.mlx.prefix_cache`) to its
last token but
one, and only short ends of several prompts in one go. The last tokens are handed to mlx-vlm's BatchGenerator, with the rows'
caches: it writes the answers.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
from mlx_vlm.generate import ar
from mlx_vlm.models.cache import KVCache, make_prompt_cache

from benchmarks.base import FinishReason
from benchmarks.errors import ModelError
from mlx_backends.mlx.patches.qwen3_vl_deepstack import repair
from mlx_backends.mlx.prefix_cache import Cache, PrefixCache, stops
from mlx_backends.mlx.preprocess import PreparedInputs
from mlx_backends.mlx.vision_cache import CachedVisionTower

PIECE_TOKENS = 512
"""At most this many tokens of a prompt are read in one go."""

END_TOKENS = 64
"""Ends of prompts that are not longer are read together; a longer one keeps the device busy by itself."""

FILLED = 1.25
"""Ends that are read together are filled up to no more than so many times their tokens: what is filled up is computed too."""

_FEATURES, _MASK = "deepstack_visual_embeds", "visual_pos_masks"
_LAYERS_NDIM = 3
"""Of deepstack features in one array: layers, places, width."""

_KNOWN = frozenset({"inputs_embeds", "position_ids", "rope_deltas", _FEATURES, _MASK})


@dataclass(eq=False)
class VLMRow:
    """An answer under way: its inputs, how many tokens it may have, what is done to their logits, and those that have come.

    ``failed`` is why it could not be answered among others; ``read`` how many of its prompt's tokens ``cache`` holds.
    """

    inputs: PreparedInputs
    max_tokens: int
    processors: Sequence[Any] = ()
    tokens: list[int] = field(default_factory=list)
    finished: FinishReason | None = None
    failed: Exception | None = None
    read: int = 0
    cache: Cache = field(default_factory=list)
    embedded: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The position of the prompt's last token."""
        return len(self.inputs.content) - 1


class VLMRows:
    """The rows that one model works on: up to ``width`` at a time, any number waiting.

    ``share``: whether what prompts have in common is computed once, key-value caches and image features; otherwise each
    prompt is read whole. Rows are begun in the order in which they are added. ``prefilled`` counts the prompt tokens that
    were computed.
    """

    def __init__(self, model: Any, processor: Any, width: int, *, share: bool, join: bool = True) -> None:
        """``join``: whether the ends of several prompts may be read in one go."""
        repair()
        self._join = join and width > 1
        self.width = width
        self.prefilled = 0
        self._model = model
        self._language_model = model.language_model
        self._prefixes = PrefixCache() if share else None
        self._tower = CachedVisionTower(model) if share else None
        self._waiting: deque[VLMRow] = deque()
        self._begun: list[VLMRow] = []
        self._reading: Iterator[Sequence[VLMRow]] | None = None
        self._live: dict[int, VLMRow] = {}
        self._generator: Any = ar.BatchGenerator(
            self._language_model,
            processor,
            completion_batch_size=width,
            prefill_step_size=None,
            compute_logprobs=False,
            sampler=lambda logprobs: mx.argmax(logprobs, axis=-1),  # of our own, so that no model's shortcut is taken
        )
        self._generator._build_mixed_prompt_batch = self._prompt_batch

    def add(self, row: VLMRow) -> None:
        """Take a row; it begins as soon as there is room."""
        self._waiting.append(row)

    def work(self) -> Sequence[VLMRow]:
        """Read a piece of a prompt, else give every row that is past its prompt a token; the rows this was done for."""
        with mx.stream(self._generator.stream):
            if self._reading is None and self._waiting and len(self._live) < self.width:
                count = min(self.width - len(self._live), len(self._waiting))
                self._begun = [self._waiting.popleft() for _ in range(count)]
                self._reading = self._read(self._begun)
            if self._reading is not None:
                worked = next(self._reading, None)
                if worked is not None:
                    return worked
                self._reading = None
                self._insert([row for row in self._begun if row.failed is None])
                if failed := [row for row in self._begun if row.failed is not None]:
                    return failed
        worked = list(self._live.values())
        for response in self._generator.next()[1] if worked else ():
            row = self._live[response.uid]
            row.tokens.append(int(response.token))
            row.finished = response.finish_reason
            if row.finished is not None:
                del self._live[response.uid]
        return worked

    def drop(self, row: VLMRow) -> None:
        """Forget a row."""
        if row in self._waiting:
            self._waiting.remove(row)
        if row in self._begun:
            self._begun.remove(row)
        for uid in [uid for uid, held in self._live.items() if held is row]:
            self._generator.remove(uid)
            del self._live[uid]

    def close(self) -> None:
        """Give back what is held."""
        self._generator.close()
        del self._generator
        self._reading, self._begun, self._live = None, [], {}
        self._waiting.clear()
        if self._prefixes is not None:
            self._prefixes.clear()
        self._tower = None

    # --- reading prompts ---------------------------------------------------------------------------

    def _read(self, begun: list[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read the prompts of ``begun`` up to their last tokens; yields after every piece."""
        rows = list(begun)
        for number, row in enumerate(rows):
            if row not in begun:  # dropped meanwhile
                continue
            try:
                self._embed(row)
                row.cache = make_prompt_cache(self._language_model)
                if self._prefixes is not None:
                    row.read, kept = self._prefixes.longest(row.inputs.content)
                    row.cache = kept or row.cache
                    others = [other.inputs.content for other in (*rows[number + 1 :], *self._waiting)]
                    for stop in stops(row.inputs.content, others, row.read):
                        yield from self._advance(row, stop)
                        self._prefixes.keep(row.inputs.content[:stop], copy.deepcopy(row.cache))
                if row.last - row.read > END_TOKENS or not self._joinable(row):
                    yield from self._advance(row, row.last)
            except Exception as error:  # it must not end the others
                row.failed = error
                yield [row]
        ends = [row for row in begun if row.failed is None and row.read < row.last]
        for alike in _alike(ends):
            if len(alike) == 1:
                yield from self._advance(alike[0], alike[0].last)
            else:
                self._advance_together(alike)
                yield alike
        if self._prefixes is not None:
            for row in begun:
                if row.failed is None:
                    self._prefixes.keep(row.inputs.content[: row.last], copy.deepcopy(row.cache), likely=False)

    def _embed(self, row: VLMRow) -> None:
        """Have the prompt's embeddings, positions and image features computed."""
        inputs = row.inputs
        tensors = {name: value for name, value in inputs.tensors.items() if value is not None}
        ids, pixels = tensors.pop("input_ids"), tensors.pop("pixel_values", None)
        mask = tensors.pop("attention_mask", None)
        if self._tower is None:
            found = self._model.get_input_embeddings(ids, pixels, mask=mask, **tensors)
        else:
            with self._tower.showing(inputs.images, inputs.videos, tensors.get("video_grid_thw")):
                found = self._model.get_input_embeddings(ids, pixels, mask=mask, **tensors)
        row.embedded = {name: value for name, value in found.to_dict().items() if value is not None}
        if getattr(row.embedded.get(_FEATURES), "ndim", 0) > _LAYERS_NDIM:
            raise ModelError("its image features come in a layout that is not known to be the same in a batch")
        if unknown := sorted(row.embedded.keys() - _KNOWN):
            raise ModelError(
                f"its prompts come with {', '.join(unknown)}, which is not known to be the same in a batch"
            )

    def _advance(self, row: VLMRow, until: int) -> Iterator[Sequence[VLMRow]]:
        """Read one prompt on, up to ``until``, in pieces."""
        while row.read < until:
            end = min(until, row.read + PIECE_TOKENS)
            self._forward(row.inputs.ids[:, row.read : end], row.cache, self._piece(row, row.read, end))
            self.prefilled += end - row.read
            row.read = end
            yield [row]

    def _advance_together(self, rows: Sequence[VLMRow]) -> None:
        """Read several prompts to their last tokens in one go, filled up on the right."""
        lengths = [row.last - row.read for row in rows]
        longest = max(lengths)
        pieces, ids = [], []
        for row, length in zip(rows, lengths, strict=True):
            pieces.append(_filled(self._piece(row, row.read, row.last), length, longest))
            ids.append([*row.inputs.ids[0, row.read : row.last].tolist(), *[0] * (longest - length)])
        embeddings, together = ar._merge_prefill_prompt_kwargs(pieces, ids)
        cache = _merged([row.cache for row in rows])
        for entry in cache:
            entry.prepare(right_padding=[longest - length for length in lengths], lengths=lengths)
        self._forward(mx.array(ids), cache, {"inputs_embeds": embeddings, **together})
        for entry in cache:
            entry.finalize()
        for number, row in enumerate(rows):
            row.cache = [entry.extract(number) for entry in cache]
            row.read = row.last
        mx.eval([entry.state for row in rows for entry in row.cache])
        self.prefilled += sum(lengths)

    def _forward(self, ids: Any, cache: Cache, given: Mapping[str, Any]) -> None:
        """Let the model read ``ids`` into ``cache``; what it would say next is never computed."""
        self._language_model(ids, cache=cache, n_to_process=ids.shape[1], logits_to_keep=1, **given)
        mx.eval([entry.state for entry in cache])

    def _piece(self, row: VLMRow, start: int, end: int) -> dict[str, Any]:
        """What the model is given with the prompt's tokens from ``start`` to ``end``."""
        given = dict(row.embedded)
        length = len(row.inputs.content)
        features, mask = given.pop(_FEATURES, None), given.get(_MASK)
        found = {
            name: ar._slice_sequence_aligned_prompt_kwarg(name, value, start, end)
            if _aligned(name, value, length)
            else value
            for name, value in given.items()
        }
        if mask is not None:
            first, beyond = (int(mask[:, :at].sum()) for at in (start, end))
            if first == beyond:
                del found[_MASK]
            elif features is not None:
                found[_FEATURES] = [layer[first:beyond] for layer in features]
        return found

    def _joinable(self, row: VLMRow) -> bool:
        return self._join and all(type(entry) is KVCache for entry in row.cache)

    # --- writing answers ---------------------------------------------------------------------------

    def _insert(self, rows: Sequence[VLMRow]) -> None:
        if not rows:
            return
        self._generator.prefill_batch_size = len(rows)  # else it waits until so many can begin
        uids = self._generator.insert(
            [[int(row.inputs.ids[0, -1])] for row in rows],
            max_tokens=[row.max_tokens for row in rows],
            prompt_kwargs=[self._piece(row, row.last, row.last + 1) for row in rows],
            logits_processors=[list(row.processors) for row in rows],
        )
        self._live.update(zip(uids, rows, strict=True))
        self.prefilled += len(rows)

    def _prompt_batch(self, sequences: Sequence[Any]) -> Any:
        """Stands in for BatchGenerator's own way of beginning rows: with caches that hold all but the last tokens."""
        uids, ids, limits, given, processors, thinking = map(list, zip(*sequences, strict=True))
        rows = [self._live[uid] for uid in uids]
        embeddings, together = ar._merge_prefill_prompt_kwargs(given, ids)
        batch = ar.PromptProcessingBatch(
            model=self._language_model,
            uids=uids,
            input_ids=ids,
            max_tokens=limits,
            inputs_embeds=embeddings,
            prompt_kwargs=together,
            logits_processors=processors,
            thinking_budget_criteria=thinking,
            prefill_step_size=None,
            warm_cache=_merged([row.cache for row in rows]),
        )
        for row in rows:
            row.cache, row.embedded = [], {}
        return batch


def _alike(ends: Sequence[VLMRow]) -> list[list[VLMRow]]:
    """Rows in groups whose ends are nearly as long as each other, so that reading a group together fills up little."""
    groups: list[list[VLMRow]] = []
    total = 0
    for row in sorted(ends, key=lambda row: row.read - row.last):
        length, longest = row.last - row.read, groups[-1][0].last - groups[-1][0].read if groups else 0
        if groups and longest * (len(groups[-1]) + 1) <= FILLED * (total + length):
            groups[-1].append(row)
            total += length
        else:
            groups.append([row])
            total = length
    return groups


def _merged(caches: Sequence[Cache]) -> Cache:
    """The caches of several rows as one of a batch, or that of one row as it is."""
    if len(caches) == 1:
        return caches[0]
    return [type(layer[0]).merge(list(layer)) for layer in zip(*caches, strict=True)]


def _aligned(name: str, value: Any, length: int) -> bool:
    """Whether ``value`` has an entry for each of a prompt's ``length`` tokens."""
    if name == "inputs_embeds":
        return True
    return isinstance(value, mx.array) and bool(ar._is_sequence_aligned_prompt_kwarg(name, value, length))


def _filled(given: Mapping[str, Any], length: int, longest: int) -> dict[str, Any]:
    """A row's piece of ``length`` tokens filled up on the right to ``longest``."""
    return {
        name: ar._pad_sequence_aligned_prompt_kwarg(name, value, longest, left=False)
        if _aligned(name, value, length)
        else value
        for name, value in given.items()
    }
