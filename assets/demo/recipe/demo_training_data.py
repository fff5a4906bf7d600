"""Training data of each step, made from the seed and the step's number alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assets.demo.recipe import logo_rows, scene_rows
from assets.demo.recipe.chart_rows import image_row, text_row
from assets.demo.recipe.charts import NAMES, Bars, Drawing, draw, training_bars
from assets.demo.recipe.chat import Row
from assets.demo.recipe.demo_model import IMAGE_TOKENS, PATCH, PATCHES, SIDE
from assets.demo.recipe.logos import BRANDS, draw_logo
from assets.demo.recipe.scenes import COLOURS, SHAPES, Drawn, draw_scene, training_scene
from assets.demo.recipe.tokens import tokenizer

CHARTS, SCENES, LOGOS, EVIDENCE, TEXTS, CHOICES = 28, 14, 6, 10, 32, 40
"""In each step: charts, scenes and logos with ``ROWS_EACH`` rows each, rows with two or three logos, passages without a picture,
multiple choices without one."""
ROWS_EACH = 4
LENGTHS = {"charts": 62, "scenes": 80, "evidence": 188, "texts": 44, "choices": 68}
"""Tokens of the longest row of each sort."""
EASY_STEPS = 160
"""The first steps, in which charts have one to three bars."""
SCENES_FROM, LOGOS_FROM = 150, 300
CHOICES_FROM = 900
"""The step from which multiple choices without a picture are trained. Without them the model learns one letter only."""
CONFLICT_FROM = 700
"""The step from which chart and passage are shown in conflict too. Without it the model copies every passage."""
KEPT = 0.5
"""The share of pictures of which the model sees more than deepstack features; without the others it would ignore those."""

IMAGE_ROWS = {"single": 0.40, "several": 0.38, "aligned": 0.06, "beside": 0.08, "absent": 0.08}
LATER_IMAGE_ROWS = {"single": 0.34, "several": 0.28, "aligned": 0.08, "beside": 0.08, "absent": 0.08, "conflict": 0.14}
TEXT_ROWS = {"stated": 0.3, "listed": 0.7}
SCENE_ROWS = {"plain": 0.3, "original": 0.3, "conflicting": 0.4}
CHARACTERS = " " + "".join(sorted(set("0123456789" + "".join(NAMES))))
FIELDS = {"names": len(NAMES), "tens": 10, "units": 10, "colours": len(COLOURS), "shapes": len(SHAPES)}
"""The fields that readers predict for each image token while training, with their numbers of values."""
NOTHING = -100  # a target that no loss counts


@dataclass(frozen=True)
class Batch:
    """Rows as tensors.

    ``places`` are the flattened positions before each answer token, ``targets`` those tokens. ``slots`` are the places
    of image tokens, ``shown`` the number of the picture at each of them in turn. ``ends`` are where each row's answer
    ends among the targets.
    """

    ids: Tensor
    positions: Tensor
    slots: Tensor
    shown: Tensor
    places: Tensor
    targets: Tensor
    ends: tuple[int, ...]


class Encoder:
    """Rows to tensors; each of a prompt's image markers becomes that image's tokens."""

    def __init__(self) -> None:
        self.tokenizer = tokenizer()
        self.image, self.end = (self.tokenizer.token_to_id(t) for t in ("<|image_pad|>", "<|im_end|>"))

    def batch(self, rows: Sequence[tuple[Row, Sequence[int]]], length: int) -> Batch:
        """Encode ``rows``, given with the numbers of their pictures. Raises ValueError for one longer than ``length`` tokens."""
        ids = np.full((len(rows), length), self.end, np.int64)
        positions = np.zeros((3, len(rows), length), np.int64)
        places: list[int] = []
        targets: list[int] = []
        ends: list[int] = []
        encoded = self.tokenizer.encode_batch([text for row, _ in rows for text in (row.prompt, row.answer)])
        for number, (_, pictures) in enumerate(rows):
            prompt = self.spread(encoded[2 * number].ids, len(pictures))
            answer = [*encoded[2 * number + 1].ids, self.end]
            tokens = [*prompt, *answer][:-1]
            if len(tokens) > length:
                raise ValueError(f"a row has {len(tokens)} tokens, more than {length}.")
            ids[number, : len(tokens)] = tokens
            positions[:, number, : len(tokens)] = self.positions(tokens)
            places += [number * length + len(prompt) - 1 + offset for offset in range(len(answer))]
            targets += answer
            ends.append(len(targets))
        slots = (ids.reshape(-1) == self.image).nonzero()[0]
        numbers = np.array([picture for _, pictures in rows for picture in pictures], np.int64)
        tensors = map(torch.from_numpy, (ids, positions, slots, numbers, np.array(places), np.array(targets)))
        return Batch(*tensors, tuple(ends))

    def spread(self, ids: Sequence[int], pictures: int) -> list[int]:
        """Return a prompt's tokens, with each of its ``pictures`` markers replaced by the tokens of its picture."""
        if ids.count(self.image) != pictures:
            raise ValueError(f"a prompt has {ids.count(self.image)} image markers for {pictures} pictures.")
        return [repeated for token in ids for repeated in ([token] * (IMAGE_TOKENS if token == self.image else 1))]

    def positions(self, ids: Sequence[int]) -> np.ndarray[Any, Any]:
        """Return each token's position along time, height and width. (3, tokens)"""
        row, column = np.divmod(np.arange(IMAGE_TOKENS), SIDE)
        picture = np.stack((np.zeros_like(row), row, column))
        blocks: list[np.ndarray[Any, Any]] = []
        index = position = 0
        while index < len(ids):
            if ids[index] == self.image:
                blocks.append(picture + position)
                index, position = index + IMAGE_TOKENS, position + SIDE
            else:
                blocks.append(np.full((3, 1), position))
                index, position = index + 1, position + 1
        return np.concatenate(blocks, 1)


