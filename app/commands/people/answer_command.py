"""``rashomon answer``: a person answers a benchmark's questions in the terminal; and the human baseline of several people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.annotation.answer_session import AnswerSession, Question, answer_lock, person_model, plan_answers
from app.annotation.human_baseline import people_runs, people_tables, read_people
from app.annotation.review_session import find_build
from app.engine.run_plan import open_build
from app.json_output.json_envelope import print_json
from app.json_output.people_json import HumanBaseline
from app.json_output.tables_json import table_json
from app.report.samples.sample_media import media_path
from app.report.tables.table_rendering import print_table
from app.run_spec import RunSpec, parse
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Media, Text

_LINE = "─" * 60


@dataclass(frozen=True, slots=True)
class AnswerArguments:
    """The options of ``rashomon answer``; without a person, the human baseline is printed."""

    person: str | None = None
    data: Path | None = None
    prompt_set: str | None = None
    conditions: Sequence[str] = ()
    strata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0
    judges: Sequence[str] = ()
    name: str | None = None
    same_person: bool = False
    justify: bool = False
    """True to ask for a justification after each answer, which may be left empty."""
    as_json: bool = False


def answer(workspace: Workspace, build: str, arguments: AnswerArguments, *, ask: Callable[[str], str] = input) -> int:
    """Answer a build's questions, or print the human baseline; return the exit code.

    ``build`` is a build's folder, or a benchmark whose build is in the workspace or in ``arguments.data``.
    """
    if arguments.data is None:
        named = find_build(workspace, build)
        if named.path != workspace.build_folder(named.benchmark):
            arguments = replace(arguments, data=named.path)
        build = named.benchmark
    spec = answer_spec(build, arguments)
    if arguments.person is None:
        return _people(workspace, spec, arguments)
    folder = plan_answers(workspace, spec, same_person=arguments.same_person)
    lock = answer_lock(folder)
    try:
        with RunStore.open(folder) as store:
            session = AnswerSession(folder, store)
            try:
                _run(session, store, workspace.build_of(store), ask, justify=arguments.justify)
            finally:
                session.close(store)
    finally:
        lock.release()
    print(f"{session.person}: {session.count} of {session.total} answered; the same command continues.")
    print(f"The run is {folder.name}; `rashomon show {folder.name}` prints its tables.")
    if session.model_judges:
        print(f"Judge it with `rashomon judge {folder.name} --judge {session.model_judges[0]}`.")
    return 0


def answer_spec(benchmark: str, arguments: AnswerArguments) -> RunSpec:
    """Return the spec of a person's run: the benchmark's defaults, and the same questions for everybody."""
    about = get_benchmark(benchmark)
    judges = tuple(arguments.judges) or about.judges
    values: dict[str, Any] = {
        "benchmark": about.name,
        "model": person_model(arguments.person or "nobody"),
        "prompt_set": arguments.prompt_set or next(iter(about.prompt_sets)),
        "judge": judges,
        "conditions": list(about.conditions_of(arguments.conditions)),
        "strata": {key: list(words) for key, words in arguments.strata.items()},
        "limit": arguments.limit,
        "seed": arguments.seed,
        "data": str(typed_path(arguments.data)) if arguments.data else None,
        "name": arguments.name,
    }
    if values["prompt_set"] not in about.prompt_sets:
        raise SpecError(
            f"{about.name} has no prompt set {values['prompt_set']!r}; it has {', '.join(about.prompt_sets)}."
        )
    return parse(RunSpec, values, "the command line")


def _run(
    session: AnswerSession, store: RunStore, build: Path, ask: Callable[[str], str], *, justify: bool = False
) -> None:
    print(f"{session.person}: {session.count} of {session.total} answered.")
    print("Answer as the question asks; every answer is timed and saved at once. /s skips, /q quits.")
    if justify:
        print("A short reason is asked for after each answer, and not timed; leave it empty if there is none to give.")
    while (question := session.current) is not None:
        print(f"{_LINE}\n{session.count + 1} of {session.total}")
        print(question_text(question, build))
        try:
            reply = ask("answer > ").strip()
        except EOFError:
            print()
            return
        if reply.lower() in ("/q", "/quit"):
            return
        if reply.lower() in ("/s", "/skip"):
            session.skip(store)
            continue
        seconds = session.elapsed
        reason = ""
        if justify and reply:
            try:
                reason = ask("reason > ").strip()
            except EOFError:
                print()
        try:
            session.answer(store, reply, reason, seconds)
        except SpecError as error:
            print(clean(str(error)))


def question_text(question: Question, build: Path) -> str:
    """Return a question as text, with the path of each medium in its place."""
    lines = []
    for message in question.messages:
        if message.role != "user":
            lines.append(f"{message.role}:")
        for part in message.parts:
            if isinstance(part, Text):
                lines.append(clean(part.text, newlines=True))
            elif isinstance(part, Media):
                path = media_path(build, part)
                marks = f", marked {', '.join(clean(mark.label) for mark in part.marks)}" if part.marks else ""
                lines.append(
                    f"[{part.modality}{marks}: {clean(str(path)) if path else 'cannot be shown, its file is missing'}]"
                )
    return "\n".join(lines)


def _people(workspace: Workspace, spec: RunSpec, arguments: AnswerArguments) -> int:
    build = open_build(workspace, spec)
    benchmark = get_benchmark(spec.benchmark)
    folders = people_runs(workspace, spec.benchmark, build.digest)
    people = read_people(folders, benchmark, arguments.judges[0] if arguments.judges else None)
    tables = people_tables(people, benchmark) if any(person.right for person in people) else []
    if arguments.as_json:
        print_json("answer", HumanBaseline(tables=tuple(map(table_json, tables))), folders=folders)
        return 0
    if not tables:
        print(f"nobody has answered {benchmark.name} yet; add --as NAME to begin.")
    for table in tables:
        if table.rows:
            print_table(table)
    return 0
