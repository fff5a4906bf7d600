"""``rashomon import``: answers that were produced elsewhere become a run."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.commands.batch import say
from app.commands.confirm_addresses import agree
from app.commands.judge import judge as judge_run
from app.engine.plan import chosen_instances, create, identity_of, open_build
from app.run_spec import RunSpec, parse
from app.store.database import DATABASE
from app.store.rows import NewAnswer
from app.store.run import RunStore
from app.store.workspace import Workspace
from app.system.paths import typed_path
from benchmarks.base import Benchmark, Generation, ImportedAnswer, Instance, did_you_mean, digest, get_benchmark
from benchmarks.errors import SourceError, SpecError, StoreError
from benchmarks.rows.files import json_lines, open_source
from judges.base import find_judge
from mlx_backends.registry import IMPORTED, describe
from mlx_backends.remote import all_ready

_ID_FIELDS = ("id", "instance_id", "question_id")
_ANSWER_FIELDS = ("answer", "prediction", "response", "output")
_LARGEST = 1024 * 1024 * 1024


def import_answers(
    workspace: Workspace,
    file: Path,
    *,
    benchmark: str,
    model: str,
    kind: str,
    data: Path | None,
    prompt_set: str | None,
    judges: Sequence[str],
    name: str | None,
    display: str | None,
    allowed: Sequence[str] = (),
) -> int:
    """Make a run of the answers in ``file`` and have it judged; the exit code.

    ``kind`` is "jsonl" (objects with an instance's id and its answer, for the instances of a build), or one of the
    benchmark's own formats of published predictions, which bring their instances along.
    """
    about = get_benchmark(benchmark)
    if kind not in (formats := ("jsonl", *about.answer_formats)):
        raise SpecError(f"{benchmark} has no format {kind!r}; {did_you_mean(kind, formats)}")
    path = typed_path(file)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._:/+()-]{0,99}", model):
        raise SpecError(f"--model {model!r}: say who gave the answers in letters, digits and ' ._:/+()-', at most 100.")
    prompts = prompt_set or next(iter(about.prompt_sets))
    if prompts not in about.prompt_sets:
        raise SpecError(f"there is no prompt set {prompts!r}; {did_you_mean(prompts, about.prompt_sets)}")
    names = tuple(judges) or about.judges
    for word in names:
        find_judge(word, about)
    said = {
        "benchmark": benchmark,
        "model": IMPORTED + model,
        "prompt_set": prompts,
        "judge": names,
        "data": str(typed_path(data)) if data else None,
        "name": name,
    }
    spec = parse(RunSpec, said, "the command line")
    agree(names, allowed)
    all_ready(names, spec.api.terms(workspace.replies))
    files = about.answer_files(path, kind) if kind != "jsonl" else (path,)
    digest_of_file = _sha256(path) if files == (path,) else digest([_sha256(file) for file in files])
    left_out: Counter[str] = Counter()
    if kind != "jsonl":
        found = list(about.read_answers(path, kind, lambda row, reason: left_out.update([reason])))
        identity = {**spec.what_decides(), "engine": "imported"}
        build_path = None
    else:
        build = open_build(workspace, spec)
        found = list(_read_jsonl(path, chosen_instances(spec, about, build)))
        identity = identity_of(spec, build, describe(spec.model))
        build_path = build.path
    if not found:
        raise SourceError(f"{path} holds no answer to an instance of {benchmark}.")
    workspace.make()
    folder = workspace.runs_folder / spec.run_name(digest_of_file)
    if (folder / DATABASE).is_file():
        raise StoreError(f"{folder.name} is there already; give the import another --name, or `rashomon judge` it.")
    create(
        workspace,
        spec,
        folder,
        {**identity, "answers digest": digest_of_file},
        [one.instance for one in found],
        data=build_path,
        fill=lambda store: _fill(store, found, about, spec),
    )
    for reason, count in left_out.items():
        say(f"{count} rows: {reason}", display)
    say(f"{folder.name}: {len(found)} answers imported.", display)
    return judge_run(
        workspace,
        folder.name,
        names,
        api={},
        retry_failed=False,
        dry_run=False,
        display=display,
        force=False,
        accept_engine=False,
    )


def _fill(store: RunStore, found: Sequence[ImportedAnswer], benchmark: Benchmark, spec: RunSpec) -> None:
    store.use_engine(asdict(describe(spec.model)))
    answers = []
    for ordinal, one in enumerate(found):
        condition = one.instance.condition
        answers.append(
            NewAnswer(
                ordinal=ordinal,
                condition=condition,
                step=0,
                request_digest=digest(["imported", one.instance.id]),
                generation=Generation(f"{one.instance.id}#0", one.answer, "stop", calls=0),
                last=True,
                verdicts=one.verdicts,
                correct=tuple(
                    verdict.label is not None and benchmark.correct(condition, verdict.label)
                    for verdict in one.verdicts
                ),
            )
        )
    store.commit(answers)
    store.set_meta("state", {"state": "done", "note": ""})


def _read_jsonl(path: Path, instances: Sequence[Instance]) -> Iterator[ImportedAnswer]:
    """The answers in a JSON-lines file, each an object of an instance's id and an answer. Raises SourceError by line."""
    known = {instance.id: instance for instance in instances}
    seen: set[str] = set()
    for number, row in json_lines(path):
        where = f"{path.name}, line {number}"
        if not isinstance(row, dict):
            raise SourceError(f"{where} is not a JSON object; it needs an id and an answer.")
        identifier, answer = _field(row, _ID_FIELDS, where), _field(row, _ANSWER_FIELDS, where)
        if identifier not in known:
            raise SourceError(f"{where}: the build has no instance {identifier[:80]!r}; is --data the right build?")
        if identifier in seen:
            raise SourceError(f"{where}: instance {identifier!r} is answered a second time; keep one answer.")
        seen.add(identifier)
        yield ImportedAnswer(known[identifier], answer)


def _field(row: Mapping[str, Any], names: Sequence[str], where: str) -> str:
    for name in names:
        if isinstance(row.get(name), str):
            return str(row[name])
    raise SourceError(f"{where} has no text in any of {', '.join(names)}; found {', '.join(map(str, list(row)[:8]))}.")


def _sha256(path: Path) -> str:
    with open_source(path) as stream:
        if os.fstat(stream.fileno()).st_size > _LARGEST:
            raise SourceError(f"{path} is larger than 1 GiB; split it.")
        return hashlib.file_digest(stream, "sha256").hexdigest()
