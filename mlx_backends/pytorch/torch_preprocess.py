"""Inputs of a vision-language model in PyTorch, for one request and for a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.vocabulary import Request
from mlx_backends.base import MediaPath
from mlx_backends.core.image_inputs import keyed_image
from mlx_backends.core.prompts.chat_prompt import Prompter
from mlx_backends.models.context_length import ContextLength
from mlx_backends.models.tokenizer_limits import panics_as_errors

_OWN_MARKERS = frozenset({"gemma3", "gemma3n", "gemma4", "gemma4_unified", "laguna"})  # as mlx-vlm lists them
_IMAGES_BY_PROMPT = frozenset({"llava_onevision"})
"""Types whose processor takes an image by itself for the only one of its prompt, and cuts it into tiles."""


@dataclass(frozen=True, slots=True, eq=False)
class TorchInputs:
    """A request as its model reads it: the prompt's text, its number of images, and the processor's tensors, of one row."""

    text: str
    images: int
    tensors: Mapping[str, Any]

    @property
    def ids(self) -> list[int]:
        """Return the prompt's token ids."""
        ids: list[int] = self.tensors["input_ids"][0].tolist()
        return ids


class TorchPreprocessor:
    """Preprocessor of one model, from transformers' processor, with the same prompts and checks as for mlx-vlm."""

    def __init__(self, processor: Any, config: Any, media: MediaPath, context: ContextLength | None = None) -> None:
        self._processor = processor
        self._tokenizer = processor.tokenizer
        self._kind = config.model_type
        self._media = media
        self.prompter = Prompter(processor, config, context)

    @panics_as_errors()
    def inputs(self, request: Request) -> TorchInputs:
        """Return the inputs of ``request``, with its images checked to be in place.

        Raises PromptError, MediaError.
        """
        prompt = self.prompter.prompt(request.messages)
        images = [keyed_image(self._media(image), image, request.decoding.max_pixels)[1]() for image in prompt.images]
        bos = self._tokenizer.bos_token
        has_bos = bool(bos) and prompt.text.startswith(bos)
        special = not has_bos and not (self._kind in _OWN_MARKERS and self._processor.chat_template is not None)
        settings = {"add_special_tokens": special, "return_tensors": "pt"}
        if images:
            batch = [images] if self._kind in _IMAGES_BY_PROMPT else images
            processed = self._processor(images=batch, text=[prompt.text], **settings)
        else:
            processed = self._tokenizer([prompt.text], **settings)
        tensors = {name: value for name, value in processed.items() if value is not None}
        self.prompter.check_inputs(prompt, tensors)
        return TorchInputs(prompt.text, len(images), tensors)


def collate(rows: Sequence[TorchInputs], pad: int) -> dict[str, Any]:
    """Return the tensors of a batch: tokens padded on the left with ``pad`` under a mask of 0, image tensors concatenated.

    Shapes that cannot be concatenated raise PyTorch's error.
    """
    import torch

    longest = max(len(row.ids) for row in rows)

    def padded(name: str, row: TorchInputs) -> Any:
        value = row.tensors.get(name)
        if value is None:  # a row without images in a batch with images
            value = torch.zeros_like(row.tensors["input_ids"])
        missing = longest - value.shape[1]
        return torch.nn.functional.pad(value, (missing, 0), value=pad if name == "input_ids" else 0)

    batch: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row.tensors):
        values = [row.tensors[name] for row in rows if name in row.tensors]
        like_tokens = all(
            row.tensors[name].shape == row.tensors["input_ids"].shape for row in rows if name in row.tensors
        )
        batch[name] = torch.cat([padded(name, row) for row in rows] if like_tokens else values)
    return batch
