"""CLASH's statistics of words, questions and categories, by hand and on the published samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.clash_statistics import MOST_COMMON, first_words, statistics_files, statistics_tables, term
from benchmarks.clash.sources.clash_released import parse_published_sample, read_raw_samples

PUBLISHED = Path(__file__).resolve().parents[4] / "shared/data/clash/official/synthetic_captions_test_filtered.json"


def sample(
    original: str, conflicting: str, question: str, change: str = "object", category: str = "animals"
) -> ClashSample:
    return ClashSample(
        *("1", None, f"A {original}.", f"A {conflicting}.", question, change, original, conflicting, "x"),
        *(original, conflicting, category, "rows"),
    )


def tables(samples: list[ClashSample]) -> Mapping[str, list[dict[str, str]]]:
    files = statistics_files(samples)
    return {name: list(csv.DictReader(io.StringIO(data.decode()))) for name, data in files.items()}


def test_terms_and_questions_are_counted_without_case_and_articles() -> None:
    found = tables(
        [
            sample("Dog", "cat", "What animal is it?"),
            sample("a dog", "bird", "what ANIMAL is that?"),
            sample("cat", "Dog", "Which one?"),
            sample("red", "blue", "What color is it?", "attribute", "colors"),
        ]
    )
    assert found["words.csv"][0] == {
        "change": "object",
        "rank": "1",
        "term": "dog",
        "count": "3",
        "as original": "2",
        "as conflicting": "1",
    }
    assert [(row["change"], row["term"]) for row in found["words.csv"]][-2:] == [
        ("attribute", "blue"),
        ("attribute", "red"),
    ]
    assert found["questions.csv"][0] == {"first three words": "what animal is", "count": "2", "share": "0.5000"}
    assert found["categories.csv"][0] == {"change": "object", "category": "animals", "count": "3", "share": "1.0000"}


@pytest.mark.parametrize("text", ["", "???", "=1+1", "@cmd \x1b[2J", "\ud800 x", "the", "a the an"])
def test_hostile_text_is_counted_and_no_formula(text: str) -> None:
    assert term(text) == term(text)
    assert len(first_words(text).split()) <= 3
    for data in statistics_files([sample(text, "x", text, category=text)]).values():
        assert b",=" not in data
        assert b",@" not in data


def test_tables_to_draw_have_the_counts_of_the_files() -> None:
    samples = [sample("Dog", "cat", "What animal is it?"), sample("red", "blue", "What?", "attribute", "colors")]
    categories, questions, words = statistics_tables(samples)
    assert categories.rows == (
        ("object changes, 1 samples / animals", (1,)),
        ("attribute changes, 1 samples / colors", (1,)),
    )
    assert questions.rows == (("what", (1,)), ("what animal is", (1,)))
    assert [(name.partition(" / ")[2], cells) for name, cells in words.rows] == [
        ("cat", (0, 1)),
        ("dog", (1, 0)),
        ("blue", (0, 1)),
        ("red", (1, 0)),
    ]


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published samples are not beside the project")
def test_published_samples_have_the_papers_counts() -> None:
    """Figure 2: 655 object and 634 attribute changes; questions begin as VQA's do."""
    rows = read_raw_samples(PUBLISHED) or []
    found = tables([parse_published_sample(row) for row in rows])
    totals = {change: sum(int(row["count"]) for row in found["categories.csv"] if row["change"] == change) for change in ("object", "attribute")}  # fmt: skip  # noqa: E501
    assert totals == {"object": 655, "attribute": 634}
    assert sum(int(row["count"]) for row in found["questions.csv"]) == 1289
    assert [row["first three words"] for row in found["questions.csv"]][:3] == [
        "what is the",
        "what kind of",
        "what type of",
    ]
    for change, first in (("object", ["dog", "cat"]), ("attribute", ["black", "white"])):
        terms = [row["term"] for row in found["words.csv"] if row["change"] == change]
        assert len(terms) == MOST_COMMON
        assert set(first) <= set(terms[:6])
