"""Rows of a model of mlx-vlm: answers in a batch, with every shared prefix of their prompts read once.

Each prompt is read from the longest prefix that was read before, in an earlier batch (:mod:`mlx_backends.mlx.prefix_cache`) or
for another row of its own, to its last token but one; short suffixes of several prompts are read in one pass. The last tokens
are handed to mlx-vlm's BatchGenerator, with the rows' caches, and it generates the answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import mlx.core as mx
from mlx_vlm.generate import ar
from mlx_vlm.models.cache import KVCache

from benchmarks.errors import ModelError
from benchmarks.vocabulary import FinishReason
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.core.reuse import Reuse, shared_prefix_length
from mlx_backends.mlx.kv_quantization import make_vlm_cache
from mlx_backends.mlx.metal.fault_recovery import dropping, root_cause
from mlx_backends.mlx.patches.qwen3_vl_deepstack import apply_patch
from mlx_backends.mlx.prefix_cache import (
    MIN_SAVED_TOKENS,
    Cache,
    PrefixCache,
    branch_points,
    compact_copy,
    trimmed_copy,
)
from mlx_backends.mlx.preprocess import PreparedInputs
from mlx_backends.mlx.remembered_positions import remembered_positions
from mlx_backends.mlx.vision_cache import CachedVisionTower, VisionEncoder
from mlx_backends.models.memory_estimate import CacheSizes

PREFILL_TOKENS = 512
"""Most tokens of a prompt that are read in one pass."""

MAX_SUFFIX_TOKENS = 64
"""Longest suffix of a prompt that is read in a batch; a longer one keeps the device busy alone."""

MAX_PADDING_FACTOR = 1.25
"""Most tokens of a batch of suffixes with padding, as a multiple of those without: padding is computed too."""

NO_PADDING = 1.0
"""The multiple for models that cannot handle padding: their batches hold prompts of equal length."""

_FEATURES, _MASK, _TYPES = "deepstack_visual_embeds", "visual_pos_masks", "mm_token_type_ids"
_LAYERS_NDIM = 3
"""Dimensions of deepstack features in one array: layers, positions, width."""

_KNOWN = frozenset({"inputs_embeds", "position_ids", "rope_deltas", "per_layer_inputs", _FEATURES, _MASK, _TYPES})


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


class SharedWork:
    """Work on prompts that is done once: key-value caches of prefixes, and features of images, these also on disk."""

    def __init__(self, encoder: VisionEncoder, sizes: CacheSizes) -> None:
        self.prefixes = PrefixCache(sizes.prefixes)
        self.tower = CachedVisionTower(encoder, sizes.features)

    def resize(self, sizes: CacheSizes) -> None:
        """Bound the memory for the caches anew."""
        self.prefixes.limit = sizes.prefixes
        self.tower.resize(sizes.features)


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
        self._kv_bits = kv_bits
        self._join = join and width > 1
        self._max_padding = max_padding
        self.width = width
        self.reuse = reuse or Reuse()
        self._model = model
        self._language_model = model.language_model
        self._prefixes = shared.prefixes if shared else None
        self._tower = shared.tower if shared else None
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
                self._reading = self._read(starting)
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
        self._prefixes = self._tower = None

    # --- reading prompts ---------------------------------------------------------------------------

    def _read(self, started: list[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read the prompts of ``started`` up to their last tokens; yield after every piece."""
        rows = list(started)
        trimmable: list[VLMRow] = []
        for index, row in enumerate(rows):
            if row not in started:  # dropped in the meantime
                continue
            row.cache = make_vlm_cache(self._language_model, self._kv_bits)
            if all(type(entry) is KVCache for entry in row.cache):
                trimmable.append(row)
            else:
                yield from self._read_alone(row, (*rows[index + 1 :], *self._waiting))
        yield from self._read_in_waves(trimmable, started)
        if self._prefixes is not None:
            for row in started:
                if row.failed is None:
                    likely = row.is_continued or row.is_shared
                    self._prefixes.put(row.inputs.content[: row.last], compact_copy(row.cache), likely=likely)

    def _read_alone(self, row: VLMRow, others: Sequence[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read a prompt whose cache may be of use only as a whole; stop where it is worth a copy for ``others``."""
        try:
            self._embed(row)
            if self._prefixes is not None:
                content = row.inputs.content
                row.read, cached = self._prefixes.longest(content)
                row.cache = cached or row.cache
                for position in branch_points(content, [other.inputs.content for other in others], row.read):
                    yield from self._advance(row, position)
                    self._prefixes.put(content[:position], compact_copy(row.cache))
            yield from self._advance(row, row.last)
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
                row.read = max([row.read, *(_shared_length(row, other) for other in done)])

    def _read_group(self, group: Sequence[VLMRow], started: Sequence[VLMRow]) -> Iterator[Sequence[VLMRow]]:
        """Read prompts in one pass, or one alone.

        They are embedded just before, because some models remember the positions of what they embedded last.
        """
        for row in group:
            if row in started:
                try:
                    self._embed(row)
                    yield [row]
                except Exception as error:  # it must not stop the other rows
                    yield from _fail(row, error)
        ready = [row for row in group if row in started and row.failed is None and row.read < row.last]
        if len(ready) > 1:
            self._advance_batch(ready)
            yield ready
        for row in ready[:1]:
            try:
                yield from self._advance(row, row.last)
            except Exception as error:  # it must not stop the other rows
                yield from _fail(row, error)

    def _wave(self, rows: Sequence[VLMRow]) -> tuple[list[VLMRow], list[VLMRow]]:
        """Return the rows to read next, and those that wait for them: equal ones, and others if that saves enough tokens."""
        wave: list[VLMRow] = []
        equal: list[VLMRow] = []
        later: list[VLMRow] = []
        saved = 0
        for row in rows:
            if row.read < row.last and any(_shared_length(row, other) == row.last for other in (*wave, *later)):
                equal.append(row)
            elif (shared := max((_shared_length(row, other) for other in wave), default=0)) > row.read:
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
        source = max(done, key=partial(_shared_length, row), default=None)
        length = 0 if source is None else _shared_length(row, source)
        if source is not None and length > self._prefixes.longest_length(row.inputs.content):
            source.is_shared = True
            row.read, row.cache = length, trimmed_copy(source.cache, source.read - length)
        else:
            row.read, cached = self._prefixes.longest(row.inputs.content)
            row.cache = cached or row.cache

    def _embed(self, row: VLMRow) -> None:
        """Compute the prompt's embeddings, positions and image features."""
        inputs = row.inputs
        tensors = {name: value for name, value in inputs.tensors.items() if value is not None}
        ids, pixels = tensors.pop("input_ids"), tensors.pop("pixel_values", None)
        mask = tensors.pop("attention_mask", None)
        self.reuse.read(inputs.prefixes, inputs.media)
        embed = partial(self._model.get_input_embeddings, ids, pixels, mask=mask, **tensors)
        if self._tower is None:
            output = embed()
            self.reuse.encoded += len(inputs.media)
        else:
            times = tensors.get("video_grid_thw")
            output = self._tower.embed(embed, inputs.images, inputs.videos, times, self.reuse)
        row.embedded = {name: value for name, value in output.to_dict().items() if value is not None}
        if getattr(self._language_model, "whole_images", False) and _TYPES in tensors:  # which its masks follow from
            row.embedded[_TYPES] = tensors[_TYPES]
        if "position_ids" not in row.embedded:
            row.embedded |= remembered_positions(self._language_model, ids)
        if getattr(row.embedded.get(_FEATURES), "ndim", 0) > _LAYERS_NDIM:
            raise ModelError("its image features come in a layout that is not known to be the same in a batch")
        if row.embedded["inputs_embeds"].shape[1] != len(row.inputs.content):
            raise ModelError("its images take up another number of embeddings than of tokens in a prompt")
        if unknown := sorted(row.embedded.keys() - _KNOWN):
            raise ModelError(
                f"its prompts come with {', '.join(unknown)}, which is not known to be the same in a batch"
            )

    def _advance(self, row: VLMRow, until: int) -> Iterator[Sequence[VLMRow]]:
        """Read one prompt up to ``until``, in pieces."""
        while row.read < until:
            end = self._whole_images(row, min(until, row.read + PREFILL_TOKENS), until)
            self._forward(row.inputs.ids[:, row.read : end], row.cache, self._piece(row, row.read, end))
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
            pieces.append(_padded(self._piece(row, row.read, row.last), length, longest))
            ids.append([*row.inputs.ids[0, row.read : row.last].tolist(), *[0] * (longest - length)])
        embeddings, joined_kwargs = ar._merge_prefill_prompt_kwargs(pieces, ids)
        cache = _merged([row.cache for row in rows])
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

    def _piece(self, row: VLMRow, start: int, end: int) -> dict[str, Any]:
        """Return the model's inputs with the prompt's tokens from ``start`` to ``end``."""
        embedded = dict(row.embedded)
        length = len(row.inputs.content)
        features, mask = embedded.pop(_FEATURES, None), embedded.get(_MASK)
        inputs = {
            name: ar._slice_sequence_aligned_prompt_kwarg(name, value, start, end)
            if _aligned(name, value, length)
            else value
            for name, value in embedded.items()
        }
        if mask is not None:
            before, after = (int(mask[:, :position].sum()) for position in (start, end))
            if before == after:
                del inputs[_MASK]
            elif features is not None:
                inputs[_FEATURES] = [layer[before:after] for layer in features]
        return inputs

    # --- generating answers ------------------------------------------------------------------------

    def _insert(self, rows: Sequence[VLMRow]) -> None:
        if not rows:
            return
        self._generator.prefill_batch_size = len(rows)  # else it waits until that many can start
        uids = self._generator.insert(
            [[int(row.inputs.ids[0, -1])] for row in rows],
            max_tokens=[row.max_tokens for row in rows],
            prompt_kwargs=[self._piece(row, row.last, row.last + 1) for row in rows],
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
            warm_cache=_merged([row.cache for row in rows]),
        )
        for row in rows:
            row.cache, row.embedded = [], {}
        return batch


def _shared_length(row: VLMRow, other: VLMRow) -> int:
    """Return the number of first tokens of a prompt, but for its last one, that another one has too."""
    return min(shared_prefix_length(row.inputs.content, other.inputs.content), row.last, other.last)


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


def _merged(caches: Sequence[Cache]) -> Cache:
    """Return the caches of several rows as one of a batch, or that of one row as it is."""
    if len(caches) == 1:
        return caches[0]
    return [type(layer[0]).merge(list(layer)) for layer in zip(*caches, strict=True)]


def _aligned(name: str, value: Any, length: int) -> bool:
    """Return whether ``value`` has an entry for each of a prompt's ``length`` tokens."""
    if name == "inputs_embeds":
        return True
    return isinstance(value, mx.array) and bool(ar._is_sequence_aligned_prompt_kwarg(name, value, length))


def _padded(inputs: Mapping[str, Any], length: int, longest: int) -> dict[str, Any]:
    """Return a row's piece of ``length`` tokens, padded on the right to ``longest``."""
    return {
        name: ar._pad_sequence_aligned_prompt_kwarg(name, value, longest, left=False)
        if _aligned(name, value, length)
        else value
        for name, value in inputs.items()
    }
