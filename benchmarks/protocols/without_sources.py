"""Conditions that leave out sources, or the question: what an example gives away to a model that does not look.

No row of a build holds them: they follow from its examples, so that every build has them, unless it is varied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from benchmarks.vocabulary import CLOSED_BOOK, DOCUMENT, NOT_SHOWN, RIGHT_VALUE, SHOWN_TEXT, Instance, Part

References = Mapping[str, tuple[str, ...]]

OPTIONS_ONLY = "options-only"
"""The end of the name of a condition that shows the options of a question without the question."""

_STRATA = ("type", "source", "subject", DOCUMENT)
"""The strata of an example, not of what an instance shows of it."""


def shows_no_source(condition: str) -> bool:
    """Return whether a condition shows the question alone; its name ends in "closed-book"."""
    return condition.endswith(CLOSED_BOOK)


def without_sources(full: Instance, condition: str, parts: Sequence[Part], *hidden: str) -> Instance:
    """Return an instance of ``condition`` that shows ``parts`` instead of all that ``full`` shows.

    It is labelled by the same references; policies do not read those of the ``hidden`` sources.
    """
    kept = {name: values for name, values in full.references.items() if not name.startswith(SHOWN_TEXT)}
    return replace(
        full,
        id=f"{full.id.removesuffix(f'/{full.condition}')}/{condition}",
        condition=condition,
        parts=tuple(parts),
        references=kept | ({NOT_SHOWN: hidden} if hidden else {}),
    )


def with_closed_book(
    instances: Iterable[Instance], closed_book: Callable[[Sequence[Instance]], Instance | None]
) -> Iterator[Instance]:
    """Yield instances, and after those of each example its closed-book instance, if it has one."""
    for _, example in groupby(instances, lambda instance: instance.group):
        siblings = list(example)
        yield from siblings
        if (closed := closed_book(siblings)) is not None:
            yield closed


def closed_book_instance(sibling: Instance, parts: Sequence[Part], references: References) -> Instance:
    """Return the closed-book instance of the example of ``sibling``, with these parts and references."""
    return replace(
        sibling,
        id=f"{sibling.group}/{CLOSED_BOOK}",
        condition=CLOSED_BOOK,
        parts=tuple(parts),
        references=references,
        strata={key: sibling.strata[key] for key in _STRATA if key in sibling.strata},
    )


def judged_references(instance: Instance) -> References:
    """Return the references that an answer is labelled by.

    Under ``closed-book`` the right value stands for the image's and the text's, as where both are right, so that it is BOTH.
    """
    if instance.condition != CLOSED_BOOK or RIGHT_VALUE not in instance.references:
        return instance.references
    return dict.fromkeys(("image", "text"), instance.references[RIGHT_VALUE])
