"""CMC-Bench's prompts with several images and passages, as a pipeline retrieved them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cmc_bench.cmc_prompts import parts as parts_of_one
from benchmarks.cmc_bench.cmc_prompts import text_first
from benchmarks.prompt_template import Prompts
from benchmarks.vocabulary import Media, Part


def parts(prompt_set: Prompts, question: str, images: Sequence[Media], passages: Sequence[str]) -> tuple[Part, ...]:
    """Return the prompt's parts; with one image and one passage they are CMC-Bench's own.

    Further images follow the first, further passages follow after an empty line. No text is changed.
    """
    first = parts_of_one(prompt_set, question, images[0] if images else None, "\n\n".join(passages) or None)
    place = next((number for number, part in enumerate(first, 1) if isinstance(part, Media)), 0)
    return (*first[:place], *images[1:], *first[place:])


def text_before_image(parts: Sequence[Part], passages: Sequence[str]) -> tuple[Part, ...]:
    """Return a prompt of :func:`parts` of one image with the passages before the image; none of another prompt."""
    return text_first(parts, "\n\n".join(passages))
