"""What a vision-language model is given for a request: its prepared tensors, and what stands at every position of its prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.base import Request
from mlx_backends.base import MediaPath
from mlx_backends.core.audio_video import AudioVideoReader, Look, SampledAudio, SampledVideo
from mlx_backends.core.chat_prompt import Prompt, Prompter
from mlx_backends.core.images import Opened, ProcessedImages, opened
from mlx_backends.models.tokenizer_limits import panics_as_errors

_TEXT = frozenset({"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "image_token_index"})
_PIXELS, _GRID = "pixel_values", "image_grid_thw"
_FRAMES, _TIMES = "pixel_values_videos", "video_grid_thw"


@dataclass(frozen=True, slots=True, eq=False)
class PreparedInputs:
    """A request as its model reads it.

    ``tensors`` are mlx-vlm's. ``content`` is an array of int64 of the shape (tokens,): two prompts are the same up to a
    position, for this model, exactly where these are equal up to it. A text's token stands for itself; a medium's stands
    for the sha256 of its processed pixels and grid. ``images`` and ``videos`` are those digests: one a medium, in order, where
    the processor keeps them apart. Else ``images`` has one for all of a prompt's images; and where there is something else among
    them that is not kept apart, as sounds are not, one sha256 stands for all media in ``content``, and both are empty.
    """

    request: Request
    tensors: Mapping[str, Any]
    content: Any
    images: tuple[str, ...]
    videos: tuple[str, ...] = ()

    @property
    def ids(self) -> Any:
        """The prompt's token ids, of the shape (1, tokens)."""
        return self.tensors["input_ids"]


class Preprocessor:
    """Makes the inputs of one model. It may work in a thread of its own, but in one at a time."""

    def __init__(self, processor: Any, config: Any, media: MediaPath) -> None:
        self._processor = processor
        self._config = config
        self._media = media
        self._tokenizer = getattr(processor, "tokenizer", processor)
        self._prompter = Prompter(processor, config)
        self._pictures = ProcessedImages(processor)
        self.clips = AudioVideoReader(processor)
        self._digests: dict[Hashable, tuple[str, ...]] = {}
        self._numbers: dict[tuple[str, int], int] = {}
        self._next = -1

    @panics_as_errors()
    def tensors(self, request: Request) -> tuple[str, dict[str, Any]]:
        """The prompt's text and its tensors, whose media are known to stand in their places; nothing is kept.

        Raises PromptError, MediaError.
        """
        prompt = self._prompter.prompt(request.messages)
        images = [make() for _, make in self._opened(prompt, request)]
        return prompt.text, self._processed(prompt, images, self._others(prompt, request, keep=False))

    @panics_as_errors()
    def inputs(self, request: Request) -> PreparedInputs:
        """Everything of a request that can be had without its model, evaluated; a picture is prepared once.

        Raises PromptError, MediaError.
        """
        import mlx.core as mx
        import numpy as np

        prompt = self._prompter.prompt(request.messages)
        pictures = self._opened(prompt, request)
        others = self._others(prompt, request, keep=True)
        with self._pictures.showing(pictures) as shown:
            tensors = self._processed(prompt, shown, others)
        mx.eval(
            [value for value in tensors.values() if isinstance(value, mx.array)]
        )  # MLX's streams are a thread's own
        content = np.array(tensors["input_ids"]).flatten().astype(np.int64)
        if not prompt.media:
            return PreparedInputs(request, tensors, content, ())
        marks = np.isin(content, sorted(self._prompter.media_tokens(tensors))) | (content >= len(self._tokenizer))
        runs = _runs(marks) or [np.arange(len(content))]  # no telling where the medium is: it is everywhere
        looks: list[Hashable] = [*(picture for picture, _ in pictures), *(look for look, _ in others)]
        images: tuple[str, ...] = ()
        videos: tuple[str, ...] = ()
        if others:
            images, videos, found = self._mixed(prompt, tensors, content, looks)
        else:
            images = self._digested(tensors, looks, len(runs))
            found = list(zip(images, runs, strict=True)) if len(images) == len(runs) else []
        found = found or [(self._whole(tensors, looks), np.concatenate(runs))]
        for medium, positions in found:
            content[positions] = self._number(medium, len(positions)) - np.arange(len(positions))
        return PreparedInputs(request, tensors, content, images, videos)

    def _mixed(
        self, prompt: Prompt, tensors: Mapping[str, Any], content: Any, looks: Sequence[Hashable]
    ) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[str, Any]]]:
        """The digests of images and of videos, and each with its positions; nothing where these are not certain."""
        import numpy as np

        images, videos = prompt.images, prompt.of("video")
        if len(images) + len(videos) < len(prompt.media) or not tensors.keys() <= _TEXT | {
            _PIXELS,
            _GRID,
            _FRAMES,
            _TIMES,
        }:
            return (), (), []
        key = (*looks, "apart", *_shapes(tensors))
        if key not in self._digests:
            self._digests[key] = (
                *_rows(tensors, _PIXELS, _GRID, len(images)),
                *_rows(tensors, _FRAMES, _TIMES, len(videos)),
            )
        made = self._digests[key]
        if len(made) < len(prompt.media):
            return (), (), []
        seen, filmed = (_runs(np.isin(content, sorted(self._prompter.tokens_of(kind)))) for kind in ("image", "video"))
        times = [int(t) for t, _, _ in tensors[_TIMES].tolist()] if videos else []
        if len(filmed) == sum(times):  # a run for each moment
            ends = np.cumsum(times)
            filmed = [np.concatenate(filmed[end - t : end]) for end, t in zip(ends, times, strict=True)]
        if len(seen) != len(images) or len(filmed) != len(videos):
            return (), (), []
        return made[: len(images)], made[len(images) :], list(zip(made, [*seen, *filmed], strict=True))

    def _opened(self, prompt: Prompt, request: Request) -> list[Opened]:
        return [opened(self._media(image), image, request.decoding.max_pixels) for image in prompt.images]

    def _others(
        self, prompt: Prompt, request: Request, *, keep: bool
    ) -> list[tuple[Look, SampledAudio | SampledVideo]]:
        """The prompt's sounds, then its videos."""
        sounds = [self.clips.sound(self._media(each), each, keep=keep) for each in prompt.of("audio")]
        bound = request.decoding.max_pixels
        return [*sounds, *(self.clips.video(self._media(each), each, bound, keep=keep) for each in prompt.of("video"))]

    def _processed(
        self, prompt: Prompt, images: Sequence[Any], others: Sequence[tuple[Look, SampledAudio | SampledVideo]]
    ) -> dict[str, Any]:
        from mlx_vlm.utils import prepare_inputs, should_add_special_tokens

        first = self._tokenizer.bos_token
        opens = bool(first) and prompt.text.startswith(first)  # by the template; a second one would be a fault
        sounds = [heard.samples for _, heard in others if isinstance(heard, SampledAudio)]
        videos = [seen for _, seen in others if isinstance(seen, SampledVideo)]
        metadata = {"video_metadata": [seen.metadata for seen in videos]} if videos else {}
        inputs: dict[str, Any] = prepare_inputs(
            self._processor,
            images=list(images) or None,
            audio=sounds or None,
            videos=[seen.frames for seen in videos] or None,
            **metadata,
            prompts=prompt.text,
            image_token_index=getattr(self._config, "image_token_index", None),
            add_special_tokens=not opens and should_add_special_tokens(self._config.model_type, self._processor),
        )
        self._prompter.check_inputs(prompt, inputs)
        return inputs

    def _digested(self, tensors: Mapping[str, Any], looks: Sequence[Hashable], count: int) -> tuple[str, ...]:
        """The digests of what the processor made of pictures; hashed once, since it makes the same of the same."""
        key = (*looks, count, *_shapes(tensors))
        if key not in self._digests:
            self._digests[key] = _apart(tensors, count) or (self._whole(tensors, looks),)
        return self._digests[key]

    def _whole(self, tensors: Mapping[str, Any], looks: Sequence[Hashable]) -> str:
        """One digest of all that the processor made of media."""
        key = (*looks, "whole", *_shapes(tensors))
        if key not in self._digests:
            self._digests[key] = (_digest({name: value for name, value in tensors.items() if name not in _TEXT}),)
        return self._digests[key][0]

    def _number(self, medium: str, tokens: int) -> int:
        """The number of a medium's first token; those of the others follow downwards, and no other medium has them."""
        if (medium, tokens) not in self._numbers:
            self._numbers[medium, tokens] = self._next
            self._next -= tokens
        return self._numbers[medium, tokens]


