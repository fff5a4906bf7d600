"""Small finished runs in which every table that docs/coverage.md names has a value of its own."""

from __future__ import annotations

import csv
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

from assets.demo.recipe import evaluate_demo_model
from benchmarks.build import BuildOptions
from benchmarks.contra4.contra4_constants import CATEGORIES, MODALITIES, SIZES
from benchmarks.crosscheck_bench.crosscheck_constants import CONDITIONS, TASKS
from benchmarks.registry import get_benchmark
from tests.support.command import Rashomon
from tests.support.data.clash import own_folder, own_sample
from tests.support.data.contra4 import PLAIN, Scripted, write_source
from tests.support.data.contra4 import row as contra4_row
from tests.support.data.crosscheck_bench import row as crosscheck_row
from tests.support.data.crosscheck_bench import write_rows
from tests.support.data.mmkc_bench import whole_folder
from tests.support.data.pope import small_pope

RUN = "one"


def finish_run(benchmark: str, rashomon: Rashomon) -> None:
    """Build the benchmark and finish ``RUN``, judged as its tables need."""
    build(benchmark, rashomon)
    answer(benchmark, rashomon, RUN)
    if benchmark == "clash":  # Table 11 has two judges who read
        for person in ("ann", "ben"):
            _label(rashomon, person)


def build(benchmark: str, rashomon: Rashomon) -> None:
    """Build the benchmark."""
    _BUILDS[benchmark](rashomon)


def answer(benchmark: str, rashomon: Rashomon, name: str, *more: str) -> None:
    """Run the benchmark that was built."""
    rashomon.run("--batch", "--benchmark", benchmark, "--name", name, *_OPTIONS[benchmark], *more)


def _build_cmc(rashomon: Rashomon) -> None:
    evaluate_demo_model.build("cmc-bench", rashomon.workspace / "benchmarks" / "cmc-bench")


def _build_clash(rashomon: Rashomon) -> None:
    relations = [("left of", "right of"), ("above", "below"), ("in front of", "behind")]
    spatial = [
        own_sample(number, relation=relation, changed_original=before, changed_conflicting=after)
        for number, (relation, (before, after)) in enumerate(
            zip(("left-right", "above-below", "front-behind"), relations, strict=True), 1
        )
    ]
    changed = [
        own_sample(
            number,
            change_type=change,
            original_caption=f"A {before} by the tree.",
            conflicting_caption=f"A {after} by the tree.",
            question="What is by the tree?",
            image_only=before,
            text_only=after,
            changed_original=before,
            changed_conflicting=after,
        )
        for number, (change, before, after) in enumerate([("object", "dog", "cat"), ("attribute", "red", "blue")], 4)
    ]
    for row in changed:
        del row["relation"]
    source = own_folder(rashomon.home / "source", [*spatial, *changed], pictures=5)
    rashomon.run("build", "clash", "--source", f"rows={source}")


def _build_mmkc(rashomon: Rashomon) -> None:
    source = whole_folder(rashomon.home / "source")
    rashomon.run("build", "mmkc-bench", "--source", f"published={source}")


def _build_crosscheck(rashomon: Rashomon) -> None:
    source = write_rows(rashomon.home / "source", (crosscheck_row(task, number) for task in TASKS for number in (0, 1)))
    rashomon.run("build", "crosscheck-bench", "--source", f"rows={source}")


def _build_contra4(rashomon: Rashomon) -> None:
    """Build every combination of modalities with either kind of negatives, and predicted captions."""
    groups = [group for size in SIZES for group in combinations(PLAIN, size)]
    rows = [
        contra4_row(
            f"{number}-{negatives}",
            group,
            question=f"Which of the {negatives} scenes is loudest?",
            selection_type=negatives,
            category=CATEGORIES[number % len(CATEGORIES)],
        )
        for negatives in ("random", "similarity")
        for number, group in enumerate(groups)
    ]
    source = write_source(rashomon.home / "source", rows)
    captioner = Scripted("captioner", lambda prompt: "A room with a dog that barks at a white teapot on drums")
    get_benchmark("contra4").build(
        [("published", str(source))],
        rashomon.workspace / "benchmarks" / "contra4",
        BuildOptions(captioners=dict.fromkeys(MODALITIES, captioner)),
    )


def _build_pope(rashomon: Rashomon) -> None:
    source = small_pope(rashomon.home / "source")
    rashomon.run("build", "pope", "--source", f"pope={source}", "--source", f"images={source}")


_SOURCES_DISAGREE = ("--model", "policy:always-image", "--limit", "16")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "cmc-bench": _SOURCES_DISAGREE,
    "clash": (*_SOURCES_DISAGREE, "--judge", "strict", "--judge", "relaxed"),
    "mmkc-bench": _SOURCES_DISAGREE,
    "crosscheck-bench": ("--model", "policy:chance", "--conditions", ",".join(CONDITIONS)),
    "contra4": ("--model", "policy:chance", "--conditions", "captions"),
    "pope": ("--model", "policy:always-yes"),
}
_BUILDS: dict[str, Callable[[Rashomon], None]] = {
    "cmc-bench": _build_cmc,
    "clash": _build_clash,
    "mmkc-bench": _build_mmkc,
    "crosscheck-bench": _build_crosscheck,
    "contra4": _build_contra4,
    "pope": _build_pope,
}


def _label(rashomon: Rashomon, person: str) -> None:
    sheet: Path = rashomon.home / f"{person}.csv"
    rashomon.run("label", RUN, "--as", person, "--export", str(sheet))
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"label": "IMAGE"} for row in rows)
    rashomon.run("label", RUN, "--as", person, "--import", str(sheet))
