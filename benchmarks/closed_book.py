"""Closed book: the question of an example without any of its sources, which tells memory from reading.

No row of a build holds it: it follows from the other instances of its example, so that every build has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from benchmarks.prompt_template import Prompts
from benchmarks.vocabulary import CLOSED_BOOK, DOCUMENT, RIGHT_VALUE, Instance, Part

if TYPE_CHECKING:
    from benchmarks.base import Benchmark

References = Mapping[str, tuple[str, ...]]

_STRATA = ("type", "source", "subject", DOCUMENT)
"""The strata of an example, not of what an instance shows of it."""


def with_closed_book(instances: Iterable[Instance], benchmark: Benchmark, prompt_set: Prompts) -> Iterator[Instance]:
    """Yield instances, and after those of each example its closed-book instance, if it has one."""
    for _, example in groupby(instances, lambda instance: instance.group):
        siblings = list(example)
        yield from siblings
        if (closed := benchmark.closed_book(siblings, prompt_set)) is not None:
            yield closed


def closed_book_instance(sibling: Instance, parts: Sequence[Part], references: References) -> Instance:
    """Return the closed-book instance of the example of ``sibling``, with these parts and references."""
    return Instance(
        id=f"{sibling.group}/{CLOSED_BOOK}",
        group=sibling.group,
        condition=CLOSED_BOOK,
        question=sibling.question,
        parts=tuple(parts),
        references=references,
        strata={key: sibling.strata[key] for key in _STRATA if key in sibling.strata},
    )


def judged_references(instance: Instance) -> References:
    """Return the references that an answer is labelled by.

    Under ``closed-book`` the right value stands for the image's and the text's, as where both are right, so that it is BOTH.
    """
    if instance.condition != CLOSED_BOOK:
        return instance.references
    return dict.fromkeys(("image", "text"), instance.references.get(RIGHT_VALUE, ()))
