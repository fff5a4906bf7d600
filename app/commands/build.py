"""``rashomon build``."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from app.commands.check_rows import check_rows
from app.commands.confirm_addresses import confirm_addresses
from app.commands.construction_cost import construction_usage, record_usage, usage_line
from app.commands.question_sets import set_target
from app.engine.text_models import LocalEmbedder, LocalModelSlot, open_text_model
from app.engine.workers.cluster.address import NONE, check_workers
from app.engine.workers.cluster.connect import connect, node_job
from app.engine.workers.cluster.messages import NodeJob
from app.fetch import manifest
from app.fetch.recipes import RECIPES
from app.json_output.builds import BuiltBenchmark, LeftOut, RowWarning
from app.json_output.envelope import print_json
from app.new_run.custom_rows import table_path
from app.report.nodes import node_line
from app.report.portable import portable_path
from app.run_spec import ApiSpec, parse, resolve_models
from app.store.data_types import NodeStatus
from app.store.set_writer import is_version_link
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks import number_ranges as ranges
from benchmarks.audit.tables import sentence
from benchmarks.base import Benchmark
from benchmarks.build import (
    REJECTED_SUFFIX,
    WARNINGS,
    Build,
    BuildOptions,
    Difficulty,
    FalseText,
    media_path,
    staging_folder,
)
from benchmarks.build_audit import audit_build
from benchmarks.errors import (
    AnotherBuildError,
    ModelError,
    NoAccessError,
    NothingUsableError,
    SpecError,
    StoreFullError,
    did_you_mean,
)
from benchmarks.factors.instances import instances_of
from benchmarks.hashed import hash64
from benchmarks.media.previews import media_pictures
from benchmarks.registry import get_benchmark
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.text_model import Embedder, TextModel
from benchmarks.untrusted.safe_files import is_disk_full
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from mlx_backends.base import Backend, MediaPath
from mlx_backends.options import RemoteOptions
from mlx_backends.registry import describe, load_backend, refusal
from mlx_backends.remote import is_remote

_MAX_ROWS_LISTED = 20
"""The number of left-out rows that are listed one by one."""

_MAX_REASONS_LISTED = 5

_LINE_OF_FILE = re.compile(r"([\w./-]+\.(?:jsonl?|csv))(?::\d+)?( image \d+)?")
"""A row of ``skipped.jsonl`` that is a line of a file, or an image of one, not a question."""

_MAX_RUNS_LISTED = 5

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

_OPTIONS = {
    "difficulty": "--difficulty",
    "false_text": "--false-text",
    "captions": "--captions",
    "official_code": "--official-code",
    "readers": "--reader",
    "extractor": "--extractor",
}
"""The options of a construction by the name of their field in BuildOptions; see ``Benchmark.build_options``."""

WORDS = "words"
"""The name of the similarity of captions that needs no model."""


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


@dataclass(frozen=True, slots=True)
class ConstructionModels:
    """The models of a construction, by name, and the options for using them."""

    writer: str | None = None
    checkers: Sequence[str] = ()
    readers: Sequence[str] = ()
    captioners: Sequence[str] = ()
    """Models that describe media, each "MODALITY=MODEL"."""
    extractor: str | None = None
    """The model that reads facts off pictures and texts (crosscheck-bench)."""
    embedder: str | None = None
    """An embedding model, or ``WORDS``."""
    api: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False
    allowed: Sequence[str] = ()
    workers: str | None = None
    """The cluster whose nodes answer as the local ones of these models; None for this machine."""
    allow_open_cluster: bool = False

    def modalities(self) -> dict[str, str]:
        """Return the captioner of each modality. Raises SpecError for another form than MODALITY=MODEL."""
        return dict(_captioner(text) for text in self.captioners)

    def names(self) -> list[str]:
        """Return the models that write text, each once."""
        return list(
            dict.fromkeys(
                name
                for name in (self.writer, self.extractor, *self.checkers, *self.readers, *self.modalities().values())
                if name
            )
        )


def build(workspace: Workspace, name: str, arguments: BuildArguments, models: ConstructionModels) -> int:
    """Build a benchmark and print the result; return the exit code, which is 1 if ``check`` finds no usable row.

    A table is built into the workspace as the next version of a question set. The replies of models are stored in the workspace,
    so that building again after an interruption continues.
    """
    benchmark = get_benchmark(name)
    rows = table_path(arguments.from_file) if arguments.from_file is not None else None
    _check_arguments(benchmark, rows, arguments, models)
    if arguments.check and rows is not None:
        options = BuildOptions(
            seed=arguments.seed,
            per_stratum=arguments.per_stratum,
            cluster=arguments.cluster,
            mapping=arguments.mapping,
            difficulty=arguments.difficulty,
        )
        return check_rows(workspace, benchmark, rows, options, as_json=arguments.as_json, every=arguments.every)
    sources = _sources(workspace, benchmark, arguments.sources, rows)
    folder = typed_path(arguments.out or workspace.build_folder(name))
    keeps_old = is_version_link(workspace.path, folder)
    old_digest, dependent_runs = ("", []) if keeps_old else workspace.runs_of_build(folder)
    remote_options = replace(
        parse(ApiSpec, models.api, "the command line").remote_options(workspace.replies), scope=f"build of {name}"
    )
    confirm_addresses(models.names(), models.allowed)
    models = _with_workers(models)
    target = recorded = None
    with _explained(workspace, benchmark, rows, arguments, folder, (old_digest, dependent_runs)), ExitStack() as stack:
        if rows is not None and _is_set(arguments):
            target = stack.enter_context(
                set_target(
                    workspace, benchmark, rows, name=arguments.name, seed=arguments.seed, replace=arguments.replace
                )
            )
        out = folder if target is None else target.out
        options = _build_options(stack, workspace, benchmark, arguments, models, remote_options, out)
        replaces = arguments.replace or keeps_old or target is not None
        try:
            new_build = benchmark.build(sources, out, replace(options, replace=replaces))
        finally:
            usage = record_usage(construction_usage(options, remote_options), folder)
        if target is not None:
            recorded = target.record(new_build)
            new_build = recorded.build
    is_same = recorded is not None and recorded.is_same
    orphaned_runs = [] if new_build.digest == old_digest or (recorded and recorded.adopted) else dependent_runs
    blind = audit_build(new_build, benchmark)
    beside = folder.with_name(folder.name + REJECTED_SUFFIX)
    rejected = beside if models.writer and (beside / "manifest.json").is_file() else None
    if arguments.as_json:
        built = replace(
            built_benchmark(workspace, new_build, orphaned_runs),
            audit=sentence(blind),
            rejected=None if rejected is None else portable_path(rejected, workspace.path),
            set=None if recorded is None else recorded.to_json(),
            usage=usage,
        )
        print_json("build", built)
        return 0
    if recorded is not None:
        recorded.print(every=arguments.every)
    _print_build(new_build, benchmark, by_row=rows is not None, every=arguments.every, as_before=is_same)
    print(f"  {clean(sentence(blind))}")
    for model in usage:
        print(f"  {clean(usage_line(model))}")
    if rejected is not None:
        print(f"  samples that a check rejected: {clean(str(rejected))}")
    if orphaned_runs:
        print(
            f"  replaced the build {old_digest[:12]}: {clean(runs_text(orphaned_runs))} made from it. Their media are gone, and "
            "they cannot be resumed unless the same build is made again in another folder."
        )
    if not arguments.every:
        print("--all prints further details of the build, --json all of them.")
    return 0


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


def _with_workers(models: ConstructionModels) -> ConstructionModels:
    """Return the models with their cluster checked; None for this machine. Raises SpecError if it has nothing to answer."""
    if models.workers is None:
        return models
    local = [name for name in resolve_models(models.names()) if not is_remote(name)]
    if not local:
        raise SpecError("no model of this machine takes part in the construction; leave --workers out.")
    check_workers(models.workers, local, models.allowed, typed=True)
    return replace(models, workers=None if models.workers == NONE else models.workers)


def _sources(
    workspace: Workspace, benchmark: Benchmark, texts: Sequence[str], rows: Path | None
) -> list[tuple[str, str]]:
    """Return the sources named on the command line, or those that were fetched if there are none."""
    sources = [_source(benchmark, text) for text in texts]
    if rows is not None:
        return [*sources, (benchmark.rows_source, str(rows))]
    return sources or _fetched_sources(workspace, benchmark)


def _build_options(
    stack: ExitStack,
    workspace: Workspace,
    benchmark: Benchmark,
    arguments: BuildArguments,
    models: ConstructionModels,
    remote_options: RemoteOptions,
    folder: Path,
) -> BuildOptions:
    """Return the options of the construction, with its models open until ``stack`` ends."""
    device = LocalModelSlot(
        lambda holder: print(f"waiting for {clean(holder)}", file=sys.stderr), elsewhere=models.workers is not None
    )
    stack.callback(device.close)
    text_models = {
        name: _text_model(stack, workspace, name, remote_options, models, device, folder) for name in models.names()
    }
    return BuildOptions(
        seed=arguments.seed,
        per_stratum=arguments.per_stratum,
        cluster=arguments.cluster,
        mapping=arguments.mapping,
        difficulty=arguments.difficulty,
        false_text=arguments.false_text,
        replace=arguments.replace,
        writer=text_models[models.writer] if models.writer else None,
        checker=text_models[models.checkers[0]] if models.checkers else None,
        checkers=tuple(text_models[name] for name in dict.fromkeys(models.checkers)),
        readers=tuple(text_models[name] for name in dict.fromkeys(models.readers)),
        captioners={modality: text_models[name] for modality, name in models.modalities().items()},
        extractor=text_models[models.extractor] if models.extractor else None,
        captions=arguments.captions,
        official_code=None if arguments.official_code is None else typed_path(arguments.official_code),
        embedder=_embedder(benchmark, models, device),
        render=media_pictures if arguments.rendered else None,
    )


def _embedder(benchmark: Benchmark, models: ConstructionModels, device: LocalModelSlot) -> Embedder | None:
    """Return the embedding model that is named, or the paper's if it is cached; None for the similarity of words."""
    if models.embedder == WORDS:
        return None
    if models.embedder:
        return LocalEmbedder(models.embedder, models.force, device)
    if not benchmark.paper_embedder or models.writer is None:
        return None
    try:
        return LocalEmbedder(benchmark.paper_embedder, models.force, device)
    except ModelError:  # not in the cache, or only partly
        return None


