"""``rashomon import``: a run made of answers that were generated elsewhere."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.commands.running.judge_command import judge as judge_run
from app.commands.running.run_execution import ExecutionOptions, print_message
from app.commands.terminal.confirm_addresses import confirm_addresses
from app.engine.instance_streams import BuildInstances, run_instances
from app.engine.run_identity import refused_differences
from app.engine.run_plan import create_run, identity_of, open_build
from app.run_spec import RunSpec, parse
from app.store.run_database import DATABASE
from app.store.run_facts import UNJUDGED_STATE
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from app.typed_names import resolve_judges
from benchmarks.base import Benchmark, ImportedAnswer
from benchmarks.errors import SourceError, SpecError, StoreError, did_you_mean
from benchmarks.registry import get_benchmark
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.reader_types import open_source
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Generation, Instance, digest
from judges.judge_registry import find_judges
from mlx_backends.engine_registry import describe
from mlx_backends.imported_engine import IMPORTED
from mlx_backends.models.model_modalities import ALL_MODALITIES
from mlx_backends.remote import check_all_ready

_ID_FIELDS = ("id", "instance_id", "question_id")
_ANSWER_FIELDS = ("answer", "prediction", "response", "output")
_LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class ImportArguments:
    """The options of ``rashomon import``.

    ``kind`` is "jsonl" (objects with an instance's id and its answer, for the instances of a build), or one of the
    benchmark's formats of published predictions, which contain their instances.
    """

    benchmark: str
    model: str
    kind: str = "jsonl"
    data: Path | None = None
    prompt_set: str | None = None
    judges: Sequence[str] = ()
    name: str | None = None
    display: str | None = None
    allowed: Sequence[str] = ()


def import_answers(workspace: Workspace, file: Path, arguments: ImportArguments) -> int:
    """Create a run from the answers in ``file``, unless it exists, and judge what is not judged; return the exit code."""
    benchmark, kind = get_benchmark(arguments.benchmark), arguments.kind
    if kind not in (formats := ("jsonl", *benchmark.answer_formats)):
        raise SpecError(f"{benchmark.name} has no format {kind!r}; {did_you_mean(kind, formats)}")
    path = typed_path(file)
    spec = _spec(arguments, benchmark)
    confirm_addresses(spec.judge, arguments.allowed)
    check_all_ready(spec.judge, spec.api.remote_options(workspace.replies))
    files = benchmark.answer_files(path, kind) if kind != "jsonl" else (path,)
    file_digest = _sha256(path) if files == (path,) else digest([_sha256(file) for file in files])
    build = open_build(workspace, spec) if kind == "jsonl" else None
    identity = (
        {**spec.identity(), "engine": "imported"} if build is None else identity_of(spec, build, describe(spec.model))
    )
    identity["answers digest"] = file_digest
    folder = workspace.runs_folder / spec.run_name(file_digest)
    workspace.check_run_name(folder.name)
    if (folder / DATABASE).is_file():
        _check_same(folder, spec, identity)
        print_message(f"{folder.name}: the answers are imported already.", arguments.display)
    else:
        left_out: Counter[str] = Counter()
        if build is None:
            answers = list(benchmark.read_answers(path, kind, lambda row, reason: left_out.update([reason])))
        else:
            instances, _ = run_instances(BuildInstances(benchmark, build, spec.prompts), ALL_MODALITIES, build)
            answers = list(_read_jsonl(path, instances))
        if not answers:
            raise SourceError(
                f"{path} has no answer to an instance of {benchmark.name}; check --benchmark and --format."
            )
        workspace.make()
        create_run(
            workspace,
            spec,
            folder,
            identity,
            [answer.instance for answer in answers],
            data=None if build is None else build.path,
            fill=lambda store: _fill(store, answers, spec),
        )
        for reason, count in left_out.items():
            print_message(f"{count} rows left out: {reason}", arguments.display)
        print_message(f"{folder.name}: {len(answers)} answers imported.", arguments.display)
    options = ExecutionOptions(display=arguments.display)
    return judge_run(workspace, folder.name, options, names=arguments.judges or spec.judge)


def _check_same(folder: Path, spec: RunSpec, identity: Mapping[str, Any]) -> None:
    """Raise StoreError unless the run in ``folder`` is of the same import, which the command resumes."""
    with RunStore.read(folder) as store:
        recorded = {**store.meta("identity"), "judge": store.meta("spec")["judge"]}
    changes, _ = refused_differences(recorded, {**identity, "judge": [*spec.judge]}, accept_engine=True)
    if changes:
        raise StoreError(
            f"the run {folder.name} exists already, and this is another one ({'; '.join(changes)}); import under another "
            "--name, or add a judge with `rashomon judge`."
        )


def _spec(arguments: ImportArguments, benchmark: Benchmark) -> RunSpec:
    """Return the spec of the imported run. Raises SpecError for an argument that does not fit the benchmark."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._:/+()-]{0,99}", arguments.model):
        raise SpecError(
            f"--model {arguments.model!r} is not usable as a name; use at most 100 letters from a to z, digits and ' ._:/+()-'."
        )
    prompt_set = arguments.prompt_set or next(iter(benchmark.prompt_sets))
    if prompt_set not in benchmark.prompt_sets:
        raise SpecError(f"there is no prompt set {prompt_set!r}; {did_you_mean(prompt_set, benchmark.prompt_sets)}")
    judges, undecided_by = resolve_judges(arguments.judges or benchmark.judges)
    find_judges(judges, benchmark, undecided_by)
    values = {
        "benchmark": benchmark.name,
        "model": IMPORTED + arguments.model,
        "prompt_set": prompt_set,
        "judge": judges,
        "undecided_by": undecided_by,
        "data": str(typed_path(arguments.data)) if arguments.data else None,
        "name": arguments.name,
    }
    return parse(RunSpec, values, "the command line")


