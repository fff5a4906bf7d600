"""Statistics of a build's samples: categories and questions (Figure 2), and the most frequent changed words (Figure 4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks.clash.clash_constants import CHANGE_TYPES
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.untrusted.spreadsheet_formula_guard import csv_line
from benchmarks.vocabulary import Table

MOST_COMMON = 20
"""The number of terms per kind of change (section 3.4: "the 20 most common terms in each category")."""

QUESTION_WORDS = 3
"""The number of a question's first words (Figure 2)."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ARTICLES = frozenset({"a", "an", "the"})


def statistics_files(samples: Sequence[ClashSample]) -> Mapping[str, bytes]:
    """Return the CSV files of the statistics, by name.

    ``words.csv`` has the most common terms of each kind of change, ``questions.csv`` how often questions begin with the
    same three words, and ``categories.csv`` the samples of each category.
    """
    totals = Counter(sample.change_type for sample in samples)
    return {
        "words.csv": _table(
            ("change", "rank", "term", "count", "as original", "as conflicting"), _word_counts(samples)
        ),
        "questions.csv": _table(
            ("first three words", "count", "share"),
            ((words, n, _share(n, len(samples))) for words, n in _question_counts(samples)),
        ),
        "categories.csv": _table(
            ("change", "category", "count", "share"),
            ((change, name, n, _share(n, totals[change])) for change, name, n in _category_counts(samples)),
        ),
    }


def statistics_tables(samples: Sequence[ClashSample]) -> list[Table]:
    """Return the statistics as tables to draw: ``categories`` and ``questions`` (Figure 2), ``words`` (Figure 4)."""
    totals = Counter(sample.change_type for sample in samples)

    def panel(change: str, name: str) -> str:
        return f"{change} changes, {totals[change]:,} samples / {name}"

    categories = ((panel(change, name), (count,)) for change, name, count in _category_counts(samples))
    questions = ((words, (count,)) for words, count in _question_counts(samples))
    words = ((panel(change, name), (before, after)) for change, _, name, _, before, after in _word_counts(samples))
    return [
        Table("categories", "Samples by category (Figure 2)", ("samples",), tuple(categories), chart="counts"),
        Table(
            "questions",
            "Questions by their first three words (Figure 2)",
            ("questions",),
            tuple(questions),
            chart="sunburst",
        ),
        Table(
            "words",
            f"The {MOST_COMMON} most common changed words (Figure 4)",
            ("in the original caption", "in the conflicting caption"),
            tuple(words),
            chart="counts",
        ),
    ]


def term(changed: str) -> str:
    """Return changed words as a term: in lower case, without punctuation and leading articles."""
    words = [word.casefold() for word in _WORD.findall(changed)]
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)


def first_words(question: str) -> str:
    """Return the first three words of a question in lower case, without punctuation."""
    return " ".join(word.casefold() for word in _WORD.findall(question)[:QUESTION_WORDS])


def _word_counts(samples: Sequence[ClashSample]) -> Iterator[tuple[str, int, str, int, int, int]]:
    """Yield change, rank, term, count, and the counts as original and as conflicting words, by rank."""
    for change in CHANGE_TYPES:
        of_change = [sample for sample in samples if sample.change_type == change]
        original = Counter(term(sample.changed_original) for sample in of_change)
        conflicting = Counter(term(sample.changed_conflicting) for sample in of_change)
        for rank, (name, count) in enumerate(_sorted(original + conflicting)[:MOST_COMMON], 1):
            yield change, rank, name, count, original[name], conflicting[name]


def _question_counts(samples: Sequence[ClashSample]) -> list[tuple[str, int]]:
    return _sorted(Counter(first_words(sample.question) for sample in samples))


def _category_counts(samples: Sequence[ClashSample]) -> Iterator[tuple[str, str, int]]:
    """Yield change, category and count; for spatial changes, the relation is the category."""
    for change in CHANGE_TYPES:
        names = Counter(sample.category or sample.relation for sample in samples if sample.change_type == change)
        for name, count in _sorted(names):
            yield change, name, count


def _sorted(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _share(count: int, of: int) -> str:
    return f"{count / of:.4f}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    return "".join(map(csv_line, (columns, *rows))).encode("utf-8", "backslashreplace")
