"""The first page as one page: short names of models, and fewer of the least important lines where they would not fit.

Heights are estimated in points, as the wider and the taller of the HTML and the LaTeX document sets a text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from app.exports.report.report_document import Block, Bullets, Example, Paragraph, Shares, Verdict

LONGEST_NAME = 32
"""The most characters of a model's name on the first page."""

_HEIGHT = 770.0
"""The height of a page without its margins, less what an estimate may miss."""

_LINE = 12.8
_WIDTH = 100
"""The characters of a line."""
_TITLE_LINE, _TITLE_WIDTH = 24.0, 46
_HEADING = 25.0
_FRAME = 26.0
"""The margins of what stands in a frame: the verdict and the example."""
_PICTURE = 115.0
_NOTE = "x" * 90
"""In the place of the sentence that both documents add to the note on shares."""

_LABEL_WIDTH = 18
"""The characters of a line of the first column of shares."""

_BESIDE = 4
"""The most columns of shares that have room for their intervals beside the values."""

_SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)")

Blocks = Sequence[Block | str]
_Reduction = Callable[[list[Block | str]], list[Block | str]]


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return a short name for each of ``names`` that is too long: its beginning and its end, and a number if they repeat."""
    short: dict[str, str] = {}
    taken = {name for name in names if len(name) <= LONGEST_NAME}
    for name in names:
        if len(name) > LONGEST_NAME and name not in short:
            candidate, number = f"{name[:17]}…{name[-14:]}", 1
            while candidate in taken:
                number += 1
                candidate = f"{name[:17]}…{name[-9:]} ({number})"
            short[name] = candidate
            taken.add(candidate)
    return short


def with_short_names(blocks: Blocks, short: Mapping[str, str]) -> list[Block | str]:
    """Return the blocks with the names that ``short`` shortens; longer names first, which may hold others."""
    names = sorted(short, key=len, reverse=True)

    def text(of: str) -> str:
        for name in names:
            of = of.replace(name, short[name])
        return of

    def pairs(of: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((text(name), text(rest)) for name, rest in of)

    def block(of: Block | str) -> Block | str:
        match of:
            case str():
                return text(of)
            case Verdict():
                return Verdict(text(of.headline), tuple(map(text, of.sentences)))
            case Paragraph():
                return Paragraph(text(of.text))
            case Bullets():
                return Bullets(pairs(of.items))
            case Shares():
                return replace(of, rows=tuple((text(label), remark, shares) for label, remark, shares in of.rows))
            case Example():
                return replace(of, lines=pairs(of.lines))
        return of

    return [block(of) for of in blocks]


def fitted(title: str, subtitle: str, blocks: Blocks) -> list[Block | str]:
    """Return the blocks of a first page with as much left out, from the least important on, as makes them fit a page."""

    def fits(reductions: Sequence[_Reduction]) -> bool:
        return height(title, subtitle, _reduced(blocks, reductions)) <= _HEIGHT

    chosen: list[_Reduction] = []
    for reduction in _reductions():
        if fits(chosen):
            break
        chosen.append(reduction)
    for reduction in chosen[::-1]:  # a large one may have made smaller ones needless
        others = [other for other in chosen if other is not reduction]
        if fits(others):
            chosen = others
    return _reduced(blocks, chosen)


def height(title: str, subtitle: str, blocks: Blocks) -> float:
    """Return the estimated height of a first page in points."""
    head = _lines(title, _TITLE_WIDTH) * _TITLE_LINE + _lines(subtitle) * _LINE + 14
    return head + sum(map(_block_height, blocks))


def _reduced(blocks: Blocks, reductions: Sequence[_Reduction]) -> list[Block | str]:
    result = list(blocks)
    for reduction in reductions:
        result = reduction(result)
    return result


def _reductions() -> Iterator[_Reduction]:
    """Yield what to leave out, in the order in which it is missed least."""
    yield _with_bullets(last=3)
    yield _with_bullets(first=4)
    yield _with_bullets(last=2, first=3)
    yield lambda blocks: [replace(b, lines=_clipped(b.lines, 160)) if isinstance(b, Example) else b for b in blocks]
    yield lambda blocks: [replace(b, picture=None) if isinstance(b, Example) else b for b in blocks]
    yield _with_bullets(first=2)
    yield lambda blocks: [b for b in blocks if not isinstance(b, Example)]
    yield _with_bullets(last=1, first=1)
    for rows in (4, 3, 2):
        yield lambda blocks, rows=rows: [b.first(rows) if isinstance(b, Shares) else b for b in blocks]  # type: ignore[misc]
    yield _without_later_paragraphs
    for longest in (300, 120):
        yield lambda blocks, longest=longest: [_with_fewer_sentences(b, longest) for b in blocks]  # type: ignore[misc]


def _with_bullets(*, first: int | None = None, last: int | None = None) -> _Reduction:
    """Return the reduction of the first list, the mistakes, and of the last one, the cautions, to so many items."""

    def reduce(blocks: list[Block | str]) -> list[Block | str]:
        places = [place for place, block in enumerate(blocks) if isinstance(block, Bullets)]
        result = list(blocks)
        cuts = [(places[-1:], last), (places[:-1], first)]
        for where, most in cuts:
            for place in where:
                block = result[place]
                if most is not None and isinstance(block, Bullets):
                    result[place] = Bullets(block.items[:most])
        return result

    return reduce


def _without_later_paragraphs(blocks: list[Block | str]) -> list[Block | str]:
    """Leave out every paragraph but the first, which says what was tested, with its title."""
    places = [place for place, block in enumerate(blocks) if isinstance(block, Paragraph)][1:]
    left_out = {*places, *(place - 1 for place in places if isinstance(blocks[place - 1], str))}
    return [block for place, block in enumerate(blocks) if place not in left_out]


def _block_height(block: Block | str) -> float:
    match block:
        case str():
            return _HEADING + (_lines(block) - 1) * 15
        case Verdict():
            return _FRAME + _lines(block.headline, 58) * 18 + _lines(" ".join(block.sentences)) * _LINE
        case Paragraph():
            return _lines(block.text) * _LINE + 6
        case Bullets():
            return 6 + sum(_lines(f"{name}. {text}", _WIDTH - 4) * _LINE + 4 for name, text in block.items)
        case Example():
            width = _WIDTH - 20 if block.picture is None else 54
            text = _LINE + sum(_lines(f"{name} {text}", width) * (_LINE + 1.5) for name, text in block.lines)
            return _FRAME + (text if block.picture is None else max(text, _PICTURE))
        case Shares():
            below = _LINE if len(block.columns) > _BESIDE else 0.0
            rows = sum(_row_height(label, remark) + below for label, remark, _ in block.rows)
            return 32 + _lines(block.remarks + _NOTE, 125) * 11 + rows
    return _LINE


def _row_height(label: str, remark: str) -> float:
    text = _lines(label, _LABEL_WIDTH) * _LINE
    return max(text + (_lines(remark, 22) * 10.5 if remark else 0), 24) + 5


def _lines(text: str, width: int = _WIDTH) -> int:
    """Return the number of lines of a text; characters of wide scripts count twice."""
    size = sum(1 + (ord(character) > 0x2E80) for character in text)
    return max(1, math.ceil(size / width))


def _clipped(lines: Sequence[tuple[str, str]], longest: int) -> tuple[tuple[str, str], ...]:
    return tuple((name, _clip(text, longest)) for name, text in lines)


def _with_fewer_sentences(block: Block | str, longest: int) -> Block | str:
    """Return a block without the last sentences of its texts; the headline, which has what limits it, stays as it is."""
    match block:
        case Verdict():
            return Verdict(block.headline, (_first_sentences(" ".join(block.sentences), 3 * longest),))
        case Paragraph():
            return Paragraph(_first_sentences(block.text, 3 * longest))
        case Bullets():
            return Bullets(tuple((name, _first_sentences(text, longest)) for name, text in block.items))
    return block


def _first_sentences(text: str, longest: int) -> str:
    """Return the whole sentences within ``longest`` characters, or the first one if that is longer."""
    ends = [match.start() for match in _SENTENCE_END.finditer(text)] or [len(text)]
    within = [end for end in ends if end <= longest] or ends[:1]
    return text if len(text) <= longest else text[: within[-1]]


def _clip(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
