"""``rashomon vary``: a build whose examples are repeated under crossed levels of factors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from app.annotation.review_session import find_build
from app.commands.building.build_command import built_benchmark, disk_errors, runs_text
from app.commands.terminal.spinner import counter
from app.json_output.builds_json import DesignSize as DesignSizeJson
from app.json_output.json_envelope import print_json
from app.store.workspace import Workspace
from app.text.shell_quoting import shell_quote
from app.text.text_escaping import clean
from benchmarks.build import Build
from benchmarks.errors import AnotherBuildError, SpecError
from benchmarks.factors.decisive_regions import Regions
from benchmarks.factors.factor_build import MOST_CALLS, DesignSize, Variation, VaryOptions
from benchmarks.factors.factor_design import Design
from benchmarks.factors.factor_levels import parse_factors
from benchmarks.k_passages.k_passages_build import DesignSize as PassagesSize
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.varied_names import MANIFEST_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignArguments:
    """The options that ``rashomon vary`` and ``rashomon passages`` share."""

    limit: int | None = None
    seed: int = 0
    out: Path | None = None
    replace: bool = False
    dry_run: bool = False
    force: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryArguments(DesignArguments):
    """The options of ``rashomon vary``."""

    factors: Sequence[str]
    cells: int | None = None
    conditions: Sequence[str] = ()
    region: str | None = None
    regions_file: Path | None = None


def vary(workspace: Workspace, name: str, arguments: VaryArguments) -> None:
    """Print the size of a design over the build ``name``, then build it. Raises SpecError for a design that is too large."""
    factors = parse_factors(arguments.factors)
    regions = _regions(arguments)
    base = find_build(workspace, name)
    design = Design.of(factors, cells=arguments.cells, conditions=arguments.conditions, seed=arguments.seed)
    options = VaryOptions(arguments.limit, arguments.seed, regions, arguments.replace)
    variation = Variation(get_benchmark(base.benchmark), base, design, options)
    size = variation.size()
    if not announce("vary", size, size_sentence(size), arguments, MOST_CALLS, ", a --limit or a fraction with --cells"):
        return
    out = typed_path(arguments.out) if arguments.out else workspace.varied_folder(base.path)
    refuse_base(base, out)
    old_digest, dependent_runs = workspace.runs_of_build(out)
    try:
        with disk_errors(out), counter(size.examples, "examples") as progress:
            built = variation.build(out, progress)
    except AnotherBuildError as error:
        if not dependent_runs:
            raise
        raise AnotherBuildError(
            f"{error} {runs_text(dependent_runs)} made from the existing build, and cannot be resumed without it."
        ) from error
    orphaned_runs = [] if built.digest == old_digest else dependent_runs
    if arguments.as_json:
        print_json("vary", built_benchmark(workspace, built, orphaned_runs))
        return
    _print_built(workspace, built)
    if orphaned_runs:
        print(
            f"replaced the build {old_digest[:12]}: {clean(runs_text(orphaned_runs))} made from it, and cannot be resumed "
            "unless the same build is made again in another folder."
        )


def refuse_base(base: Build, out: Path) -> None:
    """Raise SpecError if a build would replace the one that it is made from."""
    if path_exists(out) and out.samefile(base.path):
        raise SpecError(f"{out} is the build that this one is made from; name another folder with --out.")


def announce(
    command: str, size: DesignSize | PassagesSize, sentence: str, arguments: DesignArguments, most: int, fewer: str
) -> bool:
    """Print a design's size in a ``sentence``; return True if it is to be built.

    Raises SpecError for more than ``most`` calls without force, advising fewer levels or what ``fewer`` says.
    """
    output = sys.stderr if arguments.as_json else sys.stdout
    print(sentence, file=output, flush=True)
    if size.calls > most and not arguments.force:
        raise SpecError(f"{size.calls:,} calls are more than {most:,}; name fewer levels{fewer}, or add --force.")
    if size.calls > most:
        days = size.calls / 86_400
        print(f"These are many calls: at one a second, {days:,.0f} days.", file=output, flush=True)
    if arguments.dry_run and arguments.as_json:
        unknown = {"full_cells": None, "instances": None}
        print_json(command, DesignSizeJson(**{**unknown, **asdict(size), "sentence": sentence}))
    return not arguments.dry_run


def size_sentence(size: DesignSize) -> str:
    """Return the size of a design as a sentence."""
    of = f" of {size.full_cells:,}" if size.full_cells != size.cells else ""
    return (
        f"{size.examples:,} examples in {size.cells:,}{of} cells: {size.instances:,} instances, at most {size.calls:,} calls "
        "of a model for each run, since equal inputs are asked once."
    )


def _regions(arguments: VaryArguments) -> Regions:
    if arguments.region is not None and arguments.regions_file is not None:
        raise SpecError("name the decisive regions either with --region or with --regions.")
    if arguments.region is not None:
        return Regions.parse(arguments.region)
    return Regions() if arguments.regions_file is None else Regions.read(typed_path(arguments.regions_file))


def _print_built(workspace: Workspace, built: Build) -> None:
    facts = built.manifest[MANIFEST_KEY]
    count = f"{facts['left out']:,} of {facts['examples'] + facts['left out']:,}"
    left_out = f"; left out: {count} examples, see skipped.jsonl" if facts["left out"] else ""
    print(
        f"built {clean(str(built.path))}: {facts['instances']:,} instances, {facts['distinct inputs']:,} distinct inputs, "
        f"{built.manifest['media']:,} media{left_out}"
    )
    print(f"  digest: {built.digest}")
    command = f"{workspace.command()} --batch --benchmark {built.benchmark} --data {shell_quote(str(built.path))} --model MODEL"
    print(f"run it with `{clean(command)}`; `{workspace.command()} show RUN --table factors` shows the effects.")
