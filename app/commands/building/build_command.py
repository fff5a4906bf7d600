"""``rashomon build``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.commands.building.build_summary import print_build
from app.commands.building.check_rows_command import check_rows
from app.commands.building.construction_cost import construction_usage, record_usage, usage_line
from app.commands.building.construction_models import ConstructionModels, with_checked_workers, with_models
from app.commands.building.sets_command import RecordedVersion, set_target
from app.commands.terminal.confirm_addresses import confirm_addresses
from app.fetch import fetched_files_record
from app.fetch.benchmark_downloads import RECIPES
from app.json_output.builds_json import BuiltBenchmark, LeftOut, ModelUsage, RowWarning
from app.json_output.json_envelope import print_json
from app.new_run.custom_rows import table_path
from app.report.runs.portable_facts import portable_path
from app.run_spec import ApiSpec, parse
from app.store.question_set_writer import is_version_link
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks import number_ranges as ranges
from benchmarks.audit.audit_tables import sentence
from benchmarks.base import Benchmark
from benchmarks.build import (
    REJECTED_SUFFIX,
    WARNINGS,
    Build,
    BuildOptions,
    Difficulty,
    FalseText,
)
from benchmarks.build_audit import audit_build
from benchmarks.errors import (
    AnotherBuildError,
    NoAccessError,
    NothingUsableError,
    SpecError,
    StoreFullError,
    did_you_mean,
)
from benchmarks.media.media_previews import media_pictures
from benchmarks.registry import get_benchmark
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.untrusted.safe_files import is_disk_full
from benchmarks.untrusted.typed_paths import path_exists, typed_path

_MAX_RUNS_LISTED = 5


_OPTIONS = {
    "difficulty": "--difficulty",
    "false_text": "--false-text",
    "captions": "--captions",
    "official_code": "--official-code",
    "readers": "--reader",
    "extractor": "--extractor",
}
"""The options of a construction by the name of their field in BuildOptions; see ``Benchmark.build_options``."""


@dataclass(frozen=True, slots=True)
class BuildArguments:
    """The options of ``rashomon build``, without those about models."""

    sources: Sequence[str] = ()
    out: Path | None = None
    seed: int = 0
    per_stratum: int = 250
    replace: bool = False
    from_file: Path | None = None
    """A table of the user's own rows; a source like any other."""
    check: bool = False
    """True to check the rows of ``from_file`` instead of building."""
    every: bool = False
    """True to print all details."""
    rendered: bool = False
    """True to render 3D models and videos as images."""
    as_json: bool = False
    cluster: str = ""
    """The column of ``from_file`` that names the documents."""
    mapping: str = ""
    """The keys of the columns of ``from_file``, as ``--map`` has them."""
    difficulty: Difficulty | None = None
    """The distance of generated wrong values from the right ones (cmc-bench)."""
    false_text: FalseText = "first"
    """The one of two false texts that is given alone (mmkc-bench)."""
    captions: Path | None = None
    """A file of captions by the id and the modality of their media (contra4)."""
    official_code: Path | None = None
    """The user's clone of the benchmark's official code, whose prompts construct (clash)."""
    name: str | None = None
    """The name of the question set of ``from_file``; None for the file's name."""

    def options(self) -> BuildOptions:
        """Return the options of the construction, without its models."""
        return BuildOptions(
            seed=self.seed,
            per_stratum=self.per_stratum,
            cluster=self.cluster,
            mapping=self.mapping,
            difficulty=self.difficulty,
            false_text=self.false_text,
            replace=self.replace,
            captions=self.captions,
            official_code=None if self.official_code is None else typed_path(self.official_code),
            render=media_pictures if self.rendered else None,
        )


@dataclass(frozen=True, slots=True)
class _Built:
    """A build with the version of the question set that it is, and the runs made from the one that it replaced."""

    build: Build
    recorded: RecordedVersion | None
    usage: tuple[ModelUsage, ...]
    rejected: Path | None
    """The folder of samples that a check rejected."""
    old_digest: str
    orphaned_runs: Sequence[str]


