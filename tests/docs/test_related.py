"""The page on related benchmarks: what it says that Rashomon has is there, and nothing that is there is missing."""

from __future__ import annotations

import re

import pytest

from app.fetch.benchmark_downloads import NOT_FETCHED, RECIPES
from benchmarks.plain import DATA_SETS
from benchmarks.registry import BUILT_IN, get_benchmark
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "related.md").read_text("utf-8")
HEADER = ["benchmark", "year", "size", "data", "licence", "Rashomon"]
HAS = re.compile(r"has \[`([a-z0-9-]+)`\]\(([a-z0-9-]+\.md)(?:#[a-z0-9-]+)?\)(?:, [^|]+)?")
OTHER = re.compile(r"(?:own documents|not): \S.+")


def rows() -> list[dict[str, str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == HEADER
    return [dict(zip(HEADER, row, strict=True)) for row in cells[2:]]


def test_every_benchmark_of_the_tool_is_there_once() -> None:
    named = [match[1] for row in rows() if (match := HAS.fullmatch(row["Rashomon"]))]
    assert sorted(named) == sorted(BUILT_IN)


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["benchmark"]))
def test_a_row_says_what_can_be_done_and_that_is_so(row: dict[str, str]) -> None:
    assert all(row.values())
    assert re.fullmatch(r"20\d\d|-", row["year"])
    match = HAS.fullmatch(row["Rashomon"])
    if match is None:
        assert OTHER.fullmatch(row["Rashomon"])
        return
    benchmark = get_benchmark(match[1])
    assert benchmark.sources, "it can be built"
    assert (ROOT / "docs" / match[2]).is_file()
    ids = re.findall(r"Hub `([^`]+)`", row["data"])
    if match[1] in DATA_SETS:
        hub_id = benchmark.sources[0].hub_id
        assert ids == ([hub_id] if hub_id else [])
    if ids:
        assert match[1] in RECIPES, "`rashomon data get` fetches it"
    else:
        assert match[1] in RECIPES or match[1] in NOT_FETCHED


def test_no_address_of_a_registry_is_written() -> None:
    assert "://" not in PAGE
    assert not re.search(r"\b[\w-]+\.(?:co|com|org|io|net)\b", PAGE)