def _runs(marks: Any) -> list[Any]:
    """The positions that are marked, in runs without a gap."""
    import numpy as np

    positions = np.flatnonzero(marks)
    return [run for run in np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1) if len(run)]


def _shapes(tensors: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(getattr(value, "shape", ""))) for name, value in tensors.items() if name not in _TEXT]


def _apart(tensors: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """The digests of ``count`` images one by one, where it is certain which pixels are whose; otherwise nothing."""
    pixels, others = tensors.get(_PIXELS), {name for name in tensors if name not in _TEXT} - {_PIXELS, _GRID}
    if pixels is None or any(tensors[name] is not None for name in others) or count < 2:
        return ()
    if tensors.get(_GRID) is not None:
        return _rows(tensors, _PIXELS, _GRID, count)
    if pixels.ndim == 4 and pixels.shape[0] == count:
        return tuple(_digest({_PIXELS: pixels[number : number + 1]}) for number in range(count))
    return ()


def _rows(tensors: Mapping[str, Any], pixels_name: str, grid_name: str, count: int) -> tuple[str, ...]:
    """The digests of ``count`` media whose rows of pixels a grid of (time, height, width) tells apart; else nothing."""
    pixels, grid = tensors.get(pixels_name), tensors.get(grid_name)
    if pixels is None or grid is None:
        return ()
    sizes = [h * w * t for t, h, w in grid.tolist()]
    if len(sizes) != count or sum(sizes) != pixels.shape[0]:
        return ()
    starts = [sum(sizes[:number]) for number in range(count)]
    return tuple(
        _digest({pixels_name: pixels[start : start + size], grid_name: grid[number : number + 1]})
        for number, (start, size) in enumerate(zip(starts, sizes, strict=True))
    )


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
