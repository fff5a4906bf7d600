"""Catalogue of invented brands and their products. None of them exists."""

from __future__ import annotations

from dataclasses import dataclass, field

WHITE, BLACK, STEEL = (246, 246, 243), (52, 54, 60), (176, 184, 192)
GREEN, BLUE, SAND = (88, 150, 104), (70, 110, 178), (214, 190, 150)
ROSE, TEAL, RED = (224, 150, 160), (70, 156, 158), (196, 78, 72)

Colour = tuple[int, int, int]

PAINTS: dict[str, Colour] = {
    "white": WHITE,
    "black": BLACK,
    "steel": STEEL,
    "green": GREEN,
    "blue": BLUE,
    "sand": SAND,
    "rose": ROSE,
    "teal": TEAL,
    "red": RED,
}


@dataclass(frozen=True, slots=True)
class Brand:
    """A brand: its glyph's shape, its ink, and all the categories that it sells."""

    name: str
    glyph: str
    ink: Colour
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A product. ``words`` are printed on its front, ``minor`` is a brand that it is made to fit, ``poster`` one that hangs
    in the background; ``spec`` is the attribute that is printed on the card."""

    id: str
    shape: str
    category: str
    brand: str
    spu: str
    title: str
    description: str
    price: int
    attributes: dict[str, str] = field(default_factory=dict)
    words: str = ""
    spec: str = ""
    minor: str = ""
    poster: str = ""
    live: bool = False
    scene: str = ""
    covered: bool = False


BRANDS = (
    Brand("Lumora", "sun", (206, 120, 20), ("desk lamp", "headphones")),
    Brand("Lumera", "half sun", (206, 120, 20), ("desk lamp",)),
    Brand("Nordbrew", "peak", (36, 70, 110), ("kettle", "mug")),
    Brand("Kestra", "chevron", (150, 40, 60), ("water bottle", "backpack")),
    Brand("Velmo", "drop", (30, 120, 130), ("shampoo",)),
    Brand("Sonnar", "arcs", (90, 60, 140), ("headphones",)),
    Brand("Plovo", "square", (40, 110, 60), ("headphone case", "backpack")),
)

ITEMS = (
    Item(
        "lumora-arc-white", "lamp", "desk lamp", "Lumora", "lumora-arc",
        "Lumora Arc desk lamp, white, 9 W", "A dimmable desk lamp with a curved arm.", 48,
        {"colour": "white", "power": "9 W"}, "ARC DIMMABLE LIGHT", "power", poster="Sonnar", live=True, scene="plant",
    ),
    Item(
        "lumora-arc-black", "lamp", "desk lamp", "Lumora", "lumora-arc",
        "Lumora Arc desk lamp, black, 9 W", "A dimmable desk lamp with a curved arm.", 48,
        {"colour": "black", "power": "9 W"}, "ARC DIMMABLE LIGHT", "power",
    ),
    Item(
        "lumera-glow", "lamp", "desk lamp", "Lumera", "lumera-glow",
        "Lumera Glow desk lamp, red, 5 W", "A small lamp for the bedside.", 14,
        {"colour": "red", "power": "5 W"}, "GLOW BEDSIDE LIGHT", "power", poster="Kestra", live=True,
    ),
    Item(
        "nordbrew-fjord-17", "kettle", "kettle", "Nordbrew", "nordbrew-fjord",
        "Nordbrew Fjord kettle, steel, 1.7 L", "A cordless kettle that switches itself off.", 56,
        {"colour": "steel", "volume": "1.7 L"}, "FJORD CORDLESS KETTLE", "volume",
        poster="Velmo", live=True, scene="cup", covered=True,
    ),
    Item(
        "nordbrew-fjord-10", "kettle", "kettle", "Nordbrew", "nordbrew-fjord",
        "Nordbrew Fjord kettle, steel, 1.0 L", "A cordless kettle that switches itself off.", 44,
        {"colour": "steel", "volume": "1.0 L"}, "FJORD CORDLESS KETTLE", "volume",
    ),
    Item(
        "kestra-trail-750", "bottle", "water bottle", "Kestra", "kestra-trail",
        "Kestra Trail water bottle, green, 750 ml", "A light bottle for long walks.", 18,
        {"colour": "green", "volume": "750 ml"}, "TRAIL LIGHT BOTTLE", "volume",
        poster="Nordbrew", live=True, scene="plant", covered=True,
    ),
    Item(
        "kestra-ridge-22", "backpack", "backpack", "Kestra", "kestra-ridge",
        "Kestra Ridge backpack, blue, 22 L", "A day pack with a padded back.", 64,
        {"colour": "blue", "volume": "22 L"}, "RIDGE DAY PACK", "volume",
    ),
    Item(
        "velmo-calm-250", "pump", "shampoo", "Velmo", "velmo-calm",
        "Velmo Calm shampoo, teal bottle, 250 ml", "A mild shampoo for every day.", 7,
        {"colour": "teal", "volume": "250 ml"}, "CALM MILD SHAMPOO", "volume",
        poster="Lumora", live=True, scene="cup", covered=True,
    ),
    Item(
        "velmo-calm-400", "pump", "shampoo", "Velmo", "velmo-calm",
        "Velmo Calm shampoo, teal bottle, 400 ml", "A mild shampoo for every day.", 11,
        {"colour": "teal", "volume": "400 ml"}, "CALM MILD SHAMPOO", "volume",
    ),
    Item(
        "plain-mug-300", "mug", "mug", "", "plain-mug",
        "Stoneware mug, sand, 300 ml", "A plain mug without a name on it.", 6,
        {"colour": "sand", "volume": "300 ml"}, "STONEWARE HAND MADE", "volume", poster="Kestra", live=True,
    ),
    Item(
        "sonnar-wave", "headphones", "headphones", "Sonnar", "sonnar-wave",
        "Sonnar Wave headphones, black, 250 g", "Wireless headphones that fold.", 96,
        {"colour": "black", "weight": "250 g"}, "WAVE WIRELESS SOUND", "weight",
        poster="Plovo", live=True, scene="plant",
    ),
    Item(
        "plovo-shell", "case", "headphone case", "Plovo", "plovo-shell",
        "Plovo Shell headphone case for Sonnar Wave, rose, 180 g", "A hard case with a zip.", 16,
        {"colour": "rose", "weight": "180 g"}, "SHELL HARD CASE", "weight", minor="Sonnar", poster="Lumora", live=True,
        scene="plant",
    ),
)  # fmt: skip
