"""Inputs of a vision-language model for one request: its prepared tensors, and the content of every position of its prompt."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from benchmarks.vocabulary import Request
from mlx_backends.base import MediaPath
from mlx_backends.core.audio_video_inputs import AudioVideoReader, MediaKey, SampledAudio, SampledVideo
from mlx_backends.core.distinct_count import prefix_hashes
from mlx_backends.core.image_inputs import KeyedImage, ProcessedImages, keyed_image
from mlx_backends.core.lru_cache import LRUCache
from mlx_backends.core.prompts.chat_prompt import Prompt, Prompter
from mlx_backends.models.context_length import ContextLength
from mlx_backends.models.tokenizer_limits import panics_as_errors

_TEXT = frozenset({"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "image_token_index"})
_REMEMBERED = 4096
"""Images, or sets of these, whose digests and numbers are remembered; a run's requests come ordered by image."""

_PIXELS, _GRID = "pixel_values", "image_grid_thw"
_FRAMES, _TIMES = "pixel_values_videos", "video_grid_thw"


@dataclass(frozen=True, slots=True, eq=False)
class PreparedInputs:
    """A request as its model reads it.

    ``tensors`` are mlx-vlm's. ``content`` is an array of int64 of the shape (tokens,): two prompts are the same up to a
    position, for this model, exactly where these are equal up to it. A text's token stands for itself; a medium's stands
    for the sha256 of its processed pixels and grid. ``images`` and ``videos`` are those digests, one for each medium, in order,
    where the processor keeps media apart. Otherwise ``images`` has one digest for all of a prompt's images. Where other media
    are not kept apart either, as audio is not, one sha256 stands for all media in ``content``, and both are empty.
    ``prefixes`` has a hash of the content up to each position, which is the same in every process.
    """

    request: Request
    tensors: Mapping[str, Any]
    content: Any
    prefixes: Any
    images: tuple[str, ...]
    videos: tuple[str, ...] = ()

    @property
    def ids(self) -> Any:
        """Return the prompt's token ids, of the shape (1, tokens)."""
        return self.tensors["input_ids"]

    @property
    def media(self) -> tuple[str, ...]:
        """Return the digests of the images and the videos."""
        return (*self.images, *self.videos)


