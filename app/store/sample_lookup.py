"""Which sample is meant by an id as people type or paste it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice

from app.new_run.form import quoted
from app.store.run import RunStore
from app.text.escape import clean, spreadsheet_cell
from benchmarks.errors import SpecError
from benchmarks.rows.spreadsheet import unguarded

_NAMED = 3
_COMPARED = 20_000
"""So many ids are compared with one that is none of them: a hundred thousand would take seconds."""


def sample_id(store: RunStore, word: str) -> str:
    """The id of the instance that ``word`` means: the id itself, as lists print it, or the beginning of one alone.

    Raises SpecError with the nearest ones, quoted for a shell.
    """
    ids = store.ids()
    if word in ids:
        return word
    printed = {name: _printed(name) for name in ids}
    wanted = _printed(word)
    unspread = unguarded(wanted)  # as it stands in a CSV file where it would be a formula
    whole = [name for name, shown in printed.items() if shown == wanted or (shown == unspread and _is_formula(shown))]
    found = whole or [name for name, shown in printed.items() if wanted and shown.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise SpecError(
            f"{word!r} begins {len(found)} instances of {store.folder.name}, such as {_some(found)}; say more."
        )
    raise SpecError(
        f"{store.folder.name} has no instance {word!r}, but such as {_some(_nearest(wanted, printed))}; "
        f"`rashomon export {quoted(store.folder.name)} --format csv` lists them all."
    )


def _is_formula(shown: str) -> bool:
    return spreadsheet_cell(shown) != shown


def _printed(name: str) -> str:
    return (name if name.isascii() and name.isprintable() else clean(name)).strip()


def _nearest(wanted: str, printed: Mapping[str, str]) -> Iterable[str]:
    """All ids, those that hold ``wanted`` first, or else those that are spelt like it."""
    near = [name for name, shown in printed.items() if wanted and wanted in shown]
    if not near:
        names = {shown: name for name, shown in islice(printed.items(), _COMPARED)}
        near = [names[shown] for shown in get_close_matches(wanted, names, _NAMED, cutoff=0.4)]
    return dict.fromkeys([*near, *printed])


def _some(names: Iterable[str]) -> str:
    return ", ".join(quoted(name) for name in islice(names, _NAMED))
