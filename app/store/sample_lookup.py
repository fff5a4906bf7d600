"""Lookup of a sample by an id as people type or paste it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice

from app.store.run_store import RunStore
from app.text.shell_quoting import shell_quote
from app.text.text_escaping import clean, spreadsheet_cell
from benchmarks.errors import SpecError
from benchmarks.untrusted.spreadsheet_formula_guard import unguard_formulas

_NAMED = 3
_COMPARED = 20_000
"""The number of ids that are compared with an unknown one; a hundred thousand would take seconds."""


def find_sample_id(store: RunStore, word: str) -> str:
    """Return the instance id that ``word`` stands for: the id itself, its printed form, or an unambiguous prefix.

    Raises SpecError with the closest ids, quoted for a shell.
    """
    ids = store.ids()
    if word in ids:
        return word
    printed = {name: _printed(name) for name in ids}
    query = _printed(word)
    unescaped = unguard_formulas(query)  # CSV files escape an id that looks like a formula
    exact = [name for name, text in printed.items() if text == query or (text == unescaped and _is_formula(text))]
    matches = exact or [name for name, text in printed.items() if query and text.startswith(query)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise SpecError(
            f"{word!r} matches {len(matches)} instances of {store.folder.name}, such as {_quoted(matches)}; type more of the id."
        )
    raise SpecError(
        f"{store.folder.name} has no instance {word!r}; closest: {_quoted(_nearest(query, printed))}; "
        f"`rashomon export {shell_quote(store.folder.name)} --format csv` lists them all."
    )


def _is_formula(text: str) -> bool:
    return spreadsheet_cell(text) != text


def _printed(name: str) -> str:
    return (name if name.isascii() and name.isprintable() else clean(name)).strip()


def _nearest(query: str, printed: Mapping[str, str]) -> Iterable[str]:
    """Return all ids: first those that contain ``query``, or else those with a similar spelling."""
    nearest = [name for name, text in printed.items() if query and query in text]
    if not nearest:
        names = {text: name for name, text in islice(printed.items(), _COMPARED)}
        nearest = [names[text] for text in get_close_matches(query, names, _NAMED, cutoff=0.4)]
    return dict.fromkeys([*nearest, *printed])


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(shell_quote(name) for name in islice(names, _NAMED))