@dataclass(frozen=True)
class Step:
    """``pictures``, 1 in ``kept`` for those with all features, what is where on them, and the rows about them, by sort."""

    pictures: Tensor
    kept: Tensor
    characters: Tensor
    fields: Tensor
    batches: Mapping[str, Batch]


def make_step(encoder: Encoder, seed: int, number: int, order: Tensor) -> Step:
    """Make the data of step ``number``; ``order`` is that of the vision encoder's patches."""
    random = Random(f"{seed}/{number}")
    span = (1, 3) if number < EASY_STEPS else (3, 5)
    kinds = LATER_IMAGE_ROWS if number >= CONFLICT_FROM else IMAGE_ROWS
    drawings: list[Drawing | Drawn] = []
    rows: dict[str, list[tuple[Row, Sequence[int]]]] = {"charts": [], "texts": []}

    def add(drawing: Drawing | Drawn) -> int:
        drawings.append(drawing)
        return len(drawings) - 1

    for _ in range(CHARTS):
        bars = training_bars(random, *span)
        shown = [add(draw(bars, random))]
        rows["charts"] += [(_image_row(random, bars, kinds), shown) for _ in range(ROWS_EACH)]
    for _ in range(TEXTS):
        rows["texts"].append((text_row(random, _any(random, TEXT_ROWS)), ()))
    if number >= CHOICES_FROM:
        rows["choices"] = [(_choice_row(random), ()) for _ in range(CHOICES)]
    if number >= SCENES_FROM:
        rows["scenes"] = []
        for _ in range(SCENES):
            scene = training_scene(random)
            shown = [add(draw_scene(scene, random))]
            rows["scenes"] += [
                (scene_rows.scene_row(random, scene, _any(random, SCENE_ROWS)), shown) for _ in range(ROWS_EACH)
            ]
    if number >= LOGOS_FROM:
        _add_logo_rows(rows, random, add)
    return Step(
        pictures(drawings),
        torch.tensor([float(random.random() < KEPT) for _ in drawings]),
        torch.stack([_characters(drawing) for drawing in drawings])[:, order],
        torch.stack([_fields(drawing) for drawing in drawings]),
        {sort: encoder.batch(batch_rows, LENGTHS[sort]) for sort, batch_rows in rows.items()},
    )


def _choice_row(random: Random) -> Row:
    topic = scene_rows if random.random() < 0.7 else logo_rows
    return topic.choice_row(random, answer_in_question=random.random() < 0.4)


def _add_logo_rows(
    rows: dict[str, list[tuple[Row, Sequence[int]]]], random: Random, add: Callable[[Drawing | Drawn], int]
) -> None:
    rows["evidence"] = []
    for brand in random.choices(BRANDS, k=LOGOS):
        shown = [add(draw_logo(brand, random))]
        rows["scenes"] += [(logo_rows.logo_row(random, brand, "original"), shown) for _ in range(ROWS_EACH)]
    for brand in random.choices(BRANDS, k=EVIDENCE):
        pieces = random.choice((1, 2))
        shown = [add(draw_logo(brand, random)) for _ in range(pieces + 1)]
        row = logo_rows.logo_row(random, brand, ("context-memory", "inter-context")[pieces - 1])
        rows["evidence"].append((row, shown))


def pictures(drawings: Sequence[Drawing | Drawn]) -> Tensor:
    """Return the drawings as a tensor (pictures, 96, 96, 3) of values from -1 to 1."""
    return torch.from_numpy(np.stack([np.asarray(drawing.image) for drawing in drawings])).float() / 127.5 - 1


def _any(random: Random, shares: Mapping[str, float]) -> str:
    return random.choices(list(shares), list(shares.values()))[0]


def _image_row(random: Random, bars: Bars, kinds: Mapping[str, float]) -> Row:
    kind = _any(random, kinds)
    return image_row(random, bars, "single" if kind == "several" and len(bars) < 3 else kind)


def _characters(drawing: Drawing | Drawn) -> Tensor:
    """Return the index of the character whose centre is in each patch; 0 for none."""
    characters = torch.zeros(PATCHES**2, dtype=torch.int64)
    for glyph, x, y in drawing.glyphs if isinstance(drawing, Drawing) else ():
        row, column = (min(int(coordinate // PATCH), PATCHES - 1) for coordinate in (y, x))
        characters[row * PATCHES + column] = CHARACTERS.index(glyph)
    return characters


def _fields(drawing: Drawing | Drawn) -> Tensor:
    """Return the value of each of ``FIELDS`` at each image token, of the bar or thing there. (5, tokens)"""
    answers = torch.full((len(FIELDS), SIDE, SIDE), NOTHING)
    for row in range(SIDE):
        y = (row + 0.5) * PATCH * PATCHES / SIDE
        if isinstance(drawing, Drawing):
            distance, bar = min((abs(y - middle), i) for i, middle in enumerate(drawing.middles))
            if distance <= 9:
                name, value = drawing.bars[bar]
                answers[:3, row] = torch.tensor([NAMES.index(name), value // 10, value % 10])[:, None]
            continue
        for column in range(SIDE):
            x = (column + 0.5) * PATCH * PATCHES / SIDE
            for (colour, shape), (left, top, right, bottom) in drawing.things:
                if left <= x <= right and top <= y <= bottom:
                    answers[3:, row, column] = torch.tensor([list(COLOURS).index(colour), SHAPES.index(shape)])
    return answers.flatten(1)