def build(workspace: Workspace, name: str, arguments: BuildArguments, models: ConstructionModels) -> int:
    """Build a benchmark and print the result; return the exit code, which is 1 if ``check`` finds no usable row.

    A table is built into the workspace as the next version of a question set. The replies of models are stored in the workspace,
    so that building again after an interruption continues.
    """
    benchmark = get_benchmark(name)
    rows = table_path(arguments.from_file) if arguments.from_file is not None else None
    _check_arguments(benchmark, rows, arguments, models)
    if arguments.check and rows is not None:
        options = arguments.options()
        return check_rows(workspace, benchmark, rows, options, as_json=arguments.as_json, every=arguments.every)
    built = _construct(workspace, benchmark, rows, arguments, models)
    blind = audit_build(built.build, benchmark)
    if arguments.as_json:
        result = replace(
            built_benchmark(workspace, built.build, built.orphaned_runs),
            audit=sentence(blind),
            rejected=None if built.rejected is None else portable_path(built.rejected, workspace.path),
            set=None if built.recorded is None else built.recorded.to_json(),
            usage=built.usage,
        )
        print_json("build", result)
        return 0
    is_same = False
    if built.recorded is not None:
        built.recorded.print(every=arguments.every)
        is_same = built.recorded.is_same
    print_build(built.build, benchmark, by_row=rows is not None, every=arguments.every, as_before=is_same)
    print(f"  {clean(sentence(blind))}")
    for model in built.usage:
        print(f"  {clean(usage_line(model))}")
    if built.rejected is not None:
        print(f"  samples that a check rejected: {clean(str(built.rejected))}")
    if built.orphaned_runs:
        print(
            f"  replaced the build {built.old_digest[:12]}: {clean(runs_text(built.orphaned_runs))} made from it. Their media "
            "are gone, and they cannot be resumed unless the same build is made again in another folder."
        )
    if not arguments.every:
        print("--all prints further details of the build, --json all of them.")
    return 0


def _construct(
    workspace: Workspace,
    benchmark: Benchmark,
    rows: Path | None,
    arguments: BuildArguments,
    models: ConstructionModels,
) -> _Built:
    """Build the benchmark, or the next version of the question set of a table."""
    sources = _sources(workspace, benchmark, arguments.sources, rows)
    folder = typed_path(arguments.out or workspace.build_folder(benchmark.name))
    keeps_old = is_version_link(workspace.path, folder)
    old_digest, dependent_runs = ("", []) if keeps_old else workspace.runs_of_build(folder)
    remote_options = replace(
        parse(ApiSpec, models.api, "the command line").remote_options(workspace.replies),
        scope=f"build of {benchmark.name}",
    )
    confirm_addresses(models.names(), models.allowed)
    models = with_checked_workers(models)
    target = recorded = None
    with _explained(workspace, benchmark, rows, arguments, folder, (old_digest, dependent_runs)), ExitStack() as stack:
        if rows is not None and _is_set(arguments):
            target = stack.enter_context(
                set_target(
                    workspace, benchmark, rows, name=arguments.name, seed=arguments.seed, replace=arguments.replace
                )
            )
        out = folder if target is None else target.out
        options = with_models(stack, workspace, benchmark, arguments.options(), models, remote_options, out)
        replaces = arguments.replace or keeps_old or target is not None
        try:
            new_build = benchmark.build(sources, out, replace(options, replace=replaces))
        finally:
            usage = record_usage(construction_usage(options, remote_options), folder)
        if target is not None:
            recorded = target.record(new_build)
            new_build = recorded.build
    beside = folder.with_name(folder.name + REJECTED_SUFFIX)
    rejected = beside if models.writer and (beside / "manifest.json").is_file() else None
    orphaned_runs = [] if new_build.digest == old_digest or (recorded and recorded.adopted) else dependent_runs
    return _Built(new_build, recorded, usage, rejected, old_digest, orphaned_runs)


