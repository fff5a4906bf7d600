"""Rows marked (official): beside the published scripts on generated pairs of result files, and beside what those printed.

The scripts are not part of the project. ``RASHOMON_MMKC_SCRIPTS`` names the folder ``evaluation`` of a copy of
MLLMKCBENCH/MLLMKC where they are to be run; what they printed for the smaller pairs is in ``PRINTED``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers import Answers
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate, Generation, Record
from tests.support.data.mmkc_bench import er_row, knowledge_row, options
from tests.support.data.small import write_lines

MMKC = get_benchmark("mmkc-bench")

Rows = list[dict[str, Any]]

KINDS = {
    "ER": ("ER", "er", ""),
    "VS": ("IS", "is", ""),
    "PT": ("people_knowledge", "kc", "temporal"),
    "PL": ("people_knowledge", "kc", "location"),
    "PC": ("people_knowledge", "kc", "Career"),
    "LT": ("logo_knowledge", "kc", "time"),
    "LC": ("logo_knowledge", "kc", "creator"),
    "LO": ("logo_knowledge", "kc", "content"),
}
"""By the kind of a file's rows: its folder, the script that evaluates it, and the fact in its name."""

SETTINGS = {"ie": "Context-Memory", "ee": "Inter-Context"}

OTHER = ("(B)", "C.", "The answer is D", "option b", "1972", "", "no", "According to it, C", "D, as shown", "É", " A")
"""Replies beside the bare letters."""


