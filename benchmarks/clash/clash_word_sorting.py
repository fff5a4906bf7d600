"""Categories of changed words that the printed lists lack, as a model sorts them (section 3.4).

In the paper GPT-5 assigned the words and people verified that; the prompt is not printed, so this one is ours. What a model says
is written into the build as ``word-categories.csv``. Corrected by people and put beside the source, that file decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.clash.clash_categories import word_lists
from benchmarks.clash.clash_constants import ATTRIBUTE_CATEGORIES, OBJECT_CATEGORIES, OTHER
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.errors import SourceError
from benchmarks.rows.csv_rows import read_csv_rows
from benchmarks.rows.reader_types import is_present
from benchmarks.text.answer_text import visible_answer
from benchmarks.text_model import TextModel, generate_all
from benchmarks.untrusted.spreadsheet_formula_guard import csv_line, unguard_formulas
from benchmarks.vocabulary import Choice, Decoding, Message, Request, Text, canonical_json

FILE = "word-categories.csv"

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "object": tuple(name for name in OBJECT_CATEGORIES if name != OTHER),
    "attribute": tuple(name for name in ATTRIBUTE_CATEGORIES if name != OTHER),
}

Words = Mapping[tuple[str, str], str]
"""The category of a word, by kind of change and the word in lower case; ``other`` for none."""

_COLUMNS = ("change_type", "word", "category", "by")
_PROMPT = """\
Sort a word into one of these categories of {kind}s in photographs: {categories}.
Reply with only the name of the category, or with "other" if it fits none of them.
Word: {word}"""


def unlisted_words(samples: Iterable[ClashSample]) -> list[tuple[str, str]]:
    """Return the changed words of samples that no printed list has, with their kind of change, each once, sorted."""
    lists = {kind: frozenset().union(*categories.values()) for kind, categories in word_lists().items()}
    words = {
        (sample.change_type, word)
        for sample in samples
        if sample.change_type in lists
        for word in map(_plain, (sample.changed_original, sample.changed_conflicting))
        if word and word not in lists[sample.change_type]
    }
    return sorted(words)


def sort_words(words: Sequence[tuple[str, str]], model: TextModel, seed: int) -> Words:
    """Return the category of each word that the model gave one of the categories. Raises ModelError if it answers nothing."""
    requests = {word: _request(f"clash-category-{place}", *word, seed) for place, word in enumerate(words)}
    replies = generate_all(model, list(requests.values()))
    sorted_words = {}
    for word, request in requests.items():
        reply = replies.get(request.id)
        category = "" if reply is None else visible_answer(reply.text).strip(" .*`\"'").casefold()
        if category in (*CATEGORIES[word[0]], OTHER):
            sorted_words[word] = category
    return sorted_words


def read_words(place: Path) -> Words:
    """Return the categories in the file ``word-categories.csv`` of a folder, or beside a file; none without it.

    Raises SourceError for a row that names no category of its kind of change.
    """
    folder = place if place.is_dir() else place.parent
    file = folder / FILE
    if not is_present(file):
        return {}
    words = {}
    for number, fields in read_csv_rows(file):
        row = (
            {name: _plain(unguard_formulas(str(value))) for name, value in fields.items()}
            if isinstance(fields, Mapping)
            else {}
        )
        kind, word, category = (row.get(name, "") for name in _COLUMNS[:3])
        if not word or category not in (*CATEGORIES.get(kind, ()), OTHER) or kind not in CATEGORIES:
            known = "; ".join(f"{name}: {', '.join((*names, OTHER))}" for name, names in CATEGORIES.items())
            raise SourceError(f"{FILE}:{number} has no word with a category of its change_type ({known}); correct it.")
        words[kind, word] = category
    return words


def sheet(by: Mapping[str, Words]) -> bytes:
    """Return the file of the categories, by who assigned them."""
    rows = [(*word, category, who) for who, words in by.items() for word, category in words.items()]
    return "".join(map(csv_line, (_COLUMNS, *sorted(rows)))).encode("utf-8")


def _request(name: str, kind: str, word: str, seed: int) -> Request:
    names = CATEGORIES[kind]
    text = _PROMPT.format(kind=kind, categories=", ".join(names), word=canonical_json(word))
    return Request(name, 0, (Message("user", (Text(text),)),), Decoding(64, seed=seed), Choice((*names, OTHER)))


def _plain(word: str) -> str:
    return word.strip().lower()
