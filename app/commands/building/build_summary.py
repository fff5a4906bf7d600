"""Lines of a build for people: what it has, and what was left out of it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

from app.text.text_escaping import clean
from benchmarks.base import Benchmark
from benchmarks.build import WARNINGS, Build
from benchmarks.factors.factor_instances import instances_of
from benchmarks.hash_collections import hash64
from benchmarks.rows.json_rows import read_json_lines

_MAX_ROWS_LISTED = 20
"""The number of left-out rows that are listed one by one."""

_MAX_REASONS_LISTED = 5

_LINE_OF_FILE = re.compile(r"([\w./-]+\.(?:jsonl?|csv))(?::\d+)?( image \d+)?")
"""A row of ``skipped.jsonl`` that is a line of a file, or an image of one, not a question."""

_COUNTS = (
    "examples",
    "conditions",
    "evidence",
    "generated_values",
    "change_types",
    "types",
    "levels",
    "models",
    "extraction",
)
"""The counts of a manifest that are always printed."""


def print_build(built: Build, benchmark: Benchmark, *, by_row: bool, every: bool, as_before: bool = False) -> None:
    """Print the build's counts, and the rows left out one ``by_row`` or by reason; with ``every`` all of the manifest."""
    rows, media = built.manifest["instances"], built.manifest["media"]
    groups: Counter[tuple[str, str]] = Counter()
    for instance in instances_of(benchmark, built, next(iter(benchmark.prompt_sets))):
        groups[instance.group, instance.condition] += 1
    instances = groups.total()
    counted = built.manifest.get("samples", built.manifest.get("examples"))
    if isinstance(counted, dict):
        counted = sum(counted.values())
    elif counted is None:  # a group with several instances under one condition is of several rows
        counted = instances if max(groups.values(), default=0) > 1 else len({group for group, _ in groups})
    row_count = "" if instances == rows else f"{rows} rows, "
    print(f"{'' if as_before else 'built '}{clean(str(built.path))}: {row_count}{instances} instances, {media} media")
    for key in built.manifest if every else [key for key in _COUNTS if key in built.manifest]:
        value = built.manifest[key]
        if isinstance(value, dict) and key != "options":
            prose = _prose(value).replace("_", " ") if key == "extraction" else _prose(value)
            print(f"  {clean(key.replace('_', ' '))}: {clean(prose)}")
    # A construction leaves out questions and lines of several files, which are not rows of one source.
    is_mixed = "construction" in built.manifest
    usable = None if is_mixed else counted + sum(built.manifest.get("usable_rows_not_needed", {}).values())
    _print_left_out(built.path / "skipped.jsonl", counted, usable, by_row=by_row)
    _print_warnings(built.path / WARNINGS)
    print(f"  digest: {built.digest}")


def _print_left_out(file: Path, examples: int, usable_rows: int | None, *, by_row: bool) -> None:
    """Print how many rows were left out of how many, and why: the first ones ``by_row``, to be fixed, or counted by reason.

    Without a number of ``usable_rows``, print how many questions, and how many lines of each file, were left out.

    Then print which conditions were left out of how many of the ``examples``.
    """
    reasons: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    conditions: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for _, line in read_json_lines(file):
        if "condition" in line:  # the row is used under others
            conditions[line["condition"], line["reason"].partition(":")[0]].add(hash64(line["row"]))
            continue
        if by_row and reasons.total() < _MAX_ROWS_LISTED:
            print(f"  left out: {clean(line['row'])}: {clean(line['reason'])}")
        reasons[line["reason"]] += 1
        place = _LINE_OF_FILE.fullmatch(line["row"])
        kinds[(f"image{{}} of {place[1]}" if place[2] else f"line{{}} of {place[1]}") if place else "question{}"] += 1
    if usable_rows is None:
        count = ", ".join(f"{n:,} {kind.format('s' * (n != 1))}" for kind, n in kinds.most_common())
    else:
        count = f"{reasons.total():,} of {usable_rows + reasons.total():,} rows"
    if by_row and reasons:
        print(f"  left out: {count}; --check lists a fix for each of them")
    elif reasons:
        counts = [f"{n:,} for {reason!r}" for reason, n in reasons.most_common(_MAX_REASONS_LISTED)]
        further = sum(n for _, n in reasons.most_common()[_MAX_REASONS_LISTED:])
        more = [f"{further:,} for other reasons"] if further else []
        print(f"  left out: {count}, listed in {clean(str(file))}: {clean('; '.join([*counts, *more]))}")
    for (condition, reason), rows in conditions.items():
        print(f"  {condition} left out of {len(rows):,} of {examples:,} examples: {clean(reason)}")


def _print_warnings(file: Path) -> None:
    """Print the first rows whose image may be useless, and how many there are."""
    if not file.is_file():
        return
    lines = [line for _, line in read_json_lines(file)]
    for line in lines[:_MAX_ROWS_LISTED]:
        print(f"  warning: {clean(line['row'])}: {clean(line['warning'])}")
    if len(lines) > _MAX_ROWS_LISTED:
        print(f"  and {len(lines) - _MAX_ROWS_LISTED} more warnings, listed in {clean(str(file))}")


def _prose(value: object) -> str:
    """Return a value of a manifest as prose, such as ``factual 30, temporal 2``, without empty entries and counts of zero.

    A rate of zero is a result, and stays.
    """
    if isinstance(value, dict):
        parts = [
            (key, _prose(inner), isinstance(inner, dict))
            for key, inner in value.items()
            if inner not in (0, None, {}, []) or isinstance(inner, float)
        ]
        return ", ".join(f"{key} ({text})" if nested else f"{key} {text}" for key, text, nested in parts) or "none"
    return ", ".join(map(_prose, value)) if isinstance(value, list) else str(value)