class Preprocessor:
    """Preprocessor of one model. Threads wait for each other, because processors are changed while they work."""

    def __init__(self, processor: Any, config: Any, media: MediaPath, context: ContextLength | None = None) -> None:
        self._processor = processor
        self._config = config
        self._media = media
        self._tokenizer = getattr(processor, "tokenizer", processor)
        self.prompter = Prompter(processor, config, context)
        self._processed_images = ProcessedImages(processor)
        self.audio_video = AudioVideoReader(processor)
        self._digests: LRUCache[tuple[str, ...]] = LRUCache(_REMEMBERED)
        self._numbers: LRUCache[int] = LRUCache(_REMEMBERED)
        self._next_number = -1
        self._working = threading.Lock()

    def remarks(self, model: str) -> list[str]:
        """Return a sentence for each way in which ``model`` was not given its prompts in full."""
        return [*self.prompter.remarks(model), *self.audio_video.remarks(model)]

    @panics_as_errors()
    def text(self, request: Request) -> str:
        """Return the prompt's text, in which placeholders stand for media, which are not read. Raises PromptError."""
        return self.prompter.prompt(request.messages).text

    @panics_as_errors()
    def tensors(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return the prompt's text and its tensors, whose media are checked to be in place; nothing is cached.

        Raises PromptError, MediaError.
        """
        with self._working:
            prompt = self.prompter.prompt(request.messages)
            images = [make() for _, make in self._keyed_images(prompt, request)]
            return prompt.text, self._process(prompt, images, self._audio_and_videos(prompt, request, keep=False))

    @panics_as_errors()
    def inputs(self, request: Request) -> PreparedInputs:
        """Return the inputs of a request, evaluated; an image is processed once.

        Raises PromptError, MediaError.
        """
        with self._working:
            return self._prepared(request)

    def _prepared(self, request: Request) -> PreparedInputs:
        import mlx.core as mx
        import numpy as np

        prompt = self.prompter.prompt(request.messages)
        keyed_images = self._keyed_images(prompt, request)
        others = self._audio_and_videos(prompt, request, keep=True)
        with self._processed_images.showing(keyed_images) as opened_images:
            tensors = self._process(prompt, opened_images, others)
        mx.eval(
            [value for value in tensors.values() if isinstance(value, mx.array)]
        )  # MLX's streams are a thread's own
        mx.synchronize()  # raises if the GPU failed, before a digest of these is cached
        content = np.array(tensors["input_ids"]).flatten().astype(np.int64)
        if not prompt.media:
            return PreparedInputs(request, tensors, content, prefix_hashes(content), ())
        is_medium = np.isin(content, sorted(self.prompter.media_tokens(tensors)))
        is_medium |= (content < 0) | (content >= len(self._tokenizer))
        runs = _runs(is_medium) or [np.arange(len(content))]  # unknown where the medium is, so it counts as everywhere
        keys: list[Hashable] = [*(key for key, _ in keyed_images), *(key for key, _ in others)]
        images: tuple[str, ...] = ()
        videos: tuple[str, ...] = ()
        if others:
            images, videos, located = self._mixed(prompt, tensors, content, keys)
        else:
            images = self._digested(tensors, keys, len(runs))
            located = list(zip(images, runs, strict=True)) if len(images) == len(runs) else []
        located = located or [(self._combined_digest(tensors, keys), np.concatenate(runs))]
        everywhere = content.copy()  # without the numbers that only this process gives to media
        for medium, positions in located:
            content[positions] = self._number(medium, len(positions)) - np.arange(len(positions))
            everywhere[positions] = int(medium[:15], 16) + np.arange(len(positions))
        return PreparedInputs(request, tensors, content, prefix_hashes(everywhere), images, videos)

    def image_tokens(self) -> set[int]:
        """Return the tokens that the encoder's output replaces, as far as the configuration names them."""
        return self.prompter.replaced_tokens()

    def _mixed(
        self, prompt: Prompt, tensors: Mapping[str, Any], content: Any, keys: Sequence[Hashable]
    ) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[str, Any]]]:
        """Return the digests of images and of videos, and each with its positions; nothing where these are not certain."""
        import numpy as np

        images, videos = prompt.images, prompt.of("video")
        if len(images) + len(videos) < len(prompt.media) or not tensors.keys() <= _TEXT | {
            _PIXELS,
            _GRID,
            _FRAMES,
            _TIMES,
        }:
            return (), (), []
        key = (*keys, "apart", *_shapes(tensors))
        digests = self._digests.get(
            key,
            lambda: (
                *_digests_by_grid(tensors, _PIXELS, _GRID, len(images)),
                *_digests_by_grid(tensors, _FRAMES, _TIMES, len(videos)),
            ),
            _one_entry,
        )
        if len(digests) < len(prompt.media):
            return (), (), []
        image_runs, video_runs = (
            _runs(np.isin(content, sorted(self.prompter.tokens_of(kind)))) for kind in ("image", "video")
        )
        moments = [int(t) for t, _, _ in tensors[_TIMES].tolist()] if videos else []
        if len(video_runs) == sum(moments):  # one run for each moment of a video
            ends = np.cumsum(moments)
            video_runs = [np.concatenate(video_runs[end - t : end]) for end, t in zip(ends, moments, strict=True)]
        if len(image_runs) != len(images) or len(video_runs) != len(videos):
            return (), (), []
        return (
            digests[: len(images)],
            digests[len(images) :],
            list(zip(digests, [*image_runs, *video_runs], strict=True)),
        )

    def _keyed_images(self, prompt: Prompt, request: Request) -> list[KeyedImage]:
        return [keyed_image(self._media(image), image, request.decoding.max_pixels) for image in prompt.images]

    def _audio_and_videos(
        self, prompt: Prompt, request: Request, *, keep: bool
    ) -> list[tuple[MediaKey, SampledAudio | SampledVideo]]:
        """Return the prompt's audio clips, then its videos, each with its key."""
        audio = [self.audio_video.read_audio(self._media(medium), medium, keep=keep) for medium in prompt.of("audio")]
        max_pixels = request.decoding.max_pixels
        return [
            *audio,
            *(
                self.audio_video.read_video(self._media(medium), medium, max_pixels, keep=keep)
                for medium in prompt.of("video")
            ),
        ]

    def _process(
        self, prompt: Prompt, images: Sequence[Any], others: Sequence[tuple[MediaKey, SampledAudio | SampledVideo]]
    ) -> dict[str, Any]:
        from mlx_vlm.utils import prepare_inputs, should_add_special_tokens

        bos = self._tokenizer.bos_token
        has_bos = bool(bos) and prompt.text.startswith(bos)  # the template wrote it; a second one would be wrong
        audio = [clip.samples for _, clip in others if isinstance(clip, SampledAudio)]
        videos = [video for _, video in others if isinstance(video, SampledVideo)]
        metadata = {"video_metadata": [video.metadata for video in videos]} if videos else {}
        special = not has_bos and should_add_special_tokens(self._config.model_type, self._processor)
        with nullcontext() if special else _without_special_tokens(self._processor):
            inputs: dict[str, Any] = prepare_inputs(
                self._processor,
                images=list(images) or None,
                audio=audio or None,
                videos=[video.frames for video in videos] or None,
                **metadata,
                prompts=prompt.text,
                image_token_index=getattr(self._config, "image_token_index", None),
                add_special_tokens=special,
            )
        self.prompter.check_inputs(prompt, inputs)
        return inputs

    def _digested(self, tensors: Mapping[str, Any], keys: Sequence[Hashable], count: int) -> tuple[str, ...]:
        """Return the digests of the processed images, computed once, since the processor makes the same of the same images."""
        key = (*keys, count, *_shapes(tensors))
        return self._digests.get(
            key, lambda: _image_digests(tensors, count) or (self._combined_digest(tensors, keys),), _one_entry
        )

    def _combined_digest(self, tensors: Mapping[str, Any], keys: Sequence[Hashable]) -> str:
        """Return one digest of all processed media."""
        key = (*keys, "whole", *_shapes(tensors))
        media = {name: value for name, value in tensors.items() if name not in _TEXT}
        return self._digests.get(key, lambda: (_digest(media),), _one_entry)[0]

    def _number(self, medium: str, tokens: int) -> int:
        """Return the number of a medium's first token; its other tokens count down from it, and no other medium uses them.

        A medium that returns after many others gets other numbers, and shares no prefix with its earlier prompts.
        """

        def next_number() -> int:
            self._next_number -= tokens
            return self._next_number + tokens

        return self._numbers.get((medium, tokens), next_number, _one_entry)


