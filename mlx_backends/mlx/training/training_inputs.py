"""Inputs of a training: rows as the model reads them, with the answer to learn.

The prompt is the one that an evaluation gives the model, to the token, and the answer's tokens follow where the model's own
would. mlx-vlm's data sets would put the images first, and a template could rewrite the texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.errors import DecoderError, ModelError
from benchmarks.media import load_image
from benchmarks.training.training_set import ChatRow
from benchmarks.vocabulary import Decoding, Media, Message, Request
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault, out_of_memory
from mlx_backends.mlx.mlx_preprocess import Preprocessor
from mlx_backends.models.training_memory import RowTokens, image_tokens

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
        self._sizes: dict[Path, tuple[int, int]] = {}
        self._image_tokens: dict[tuple[tuple[int, int], ...], int] = {}
        """The tokens beside the text's, by the sizes of a row's images."""
        self.preprocessor = Preprocessor(processor, config, lambda media: self._images[media.sha256])
        self._tokenizer = getattr(processor, "tokenizer", processor)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> PreparedRow:
        """Return the inputs of a row with the answer to learn. Raises ModelError for one that the model cannot read."""
        return self._prepared(index, (self.rows[index].target,))[0]

    def first_with_image(self) -> int:
        """Return the place of the first row with an image: attention may differ where there is none."""
        return next((place for place, row in enumerate(self.rows) if row.images), 0)

    def pair(self, index: int) -> tuple[PreparedRow, ...]:
        """Return the inputs of a row with the answer to learn, and with the rejected one."""
        row = self.rows[index]
        return self._prepared(index, (row.target, row.rejected))

    def count_tokens(self, index: int, *, pair: bool) -> int:
        """Return the number of a row's tokens with its answer, or with the longer one of a ``pair``.

        Its images are decoded, and processed unless images of these sizes were, since they take the tokens of their sizes. Raises
        ModelError if the model cannot read the row.
        """
        row = self.rows[index]
        answers = (row.target, row.rejected) if pair else (row.target,)
        with _unreadable(row):
            request = self._request(row)
            sizes = tuple(map(self._decoded_size, row.images))
            text = len(self._tokenizer.encode(self.preprocessor.text(request), add_special_tokens=False))
            if sizes not in self._image_tokens:
                _, tensors = self.preprocessor.tensors(request)
                self._image_tokens[sizes] = int(tensors["input_ids"].shape[-1]) - text
            return text + self._image_tokens[sizes] + max(len(self._answer_ids(answer)) for answer in answers)

    def measure(self, index: int, *, pair: bool) -> RowTokens:
        """Return the size of a row as its language model sees it; otherwise as :meth:`count_tokens`."""
        total = self.count_tokens(index, pair=pair)
        row = self.rows[index]
        sizes = tuple(map(self._decoded_size, row.images))
        image = self._image_tokens[sizes]
        if sizes and image <= 0:  # a token stands for the whole image until the encoder's output takes its place
            expanded = sum(image_tokens(self.config, *size) for size in sizes)
            total, image = total + expanded, image + expanded
        answers = (row.target, row.rejected) if pair else (row.target,)
        return RowTokens(total, image, max(len(self._answer_ids(answer)) for answer in answers))

    def _decoded_size(self, image: Path) -> tuple[int, int]:
        """Return the size of an image, decoded once. Raises MediaError if it cannot be."""
        if image not in self._sizes:
            self._sizes[image] = load_image(image, self._decoding.max_pixels).size
        return self._sizes[image]

    def _prepared(self, index: int, answers: Sequence[str]) -> tuple[PreparedRow, ...]:
        import mlx.core as mx

        row = self.rows[index]
        with _unreadable(row):
            prepared = self.preprocessor.inputs(self._request(row))
        tensors = dict(prepared.tensors)
        ids = mx.array(tensors.pop("input_ids")).reshape(1, -1).astype(mx.int32)
        return tuple(self._with_answer(row, ids, tensors, answer, prepared.images) for answer in answers)

    def _with_answer(
        self, row: ChatRow, ids: Any, tensors: Mapping[str, Any], text: str, images: tuple[str, ...]
    ) -> PreparedRow:
        import mlx.core as mx

        answer = mx.array([self._answer_ids(text)], dtype=mx.int32)
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

    def answer_tokens(self, index: int) -> int:
        """Return the number of tokens of a row's answer to learn, with the one that ends it."""
        return len(self._answer_ids(self.rows[index].target))

    def request(self, index: int, max_tokens: int = 1) -> Request:
        """Return a row's prompt as a request for an answer of at most ``max_tokens``."""
        request = self._request(self.rows[index])
        return replace(request, decoding=replace(self._decoding, max_tokens=max_tokens))

    def _request(self, row: ChatRow) -> Request:
        return Request(row.where, 0, tuple(self._messages(row)), self._decoding)

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

    def _answer_ids(self, text: str) -> list[int]:
        """Return the tokens of an answer and of its end."""
        end = self._tokenizer.eos_token_id
        return [*self._tokenizer.encode(text, add_special_tokens=False), *([end] if isinstance(end, int) else [])]


@contextmanager
def _unreadable(row: ChatRow) -> Iterator[None]:
    """Raise ModelError for a row that the model's processor or template does not take."""
    try:
        yield
    except Exception as error:  # a processor can raise anything, of an image's form for example
        if isinstance(error, DecoderError) or metal_fault(error) is not None or out_of_memory(error):
            raise
        raise ModelError(f"{row.where} cannot be trained on: {one_line(error)}") from error


def _array(value: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    return mx.array(value) if isinstance(value, np.ndarray) else value
