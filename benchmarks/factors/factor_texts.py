"""Texts at the levels of a design's factors: stated sources and dates, length, distance from the right value, order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice

from benchmarks.base import Benchmark, Contradiction
from benchmarks.cmc_bench.construction.cmc_passages import answer_spans
from benchmarks.factors.factor_levels import BUILT, IMAGE_FIRST, NONE, TEXT_FIRST
from benchmarks.text.normal_form import coarse_type, number
from benchmarks.vocabulary import Media, Part, Text

_FILLER = (
    "This document belongs to a collection that several offices keep up to date.",
    "Its entries were written by different people, and their style was made uniform later.",
    "Readers who find a mistake may write to the editors, who answer as soon as they can.",
    "The order of the sections follows the order in which the material arrived.",
    "Some of the terms are explained in a glossary at the end of the collection.",
    "Pages that were damaged were copied by hand before they were filed.",
    "Where a heading is missing, the editors chose one from the first lines of the text.",
    "The paper of the older volumes is thin, and their binding was repaired more than once.",
    "Names are spelled as their owners spell them, even where the sources differ.",
    "Notes in the margin were left out unless they were needed to understand the text.",
    "Copies are kept in another building, so that a fire would not destroy them all.",
    "Visitors may read the collection in the morning, and on some evenings by appointment.",
)
"""Sentences without numbers and without any topic that a question asks about."""

_NUMERAL = re.compile(r"\d[\d,]*(?:\.\d+)?")
_MOST_DECIMALS = 4


def change_passage(passage: str, levels: Mapping[str, str]) -> str:
    """Return a passage with what is stated about its source before it, and between as many added words as its level says."""
    words = int(levels.get("length", "0"))
    before, after = _filler(words - words // 2, 0), _filler(words // 2, len(_FILLER) // 2)
    stated = _statement("text", levels)
    return " ".join(piece for piece in (stated, before, passage, after) if piece)


def image_statement(levels: Mapping[str, str]) -> str:
    """Return what is stated about the source of an image, with a space at its end; empty if nothing is."""
    stated = _statement("image", levels)
    return f"{stated} " if stated else ""


def _statement(part: str, levels: Mapping[str, str]) -> str:
    facts = [f"{word}: {level}" for word in ("source", "date") if (level := levels.get(f"{part}-{word}", NONE)) != NONE]
    return f"[{'; '.join(facts)}]" if facts else ""


def _filler(words: int, start: int) -> str:
    """Return a text of ``words`` words that begins with the sentence ``start``."""
    sentences = (*_FILLER[start:], *_FILLER[:start])
    text = " ".join(islice((word for sentence in cycle(sentences) for word in sentence.split()), words))
    return text if not text or text.endswith(".") else f"{text.rstrip(',')}."


def replace_passage(parts: Sequence[Part], passage: str, changed: str) -> tuple[Part, ...]:
    """Return prompt parts with a passage replaced where it stands last; unchanged if no part has it."""
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if isinstance(part, Text) and passage and (at := part.text.rfind(passage)) >= 0:
            text = part.text[:at] + changed + part.text[at + len(passage) :]
            return (*parts[:place], Text(text), *parts[place + 1 :])
    return tuple(parts)


def value_at_distance(contradiction: Contradiction, level: str) -> str | None:
    """Return a wrong value at a relative distance from the right one, on the same side as the build's own wrong value.

    At distance 0.5 it is half as large again as the right value, or the right value is half as large again. It is spelled as
    the right value is, with more decimals where it would be equal otherwise. None if a value is no number, a year, or 0.
    """
    if level == BUILT:
        return contradiction.value
    if {coarse_type(contradiction.truth), coarse_type(contradiction.value)} != {"number"}:
        return None
    right, wrong = number(contradiction.truth), number(contradiction.value)
    numeral = _NUMERAL.search(contradiction.truth)
    if right is None or wrong is None or numeral is None or not right:
        return None
    ratio = 1 + float(level)
    magnitude = float(numeral[0].replace(",", ""))
    moved = magnitude * ratio if abs(wrong) >= abs(right) else magnitude / ratio
    spelled = _spelled(moved, numeral[0])
    if spelled is None:
        return None
    return contradiction.truth[: numeral.start()] + spelled + contradiction.truth[numeral.end() :]


def _spelled(value: float, like: str) -> str | None:
    """Return a number with the separators and decimals of ``like``, or with more decimals if it would be equal."""
    decimals = len(like.partition(".")[2])
    original = float(like.replace(",", ""))
    for places in range(decimals, decimals + _MOST_DECIMALS + 1):
        text = f"{value:,.{places}f}" if "," in like else f"{value:.{places}f}"
        rounded = float(text.replace(",", ""))
        if rounded not in (original, 0):
            return text
    return None


def replace_value(passage: str, value: str, other: str) -> str:
    """Return a passage that states ``other`` wherever it states ``value``."""
    for start, end in reversed(list(answer_spans(passage, value))):
        passage = passage[:start] + other + passage[end:]
    return passage


def in_order(benchmark: Benchmark, parts: tuple[Part, ...], passages: Sequence[str], order: str) -> tuple[Part, ...]:
    """Return prompt parts with the image before the passage or after it.

    They are unchanged if they are in this order, and unless there are one image and a passage.
    """
    images = [place for place, part in enumerate(parts) if isinstance(part, Media)]
    texts = [
        place
        for place, part in enumerate(parts)
        if isinstance(part, Text) and any(passage in part.text for passage in passages)
    ]
    if len(images) != 1 or not texts or (images[0] < texts[-1]) == (order == IMAGE_FIRST):
        return parts
    return benchmark.reordered(parts, passages, text_first=order == TEXT_FIRST)


def with_image_statement(parts: Sequence[Part], statement: str) -> tuple[Part, ...]:
    """Return prompt parts with a statement before each image, in the text that precedes it if there is one."""
    return tuple(_merged(_stated(parts, statement))) if statement else tuple(parts)


def _stated(parts: Sequence[Part], statement: str) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Media) and part.modality == "image":
            yield Text(statement)
        yield part


def _merged(parts: Iterator[Part]) -> list[Part]:
    merged: list[Part] = []
    for part in parts:
        if merged and isinstance(part, Text) and isinstance(merged[-1], Text):
            merged[-1] = Text(merged[-1].text + part.text)
        else:
            merged.append(part)
    return merged
