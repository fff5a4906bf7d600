"""What two engines are given: prompts, tokens and images of two probes of one request, before any output is looked at.

Every function tells a difference in words, with the two sides called A and B, and an empty text where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from app.parity.pixels import relation, same_stats
from app.parity.stages import StageFinding, counted

if TYPE_CHECKING:
    from mlx_backends.core.probe import Probe

Word = Callable[[int], str | None]
"""A token's text, where that is known."""

IMAGE = re.compile(r"(?:<[^<>\s]*(?:image|img|vision|picture)[^<>\s]*>|\[IMG[^\[\]\s]*\])+", re.IGNORECASE)
"""What chat templates write for an image."""

_SYSTEM = re.compile(r"(?:<[^<>]*>|\[|^|\n)\W*(?:system|sys)\b", re.IGNORECASE)
_SHOWN = 40
_RUN = 4
"""So many equal tokens in a row are an image's."""


def compare_inputs(pairs: Sequence[tuple[Probe, Probe]], word: Word = lambda token: None) -> list[StageFinding]:
    """The findings of prompt, tokens, images and pixels over two engines' probes of the same requests."""
    return [
        counted("prompt", (prompt_difference(a.prompt, b.prompt) for a, b in pairs), "prompts"),
        counted("tokens", (token_difference(a.token_ids, b.token_ids, word) for a, b in pairs), "token lists"),
        counted("images", (image_difference(a, b) for a, b in pairs if a.pixels or b.pixels), "sets of images"),
        counted("pixels", (each for a, b in pairs for each in _pixel_differences(a, b)), "images"),
    ]


def prompt_difference(a: str, b: str) -> str:
    """The first place where two prompts differ, and what is missing there."""
    if a == b:
        return ""
    if "".join(a.split()) == "".join(b.split()):
        return f"white space alone, {_where(a, b)}"
    images = [len(IMAGE.findall(text)) for text in (a, b)]
    if IMAGE.sub("", a) == IMAGE.sub("", b):
        if images[0] != images[1]:
            return f"A's prompt has {_many(images[0], 'image')}, B's {images[1]}"
        return f"the images stand in other places among the texts, {_where(a, b)}"
    start = _common(a, b)
    end = min(_common(a[::-1], b[::-1]), len(a) - start, len(b) - start)
    only_a, only_b = a[start : len(a) - end], b[start : len(b) - end]
    for mine, other, name in ((only_a, only_b, "B"), (only_b, only_a, "A")):
        # What both begin with may reach into the turn that one of them lacks, up to its name.
        if not other.strip() and mine.strip():
            before = a[:start]
            opened = before[max(before.rfind("<"), before.rfind("\n"), 0) :]
            if _SYSTEM.search(opened + mine) or _SYSTEM.search(mine):
                return f"the system prompt is missing in {name} ({_short(_body(mine))})"
            return f"{name} lacks {_short(mine)}, {_where(a, b)}"
    only_a, only_b = _whole(a, start, end), _whole(b, start, end)
    if _SYSTEM.search(a[:start]) and not re.search(r"\buser\b", a[:start], re.IGNORECASE):
        return f"the system prompt is another one: {_short(only_a)} in A, {_short(only_b)} in B"
    return f"A has {_short(only_a)}, B {_short(only_b)}, {_where(a, b)}"


def token_difference(a: Sequence[int], b: Sequence[int], word: Word = lambda token: None) -> str:
    """The first token in which two prompts differ; said apart: one more at the beginning, and images of other lengths."""
    if list(a) == list(b):
        return ""
    for mine, other, name in ((a, b, "A"), (b, a, "B")):
        if list(mine[1:]) == list(other):
            return f"{name} begins with one token more ({_named(mine[0], word)})"
    runs = [_runs(tokens) for tokens in (a, b)]
    if [token for token, _ in runs[0]] == [token for token, _ in runs[1]]:
        lengths = [(one, other) for (_, one), (_, other) in zip(*runs, strict=True) if one != other]
        return f"an image takes {_many(lengths[0][0], 'token')} in A and {lengths[0][1]} in B: it is sized otherwise"
    at = next((i for i, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))
    each = [_named(tokens[at], word) if at < len(tokens) else "its end" for tokens in (a, b)]
    return f"token {at + 1} is {each[0]} in A and {each[1]} in B"


