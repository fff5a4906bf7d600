"""Comparison of the inputs of two engines: prompts, tokens and images of two probes of one request.

Every comparison returns a difference in words, with the two runs called A and B, and an empty text where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby

from app.parity.parity_stages import StageFinding, count_finding
from app.parity.pixel_differences import pixel_difference, same_stats
from mlx_backends.core.engine_probe import Probe

TokenText = Callable[[int], str | None]
"""The text of a token, None where it is unknown."""

IMAGE = re.compile(r"(?:<[^<>\s]*(?:image|img|vision|picture)[^<>\s]*>|\[IMG[^\[\]\s]*\])+", re.IGNORECASE)
"""The placeholders of chat templates for an image."""

_SYSTEM = re.compile(r"(?:<[^<>]*>|\[|^|\n)\W*(?:system|sys)\b", re.IGNORECASE)
_LONGEST = 40
_IMAGE_RUN = 4
"""The number of equal tokens in a row from which they are an image's."""


def compare_inputs(pairs: Sequence[tuple[Probe, Probe]], word: TokenText = lambda token: None) -> list[StageFinding]:
    """Return the findings at prompt, tokens, images and pixels over two engines' probes of the same requests."""
    return [
        count_finding("prompt", (prompt_difference(a.prompt, b.prompt) for a, b in pairs), "prompts"),
        count_finding("tokens", (token_difference(a.token_ids, b.token_ids, word) for a, b in pairs), "token lists"),
        count_finding("images", (image_difference(a, b) for a, b in pairs if a.pixels or b.pixels), "sets of images"),
        count_finding("pixels", (difference for a, b in pairs for difference in _pixel_differences(a, b)), "images"),
    ]


def prompt_difference(a: str, b: str) -> str:
    """Return the first difference between two prompts."""
    if a == b:
        return ""
    if "".join(a.split()) == "".join(b.split()):
        return f"only white space differs, {_where(a, b)}"
    images = [len(IMAGE.findall(text)) for text in (a, b)]
    if IMAGE.sub("", a) == IMAGE.sub("", b):
        if images[0] != images[1]:
            return f"A's prompt has {_count(images[0], 'image')}, B's {images[1]}"
        return f"the images are at other places in the text, {_where(a, b)}"
    start = _shared_prefix(a, b)
    end = min(_shared_prefix(a[::-1], b[::-1]), len(a) - start, len(b) - start)
    only_a, only_b = a[start : len(a) - end], b[start : len(b) - end]
    for extra, other, name in ((only_a, only_b, "B"), (only_b, only_a, "A")):
        # The shared prefix may reach into the turn that is missing in the other prompt, up to its role.
        if not other.strip() and extra.strip():
            before = a[:start]
            open_tag = before[max(before.rfind("<"), before.rfind("\n"), 0) :]
            if _SYSTEM.search(open_tag + extra) or _SYSTEM.search(extra):
                return f"the system prompt is missing in {name} ({_short(_body(extra))})"
            return f"{name} lacks {_short(extra)}, {_where(a, b)}"
    only_a, only_b = _extend_to_words(a, start, end), _extend_to_words(b, start, end)
    if _SYSTEM.search(a[:start]) and not re.search(r"\buser\b", a[:start], re.IGNORECASE):
        return f"the system prompts differ: {_short(only_a)} in A, {_short(only_b)} in B"
    return f"A has {_short(only_a)}, B {_short(only_b)}, {_where(a, b)}"


def token_difference(a: Sequence[int], b: Sequence[int], word: TokenText = lambda token: None) -> str:
    """Return the first differing token; an extra first token and other image lengths are reported as such."""
    if list(a) == list(b):
        return ""
    for longer, other, name in ((a, b, "A"), (b, a, "B")):
        if list(longer[1:]) == list(other):
            return f"{name} begins with an extra token ({_named(longer[0], word)})"
    runs = [_runs(tokens) for tokens in (a, b)]
    if [token for token, _ in runs[0]] == [token for token, _ in runs[1]]:
        lengths = [
            (length_a, length_b) for (_, length_a), (_, length_b) in zip(*runs, strict=True) if length_a != length_b
        ]
        return (
            f"an image takes {_count(lengths[0][0], 'token')} in A and {lengths[0][1]} in B: it is resized differently"
        )
    place = _shared_prefix(a, b)
    names = [_named(tokens[place], word) if place < len(tokens) else "its end" for tokens in (a, b)]
    return f"token {place + 1} is {names[0]} in A and {names[1]} in B"


