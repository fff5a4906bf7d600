"""Drawing with Pillow and its own font, so that every machine draws the same: shapes at four times their size, then text."""

from __future__ import annotations

from functools import cache

from PIL import Image, ImageDraw, ImageFont

from assets.products.recipe.product_catalogue import Brand, Colour

Box = tuple[int, int, int, int]

_SCALE = 4
PAPER: Colour = (255, 255, 255)


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """Return Pillow's own font (Aileron, CC0)."""
    loaded = ImageFont.load_default(size)
    assert isinstance(loaded, ImageFont.FreeTypeFont)
    return loaded


class Canvas:
    """An unfinished picture. Coordinates are pixels of the finished picture; shapes come first, text on top of them."""

    def __init__(self, width: int, height: int, ground: Colour) -> None:
        self.size = (width, height)
        self._large = Image.new("RGB", (width * _SCALE, height * _SCALE), ground)
        self.pen = ImageDraw.Draw(self._large)
        self._texts: list[tuple[tuple[float, float], str, int, Colour, str]] = []

    def rectangle(self, box: tuple[float, ...], fill: Colour, radius: float = 0, line: Colour | None = None) -> None:
        self.pen.rounded_rectangle(self._up(box), radius * _SCALE, fill, line, 2 * _SCALE)

    def ellipse(
        self, box: tuple[float, ...], fill: Colour | None, line: Colour | None = None, width: float = 2
    ) -> None:
        self.pen.ellipse(self._up(box), fill, line, round(width * _SCALE))

    def arc(self, box: tuple[float, ...], start: float, end: float, fill: Colour, width: float) -> None:
        self.pen.arc(self._up(box), start, end, fill, round(width * _SCALE))

    def polygon(self, points: list[tuple[float, float]], fill: Colour) -> None:
        self.pen.polygon([(x * _SCALE, y * _SCALE) for x, y in points], fill)

    def line(self, points: list[tuple[float, float]], fill: Colour, width: float) -> None:
        self.pen.line([(x * _SCALE, y * _SCALE) for x, y in points], fill, round(width * _SCALE), joint="curve")

    def text(self, at: tuple[float, float], words: str, size: int, fill: Colour, anchor: str = "la") -> Box:
        """Add text and return the box that it fills; ``anchor`` is as in Pillow."""
        self._texts.append((at, words, size, fill, anchor))
        x0, y0, x1, y1 = font(size).getbbox(words, anchor=anchor)
        return within((int(at[0] + x0) - 2, int(at[1] + y0) - 2, int(at[0] + x1) + 3, int(at[1] + y1) + 3), self.size)

    def finished(self) -> Image.Image:
        """Return the picture, reduced to few colours."""
        image = self._large.resize(self.size, Image.Resampling.BOX)
        pen = ImageDraw.Draw(image)
        for at, words, size, fill, anchor in self._texts:
            pen.text(at, words, fill, font(size), anchor)
        return image.quantize(40, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)

    def _up(self, box: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(edge * _SCALE for edge in box)


def within(box: tuple[float, ...], size: tuple[int, int]) -> Box:
    """Return the box in whole pixels, clipped to a picture of ``size``."""
    x0, y0, x1, y1 = box
    return max(0, int(x0)), max(0, int(y0)), min(size[0], int(x1)), min(size[1], int(y1))


def logo(canvas: Canvas, brand: Brand, x: float, y: float, height: int, ink: Colour | None = None) -> Box:
    """Draw a brand's glyph and name with their upper left corner at x, y. Return the box that they fill."""
    ink = ink or brand.ink
    h = float(height)
    if brand.glyph in ("sun", "half sun"):
        # The look-alike has the same sun, cut in half.
        points = 8 if brand.glyph == "sun" else 5
        for i in range(points):
            _ray(canvas, x + h / 2, y + h / 2, h, i if brand.glyph == "sun" else i + 4, ink)
        if brand.glyph == "sun":
            canvas.ellipse((x + 0.27 * h, y + 0.27 * h, x + 0.73 * h, y + 0.73 * h), ink)
        else:
            canvas.pen.pieslice(
                tuple(e * _SCALE for e in (x + 0.22 * h, y + 0.22 * h, x + 0.78 * h, y + 0.78 * h)), 180, 360, ink
            )
    elif brand.glyph == "peak":
        canvas.polygon(
            [
                (x, y + h),
                (x + 0.4 * h, y + 0.1 * h),
                (x + 0.62 * h, y + 0.55 * h),
                (x + 0.72 * h, y + 0.4 * h),
                (x + h, y + h),
            ],
            ink,
        )
    elif brand.glyph == "chevron":
        for shift in (0.0, 0.4):
            canvas.line(
                [
                    (x + shift * h + 0.1 * h, y + 0.1 * h),
                    (x + shift * h + 0.5 * h, y + h / 2),
                    (x + shift * h + 0.1 * h, y + 0.9 * h),
                ],
                ink,
                h / 7,
            )
    elif brand.glyph == "drop":
        canvas.polygon([(x + h / 2, y), (x + 0.19 * h, y + 0.56 * h), (x + 0.81 * h, y + 0.56 * h)], ink)
        canvas.ellipse((x + 0.16 * h, y + 0.32 * h, x + 0.84 * h, y + h), ink)
    elif brand.glyph == "arcs":
        for inset in (0.05, 0.22, 0.39):
            canvas.arc((x + inset * h, y + inset * h, x + (1 - inset) * h, y + (1 - inset) * h), 200, 430, ink, h / 12)
    else:
        canvas.rectangle((x + 0.08 * h, y + 0.08 * h, x + 0.92 * h, y + 0.92 * h), ink, h / 6)
        canvas.ellipse((x + 0.38 * h, y + 0.38 * h, x + 0.92 * h, y + 0.92 * h), PAPER)
    words = canvas.text((x + 1.15 * h, y + h / 2), brand.name.upper(), round(0.82 * h), ink, "lm")
    return within((x - 2, min(y, words[1]) - 2, words[2] + 1, max(y + h, words[3]) + 2), canvas.size)


def _ray(canvas: Canvas, x: float, y: float, h: float, number: int, ink: Colour) -> None:
    # Sines by table: a last bit that differs between machines would move an edge.
    table = (
        (1, 0),
        (0.7071, 0.7071),
        (0, 1),
        (-0.7071, 0.7071),
        (-1, 0),
        (-0.7071, -0.7071),
        (0, -1),
        (0.7071, -0.7071),
    )
    dx, dy = table[number % 8]
    canvas.line([(x + dx * 0.33 * h, y + dy * 0.33 * h), (x + dx * 0.5 * h, y + dy * 0.5 * h)], ink, h / 11)
