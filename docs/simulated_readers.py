"""Simulated models with known rates of reading, and the population values of their metrics."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Array = NDArray[np.float64]
Random = np.random.Generator

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
IMAGE, TEXT, BOTH, NEITHER, ABSTAIN, RIGHT = range(6)
"""The outcomes of an answer: its label, or (``RIGHT``) NEITHER for giving the right value that no source has."""
ANSWERED, EMPTY, CUT_OFF, UNDECIDED, FAILED = range(5)
"""The fates of an answer. The last two have a label in truth, which the product does not know."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A condition: whether the prompt has the image and the text of the question, and whether the image is borrowed."""

    condition: str
    image: bool = True
    text: bool = True
    borrowed: bool = False


PROMPTS = (
    Prompt("aligned"),
    Prompt("image-correct"),
    Prompt("text-correct", borrowed=True),
    Prompt("both-wrong", borrowed=True),
    Prompt("image-only", text=False),
    Prompt("text-only", image=False),
)
ALIGNED, CONFLICTS, DECIDING = 0, (1, 2, 3), 4
"""The places of the prompts where sources agree and where they do not, and the number of those that decide."""

ACCURATE = ((IMAGE, TEXT, BOTH), (IMAGE, BOTH), (TEXT, BOTH), (ABSTAIN, RIGHT))
"""The outcomes that are right in a decision: an invention never is."""
FOLLOWS = {"image": IMAGE, "text": TEXT, "flag": ABSTAIN}

HARD = 0.75
"""The quantile of difficulty from which a source is hard."""
MISSING = np.array([0.01, 0.01, 0.008, 0.002])
"""The rates of empty, cut-off, undecided and failed answers without a hard source; each hard source adds twice as much."""
KNOWS = 0.3
"""The share of inventions that give the right value where no source has it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A model with known rates: reading each source, and with both read under conflict, giving image, text or both values.

    The rest flags the conflict. Of the answers without a source that is read, ``invents`` invent a value, the others abstain.
    ``missing`` multiplies the rates of ``MISSING``.
    """

    image: float
    text: float
    follows: tuple[float, float, float]
    invents: float
    missing: float = 1.0

    def scaled(self, factor: float) -> Reader:
        """Return a reader that reads both sources so many times as often."""
        return replace(self, image=min(0.995, self.image * factor), text=min(0.995, self.text * factor))

    @property
    def mirrored(self) -> Reader:
        """The reader that does with the text what this one does with the image."""
        image, text, both = self.follows
        return replace(self, image=self.text, text=self.image, follows=(text, image, both))

    def acts(self, prompt: Prompt, *, image: bool, text: bool) -> tuple[tuple[int, float], ...]:
        """Return the outcomes with their probabilities, given which of the displayed sources are read."""
        image, text = image and prompt.image, text and prompt.text
        if not image and not text:
            return (NEITHER, self.invents), (ABSTAIN, 1 - self.invents)
        if prompt.condition == "aligned":
            return ((BOTH, 1.0),)
        if not (prompt.image and prompt.text):
            return ((IMAGE if image else TEXT, 1.0),)
        if image and text:
            return (*zip((IMAGE, TEXT, BOTH), self.follows, strict=True), (ABSTAIN, 1 - sum(self.follows)))
        return (NEITHER, self.invents / 3), (IMAGE if image else TEXT, 1 - self.invents / 3)


def cells(reader: Reader, prompt: Prompt) -> Iterator[tuple[int, int, float]]:
    """Yield outcomes under a prompt with the number of hard sources and the probability, which is exact."""
    images = [*_source_states(reader.image)] if prompt.image else [(False, 0, 1.0)]
    texts = [*_source_states(reader.text)] if prompt.text else [(False, 0, 1.0)]
    for (is_read, hard, share), (reads_text, hard_text, text_share) in product(images, texts):
        for outcome, probability in reader.acts(prompt, image=is_read, text=reads_text):
            whole = share * text_share * probability
            if outcome == NEITHER and prompt.condition == "both-wrong":
                yield RIGHT, hard + hard_text, whole * KNOWS
                whole *= 1 - KNOWS
            yield outcome, hard + hard_text, whole


def _source_states(rate: float) -> Iterator[tuple[bool, int, float]]:
    """Yield the states of a source (read, hard) with their probabilities: easy ones are read first."""
    for low, high in pairwise(sorted({0.0, rate, HARD, 1.0})):
        yield high <= rate, int(low >= HARD), high - low


def population(reader: Reader) -> Array:
    """Return the probability of each outcome with what becomes of it, shape (prompts, outcomes, 5)."""
    table = np.zeros((len(PROMPTS), 6, 5))
    for place, prompt in enumerate(PROMPTS):
        for outcome, hard, probability in cells(reader, prompt):
            lost = MISSING * reader.missing * (1 + 2 * hard)
            table[place, outcome] += probability * np.array([1 - lost.sum(), *lost])
    return table


def _true_share(reader: Reader, hits: Sequence[Container[int]]) -> float:
    """Return the population share of these outcomes, by deciding prompt: an answer that is empty or cut off is none of them."""
    lost = float(MISSING[[EMPTY - 1, CUT_OFF - 1]].sum()) * reader.missing
    return sum(
        probability * (1 - lost * (1 + 2 * hard))
        for prompt, right in zip(PROMPTS, hits, strict=False)
        for outcome, hard, probability in cells(reader, prompt)
        if outcome in right
    ) / len(hits)


def true_accuracy(reader: Reader) -> float:
    """Return the population value of a decision's accuracy."""
    return _true_share(reader, ACCURATE)


def true_obedience(reader: Reader, rule: str) -> float:
    """Return the population value of the obedience to a rule."""
    return _true_share(reader, [(IMAGE, TEXT, BOTH), *[(FOLLOWS[rule],)] * len(CONFLICTS)])


def true_following(reader: Reader, rule: str) -> float:
    """Return the population value of following a rule under conflict, up to a factor."""
    return _true_share(reader, [(), *[(FOLLOWS[rule],)] * len(CONFLICTS)])


def true_value(reader: Reader, rule: str | None) -> float:
    """Return the population value of what decides: the accuracy, or the obedience to a rule."""
    return true_accuracy(reader) if rule is None else true_obedience(reader, rule)


def random_reader(random: Random) -> Reader:
    """Return a model with rates at random."""
    image, text, both, _ = random.dirichlet((2.5, 2.5, 0.7, 1.5))
    return Reader(
        random.uniform(0.6, 0.95),
        random.uniform(0.7, 0.97),
        (float(image), float(text), float(both)),
        random.uniform(0.2, 0.8),
    )


def scaled_to(reader: Reader, value: float, rule: str | None) -> Reader | None:
    """Return the reader, of other reading rates, whose population value is ``value``; None if there is none."""
    low, high = 0.15, 1.6
    signs = [true_value(reader.scaled(end), rule) - value > 0 for end in (low, high)]
    if signs[0] == signs[1]:
        return None
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if (true_value(reader.scaled(middle), rule) - value > 0) == signs[0] else (low, middle)
        )
    return reader.scaled(low)
