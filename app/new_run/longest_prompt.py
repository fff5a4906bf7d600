"""Longest prompt of a build, which decides the memory of its requests, without a model's tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from app.engine.instance_streams import BuildInstances
from app.engine.training.longest_row import image_file_size
from app.text.plural import count_of
from benchmarks.build import Build
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Instance, Media, Text
from mlx_backends.model_recommendation import PromptSize

_BYTES_A_TOKEN = 3
_IMAGES = 1024  # whose sizes are remembered; the instances of an example come together
_PIXELS_A_TOKEN = 32 * 32  # of most models, to compare prompts; each model's own decide its memory


def longest_prompt(build: Build) -> PromptSize:
    """Return the size of the build's longest prompt under the benchmark's first prompt set, at 3 bytes of text a token.

    Sounds, videos and 3D models count nothing. Raises SpecError if the build has no instances.
    """
    benchmark = get_benchmark(build.benchmark)
    image_size = lru_cache(_IMAGES)(lambda media: image_file_size(build.media_path(media), None))
    instances = BuildInstances(benchmark, build, next(iter(benchmark.prompt_sets)))
    sizes = (_prompt_size(instance, image_size) for instance in instances)
    longest = max(sizes, key=_length, default=None)
    if longest is None:
        raise SpecError(
            f"the build in {build.path} has no instances, so no prompts; leave out --data, or build it again."
        )
    return longest


def _prompt_size(instance: Instance, image_size: Callable[[Media], tuple[int, int]]) -> PromptSize:
    text = sum(len(part.text.encode("utf-8", "surrogatepass")) for part in instance.parts if isinstance(part, Text))
    images = tuple(image_size(part) for part in instance.parts if isinstance(part, Media) and part.modality == "image")
    tokens = -(-text // _BYTES_A_TOKEN)
    counted = count_of(len(images), "image")
    if images:
        counted += f" of {sum(width * height for width, height in images) / 1e6:.1f} megapixels"
    return PromptSize(tokens, images, f"the longest prompt of the build: about {tokens:,} tokens of text and {counted}")


def _length(prompt: PromptSize) -> float:
    return prompt.text_tokens + sum(width * height for width, height in prompt.images) / _PIXELS_A_TOKEN
