"""Inputs of a training: rows as the model reads them, with the answer to learn.

The prompt is the one that an evaluation gives the model, to the token, and the answer's tokens follow where the model's own
would. mlx-vlm's data sets would put the images first, and a template could rewrite the texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError, RashomonError
from benchmarks.training.training_set import ChatRow
from benchmarks.vocabulary import Decoding, Media, Message, Request
from mlx_backends.mlx.preprocess import Preprocessor

_PER_TOKEN = ("token_type_ids", "mm_token_type_ids")
"""Inputs besides the ids with a number for each token; those of an answer are 0."""
_DROPPED = ("image_token_index",)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRow:
    """A row as its model reads it: ``tensors`` are mlx-vlm's, of a batch of one, and ``ids`` include the answer's tokens.

    ``answer`` is the number of those, ``images`` the digests of the processed images.
    """

    ids: Any
    tensors: Mapping[str, Any]
    answer: int
    images: tuple[str, ...] = ()


class TrainingInputs:
    """Rows of a training set for one model; nothing of them is kept in memory but their texts and the last images."""

    def __init__(
        self, rows: Sequence[ChatRow], processor: Any, config: Any, *, max_length: int, max_pixels: int | None
    ) -> None:
        self.rows = rows
        self.config = config
        self._max_length = max_length
        self._decoding = Decoding(max_tokens=1, max_pixels=max_pixels)
        self._images: dict[str, Path] = {}
        self._preprocessor = Preprocessor(processor, config, lambda media: self._images[media.sha256])
        self._tokenizer = getattr(processor, "tokenizer", processor)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> PreparedRow:
        """Return the inputs of a row with the answer to learn. Raises ModelError for one that the model cannot read."""
        return self._prepared(index, (self.rows[index].target,))[0]

    def pair(self, index: int) -> tuple[PreparedRow, ...]:
        """Return the inputs of a row with the answer to learn, and with the rejected one."""
        row = self.rows[index]
        return self._prepared(index, (row.target, row.rejected))

    def _prepared(self, index: int, answers: Sequence[str]) -> tuple[PreparedRow, ...]:
        import mlx.core as mx

        row = self.rows[index]
        request = Request(row.where, 0, tuple(self._messages(row)), self._decoding)
        try:
            prepared = self._preprocessor.inputs(request)
        except RashomonError as error:
            raise ModelError(f"{row.where} cannot be trained on: {error}") from error
        tensors = dict(prepared.tensors)
        ids = mx.array(tensors.pop("input_ids")).reshape(1, -1).astype(mx.int32)
        return tuple(self._with_answer(row, ids, tensors, answer, prepared.images) for answer in answers)

    def _with_answer(
        self, row: ChatRow, ids: Any, tensors: Mapping[str, Any], text: str, images: tuple[str, ...]
    ) -> PreparedRow:
        import mlx.core as mx

        answer = self._answer(text)
        length = ids.shape[1] + answer.shape[1]
        if length > self._max_length:
            raise ModelError(
                f"{row.where} has {length} tokens, more than {self._max_length}; raise --max-length, or make its images smaller "
                "with --max-pixels."
            )
        inputs = {name: _array(value) for name, value in tensors.items() if value is not None and name not in _DROPPED}
        inputs["attention_mask"] = mx.ones((1, length), dtype=mx.int32)
        for name in _PER_TOKEN:
            if name in inputs:
                types = inputs[name].reshape(1, -1)
                inputs[name] = mx.concatenate([types, mx.zeros_like(answer).astype(types.dtype)], axis=1)
        return PreparedRow(mx.concatenate([ids, answer], axis=1), inputs, answer.shape[1], images)

    def _messages(self, row: ChatRow) -> Iterator[Message]:
        """Yield a row's messages with their images named by content, as the preprocessor verifies them."""
        images = [Media(hashlib.sha256(path.read_bytes()).hexdigest(), path.suffix) for path in row.images]
        self._images = {media.sha256: path for media, path in zip(images, row.images, strict=True)}
        following = iter(images)
        for message in row.messages:
            yield Message(
                message.role,
                tuple(next(following) if isinstance(part, Media) else part for part in message.parts),
            )

    def _answer(self, text: str) -> Any:
        """Return the tokens of an answer and of its end, of the shape (1, tokens)."""
        import mlx.core as mx

        end = self._tokenizer.eos_token_id
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        return mx.array([[*tokens, *([end] if isinstance(end, int) else [])]], dtype=mx.int32)


def _array(value: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    return mx.array(value) if isinstance(value, np.ndarray) else value