def _fill(store: RunStore, imported: Sequence[ImportedAnswer], spec: RunSpec) -> None:
    """Store the imported answers."""
    store.use_engine(asdict(describe(spec.model)))
    answers = []
    for ordinal, answer in enumerate(imported):
        answers.append(
            NewAnswer(
                ordinal=ordinal,
                condition=answer.instance.condition,
                step=0,
                request_digest=digest(["imported", answer.instance.id]),
                generation=Generation(f"{answer.instance.id}#0", answer.answer, "stop", calls=0),
                last=True,
                verdicts=answer.verdicts,
            )
        )
    store.commit(answers)
    store.set_meta("state", UNJUDGED_STATE)


def _read_jsonl(path: Path, instances: Iterable[Instance]) -> Iterator[ImportedAnswer]:
    """Yield the answers in a JSON-lines file of objects with an id and an answer. Raises SourceError naming the line."""
    known = {instance.id: instance for instance in instances}
    answered_ids: set[str] = set()
    for number, row in read_json_lines(path):
        where = f"{path.name}, line {number}"
        if not isinstance(row, dict):
            raise SourceError(f"{where} is not a JSON object; write an object with an id and an answer.")
        identifier, answer = _field(row, _ID_FIELDS, where), _field(row, _ANSWER_FIELDS, where)
        if identifier not in known:
            raise SourceError(
                f"{where}: the build has no instance {identifier[:80]!r}; check that --data names the right build."
            )
        if identifier in answered_ids:
            raise SourceError(f"{where}: instance {identifier!r} has a second answer; keep only one.")
        answered_ids.add(identifier)
        yield ImportedAnswer(known[identifier], answer)


def _field(row: Mapping[str, Any], names: Sequence[str], where: str) -> str:
    for name in names:
        if isinstance(row.get(name), str):
            return str(row[name])
    raise SourceError(
        f"{where} has no text under {', '.join(names)}; its keys are {', '.join(map(str, list(row)[:8]))}."
    )


def _sha256(path: Path) -> str:
    with open_source(path) as stream:
        if os.fstat(stream.fileno()).st_size > _LARGEST:
            raise SourceError(f"{path} is larger than 1 GB; split it into several files.")
        return hashlib.file_digest(stream, "sha256").hexdigest()
