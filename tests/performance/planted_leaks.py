"""Figures of the leak check on planted test data: 60 planted of eight kinds among 200 clean rows that look alike.

    python -m tests.performance.planted_leaks charts      drawn bar charts
    python -m tests.performance.planted_leaks chartqa     charts of ChartQA, with its questions
    python -m tests.performance.planted_leaks coco        photographs of COCO

The last two need the pictures beside the project.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from PIL import Image

from benchmarks.registry import get_benchmark
from benchmarks.training.leaks_of_test_data import REFUSED, WARNED, LeakIndex, LeakReport
from tests.support.data.small import REAL_DATA
from tests.support.planted_leaks import KINDS, Example, PlantedSet, drawn_chart, examine, examples, plant

_TESTS, _CLEAN, _PLANTED = 80, 200, 60


def main() -> None:
    """Print how many planted rows of each kind were refused, and how many clean ones."""
    tests, clean = _examples(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        planted = plant(Path(folder), tests, clean, _PLANTED)
        outcome = examine(planted, _check)
    for kind, description in KINDS.items():
        print(f"{description}: {outcome.complete[kind]} of {outcome.planted[kind]}")
    print(f"found: {outcome.complete.total()} of {outcome.planted.total()}")
    print(f"clean refused: {outcome.clean_refused} of {outcome.clean}; dropped: {outcome.clean_dropped}")
    print(f"rows with test data left: {len(outcome.left)} {outcome.left[:8]}")


def _check(planted: PlantedSet) -> LeakReport:
    report = LeakIndex([(get_benchmark("cmc-bench"), planted.test)]).compare(planted.training_set)
    for sentence in (*report.sentences(REFUSED), *report.sentences(WARNED)):
        print(f"  {sentence}")
    return report


def _examples(name: str) -> tuple[list[Example], list[Example]]:
    asked: list[tuple[str, str]] = []
    count = _TESTS + _CLEAN
    if name == "charts":
        pictures = [drawn_chart(number) for number in range(count)]
    elif name == "coco":
        files = sorted((REAL_DATA.parent / "clash" / "coco").rglob("*.jpg"))[:count]
        pictures = [Image.open(file).convert("RGB") for file in files]
    else:
        lines = (REAL_DATA / "chartqa" / "qa_test_with_images.jsonl").read_text().splitlines()
        rows = {row["image"]: row for row in map(json.loads, lines)}
        chosen = list(rows.values())[:count]
        pictures = [Image.open(REAL_DATA / "chartqa" / row["image"]).convert("RGB") for row in chosen]
        asked = [(row["question"], row["answer"]) for row in chosen]
    first, rest = pictures[:_TESTS], pictures[_TESTS:]
    return (
        examples(first, "tests", asked[:_TESTS]),
        examples(rest, "clean", asked[_TESTS:]),
    )


if __name__ == "__main__":
    main()