def draw(count: int, *key: object) -> int:
    """Return a number below ``count`` that depends on ``key`` alone, in every version of Python."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest()) % count


def names(count: int, *, repeated: bool) -> list[str]:
    """Return the names of ``count`` rows, of which as many repeat as among the 149 published rows on people."""
    unique = [f"Name {number}" for number in range(count)]
    if repeated:
        for number in range(0, count, 75):  # three names in 149, one of them three times
            unique[(number + 40) % count] = unique[number]
        unique[count // 2 + 3] = unique[0]
    return unique


def rows(kind: str, seed: int, count: int, *, repeated: bool) -> Rows:
    """Return ``count`` rows whose counter letters differ from row to row, also between rows of one name."""
    folder, _, fact = KINDS[kind]
    built = []
    for number, name in enumerate(names(count, repeated=repeated)):
        letters = sorted("ABCD", key=lambda letter: draw(1 << 30, kind, seed, number, letter))
        texts = dict(zip(letters, ("own", "first", "second", "other"), strict=True))
        query = options(*(f"{texts[letter]} {number}" for letter in "ABCD"))
        if fact:
            row = knowledge_row(number, folder)
            row |= {
                f"mcq_query_{fact}": query,
                f"mcq_disanswer_{fact}_1": letters[1],
                f"mcq_disanswer_{fact}_2": letters[2],
            }
        else:
            row = er_row(number, mcq_query=query, mcq_disanswer1=letters[1], mcq_disanswer2=letters[2])
        built.append(row | {"instance": name})
    if repeated:  # one row that is repeated as it stands
        built[count // 2 + 3] = dict(built[0])
    return built


def answered(letters: Rows, *key: object) -> Rows:
    """Return the rows with predictions: mostly bare letters."""

    def prediction(number: int) -> str:
        place = draw(len(OTHER) * 4, *key, number)
        return OTHER[place] if place < len(OTHER) else "ABCD"[place % 4]

    return [{**row, "success": True, "prediction": prediction(number)} for number, row in enumerate(letters)]


def write_pair(place: Path, kind: str, conflict: str, seed: int, count: int, *, repeated: bool) -> tuple[Path, Path]:
    """Write a file of answers without conflict and one under conflict; some rows are in one of them alone."""
    folder, _, fact = KINDS[kind]
    letters = rows(kind, seed, count, repeated=repeated)
    stem = f"mcq_m_{fact}" if fact else "mcq_m"
    before, after = (
        place / "original" / folder / f"{stem}_ee.jsonl",
        place / "output" / folder / f"{stem}_{conflict}.jsonl",
    )
    write_lines(before, answered(letters[: count - 1], kind, conflict, seed, "before"))
    write_lines(after, answered(letters[:1] + letters[2:], kind, conflict, seed, "after"))
    return before, after


PAIRS = [(kind, conflict, repeated) for repeated in (False, True) for kind in KINDS for conflict in SETTINGS]
"""32 pairs of files, 16 of them with repeated names."""


def displayed(place: Path, kind: str, conflict: str) -> tuple[int, tuple[str, ...]]:
    """Return the number of pairs and the three rates, in percent, that the tables show for the files in ``place``."""
    reports: list[str] = []
    records = [
        Record(answer.instance, (Generation("x", answer.answer, "stop"),))
        for answer in MMKC.read_answers(place, "published", lambda row, reason: reports.append(reason))
    ]
    assert not reports
    tables = {
        table.name: table
        for table in MMKC.tables({"m": Answers.of(records, MMKC)}, "own-answer@3", resamples=2, seed=0)
    }
    table, column = (tables["main"], kind) if kind in ("ER", "VS") else (tables["subtypes-mc"], kind)
    cells = []
    for rate in ("OAR", "CAR", "IAR"):
        cell = dict(table.rows)[f"m (official) / {SETTINGS[conflict]} / {rate}"][table.columns.index(column)]
        assert isinstance(cell, Estimate)
        assert cell.value is not None
        cells.append(cell)
    return cells[0].n, tuple(f"{100 * (cell.value or 0):.2f}" for cell in cells)


def counted(before: Rows, after: Rows, kind: str, conflict: str) -> tuple[int, tuple[str, ...]]:
    """Return what :func:`displayed` does, counted here row by row."""
    fact = KINDS[kind][2]
    fields = [f"mcq_disanswer_{fact}_{n}" if fact else f"mcq_disanswer{n}" for n in (1, 2)][: 1 + (conflict == "ee")]
    last = {row["instance"]: row for row in after}
    original = changed = neither = 0
    for row in before:
        other = last.get(row["instance"])
        if other is None or row["prediction"] in [row[field] for field in fields]:
            continue
        first, second = (re.search("[A-D]", text.upper()) for text in (row["prediction"], other["prediction"]))
        if first is None or second is None:
            continue
        same, counter = first[0] == second[0], second[0] in [other[field] for field in fields]
        original, changed, neither = (
            original + same,
            changed + (counter and not same),
            neither + (not counter and not same),
        )
    total = original + changed + neither
    return total, tuple(f"{100 * n / total:.2f}" for n in (original, changed, neither))


def lines(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "conflict", "repeated"), PAIRS)
def test_official_rows_match_a_row_by_row_count(tmp_path: Path, kind: str, conflict: str, repeated: bool) -> None:
    before, after = write_pair(tmp_path, kind, conflict, 7, 60, repeated=repeated)
    assert displayed(tmp_path, kind, conflict) == counted(lines(before), lines(after), kind, conflict)


PRINTED: Mapping[tuple[str, str, bool], tuple[int, tuple[str, ...]]] = {
    ("ER", "ie", False): (28, ("14.29", "25.00", "60.71")),
    ("ER", "ee", False): (16, ("12.50", "37.50", "50.00")),
    ("VS", "ee", False): (20, ("25.00", "50.00", "25.00")),
    ("PT", "ie", False): (22, ("31.82", "18.18", "50.00")),
    ("PL", "ee", False): (20, ("45.00", "30.00", "25.00")),
    ("LT", "ie", False): (24, ("20.83", "37.50", "41.67")),
    ("ER", "ie", True): (28, ("14.29", "32.14", "53.57")),
    ("ER", "ee", True): (18, ("11.11", "33.33", "55.56")),
    ("VS", "ee", True): (19, ("26.32", "47.37", "26.32")),
    ("PT", "ie", True): (21, ("33.33", "19.05", "47.62")),
    ("PL", "ee", True): (20, ("45.00", "30.00", "25.00")),
    ("LT", "ie", True): (25, ("20.00", "40.00", "40.00")),
}


@pytest.mark.parametrize("pair", PRINTED)
def test_official_rows_match_the_printed_output_of_published_scripts(
    tmp_path: Path, pair: tuple[str, str, bool]
) -> None:
    kind, conflict, repeated = pair
    write_pair(tmp_path, kind, conflict, 1, 40, repeated=repeated)
    assert displayed(tmp_path, kind, conflict) == PRINTED[pair]


def published(scripts: Path, before: Path, after: Path, kind: str, conflict: str) -> tuple[int, tuple[str, ...]]:
    """Return what the published script prints for a pair of files."""
    _, script, fact = KINDS[kind]
    command = [
        sys.executable,
        str(scripts / f"evaluation_{script}.py"),
        "--file_a",
        str(before),
        "--file_b",
        str(after),
    ]
    command += ["--conflict_type", conflict, *(["--ty", fact] if fact else [])]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    numbers = [re.sub(r"^.*: ?|%$", "", line) for line in printed.splitlines() if not line.startswith("警告")]
    return int(numbers[0]), tuple(numbers[1:4])


@pytest.mark.slow
@pytest.mark.skipif(
    "RASHOMON_MMKC_SCRIPTS" not in os.environ, reason="RASHOMON_MMKC_SCRIPTS names no published scripts"
)
@pytest.mark.parametrize(("kind", "conflict", "repeated"), PAIRS)
def test_official_rows_match_the_published_scripts(tmp_path: Path, kind: str, conflict: str, repeated: bool) -> None:
    scripts = Path(os.environ["RASHOMON_MMKC_SCRIPTS"])
    for seed, count in ((1, 40), (2, 149)):
        before, after = write_pair(tmp_path / str(seed), kind, conflict, seed, count, repeated=repeated)
        assert displayed(tmp_path / str(seed), kind, conflict) == published(scripts, before, after, kind, conflict)
