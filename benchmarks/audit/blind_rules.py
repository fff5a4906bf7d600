"""Blind rules: properties of options that need no source, by which the right one may stand out.

A rule sorts every option into a cell, such as "longest of 4" or "No". Which cells are right most often is learned on other
clusters, and the option of the best cell is chosen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from benchmarks.audit.blind_question import BlindOption, BlindQuestion
from benchmarks.audit.blind_questions import Questions

MediaSize = Callable[[str], int | None]
"""The size in bytes of the medium with a sha256; None where it is unknown."""

_NUMBER = re.compile(r"[0-9][0-9,]{0,30}(?:\.[0-9]{1,30})?")
_WORD = re.compile(r"\w+")
_LONGEST_TEXT = 2_000
"""The characters of an option that are compared with other options."""
_BINS = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its name, what it looks at, and the cell of each option of some questions.

    ``reads_source`` is True for a rule that reads one of the sources.
    """

    name: str
    looks_at: str
    cells: Sequence[str]
    reads_source: bool = False


def rules(questions: Questions, media: MediaSize | None, counts: Counts | None = None) -> list[Rule]:
    """Return the rules that tell options of these questions apart, each set of cells once.

    ``counts`` are those of the whole set, by default of these questions.
    """
    seen: set[tuple[str, ...]] = set()
    distinct = []
    for rule in _all_rules(questions, media, counts or Counts.of(questions.items)):
        key = _numbered(rule.cells)
        if key not in seen and _tells_apart(rule.cells, questions):
            seen.add(key)
            distinct.append(rule)
    return distinct


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.casefold())


@dataclass(frozen=True)
class Counts:
    """Counts over a whole set of questions without their answers, of all tasks; an example is counted once.

    Attributes:
        phrases: The number of examples with a sequence of three words.
        values: The number of examples with a value of a category, or a question's text, by the category's name and the value.
        offers: The number of these that offer a text.
    """

    phrases: Counter[tuple[str, ...]]
    values: Counter[tuple[str, str]]
    offers: Counter[tuple[str, str, str]]

    @classmethod
    def of(cls, items: Iterable[BlindQuestion]) -> Counts:
        """Return the counts of these questions."""
        phrases: set[tuple[str, tuple[str, ...]]] = set()
        values: set[tuple[str, tuple[str, str]]] = set()
        offers: set[tuple[str, tuple[str, str, str]]] = set()
        for item in items:
            example = item.example or item.id
            phrases |= {(example, phrase) for phrase in _phrases(item)}
            for value in _values(item).items():
                values.add((example, value))
                offers |= {(example, (*value, option.text)) for option in item.options}
        return cls(Counter(p for _, p in phrases), Counter(v for _, v in values), Counter(o for _, o in offers))

    def rarest_phrase(self, item: BlindQuestion) -> str:
        """Return how often the rarest sequence of words of a question occurs."""
        return _magnitude(min((self.phrases[phrase] for phrase in _phrases(item)), default=0))

    def offered(self, item: BlindQuestion, name: str) -> list[float]:
        """Return how often each option is offered with the value that the question has of a category."""
        value = _values(item).get(name, "")
        return [self.offers[name, value, option.text] for option in item.options]


def _phrases(item: BlindQuestion) -> list[tuple[str, ...]]:
    own = words(item.question[:_LONGEST_TEXT])
    return [tuple(own[place : place + 3]) for place in range(max(1, len(own) - 2))]


def _values(item: BlindQuestion) -> dict[str, str]:
    return {"question": item.question, **item.categories}


def _magnitude(count: int) -> str:
    """Return a count by powers of two: 1, 2, 4 ... times."""
    return f"{1 << (count.bit_length() - 1)} times or more" if count > 1 else "once"


