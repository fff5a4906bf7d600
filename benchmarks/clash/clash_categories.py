"""The categories of Appendices D and E, by strict co-membership (section 3.4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

from benchmarks.clash.clash_constants import ATTRIBUTE_CATEGORIES, OBJECT_CATEGORIES, OTHER, SEVERAL

_AND = "+"
_COLUMNS = {"object": OBJECT_CATEGORIES, "attribute": ATTRIBUTE_CATEGORIES}


@lru_cache(maxsize=1)
def word_lists() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Return the words of each category by kind of change, misprints of the paper included ("knif", "soccer balll")."""
    printed = json.loads(files("benchmarks.clash").joinpath("categories.json").read_text("utf-8"))
    return {
        kind: {
            category: frozenset(word for words in headings.values() for word in words)
            for category, headings in categories.items()
        }
        for kind, categories in printed.items()
    }


def shared_categories(
    change_type: str, original: str, conflicting: str, more: Mapping[tuple[str, str], str] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return the categories whose lists contain both changed words, in table order; ``("other",)`` if there is none.

    ``more`` has the category of further words, by kind of change and word.

    Words are compared in lower case and stripped, articles kept: "a snowboard" is in a list, "the" is in none. That gives
    the published field of all but one of the 1,289 samples. A spatial change has no category.
    """
    lists = word_lists().get(change_type)
    if lists is None:
        return ()
    pair = {original.strip().lower(), conflicting.strip().lower()}
    shared = [
        category
        for category in _COLUMNS[change_type]
        if all(word in lists.get(category, ()) or more.get((change_type, word)) == category for word in pair)
    ]
    return tuple(shared) or (OTHER,)


def join_categories(names: Iterable[str], change_type: str) -> str:
    """Return several categories as one word, in table order: ``transportation+sports``."""
    order = list(_COLUMNS.get(change_type, ()))
    return _AND.join(sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name)))


def split_categories(category: str) -> tuple[str, ...]:
    """Return the categories that :func:`join_categories` joined."""
    return tuple(category.split(_AND)) if category else ()


def same_categories(category: str, published: str) -> bool:
    """Return whether both name the same categories, in any order."""
    return set(split_categories(category)) == set(split_categories(published))


def category_stratum(category: str) -> str:
    """Return the stratum ``category`` of a sample: its category, or ``several``."""
    return SEVERAL if _AND in category else category
