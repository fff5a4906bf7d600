"""The shared types of the sources: a source row, the choice of sources, and their layout errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.cmc_bench.cmc_constants import HUB_IDS
from benchmarks.errors import SourceError, SpecError, did_you_mean
from benchmarks.rows.files import Loader, SkippedRow, list_folders
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.typed_paths import path_exists

Family = Literal["chartqa", "mmmu"]

OWN_ROWS = "rows"
"""The name of the source of the user's own rows."""

_NAMES = ("chartqa", "mmmu", OWN_ROWS, "released")
_ON_THE_HUB = "hub:"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """An (image, question, gold answer) of a source.

    ``family`` decides whose rules of section 3.2 apply. ``row`` is where a person finds it. ``answer`` is the gold
    text, option letters resolved; ``options`` the texts of a multiple choice, else empty. ``image`` gives the
    image's bytes and may raise MediaError. ``passage`` is a text of the row's own, ``conflict`` the contradicting value that
    its owner wants; both mostly empty. ``document`` names the document or page that it is about, ``trust`` what should win
    for it where its sources disagree, a key of ``RULES``. ``image_answer`` and ``text_answer`` are what the picture shows and
    what the passage states; of a candidate only where that is not the answer.
    """

    source: str
    row: str
    family: Family
    question: str
    answer: str
    image: Loader
    options: tuple[str, ...] = ()
    subject: str = ""
    subfield: str = ""
    passage: str = ""
    conflict: str = ""
    document: str = ""
    trust: str = ""
    image_answer: str = ""
    text_answer: str = ""

    @property
    def content(self) -> tuple[str, ...]:
        """The content that distinguishes rows with the same image; optional fields are included only if present."""
        own_texts, stated = (self.passage, self.conflict), (self.image_answer, self.text_answer)
        optional = (*own_texts, *stated) if any(stated) else own_texts if any(own_texts) else ()
        return (self.question, self.answer, *optional)

    @property
    def stated(self) -> dict[str, str]:
        """The values that the row's image and passage state, by column; of a candidate a rule may have read them."""
        columns = {"image_answer": self.image_answer, "text_answer": self.text_answer}
        return {column: value for column, value in columns.items() if value}

    @property
    def cells(self) -> dict[str, Sequence[str]]:
        """The filled cells of the user's row by column, without its image and :attr:`stated`."""
        columns: dict[str, Sequence[str]] = {
            "question": self.question,
            "answer": self.answer,
            "passage": self.passage,
            "conflict": self.conflict,
            "options": list(self.options),
            "group": self.subject,
            "subfield": self.subfield,
            "document": self.document,
            "trust": self.trust,
        }
        return {column: value for column, value in columns.items() if value}


Reader = Callable[[str], Iterator[SourceRow | SkippedRow]]


def resolve_sources(sources: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str] | SkippedRow]:
    """Yield the sources by name; an unnamed folder is replaced by its sub-folders named after sources.

    Its other sub-folders are yielded as SkippedRow. Raises SpecError for an unknown name, SourceError for an
    unnamed folder without a source in it.
    """
    for name, place in sources:
        if name in _NAMES:
            yield name, place
        elif name:
            raise SpecError(f"cmc-bench has no source {name!r}; {did_you_mean(name, _NAMES)}")
        else:
            yield from _inside(Path(place))


def requested_hub_id(name: str, place: str) -> str | None:
    """Return the id of the Hub data set that ``place`` names, or None for a path.

    Only two places go to the network: the id of source ``name`` itself, unless such a path exists, and an id after
    ``hub:``. Raises SourceError where what follows ``hub:`` is no id, or is also a folder here.
    """
    if not place.startswith(_ON_THE_HUB):
        return place if place == HUB_IDS.get(name) and not path_exists(place) else None
    requested = place.removeprefix(_ON_THE_HUB)
    if not _HUB_ID.fullmatch(requested):
        raise SourceError(f"{place} names no data set of the Hub; write hub:org/name.")
    if path_exists(requested):  # the library would read that folder instead
        raise SourceError(f"{requested} is also a folder here; give it without hub:, or build from another folder.")
    return requested


def existing_path(name: str, place: str, expected: str) -> Path:
    """Return ``place`` as an existing path. Raises SourceError with the ``expected`` layout otherwise."""
    if not path_exists(place):
        or_hub = ", or hub:org/name for a data set of the Hub" if name in HUB_IDS else ""
        raise SourceError(f"there is no folder {place}; {name} is read from {expected}{or_hub}.")
    return Path(place).expanduser()


def layout_error(name: str, path: Path, expected: str) -> SourceError:
    """Return the error for a folder of unknown layout, with the expected and the actual content."""
    try:
        inside = (
            sorted(p.name + ("/" if p.is_dir() else "") for p in folder_entries(path)) if path.is_dir() else [path.name]
        )
    except OSError:
        inside = []
    entries = ", ".join(repr(entry) for entry in inside[:6]) + (" ..." if len(inside) > 6 else "")
    return SourceError(f"{path} is not a folder of {name}: expected {expected}; found {entries or 'nothing'}.")


def _inside(path: Path) -> Iterator[tuple[str, str] | SkippedRow]:
    expected = f"sub-folders named after sources ({', '.join(_NAMES)})"
    if not path.is_dir():
        raise SourceError(f"{path} is not a folder; give a folder with {expected}, or NAME=FOLDER.")
    inside = list_folders(path)
    if not any(folder.name in _NAMES for folder in inside):
        raise layout_error("cmc-bench sources", path, expected)
    for folder in sorted(inside, key=lambda f: _NAMES.index(f.name) if f.name in _NAMES else len(_NAMES)):
        if folder.name in _NAMES:
            yield folder.name, str(folder)
        else:
            yield SkippedRow(folder.name, f"{folder.name}/", "the folder is not named after a source")