@contextmanager
def _explained(
    workspace: Workspace,
    benchmark: Benchmark,
    rows: Path | None,
    arguments: BuildArguments,
    folder: Path,
    replaced: tuple[str, Sequence[str]],
) -> Iterator[None]:
    """Add what to do to the errors of a build; ``replaced`` has the digest and the runs of the build that is in ``folder``."""
    try:
        with disk_errors(folder):
            yield
    except AnotherBuildError as error:
        old_digest, dependent_runs = replaced
        if not dependent_runs:
            raise
        raise AnotherBuildError(
            f"{error} {runs_text(dependent_runs)} made from the existing build ({old_digest[:12]}). Replacing it removes "
            "their media, and they cannot be resumed unless the same build is made again."
        ) from error
    except NothingUsableError as error:
        if rows is None:
            raise
        mapping = f" --map {shlex.quote(arguments.mapping)}" if arguments.mapping else ""
        command = f"{workspace.command()} build {benchmark.name} --from {shlex.quote(str(rows))}{mapping} --check"
        raise NothingUsableError(f"{error} `{command}` lists a fix for each row.") from error


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Raise StoreError in the place of an OSError of a build into ``folder``."""
    try:
        yield
    except OSError as error:
        kind = StoreFullError if is_disk_full(error) else NoAccessError
        raise kind(
            f"cannot build {folder}: {error.strerror or error}; nothing was written. Fix that and build again."
        ) from error


def built_benchmark(workspace: Workspace, build: Build, replaced_runs: Sequence[str] = ()) -> BuiltBenchmark:
    """Return a new build for JSON, with the runs of the build that it replaced."""
    rows = Counter((line.get("condition"), line["reason"]) for _, line in read_json_lines(build.path / "skipped.jsonl"))
    warned = build.path / WARNINGS
    return BuiltBenchmark(
        folder=portable_path(build.path, workspace.path),
        digest=build.digest,
        manifest=dict(build.manifest),
        left_out=tuple(LeftOut(condition=key[0], reason=key[1], rows=count) for key, count in rows.most_common()),
        warnings=tuple(
            RowWarning(row=line["row"], warning=line["warning"])
            for _, line in (read_json_lines(warned) if warned.is_file() else ())
        ),
        replaced_runs=tuple(replaced_runs),
    )


def _is_set(arguments: BuildArguments) -> bool:
    """Return whether a table is built as a question set of the workspace, rather than into a folder or with other sources."""
    return arguments.from_file is not None and arguments.out is None and not arguments.sources


def _check_arguments(
    benchmark: Benchmark, rows: Path | None, arguments: BuildArguments, models: ConstructionModels
) -> None:
    """Raise SpecError for values that no build can use."""
    if rows is not None and not benchmark.rows_source:
        benchmark.check_rows(rows, BuildOptions())  # raises the error that explains it
    for option, value in (("--cluster", arguments.cluster), ("--map", arguments.mapping)):
        if value and rows is None:
            raise SpecError(f"{option} names columns of your own table; name the table with --from.")
    if arguments.name is not None and not _is_set(arguments):
        raise SpecError("--name names a question set; give its table with --from, without --source and --out.")
    if arguments.check and (rows is None or arguments.sources):
        raise SpecError("--check checks a table of rows; name it with --from, without --source.")
    limit = benchmark.most_checkers
    if limit is not None and len(set(models.checkers)) > limit:
        raise SpecError(f"{benchmark.name} takes one checking model; name --checker once.")
    if not all((*models.checkers, *models.readers, *models.modalities().values())):
        raise SpecError("a model of the construction has no name; name it, or leave the option out.")
    chosen = {
        "difficulty": arguments.difficulty is not None,
        "false_text": arguments.false_text != "first",
        "captions": arguments.captions is not None,
        "official_code": arguments.official_code is not None,
        "readers": bool(models.readers),
        "extractor": models.extractor is not None,
    }
    for name in (name for name, is_chosen in chosen.items() if is_chosen and name not in benchmark.build_options):
        raise SpecError(f"{benchmark.name} has no use for {_OPTIONS[name]}; leave it out.")
    ranges.PER_STRATUM.check("--per-stratum", arguments.per_stratum)


def _sources(
    workspace: Workspace, benchmark: Benchmark, texts: Sequence[str], rows: Path | None
) -> list[tuple[str, str]]:
    """Return the sources named on the command line, or those that were fetched if there are none."""
    sources = [_source(benchmark, text) for text in texts]
    if rows is not None:
        return [*sources, (benchmark.rows_source, str(rows))]
    return sources or _fetched_sources(workspace, benchmark)


def _source(benchmark: Benchmark, text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not equals or path_exists(text):
        return "", str(typed_path(text))
    known = [source.name for source in benchmark.sources]
    if name not in known:
        raise SpecError(f"{benchmark.name} has no source {name!r}; {did_you_mean(name, known)}")
    path = typed_path(place)
    return name, str(path) if place.startswith("~") else place


def _fetched_sources(workspace: Workspace, benchmark: Benchmark) -> list[tuple[str, str]]:
    """Return the sources that `rashomon data get` fetched. Raises SpecError if they are missing or incomplete."""
    folder = workspace.source_folder(benchmark.name)
    if benchmark.name in RECIPES and fetched_files_record.fetch_state(folder) == "fetched":
        return RECIPES[benchmark.name].pairs(folder)
    get = f"`{workspace.command()} data get {benchmark.name}`"
    if benchmark.name in RECIPES and fetched_files_record.fetch_state(folder) == "begun":
        raise SpecError(f"the data of {benchmark.name} is only partly fetched; {get} resumes.")
    known = " ".join(f"--source {s.name}={s.hub_id or 'FOLDER'}" for s in benchmark.sources)
    or_get = f"; or {get} first" if benchmark.name in RECIPES else ""
    raise SpecError(f"nothing to build from; name the sources, for example: {known}{or_get}.")


def runs_text(runs: Sequence[str]) -> str:
    """Return the number and the first names of runs, with the verb of a sentence about them."""
    more = ", …" if len(runs) > _MAX_RUNS_LISTED else ""
    noun, verb = ("run", "was") if len(runs) == 1 else ("runs", "were")
    return f"{len(runs)} {noun} ({', '.join(runs[:_MAX_RUNS_LISTED])}{more}) {verb}"
