"""The categories of Appendices D and E, by strict co-membership (section 3.4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files

from benchmarks.clash.constants import ATTRIBUTE_CATEGORIES, OBJECT_CATEGORIES, OTHER, SEVERAL

_AND = "+"
_COLUMNS = {"object": OBJECT_CATEGORIES, "attribute": ATTRIBUTE_CATEGORIES}


@lru_cache(maxsize=1)
def word_lists() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """The words of each category by kind of change; the printed ones, misprints included ("knif", "soccer balll")."""
    printed = json.loads(files("benchmarks.clash").joinpath("categories.json").read_text("utf-8"))
    return {
        kind: {
            category: frozenset(word for words in headings.values() for word in words)
            for category, headings in categories.items()
        }
        for kind, categories in printed.items()
    }


def categories(change_type: str, original: str, conflicting: str) -> tuple[str, ...]:
    """The categories whose lists hold both changed words, in the tables' order; ``("other",)`` if there is none.

    Words are compared in lower case and stripped, articles kept: "a snowboard" is in a list, "the" is in none. That gives
    the published field of all but one of the 1,289 samples. A spatial change has no category.
    """
    lists = word_lists().get(change_type)
    if lists is None:
        return ()
    pair = {original.strip().lower(), conflicting.strip().lower()}
    shared = [category for category in _COLUMNS[change_type] if pair <= lists.get(category, frozenset())]
    return tuple(shared) or (OTHER,)


def joined(names: Iterable[str], change_type: str) -> str:
    """Several categories as one word, in the tables' order: ``transportation+sports``."""
    order = list(_COLUMNS.get(change_type, ()))
    return _AND.join(sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name)))


def split(category: str) -> tuple[str, ...]:
    """The inverse of :func:`joined`."""
    return tuple(category.split(_AND)) if category else ()


def same_categories(category: str, published: str) -> bool:
    """Whether both name the same categories, in any order."""
    return set(split(category)) == set(split(published))


def stratum(category: str) -> str:
    """The stratum ``category`` of a sample: its category, or ``several``."""
    return SEVERAL if _AND in category else category
