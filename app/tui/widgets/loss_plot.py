"""Loss plot: the losses of a training by update, drawn with braille dots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from textual.content import Content

from app.tui.theme import DIM, PARTIAL, RIGHT

Points = Sequence[tuple[int, float]]

TRAIN, VALIDATION = RIGHT, PARTIAL
MARK = "◆"
"""The glyph of a validation."""
BASE, BASE_MARK = DIM, "╌"
"""The style and the glyph of the line of the base's validation loss."""

_LABEL = 8
_LEAST = (12, 3)
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille character, by column and by row from the top."""
_SPARED = 0.02  # of the points, the highest of which lie above the plot: one outlier would flatten all others


def loss_plot(
    losses: Points, validations: Points, steps: int, width: int, height: int, base: float | None = None
) -> list[Content]:
    """Return the plot in ``height`` lines of ``width`` cells; nothing where there is no room or nothing to draw.

    Losses are a line, averaged where several updates share a column; validations are marks on it, and the validation loss of the
    ``base`` is a level line behind both. The last line has the numbers of updates.
    """
    plot_width, plot_height = width - _LABEL - 1, height - 1
    if (not losses and not validations) or plot_width < _LEAST[0] or plot_height < _LEAST[1]:
        return []
    low, high = _limits([*losses, *validations], base)
    last = max(steps, losses[-1][0] if losses else 0, validations[-1][0] if validations else 0)

    def column(step: int, count: int) -> int:
        return min(count - 1, max(0, (step - 1) * count // max(1, last)))

    def row(loss: float, count: int) -> int:
        share = (high - loss) / (high - low)
        return min(count - 1, max(0, round(share * (count - 1))))

    bits: dict[tuple[int, int], int] = {}
    averages = _averages(losses, lambda step: column(step, 2 * plot_width))
    for x, y in _line([(x, row(loss, 4 * plot_height)) for x, loss in averages]):
        bits[y // 4, x // 2] = bits.get((y // 4, x // 2), 0) | _DOTS[x % 2][y % 4]
    marks = {(row(loss, plot_height), column(step, plot_width)) for step, loss in validations}
    level = None if base is None else row(base, plot_height)
    lines = []
    labels = {0: high, plot_height - 1: low} | ({plot_height // 2: (high + low) / 2} if plot_height >= 7 else {})
    for y in range(plot_height):
        label = _number(labels[y]) if y in labels else " " * (_LABEL - 1)
        parts = [Content.styled(f"{label} ┤" if y in labels else f"{label} │", DIM)]
        for x in range(plot_width):
            if (y, x) in marks:
                parts.append(Content.styled(MARK, VALIDATION))
            elif (y, x) in bits:
                parts.append(Content.styled(chr(0x2800 + bits[y, x]), TRAIN))
            else:
                parts.append(Content.styled(BASE_MARK if y == level else " ", BASE))
        lines.append(Content("").join(parts))
    start, end = "1", str(last)
    axis = f"{' ' * _LABEL}└{start}{'─' * max(0, plot_width - len(start) - len(end))}{end}"
    return [*lines, Content.styled(axis, DIM)]


def _averages(points: Points, column: Callable[[int], int]) -> list[tuple[int, float]]:
    sums: dict[int, tuple[float, int]] = {}
    for step, loss in points:
        x = column(step)
        total, count = sums.get(x, (0.0, 0))
        sums[x] = total + loss, count + 1
    return [(x, total / count) for x, (total, count) in sums.items()]


def _line(dots: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the dots, and those that connect them."""
    yield from dots[:1]
    for (left, start), (right, end) in pairwise(dots):
        before = start
        for x in range(left + 1, right + 1):
            y = start + round((end - start) * (x - left) / (right - left))
            step = 1 if y >= before else -1
            yield from ((x, between) for between in range(before + step if y != before else y, y + step, step))
            before = y


def _limits(points: Points, base: float | None) -> tuple[float, float]:
    """Return the ends of the axis: the lowest loss and, without a few outliers, the highest, the base's among them."""
    ordered = sorted(loss for _, loss in points)
    level = ordered[:1] if base is None else [base]
    low, high = min(ordered[0], *level), max(ordered[-1 - int(_SPARED * len(ordered))], *level)
    return (low - 0.5, low + 0.5) if high - low < 1e-9 else (low, high)


def _number(value: float) -> str:
    return f"{value:>{_LABEL - 1}.3f}" if abs(value) < 100 else f"{value:>{_LABEL - 1}.3g}"[: _LABEL - 1]