@contextmanager
def _without_special_tokens(processor: Any) -> Iterator[None]:
    """Have a processor's tokenizer add no special tokens.

    mlx-vlm passes ``add_special_tokens`` on only where a processor names it; most hide it in ``**kwargs``, and their prompts
    with images would then begin with two BOS tokens.
    """
    tokenizer = getattr(processor, "tokenizer", None)
    if tokenizer is None:
        yield
        return
    processor.tokenizer = _PlainTokenizer(tokenizer)
    try:
        yield
    finally:
        processor.tokenizer = tokenizer


class _PlainTokenizer:
    """A tokenizer that adds no special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, *texts: Any, **options: Any) -> Any:
        return self._tokenizer(*texts, **{**options, "add_special_tokens": False})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


def _one_entry(_: Any) -> int:
    return 1


def _runs(mask: Any) -> list[Any]:
    """Return the positions where ``mask`` is true, in runs without a gap."""
    import numpy as np

    positions = np.flatnonzero(mask)
    return [run for run in np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1) if len(run)]


def _shapes(tensors: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(getattr(value, "shape", ""))) for name, value in tensors.items() if name not in _TEXT]


def _image_digests(tensors: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """Return the digests of ``count`` images one by one, where it is certain which pixels belong to which; otherwise nothing."""
    pixels, others = tensors.get(_PIXELS), {name for name in tensors if name not in _TEXT} - {_PIXELS, _GRID}
    if pixels is None or any(tensors[name] is not None for name in others) or count < 2:
        return ()
    if tensors.get(_GRID) is not None:
        return _digests_by_grid(tensors, _PIXELS, _GRID, count)
    if getattr(pixels, "ndim", 0) == 4 and pixels.shape[0] == count:
        return tuple(_digest({_PIXELS: pixels[number : number + 1]}) for number in range(count))
    return ()


def _digests_by_grid(tensors: Mapping[str, Any], pixels_name: str, grid_name: str, count: int) -> tuple[str, ...]:
    """Return the digests of ``count`` media whose rows of pixels a grid of (time, height, width) divides; else nothing."""
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
    """Return the sha256 over tensors' names, types, shapes and bytes, lists of tensors included."""
    import mlx.core as mx
    import numpy as np

    combined = hashlib.sha256()

    def add(name: str, value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                add(f"{name}[{number}]", item)
        elif isinstance(value, (mx.array, np.ndarray)):
            combined.update(f"{name} {value.dtype} {value.shape}\n".encode())
            if isinstance(value, mx.array) and value.dtype == mx.bfloat16:  # which NumPy does not know
                value = value.astype(mx.float32)
            combined.update(np.ascontiguousarray(np.array(value)).data)
        else:
            combined.update(f"{name} {value!r}\n".encode())

    for name in sorted(tensors):
        add(name, tensors[name])
    return combined.hexdigest()
