"""``rashomon training``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.commands.terminal.spinner import spinner
from app.engine.training.workspace_test_data import TestData, find_leaks, find_test_builds
from app.json_output.json_envelope import print_json
from app.json_output.training_json import LeakedRow, WrittenTrainingSet
from app.report.runs.portable_facts import portable_message, portable_path
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean
from benchmarks.base import Benchmark
from benchmarks.build import REJECTED_SUFFIX, Build
from benchmarks.errors import SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.training.leaks_of_test_data import REFUSED, LeakReport, check_leaks, leak_counts, leak_warnings
from benchmarks.training.training_set import PARTS, TrainingSet
from benchmarks.training.write_training_set import drop_rows, record_tests, training_filter, write_training_set
from benchmarks.training_rows import TrainingOptions
from benchmarks.untrusted.typed_paths import typed_path

UNFILTERED = "unfiltered"
"""The filter with which a build's rejected samples are taken too."""


@dataclass(frozen=True, slots=True)
class TrainingArguments:
    """The options of ``rashomon training``."""

    out: Path
    data: Sequence[Path] = ()
    seed: int = 0
    validation_share: float = 0.1
    prompt_set: str = ""
    target: Any = "name"
    filter: str = ""
    limit: int | None = None
    tests: Sequence[Path] = ()
    drop_leaks: bool = False
    as_json: bool = False


def training(workspace: Workspace, name: str, arguments: TrainingArguments) -> None:
    """Write the training rows of builds to a folder, without test data, and print their numbers."""
    benchmark = get_benchmark(name)
    out = typed_path(arguments.out)
    if arguments.prompt_set and arguments.prompt_set not in benchmark.prompt_sets:
        raise SpecError(
            f"{name} has no prompt set {arguments.prompt_set!r}; known are {', '.join(benchmark.prompt_sets)}."
        )
    builds = _source_builds(workspace, benchmark, arguments)
    options = TrainingOptions(arguments.seed, arguments.prompt_set, arguments.target, arguments.filter, arguments.limit)
    with write_training_set(benchmark, builds, out, options, arguments.validation_share) as staged:
        result = None
        try:
            report, tests = _compare(workspace, arguments, builds, staged.training_set)
            places = {row.group: row.row for build in builds for row in build.built_rows()} if report.leaks else {}
            warnings = [*leak_warnings(report, places), *tests.unread]
            for warning in warnings:
                print(f"warning: {clean(warning)}.", file=sys.stderr)
            result = WrittenTrainingSet(
                folder=None,
                digest=None,
                manifest=None,
                leaks=leak_counts(report),
                leaked_rows=tuple(
                    LeakedRow(row=leak.row, source=places.get(leak.example, ""), means=leak.means, test=leak.test)
                    for leak in report.leaks
                ),
                warnings=tuple(portable_message(warning, workspace.path) for warning in warnings),
                test_builds=tuple(report.tests),
                test_images=report.images,
            )
            check_leaks(report, drop=arguments.drop_leaks, places=places)
            if report.refused and not drop_rows(staged.training_set, report.refused_rows):
                raise SpecError(
                    f"all rows are test data: {'; '.join(report.sentences(REFUSED, places))}; take other data."
                )
            record_tests(staged.training_set, report.tests)
            written = staged.put_in_place()
        except SpecError:
            if arguments.as_json and result is not None:
                print_json("training", result)
            raise
    rows = written.manifest["rows"]
    if arguments.as_json:
        folder = portable_path(out, workspace.path)
        print_json("training", replace(result, folder=folder, digest=written.digest, manifest=dict(written.manifest)))
        return
    counts = ", ".join(f"{count_of(rows[part], 'row')} for {part}" for part in PARTS)
    print(f"wrote {clean(str(out))}: {counts}")
    for key, count in rows.items():
        if key not in PARTS:
            print(f"  {clean(key)}: {count}")
    if report.refused:
        print(f"  left out: {clean('; '.join(report.sentences(REFUSED, places)))}")
    print(f"  compared with {count_of(len(report.tests), 'test build')} ({count_of(report.images, 'image')})")


def _compare(
    workspace: Workspace, arguments: TrainingArguments, builds: Sequence[Build], staged: TrainingSet
) -> tuple[LeakReport, TestData]:
    """Return the comparison of a training set with test data; the number of compared images is shown meanwhile."""
    with spinner("comparing with test data") as update:
        tests = find_test_builds(workspace, map(typed_path, arguments.tests), {build.digest for build in builds})
        total, done = len(set(staged.image_digests.values())), 0

        def count() -> None:
            nonlocal done
            done += 1
            update(f"comparing with test data: {done:,} of {total:,} pictures")

        return find_leaks(tests.builds, staged, count), tests


def _source_builds(workspace: Workspace, benchmark: Benchmark, arguments: TrainingArguments) -> list[Build]:
    """Return the builds of the rows, for unfiltered ones with those of rejected samples beside them. Raises SourceError."""
    folders = [typed_path(folder) for folder in arguments.data] or [workspace.build_folder(benchmark.name)]
    builds = [Build.open(folder) for folder in folders]
    if training_filter(benchmark, builds, arguments.filter) == UNFILTERED:
        beside = [folder.with_name(folder.name + REJECTED_SUFFIX) for folder in folders]
        rejected = [folder for folder in beside if (folder / "manifest.json").is_file() and folder not in folders]
        if not rejected and not benchmark.training_filter(builds):
            raise SourceError(
                f"{beside[0]} is missing, so there are no rejected samples; construct the build with a writer, or name the "
                "builds of both sets with --data."
            )
        builds += map(Build.open, rejected)
    for build in builds:
        if build.benchmark != benchmark.name:
            raise SourceError(
                f"{build.path} is a build of {build.benchmark}, not of {benchmark.name}; name another folder."
            )
    return builds
