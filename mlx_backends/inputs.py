"""What a vision-language model is given for a request: its prepared tensors, and what stands at every position of its prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.base import Request
from mlx_backends.base import MediaPath
from mlx_backends.pictures import Opened, Picture, Pictures, opened
from mlx_backends.prompt import Prompt, Prompter

_TEXT = frozenset({"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "image_token_index"})
_PIXELS, _GRID = "pixel_values", "image_grid_thw"


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """A request as its model reads it.

    ``tensors`` are mlx-vlm's. ``content`` is an array of int64 of the shape (tokens,): two prompts are the same up to a
    position, for this model, exactly where these are equal up to it. A text's token stands for itself; an image's stands
    for the sha256 of its processed pixels and grid. ``images`` are those digests: one an image, in order, where the
    processor keeps the images apart, else one for all of them; empty where there is none.
    """

    request: Request
    tensors: Mapping[str, Any]
    content: Any
    images: tuple[str, ...]

    @property
    def ids(self) -> Any:
        """The prompt's token ids, of the shape (1, tokens)."""
        return self.tensors["input_ids"]


class Preparer:
    """Makes the inputs of one model. It may work in a thread of its own, but in one at a time."""

    def __init__(self, processor: Any, config: Any, media: MediaPath) -> None:
        self._processor = processor
        self._config = config
        self._media = media
        self._tokenizer = getattr(processor, "tokenizer", processor)
        self._prompter = Prompter(processor, config)
        self._pictures = Pictures(processor)
        self._digests: dict[Hashable, tuple[str, ...]] = {}
        self._numbers: dict[tuple[str, int], int] = {}
        self._next = -1

    def tensors(self, request: Request) -> tuple[str, dict[str, Any]]:
        """The prompt's text and its tensors, whose images are known to stand in their places; nothing is kept.

        Raises PromptError, MediaError.
        """
        prompt = self._prompter.prompt(request.messages)
        return prompt.text, self._processed(prompt, [make() for _, make in self._opened(prompt, request)])

    def inputs(self, request: Request) -> Inputs:
        """Everything of a request that can be had without its model, evaluated; a picture is prepared once.

        Raises PromptError, MediaError.
        """
        import mlx.core as mx
        import numpy as np

        prompt = self._prompter.prompt(request.messages)
        pictures = self._opened(prompt, request)
        with self._pictures.showing(pictures) as shown:
            tensors = self._processed(prompt, shown)
        mx.eval(
            [value for value in tensors.values() if isinstance(value, mx.array)]
        )  # MLX's streams are a thread's own
        content = np.array(tensors["input_ids"]).flatten().astype(np.int64)
        marks = np.isin(content, sorted(self._prompter.image_tokens(tensors))) | (content >= len(self._tokenizer))
        images: tuple[str, ...] = ()
        if tensors.get(_PIXELS) is not None:
            runs = _runs(marks) or [np.arange(len(content))]  # no telling where the image is: it is everywhere
            images = self._digested(tensors, [picture for picture, _ in pictures], len(runs))
            if len(images) < len(runs):
                runs = [np.concatenate(runs)]
            for image, positions in zip(images, runs, strict=True):
                content[positions] = self._number(image, len(positions)) - np.arange(len(positions))
        return Inputs(request, tensors, content, images)

    def _opened(self, prompt: Prompt, request: Request) -> list[Opened]:
        return [opened(self._media(image), image, request.decoding.max_pixels) for image in prompt.images]

    def _processed(self, prompt: Prompt, images: Sequence[Any]) -> dict[str, Any]:
        from mlx_vlm.utils import prepare_inputs, should_add_special_tokens

        first = self._tokenizer.bos_token
        opens = bool(first) and prompt.text.startswith(first)  # by the template; a second one would be a fault
        inputs: dict[str, Any] = prepare_inputs(
            self._processor,
            images=list(images) or None,
            prompts=prompt.text,
            image_token_index=getattr(self._config, "image_token_index", None),
            add_special_tokens=not opens and should_add_special_tokens(self._config.model_type, self._processor),
        )
        self._prompter.check_inputs(prompt, inputs)
        return inputs

    def _digested(self, tensors: Mapping[str, Any], pictures: Sequence[Picture], count: int) -> tuple[str, ...]:
        """The digests of what the processor made of ``pictures``; hashed once, since it makes the same of the same."""
        made = {name: value for name, value in tensors.items() if name not in _TEXT}
        key = (*pictures, count, *((name, str(getattr(value, "shape", ""))) for name, value in made.items()))
        if key not in self._digests:
            self._digests[key] = _apart(tensors, count) or (_digest(made),)
        return self._digests[key]

    def _number(self, image: str, tokens: int) -> int:
        """The number of an image's first token; those of the others follow downwards, and no other image has them."""
        if (image, tokens) not in self._numbers:
            self._numbers[image, tokens] = self._next
            self._next -= tokens
        return self._numbers[image, tokens]


def _runs(marks: Any) -> list[Any]:
    """The positions that are marked, in runs without a gap."""
    import numpy as np

    positions = np.flatnonzero(marks)
    return [run for run in np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1) if len(run)]


def _apart(tensors: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """The digests of ``count`` images one by one, where it is certain which pixels are whose; otherwise nothing."""
    pixels, others = tensors[_PIXELS], {name for name in tensors if name not in _TEXT} - {_PIXELS, _GRID}
    if any(tensors[name] is not None for name in others) or count < 2:
        return ()
    grid = tensors.get(_GRID)
    if grid is not None:
        sizes = [h * w * t for t, h, w in grid.tolist()]
        if len(sizes) != count or sum(sizes) != pixels.shape[0]:
            return ()
        starts = [sum(sizes[:number]) for number in range(count)]
        return tuple(
            _digest({_PIXELS: pixels[start : start + size], _GRID: grid[number : number + 1]})
            for number, (start, size) in enumerate(zip(starts, sizes, strict=True))
        )
    if pixels.ndim == 4 and pixels.shape[0] == count:
        return tuple(_digest({_PIXELS: pixels[number : number + 1]}) for number in range(count))
    return ()


def _digest(tensors: Mapping[str, Any]) -> str:
    """sha256 over tensors' names, types, shapes and bytes; lists of them are gone through."""
    import mlx.core as mx
    import numpy as np

    whole = hashlib.sha256()

    def add(name: str, value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for number, one in enumerate(value):
                add(f"{name}[{number}]", one)
        elif isinstance(value, (mx.array, np.ndarray)):
            whole.update(f"{name} {value.dtype} {value.shape}\n".encode())
            if isinstance(value, mx.array) and value.dtype == mx.bfloat16:  # which NumPy does not know
                value = value.astype(mx.float32)
            whole.update(np.ascontiguousarray(np.array(value)).data)
        else:
            whole.update(f"{name} {value!r}\n".encode())

    for name in sorted(tensors):
        add(name, tensors[name])
    return whole.hexdigest()


def common(some: Any, other: Any) -> int:
    """How many of their first positions two prompts' ``content`` share."""
    import numpy as np

    length = min(len(some), len(other))
    differ = some[:length] != other[:length]
    return int(np.argmax(differ)) if differ.any() else length


def distinct(prompts: Sequence[Any]) -> int:
    """The distinct tokens of prompts, given by their ``content``: the nodes of the tree that they make."""
    ordered = sorted(prompts, key=lambda prompt: prompt.tolist())
    return sum(map(len, ordered)) - sum(common(one, other) for one, other in pairwise(ordered))
