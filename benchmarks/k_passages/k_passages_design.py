"""Designs: the numbers of passages, of wrong ones and of images, the places of the right passage, and the lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.errors import SourceError, SpecError

MOST_PASSAGES = 10
MOST_IMAGES = 10
MOST_WORDS = 10_000

PLACES = ("first", "middle", "last")
ONLY = "only"
"""The place of a passage without others."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: ``passages`` in all, of them ``wrong`` ones and one right one at ``place``; the others are distractors.

    ``images`` of 1 is the example's own image, further ones are of other examples. ``words`` is the least length of a passage.
    """

    passages: int
    wrong: int
    place: str
    images: int
    words: int

    @property
    def name(self) -> str:
        return f"k{self.passages}-m{self.wrong}-{self.place}-i{self.images}-w{self.words}"

    @property
    def distractors(self) -> int:
        """The number of passages of other examples."""
        return self.passages - 1 - self.wrong

    @property
    def index(self) -> int:
        """The number of passages before the right one."""
        return {"first": 0, ONLY: 0, "middle": (self.passages - 1) // 2, "last": self.passages - 1}[self.place]


@dataclass(frozen=True, slots=True)
class PassageDesign:
    """The levels of each factor, which are crossed; settings that cannot be, such as 3 wrong ones of 2, are dropped.

    Raises SpecError for levels out of range, and for a number of wrong passages that no number of passages allows.
    """

    passages: tuple[int, ...] = (1, 3, 5)
    wrong: tuple[int, ...] = (0, 1, 2)
    places: tuple[str, ...] = ("first", "last")
    images: tuple[int, ...] = (0,)
    words: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        _check("--passages", self.passages, 1, MOST_PASSAGES)
        _check("--wrong", self.wrong, 0, MOST_PASSAGES - 1)
        _check("--images", self.images, 0, MOST_IMAGES)
        _check("--words", self.words, 0, MOST_WORDS)
        if not self.places or set(self.places) - set(PLACES):
            raise SpecError(
                f"--place has places other than {', '.join(PLACES)}; write some of them, separated by commas."
            )
        if max(self.wrong) >= max(self.passages):
            raise SpecError(
                f"{max(self.wrong)} wrong passages and a right one need at least {max(self.wrong) + 1} passages; add that number "
                "to --passages, or name fewer with --wrong."
            )

    @classmethod
    def parse(cls, levels: Mapping[str, str | None]) -> PassageDesign:
        """Return the design of levels as typed, separated by commas; those that are None are the default's."""
        default = cls()
        places = levels.get("places")
        numbers = {
            name: getattr(default, name) if (text := levels.get(name)) is None else _numbers(name, text)
            for name in ("passages", "wrong", "images", "words")
        }
        return cls(**numbers, places=default.places if places is None else tuple(dict.fromkeys(_words(places))))

    @classmethod
    def from_json(cls, value: Any) -> PassageDesign:
        """Return the design of a build's manifest. Raises SourceError if it has none that this version can read."""
        try:
            return cls(**{name: tuple(levels) for name, levels in value.items()})
        except (AttributeError, TypeError, SpecError) as error:
            raise SourceError(
                "the manifest has no design of k passages; make the build again with `rashomon passages`."
            ) from error

    def to_json(self) -> dict[str, list[Any]]:
        """Return the design as a manifest holds it."""
        return {name: list(levels) for name, levels in asdict(self).items()}

    def cells(self) -> Iterator[Cell]:
        """Yield the settings; places that are the same one are yielded once."""
        for k in self.passages:
            for m in (m for m in self.wrong if m < k):
                seen: set[int] = set()
                for place in (ONLY,) if k == 1 else self.places:
                    index = Cell(k, m, place, 0, 0).index
                    if index in seen:
                        continue
                    seen.add(index)
                    for images in self.images:
                        for words in self.words:
                            yield Cell(k, m, place, images, words)

    @property
    def most_distractors(self) -> int:
        return max(cell.distractors for cell in self.cells())

    @property
    def most_wrong(self) -> int:
        return max(cell.wrong for cell in self.cells())


def _check(option: str, levels: Sequence[int], lowest: int, highest: int) -> None:
    if not levels or min(levels) < lowest or max(levels) > highest:
        raise SpecError(f"{option} takes numbers from {lowest} to {highest:,}, separated by commas.")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(name: str, text: str) -> tuple[int, ...]:
    words = _words(text)
    if not all(word.isascii() and word.isdigit() and len(word) < 7 for word in words):
        raise SpecError(
            f"--{name} {text!r} is no list of whole numbers; write them separated by commas, such as 1,3,5."
        )
    return tuple(dict.fromkeys(map(int, words)))