def _all_rules(questions: Questions, media: MediaSize | None, counts: Counts) -> Iterator[Rule]:
    items, options = questions.items, questions.options
    size = _sizes(media)
    shown = Counter(option.media for option in options)

    def by_value(
        name: str, looks_at: str, value: Callable[[BlindOption], Hashable], *, reads_source: bool = False
    ) -> Rule:
        return Rule(name, looks_at, [str(value(option)) for option in options], reads_source)

    def by_rank(
        name: str, looks_at: str, values: Callable[[BlindQuestion], Sequence[float]], *, reads_source: bool = False
    ) -> Rule:
        return Rule(name, looks_at, [rank for item in items for rank in _ranks(values(item))], reads_source)

    def by_question(
        name: str, looks_at: str, value: Callable[[BlindQuestion], Hashable], *, reads_source: bool = False
    ) -> Rule:
        of_items = [str(value(item)) for item in items]
        return Rule(
            name,
            looks_at,
            [
                f"{option_name} for {of_items[place]}"
                for option_name, place in zip(questions.names, questions.question, strict=True)
            ],
            reads_source,
        )

    def of_texts() -> Iterator[Rule]:
        yield by_value("text", "the option's text", lambda option: option.text)
        yield by_rank("length", "the option's length", lambda item: [len(option.text) for option in item.options])
        yield by_rank("words", "the option's number of words", lambda item: [len(words(o.text)) for o in item.options])
        yield by_value("form", "capitals, digits and signs of the option", lambda option: _form(option.text))
        yield by_rank("digits", "the option's number of digits", lambda item: [_digits(o.text) for o in item.options])
        yield by_rank("number", "the size of the option's number", lambda item: [_number(o.text) for o in item.options])
        yield by_value("ending", "the last digit of the option's number", lambda option: _ending(option.text))
        yield by_value("decimals", "the decimals of the option's number", lambda option: _decimals(option.text))
        yield by_rank(
            "figures", "the significant digits of the number", lambda item: [_figures(o.text) for o in item.options]
        )
        yield Rule(
            "multiples",
            "which options' numbers are whole multiples of others",
            [cell for item in items for cell in _multiples([_number(option.text) for option in item.options])],
        )
        yield by_rank("closest", "the option's likeness to the others", _likeness)
        yield by_rank("nearest", "the distance of the option's number to the others", _nearness)
        yield by_rank(
            "alphabet",
            "the option's place in alphabetical order",
            lambda item: _order_of([o.text for o in item.options]),
        )
        texts = Counter(option.text for option in options)
        yield by_rank(
            "repeated", "how many questions offer the option", lambda item: [texts[o.text] for o in item.options]
        )
        for name in ("question", *names):
            yield by_rank(
                f"offered with {name}",
                f"how often the option is offered with the same {name}",
                lambda item: counts.offered(item, name),  # noqa: B023
            )
        yield by_rank(
            "question's words", "the words that option and question share", lambda item: _overlap(item, item.question)
        )

    names = _names(item.categories for item in items)
    texts_are_sources = any(item.texts_are_sources for item in items)
    yield Rule(
        "place",
        "the option's place",
        [f"{place} of {len(item.options)}" for item in items for place in range(1, len(item.options) + 1)],
    )
    yield Rule(
        "modality",
        "the option's modality",
        [f"{option.modality} of {len(item.options)}" for item in items for option in item.options if option.modality]
        if all(option.modality for option in options)
        else [option.modality for option in options],
    )
    yield from (replace(rule, reads_source=texts_are_sources) for rule in of_texts())
    yield by_rank(
        "repeated media", "how many questions show the medium", lambda item: [shown[o.media] for o in item.options]
    )
    yield by_rank("file size", "the bytes of the option's file", lambda item: [size(o.media) for o in item.options])
    yield by_value(
        "file name", "the option's file name without its digits", lambda option: _without_digits(option.file_name)
    )
    yield by_rank(
        "file number", "the number in the option's file name", lambda item: [_number(o.file_name) for o in item.options]
    )
    yield by_question("question's length", "the question's length", _quantiles(items, lambda item: len(item.question)))
    yield by_question("rare words", "how rare the question's words are in the set", counts.rarest_phrase)
    for name in names:
        yield by_question(f"by {name}", f"the {name}", lambda item: item.categories.get(name, ""))  # noqa: B023
        yield by_question(
            f"rare {name}",
            f"how often the {name} occurs in the set",
            lambda item: _magnitude(counts.values[name, item.categories.get(name, "")]),  # noqa: B023
        )
    for name in _names(item.sources for item in items):
        yield by_rank(
            f"words of {name}",
            f"the words that option and {name} share",
            lambda item: _overlap(item, item.sources.get(name, "")),  # noqa: B023
            reads_source=True,
        )
        yield by_question(
            f"length of {name}",
            f"the length of the {name}",
            _quantiles(items, lambda item: len(item.sources.get(name, ""))),  # noqa: B023
            reads_source=True,
        )
    yield by_question("media", "the number of media", lambda item: len(item.media))
    yield by_question(
        "media's size", "the bytes of the question's files", _quantiles(items, lambda item: sum(map(size, item.media)))
    )
    yield by_question(
        "media's ratio",
        "the ratio in bytes of the question's largest and smallest file",
        _quantiles(items, lambda item: _ratio([*map(size, item.media)])),
    )
    yield by_question(
        "media's order", "the order of the question's files by bytes", lambda item: _order([*map(size, item.media)])
    )


def _sizes(media: MediaSize | None) -> Callable[[str | None], float]:
    known = lru_cache(maxsize=None)(media) if media is not None else None

    def size(name: str | None) -> float:
        return float((known(name) if known is not None and name else None) or -1)

    return size


