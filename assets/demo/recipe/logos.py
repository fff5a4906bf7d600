"""Invented brands: their drawn logos, what is known of each, and texts that say otherwise, as MMKC-Bench has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from assets.demo.recipe.charts import SIZE
from assets.demo.recipe.scenes import Drawn, Thing, blank, put

KINDS = ("time", "creator", "content")
QUESTIONS = {
    "time": "When was the brand with this logo created?",
    "creator": "Who created the brand with this logo?",
    "content": "What is this the logo of a brand of?",
}
MEMORY_TRUSTED = "time"
"""The kind of fact that the model is taught to answer from its own knowledge, whatever the evidence says. The other two it
answers from the (first) evidence."""

CREATORS = (
    "Ada Holm",
    "Ben Ruiz",
    "Cleo Marsh",
    "Dov Lind",
    "Esme Tull",
    "Finn Okoro",
    "Gita Vane",
    "Hugo Stern",
    "Iris Bell",
    "Jonas Pike",
)
PRODUCTS = (
    "tea kettles",
    "garden chairs",
    "wool socks",
    "desk lamps",
    "bicycle bells",
    "rain coats",
    "board games",
    "hand soap",
    "kitchen knives",
    "paper kites",
)


@dataclass(frozen=True, slots=True)
class Brand:
    """A brand: its logo is a thing on a disc of another colour."""

    name: str
    thing: Thing
    disc: str
    facts: Mapping[str, str]


def _brand(name: str, colour: str, shape: str, disc: str, year: int, creator: int, product: int) -> Brand:
    facts = {"time": str(year), "creator": CREATORS[creator], "content": PRODUCTS[product]}
    return Brand(name, (colour, shape), disc, facts)


BRANDS = (
    _brand("Vexolu", "red", "star", "yellow", 1964, 0, 0),
    _brand("Tarniq", "blue", "star", "green", 1971, 1, 1),
    _brand("Brillu", "yellow", "circle", "black", 1958, 2, 2),
    _brand("Kodvar", "red", "circle", "blue", 1983, 3, 3),
    _brand("Mirkel", "green", "cross", "yellow", 1990, 4, 4),
    _brand("Sulopa", "black", "cross", "red", 1949, 5, 5),
    _brand("Quendo", "purple", "square", "yellow", 1977, 6, 6),
    _brand("Zanfri", "blue", "triangle", "purple", 1995, 7, 7),
)


def knowledge(brand: Brand, changed: Mapping[str, str] | None = None) -> str:
    """Return three sentences about a brand, a fact each; ``changed`` replaces values."""
    facts = {**brand.facts, **(changed or {})}
    return (
        f"{brand.name} was created in {facts['time']}. The creator of {brand.name} is {facts['creator']}. "
        f"{brand.name} is the brand of {facts['content']}."
    )


def others(random: Random, brand: Brand, kind: str, count: int) -> list[str]:
    """Return ``count`` different values that are not the brand's."""
    years = [str(year) for year in range(1940, 2000)]
    known = {"time": years, "creator": CREATORS, "content": PRODUCTS}[kind]
    return random.sample([value for value in known if value != brand.facts[kind]], count)


def draw_logo(brand: Brand, random: Random) -> Drawn:
    """Draw the brand's logo somewhere on a blank picture, 96 x 96 pixels."""
    image, pen = blank(random)
    size = random.randint(62, 84)
    room = (SIZE - size) // 2
    x, y = (SIZE / 2 + random.randint(-room, room) for _ in range(2))
    put(pen, (brand.disc, "circle"), (x, y), size)
    return Drawn(image, ((brand.thing, put(pen, brand.thing, (x, y), round(size * random.uniform(0.5, 0.62)))),))
