"""Reading of the prompts of a batch, with every shared prefix read once.

Each prompt is read from the longest prefix that was read before, in an earlier batch (:mod:`mlx_backends.mlx.prefix_cache`) or
for another row of its own, to its last token but one; short suffixes of several prompts are read in one pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import mlx.core as mx
from mlx_vlm.generate import ar
from mlx_vlm.models.cache import KVCache

from benchmarks.errors import ModelError
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.core.saved_work import Reuse
from mlx_backends.mlx.kv_quantization import make_vlm_cache
from mlx_backends.mlx.metal.metal_fault_recovery import root_cause
from mlx_backends.mlx.prefix_cache import (
    MIN_SAVED_TOKENS,
    Cache,
    PrefixCache,
    branch_points,
    compact_copy,
    merged_cache,
    trimmed_copy,
)
from mlx_backends.mlx.remembered_positions import remembered_positions
from mlx_backends.mlx.vision.vision_cache import CachedVisionTower, VisionEncoder
from mlx_backends.mlx.vlm_row import FEATURES, MASK, VLMRow, padded
from mlx_backends.models.memory_and_cache_sizes import CacheSizes

PREFILL_TOKENS = 512
"""Most tokens of a prompt that are read in one pass."""

MAX_SUFFIX_TOKENS = 64
"""Longest suffix of a prompt that is read in a batch; a longer one keeps the device busy alone."""

_TYPES = "mm_token_type_ids"
_LAYERS_NDIM = 3
"""Dimensions of deepstack features in one array: layers, positions, width."""

_KNOWN = frozenset({"inputs_embeds", "position_ids", "rope_deltas", "per_layer_inputs", FEATURES, MASK, _TYPES})


class SharedWork:
    """Work on prompts that is done once: key-value caches of prefixes, and features of images, these also on disk."""

    def __init__(self, encoder: VisionEncoder, sizes: CacheSizes) -> None:
        self.prefixes = PrefixCache(sizes.prefixes)
        self.tower = CachedVisionTower(encoder, sizes.features)

    def resize(self, sizes: CacheSizes) -> None:
        """Bound the memory for the caches anew."""
        self.prefixes.limit = sizes.prefixes
        self.tower.resize(sizes.features)


class PromptReader:
    """Reader of the prompts of rows, with the caches of ``shared`` if there are any; ``reuse`` counts the work.

    With ``join``, suffixes of several prompts may be read in one pass, with up to ``max_padding`` times their tokens.
    """

    def __init__(
        self,
        model: Any,
        shared: SharedWork | None,
        reuse: Reuse,
        *,
        join: bool,
        max_padding: float,
        kv_bits: int | None,
    ) -> None:
        self.reuse = reuse
        self._model = model
        self._language_model = model.language_model
        self._prefixes = shared.prefixes if shared else None
        self.tower = shared.tower if shared else None
        self._join = join
        self._max_padding = max_padding
        self._kv_bits = kv_bits

    def close(self) -> None:
        """Release the caches."""
        self._prefixes = self.tower = None

    def read(self, started: list[VLMRow], waiting: Collection[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read the prompts of ``started`` up to their last tokens; yield after every piece. Others are ``waiting``."""
        rows = list(started)
        trimmable: list[VLMRow] = []
        for index, row in enumerate(rows):
            if row not in started:  # dropped in the meantime
                continue
            row.cache = make_vlm_cache(self._language_model, self._kv_bits)
            if all(type(entry) is KVCache for entry in row.cache):
                trimmable.append(row)
            else:
                yield from self._read_alone(row, (*rows[index + 1 :], *waiting))
        yield from self._read_in_waves(trimmable, started)
        if self._prefixes is not None:
            for row in started:
                if row.failed is None:
                    likely = row.is_continued or row.is_shared
                    self._prefixes.put(row.inputs.content[: row.last], compact_copy(row.cache), likely=likely)

    def _read_alone(self, row: VLMRow, others: Sequence[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read a prompt whose cache may be of use only as a whole; stop where it is worth a copy for ``others``."""
        try:
            self.embed(row)
            if self._prefixes is not None:
                content = row.inputs.content
                row.read, cached = self._prefixes.longest(content)
                row.cache = cached or row.cache
                for position in branch_points(content, [other.inputs.content for other in others], row.read):
                    yield from self.advance(row, position)
                    self._prefixes.put(content[:position], compact_copy(row.cache))
            yield from self.advance(row, row.last)
        except Exception as error:  # it must not stop the other rows
            yield from _fail(row, error)

    def _read_in_waves(self, waiting: list[VLMRow], started: Sequence[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read prompts whose caches can be trimmed: first some, then those that share prefixes with them."""
        done: list[VLMRow] = []
        for row in waiting:
            row.read = 0 if self._prefixes is None else self._prefixes.longest_length(row.inputs.content)
        while waiting := [row for row in waiting if row in started]:
            wave, waiting = (waiting, []) if self._prefixes is None else self._wave(waiting)
            for row in wave:
                self._take_cache(row, done)
            short = [row for row in wave if self._join and row.last - row.read <= MAX_SUFFIX_TOKENS]
            for group in [[row] for row in wave if row not in short] + _by_length(short, self._max_padding):
                yield from self._read_group(group, started)
            done += [row for row in wave if row.read == row.last and row.failed is None]
            for row in waiting:
                row.read = max([row.read, *(row.shared_length(other) for other in done)])

    def _read_group(self, group: Sequence[VLMRow], started: Sequence[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read prompts in one pass, or one alone.

        They are embedded just before, because some models remember the positions of what they embedded last.
        """
        for row in group:
            if row in started:
                try:
                    self.embed(row)
                    yield [row]
                except Exception as error:  # it must not stop the other rows
                    yield from _fail(row, error)
        ready = [row for row in group if row in started and row.failed is None and row.read < row.last]
        if len(ready) > 1:
            self._advance_batch(ready)
            yield ready
        for row in ready[:1]:
            try:
                yield from self.advance(row, row.last)
            except Exception as error:  # it must not stop the other rows
                yield from _fail(row, error)

    def _wave(self, rows: Sequence[VLMRow]) -> tuple[list[VLMRow], list[VLMRow]]:
        """Return the rows to read next, and those that wait for them: equal ones, and others if that saves enough tokens."""
        wave: list[VLMRow] = []
        equal: list[VLMRow] = []
        later: list[VLMRow] = []
        saved = 0
        for row in rows:
            if row.read < row.last and any(row.shared_length(other) == row.last for other in (*wave, *later)):
                equal.append(row)
            elif (shared := max((row.shared_length(other) for other in wave), default=0)) > row.read:
                later.append(row)
                saved += shared - row.read
            else:
                wave.append(row)
        if self._join and saved < MIN_SAVED_TOKENS:  # else each is read in a pass of its own anyway
            return [*wave, *later], equal
        return wave, [*later, *equal]

    def _take_cache(self, row: VLMRow, done: Sequence[VLMRow]) -> None:
        """Give ``row`` the cache of the longest prefix that was read before, for a row of ``done`` or in an earlier batch."""
        if self._prefixes is None:
            return
        source = max(done, key=row.shared_length, default=None)
        length = 0 if source is None else row.shared_length(source)
        if source is not None and length > self._prefixes.longest_length(row.inputs.content):
            source.is_shared = True
            row.read, row.cache = length, trimmed_copy(source.cache, source.read - length)
        else:
            row.read, cached = self._prefixes.longest(row.inputs.content)
            row.cache = cached or row.cache

    def embed(self, row: VLMRow) -> None:
        """Compute the prompt's embeddings, positions and image features."""
        inputs = row.inputs
        tensors = {name: value for name, value in inputs.tensors.items() if value is not None}
        ids, pixels = tensors.pop("input_ids"), tensors.pop("pixel_values", None)
        mask = tensors.pop("attention_mask", None)
        self.reuse.read(inputs.prefixes, inputs.media)
        embed = partial(self._model.get_input_embeddings, ids, pixels, mask=mask, **tensors)
        if self.tower is None:
            output = embed()
            self.reuse.encoded += len(inputs.media)
        else:
            times = tensors.get("video_grid_thw")
            output = self.tower.embed(embed, inputs.images, inputs.videos, times, self.reuse)
        row.embedded = {name: value for name, value in output.to_dict().items() if value is not None}
        if getattr(self._language_model, "whole_images", False) and _TYPES in tensors:  # which its masks follow from
            row.embedded[_TYPES] = tensors[_TYPES]
        if "position_ids" not in row.embedded:
            row.embedded |= remembered_positions(self._language_model, ids)
        if getattr(row.embedded.get(FEATURES), "ndim", 0) > _LAYERS_NDIM:
            raise ModelError("its image features come in a layout that is not known to be the same in a batch")
        if row.embedded["inputs_embeds"].shape[1] != len(row.inputs.content):
            raise ModelError("its images take up another number of embeddings than of tokens in a prompt")
        if unknown := sorted(row.embedded.keys() - _KNOWN):
            raise ModelError(
                f"its prompts come with {', '.join(unknown)}, which is not known to be the same in a batch"
            )

    def advance(self, row: VLMRow, until: int) -> Iterator[Sequence[VLMRow]]:
        """Read one prompt up to ``until``, in pieces."""
        while row.read < until:
            end = self._whole_images(row, min(until, row.read + PREFILL_TOKENS), until)
            self._forward(row.inputs.ids[:, row.read : end], row.cache, row.piece(row.read, end))
            self.reuse.computed_tokens += end - row.read
            row.read = end
            yield [row]

    def _whole_images(self, row: VLMRow, end: int, until: int) -> int:
        """Return ``end``, or the end of the image that it would split where the model reads images only as a whole."""
        content = row.inputs.content
        if getattr(self._language_model, "whole_images", False):
            while end < until and content[end] < 0 and content[end] == content[end - 1] - 1:
                end += 1
        return end

    def _advance_batch(self, rows: Sequence[VLMRow]) -> None:
        """Read several prompts up to their last tokens in one pass, padded on the right."""
        lengths = [row.last - row.read for row in rows]
        longest = max(lengths)
        pieces, ids = [], []
        for row, length in zip(rows, lengths, strict=True):
            pieces.append(padded(row.piece(row.read, row.last), length, longest))
            ids.append([*row.inputs.ids[0, row.read : row.last].tolist(), *[0] * (longest - length)])
        embeddings, joined_kwargs = ar._merge_prefill_prompt_kwargs(pieces, ids)
        cache = merged_cache([row.cache for row in rows])
        for entry in cache:
            entry.prepare(right_padding=[longest - length for length in lengths], lengths=lengths)
        self._forward(mx.array(ids), cache, {"inputs_embeds": embeddings, **joined_kwargs})
        for entry in cache:
            entry.finalize()
        for number, row in enumerate(rows):
            row.cache = [entry.extract(number) for entry in cache]
            row.read = row.last
        mx.eval([entry.state for row in rows for entry in row.cache])
        self.reuse.computed_tokens += sum(lengths)

    def _forward(self, ids: Any, cache: Cache, inputs: Mapping[str, Any]) -> None:
        """Let the model read ``ids`` into ``cache``, without computing the next token."""
        self._language_model(ids, cache=cache, n_to_process=ids.shape[1], logits_to_keep=1, **inputs)
        mx.eval([entry.state for entry in cache])


def _fail(row: VLMRow, error: Exception) -> Iterator[Sequence[VLMRow]]:
    """Record the ``error`` of one row; raise one that may concern the others."""
    cause = root_cause(error)
    if cause is not error:
        raise cause from error
    if metal_fault(error) is not None:  # which the other rows' arrays may have been part of
        raise error
    row.failed = error
    yield [row]


def _by_length(suffixes: Sequence[VLMRow], max_padding: float) -> list[list[VLMRow]]:
    """Return rows in groups of similar suffix lengths, so that reading a group in one pass needs little padding."""
    groups: list[list[VLMRow]] = []
    total = 0
    for row in sorted(suffixes, key=lambda row: row.read - row.last):
        length, longest = row.last - row.read, groups[-1][0].last - groups[-1][0].read if groups else 0
        if groups and longest * (len(groups[-1]) + 1) <= max_padding * (total + length):
            groups[-1].append(row)
            total += length
        else:
            groups.append([row])
            total = length
    return groups