def image_difference(a: Probe, b: Probe) -> str:
    """Whether two engines are shown other images, or the same in another order."""
    if len(a.pixels) != len(b.pixels):
        return f"A is shown {_many(len(a.pixels), 'image')}, B {len(b.pixels)}"
    order = permutation(a, b)
    if order is None or order == sorted(order):
        return ""
    moved = next(i for i, j in enumerate(order) if i != j)
    return f"the images come in another order: the {_nth(moved)} in A is the {_nth(order[moved])} in B"


def permutation(a: Probe, b: Probe) -> list[int] | None:
    """Where each of A's images stands in B; None where they are not the same images."""
    found: list[int] = []
    for i in range(len(a.pixels)):
        places = [j for j in range(len(b.pixels)) if j not in found and _same_image(a, i, b, j)]
        if not places:
            return None
        found.append(i if i in places else places[0])
    return found


def _same_image(a: Probe, i: int, b: Probe, j: int) -> bool:
    return a.pixels[i] == b.pixels[j] or same_stats(a.pixel_stats[i], b.pixel_stats[j])


def _pixel_differences(a: Probe, b: Probe) -> list[str]:
    """Of each image, once it is known which are the same: how its pixels differ."""
    if len(a.pixels) != len(b.pixels):
        return []
    order = permutation(a, b) or range(len(a.pixels))
    return [_pixel_difference(a, i, b, j) for i, j in enumerate(order)]


def _pixel_difference(a: Probe, i: int, b: Probe, j: int) -> str:
    if a.pixels[i] == b.pixels[j]:
        return ""
    if a.pixel_values is not None and b.pixel_values is not None:
        return relation(a.pixel_values[i], b.pixel_values[j])
    if _same_image(a, i, b, j):
        return ""
    (mean, sd, _), (other_mean, other_sd, _) = a.pixel_stats[i], b.pixel_stats[j]
    return f"mean {mean:.3g} and deviation {sd:.3g} in A, {other_mean:.3g} and {other_sd:.3g} in B"


# --- words ---------------------------------------------------------------------------------------


def _common(a: str, b: str) -> int:
    return next((i for i, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _whole(text: str, start: int, end: int) -> str:
    """What stands between what two texts begin and end with alike, with the words whole that it begins and ends in."""
    stop = len(text) - end
    while start and text[start - 1].isalnum():
        start -= 1
    while stop < len(text) and text[stop].isalnum():
        stop += 1
    return text[start:stop]


def _where(a: str, b: str) -> str:
    before = a[: _common(a, b)]
    return f"after {_short(before, last=True)}" if before.strip() else "at the beginning"


def _short(text: str, *, last: bool = False) -> str:
    told = " ".join(IMAGE.sub("[image]", text).split())
    if len(told) > _SHOWN:
        told = f"...{told[-_SHOWN:]}" if last else f"{told[:_SHOWN]}..."
    return f"“{told}”"


def _body(turn: str) -> str:
    """What stands in a turn, without its marks and the name of its role."""
    return re.sub(r"^\W*(?:system|sys)\b", "", re.sub(r"<[^<>]*>", " ", turn).strip(), flags=re.IGNORECASE)


def _runs(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """The tokens with their repetitions counted, where those are so many that they are an image's."""
    found: list[tuple[int, int]] = []
    for token, group in groupby(tokens):
        length = len(list(group))
        found += [(token, length)] if length >= _RUN else [(token, 1)] * length
    return found


def _named(token: int, word: Word) -> str:
    text = word(token)
    return str(token) if text is None else f"{token} {_short(text)}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _nth(place: int) -> str:
    return ("first", "second", "third")[place] if place < 3 else f"{place + 1}th"