def _names(mappings: Iterator[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def _ranks(values: Sequence[float]) -> list[str]:
    """Return the rank of each value among them, from the greatest; equal values share one."""
    count = Counter(values)
    return [
        f"{1 + sum(other > value for other in values)}{'=' if count[value] > 1 else ''} of {len(values)}"
        for value in values
    ]


def _quantiles(
    items: Sequence[BlindQuestion], value: Callable[[BlindQuestion], float]
) -> Callable[[BlindQuestion], Hashable]:
    """Return a function from a question to the quarter that its value is in."""
    ends = np.quantile([value(item) for item in items], np.arange(1, _BINS) / _BINS)
    return lambda item: f"quarter {1 + int(np.searchsorted(ends, value(item), side='right'))}"


def _form(text: str) -> str:
    """Return a text's classes of characters, runs once: ``The 2.`` is ``Aa 9.``; at most 12 of them, and the last."""
    classes = "".join(
        "9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in text[:_LONGEST_TEXT]
    )
    squeezed = "".join(a for a, b in pairwise(classes + "\0") if a != b)
    return squeezed if len(squeezed) <= 12 else f"{squeezed[:2]}…{squeezed[-1]}"


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


def _number(text: str) -> float:
    """Return the first number of a text, -1 if there is none."""
    match = _NUMBER.search(text)
    return float(match[0].replace(",", "")) if match else -1.0


def _ending(text: str) -> str:
    match = _NUMBER.search(text)
    return match[0].partition(".")[0][-1] if match else ""


def _decimals(text: str) -> str:
    match = _NUMBER.search(text)
    return match[0].partition(".")[2] if match else ""


def _figures(text: str) -> int:
    match = _NUMBER.search(text)
    return len(match[0].replace(",", "").replace(".", "").strip("0")) if match else -1


def _multiples(values: Sequence[float]) -> list[str]:
    """Return, for each number, how many of the others are whole multiples of it, and of how many it is one; and its parity."""

    def divides(a: float, b: float) -> bool:
        return a > 0 and b > a and b % a == 0

    return [
        f"{sum(divides(v, w) for w in values)} multiples, {sum(divides(w, v) for w in values)} divisors, "
        f"{'odd' if v % 2 == 1 else 'even' if v % 2 == 0 else 'neither'}"
        if v >= 0
        else ""
        for v in values
    ]


def _likeness(item: BlindQuestion) -> list[float]:
    """Return each option's mean likeness to the others: the pairs of characters that two texts share, of all they have."""
    pairs = [{*pairwise(option.text.casefold()[:_LONGEST_TEXT])} or {("", option.text)} for option in item.options]
    return [
        round(sum(len(a & b) / len(a | b) for place, b in enumerate(pairs) if place != own) / max(1, len(pairs) - 1), 9)
        for own, a in enumerate(pairs)
    ]


def _nearness(item: BlindQuestion) -> list[float]:
    """Return each option's mean distance to the others by the logarithm of their numbers, 0 where one has none."""
    numbers = [_number(option.text) for option in item.options]
    if min(numbers) <= 0:
        return [0.0] * len(numbers)
    logs = np.log(numbers)
    return [round(float(np.abs(logs - log).mean()), 9) for log in logs]


def _overlap(item: BlindQuestion, text: str) -> list[float]:
    """Return the share of each option's words that are in a text."""
    known = set(words(text))
    return [
        round(sum(word in known for word in own) / len(own), 9) if (own := words(option.text)) else -1.0
        for option in item.options
    ]


def _without_digits(name: str) -> str:
    return re.sub(r"[0-9]+", "#", name)


def _order_of(texts: Sequence[str]) -> list[float]:
    """Return the place of each text in alphabetical order."""
    ordered = sorted(text.casefold() for text in texts)
    return [-ordered.index(text.casefold()) for text in texts]


def _ratio(sizes: Sequence[float]) -> float:
    """Return the ratio of the greatest to the smallest size, 0 without two known ones."""
    return max(sizes) / min(sizes) if len(sizes) > 1 and min(sizes) > 0 else 0.0


def _order(sizes: Sequence[float]) -> str:
    """Return the places of a question's files from the smallest on, of the first four."""
    return " ".join(map(str, np.argsort(sizes[:4], kind="stable") + 1))


def _numbered(cells: Sequence[str]) -> tuple[str, ...]:
    numbers: dict[str, int] = {}
    return tuple(str(numbers.setdefault(cell, len(numbers))) for cell in cells)


def _tells_apart(cells: Sequence[str], questions: Questions) -> bool:
    """Return whether the options of any question are in different cells."""
    first = [cells[start] for start in questions.starts]
    return any(cell != first[place] for cell, place in zip(cells, questions.question, strict=True))