def _captioner(text: str) -> tuple[str, str]:
    modality, equals, model = text.partition("=")
    known = {"audio": "audio", "image": "image", "video": "video", "3d": "point_cloud", "point_cloud": "point_cloud"}
    if not equals or not model or modality.lower() not in known:
        raise SpecError(f"--captioner {text!r} is not of the form MODALITY=MODEL, with audio, image, video or 3d.")
    return known[modality.lower()], model


def _text_model(
    stack: ExitStack,
    workspace: Workspace,
    name: str,
    remote_options: RemoteOptions,
    models: ConstructionModels,
    device: LocalModelSlot,
    out: Path,
) -> TextModel:
    """Return the model called ``name``, open until ``stack`` ends; it finds media in the unfinished build for ``out``."""
    name = resolve_models([name])[0]
    info = describe(name)
    if info.engine in ("policy", "ocr") or refusal(name):
        raise SpecError(f"{name} cannot write text, because it is not a model; name a model.")
    workspace.make()

    media = partial(media_path, staging_folder(out))

    def load() -> Backend:
        if models.workers is not None and info.needs_device:
            job = node_job(name, "rashomon build", force=models.force)
            return _on_cluster(models.workers, job, media, allow_open=models.allow_open_cluster)
        return load_backend(name, media, force=models.force, remote=remote_options)

    return open_text_model(stack, name, info, load, device, workspace.replies)