def image_difference(a: Probe, b: Probe) -> str:
    """Return the difference between the images of two engines: their number or their order."""
    if len(a.pixels) != len(b.pixels):
        return f"A gets {_count(len(a.pixels), 'image')}, B {len(b.pixels)}"
    order = permutation(a, b)
    if order is None or order == sorted(order):
        return ""
    first_moved = next(i for i, j in enumerate(order) if i != j)
    return f"the images are in another order: the {_nth(first_moved)} in A is the {_nth(order[first_moved])} in B"


def permutation(a: Probe, b: Probe) -> list[int] | None:
    """Return the index in B of each of A's images; None where they are not the same images."""
    order: list[int] = []
    for i in range(len(a.pixels)):
        places = [j for j in range(len(b.pixels)) if j not in order and _same_image(a, i, b, j)]
        if not places:
            return None
        order.append(i if i in places else places[0])
    return order


def _same_image(a: Probe, i: int, b: Probe, j: int) -> bool:
    return a.pixels[i] == b.pixels[j] or same_stats(a.pixel_stats[i], b.pixel_stats[j])


def _pixel_differences(a: Probe, b: Probe) -> list[str]:
    """Return the pixel difference of each image of A to its counterpart in B."""
    if len(a.pixels) != len(b.pixels):
        return []
    order = permutation(a, b) or range(len(a.pixels))
    return [_pixel_difference(a, i, b, j) for i, j in enumerate(order)]


def _pixel_difference(a: Probe, i: int, b: Probe, j: int) -> str:
    if a.pixels[i] == b.pixels[j]:
        return ""
    if a.pixel_values is not None and b.pixel_values is not None:
        return pixel_difference(a.pixel_values[i], b.pixel_values[j])
    if _same_image(a, i, b, j):
        return ""
    (mean, sd, _), (other_mean, other_sd, _) = a.pixel_stats[i], b.pixel_stats[j]
    return f"mean {mean:.3g} and deviation {sd:.3g} in A, {other_mean:.3g} and {other_sd:.3g} in B"


# --- words ---------------------------------------------------------------------------------------


def _shared_prefix(a: Sequence[object], b: Sequence[object]) -> int:
    """Return the length of the shared prefix."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (item_a, item_b) in pairs if item_a != item_b), min(len(a), len(b)))


def _extend_to_words(text: str, start: int, end: int) -> str:
    """Return the text between the shared prefix and suffix, extended to whole words."""
    stop = len(text) - end
    while start and text[start - 1].isalnum():
        start -= 1
    while stop < len(text) and text[stop].isalnum():
        stop += 1
    return text[start:stop]


def _where(a: str, b: str) -> str:
    before = a[: _shared_prefix(a, b)]
    return f"after {_short(before, last=True)}" if before.strip() else "at the beginning"


def _short(text: str, *, last: bool = False) -> str:
    short = " ".join(IMAGE.sub("[image]", text).split())
    if len(short) > _LONGEST:
        short = f"...{short[-_LONGEST:]}" if last else f"{short[:_LONGEST]}..."
    return f"“{short}”"


def _body(turn: str) -> str:
    """Return the text of a turn without its markers and role."""
    return re.sub(r"^\W*(?:system|sys)\b", "", re.sub(r"<[^<>]*>", " ", turn).strip(), flags=re.IGNORECASE)


def _runs(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Return the tokens with their run lengths, which are 1 except for an image's tokens."""
    runs: list[tuple[int, int]] = []
    for token, group in groupby(tokens):
        length = len(list(group))
        runs += [(token, length)] if length >= _IMAGE_RUN else [(token, 1)] * length
    return runs


def _named(token: int, word: TokenText) -> str:
    text = word(token)
    return str(token) if text is None else f"{token} {_short(text)}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _nth(place: int) -> str:
    return ("first", "second", "third")[place] if place < 3 else f"{place + 1}th"
