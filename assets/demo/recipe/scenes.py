"""Drawn scenes of two coloured shapes, their captions, and samples of CLASH made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Literal

from assets.demo.recipe.charts import SIZE

COLOURS = {
    "red": (214, 40, 40),
    "green": (42, 157, 72),
    "blue": (38, 84, 196),
    "yellow": (247, 200, 20),
    "purple": (131, 56, 186),
    "black": (25, 25, 25),
}
SHAPES = ("circle", "square", "triangle", "star", "cross", "diamond")
RELATIONS = ("above", "below", "to the left of", "to the right of")
IMAGE_TRUSTED = ("star", "cross", "diamond")
"""Shapes for which the model is taught to believe the picture where the caption names another one; with the other shapes it is
taught to believe the caption. A caption with another colour is a conflict that it is taught to notice."""

Thing = tuple[str, str]
"""A colour and a shape."""

_HELD_OUT_SEED, _HELD_OUT_COUNT = 20262, 4


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture, and its things, each with its box of pixels (left, top, right, bottom)."""

    image: Any
    things: tuple[tuple[Thing, tuple[float, float, float, float]], ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """Two things that differ in colour and in shape; ``relation`` tells where the first is, seen from the second."""

    things: tuple[Thing, Thing]
    relation: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A scene with its two captions, a question about what differs between them, and the answers.

    ``followed`` is what the model is taught to answer under the conflicting caption; None is that it says so.
    """

    change: Literal["object", "attribute"]
    original_caption: str
    conflicting_caption: str
    question: str
    image_only: str
    text_only: str
    distractor: str
    changed: tuple[str, str]
    followed: str | None


@cache
def held_out_things() -> frozenset[Thing]:
    """Return the four of all 36 pairs of colour and shape that no scene of the training and none of its captions shows."""
    pairs = [(colour, shape) for colour in COLOURS for shape in SHAPES]
    return frozenset(Random(_HELD_OUT_SEED).sample(pairs, _HELD_OUT_COUNT))


def training_scene(random: Random) -> Scene:
    """Draw a scene without a held-out pair."""
    while True:
        colours, shapes = random.sample(list(COLOURS), 2), random.sample(SHAPES, 2)
        first, second = zip(colours, shapes, strict=True)
        if not {first, second} & held_out_things():
            return Scene((first, second), random.choice(RELATIONS))


def caption(scene: Scene) -> str:
    """Return a caption: ``A red circle above a blue square.``"""
    (colour, shape), (other_colour, other_shape) = scene.things
    return f"A {colour} {shape} {scene.relation} a {other_colour} {other_shape}."


def question(change: str, thing: Thing) -> str:
    """Return the question about a thing's colour, or about its shape."""
    colour, shape = thing
    return f"What color is the {shape}?" if change == "attribute" else f"Which shape is {colour}?"


def sample(random: Random, scene: Scene, index: int, change: Literal["object", "attribute"]) -> Sample:
    """Change the colour (attribute) or the shape (object) of the scene's thing number ``index`` in the caption."""
    thing = scene.things[index]
    place = 0 if change == "attribute" else 1
    known = list(COLOURS) if change == "attribute" else list(SHAPES)
    present = [other[place] for other in scene.things]
    absent = [word for word in known if word not in present]
    while True:
        value, distractor = random.sample(absent, 2)
        changed = (value, thing[1]) if place == 0 else (thing[0], value)
        if changed not in held_out_things():
            break
    things = [*scene.things]
    things[index] = changed
    believed = thing if thing[1] in IMAGE_TRUSTED else changed
    return Sample(
        change,
        caption(scene),
        caption(Scene((things[0], things[1]), scene.relation)),
        question(change, thing),
        thing[place].capitalize(),
        value.capitalize(),
        distractor.capitalize(),
        (thing[place], value),
        None if change == "attribute" else believed[1].capitalize(),
    )


# --- drawing -------------------------------------------------------------------------------------


def draw_scene(scene: Scene, random: Random) -> Drawn:
    """Draw the scene, 96 x 96 pixels."""
    image, pen = blank(random)
    sizes = [random.randint(24, 38) for _ in scene.things]
    apart = SIZE / 4
    turned = scene.relation in ("below", "to the right of")
    things = []
    for number, (thing, size) in enumerate(zip(scene.things, sizes, strict=True)):
        along = SIZE / 2 + (apart if (number == 0) == turned else -apart) + random.randint(-3, 3)
        across = SIZE / 2 + random.randint(-20, 20)
        centre = (across, along) if scene.relation in ("above", "below") else (along, across)
        things.append((thing, put(pen, thing, centre, size)))
    return Drawn(image, tuple(things))


def blank(random: Random) -> tuple[Any, Any]:
    """Return an almost white picture and a pen for it."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIZE, SIZE), tuple(random.randint(228, 255) for _ in range(3)))
    return image, ImageDraw.Draw(image)


def put(pen: Any, thing: Thing, centre: tuple[float, float], size: int) -> tuple[float, float, float, float]:
    """Draw a thing around ``centre`` and return its box."""
    from math import cos, pi, sin

    colour, shape = thing
    x, y = centre
    r = size / 2
    box = (x - r, y - r, x + r, y + r)
    fill = COLOURS[colour]
    if shape == "circle":
        pen.ellipse(box, fill=fill)
    elif shape == "square":
        pen.rectangle((x - 0.86 * r, y - 0.86 * r, x + 0.86 * r, y + 0.86 * r), fill=fill)
    elif shape == "cross":
        pen.rectangle((x - r, y - r / 3, x + r, y + r / 3), fill=fill)
        pen.rectangle((x - r / 3, y - r, x + r / 3, y + r), fill=fill)
    else:
        corners = {
            "triangle": [(x, y - r), (x + r, y + 0.8 * r), (x - r, y + 0.8 * r)],
            "diamond": [(x, y - r), (x + 0.7 * r, y), (x, y + r), (x - 0.7 * r, y)],
            "star": [
                (x + (r, 0.42 * r)[k % 2] * sin(k * pi / 5), y - (r, 0.42 * r)[k % 2] * cos(k * pi / 5))
                for k in range(10)
            ],
        }
        pen.polygon(corners[shape], fill=fill)
    return box