def _on_cluster(workers: str, job: NodeJob, media: MediaPath, *, allow_open: bool) -> Backend:
    """Return the backend of a cluster, which prints a line whenever the state of one of its nodes changes."""
    states: dict[str, tuple[str, str]] = {}

    def print_changes(nodes: Sequence[NodeStatus]) -> None:
        for node in nodes:
            if states.get(node.name) != (node.state, node.note):
                states[node.name] = node.state, node.note
                print(clean(node_line(node)), file=sys.stderr, flush=True)

    backend = connect(workers, job, media, allow_open=allow_open)
    try:
        backend.watch(print_changes)
        backend.wait()
    except BaseException:
        backend.close()
        raise
    return backend


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
    if benchmark.name in RECIPES and manifest.fetch_state(folder) == "fetched":
        return RECIPES[benchmark.name].pairs(folder)
    get = f"`{workspace.command()} data get {benchmark.name}`"
    if benchmark.name in RECIPES and manifest.fetch_state(folder) == "begun":
        raise SpecError(f"the data of {benchmark.name} is only partly fetched; {get} resumes.")
    known = " ".join(f"--source {s.name}={s.hub_id or 'FOLDER'}" for s in benchmark.sources)
    or_get = f"; or {get} first" if benchmark.name in RECIPES else ""
    raise SpecError(f"nothing to build from; name the sources, for example: {known}{or_get}.")


def runs_text(runs: Sequence[str]) -> str:
    """Return the number and the first names of runs, with the verb of a sentence about them."""
    more = ", …" if len(runs) > _MAX_RUNS_LISTED else ""
    noun, verb = ("run", "was") if len(runs) == 1 else ("runs", "were")
    return f"{len(runs)} {noun} ({', '.join(runs[:_MAX_RUNS_LISTED])}{more}) {verb}"


def _print_build(built: Build, benchmark: Benchmark, *, by_row: bool, every: bool, as_before: bool = False) -> None:
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
