"""``rashomon label``: labelling of a sample of a run's answers by a person, in the terminal or through a CSV file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.annotation.labelling_session import LabellingSession, LabellingTask, draw_sample, match_label
from app.report.tables.judge_selection import undecided_instances
from app.store.run_references import changeable_run
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.text.text_escaping import clean, spreadsheet_line
from benchmarks.base import Benchmark
from benchmarks.errors import NoAccessError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.safe_files import check_file, replace_file
from benchmarks.untrusted.typed_paths import typed_path
from judges.human_labels_and_samples import BlindAnswer, annotator_id, blind_answer, blind_id, read_labels_csv

_LINE = "─" * 60
_MEANING = "docs/labelling.md explains the labels."


@dataclass(frozen=True, slots=True)
class LabelArguments:
    """The options of ``rashomon label``. ``n`` and ``seed`` default to those of the annotator's sample, if there is one."""

    annotator: str
    n: int | None = None
    seed: int | None = None
    import_file: Path | None = None
    export_file: Path | None = None
    sample_only: bool = False
    """True to leave out the undecided answers, which come before the sample."""
    random_sample: bool = False
    """True if the imported labels are for a random sample that was drawn elsewhere."""


def label(workspace: Workspace, run: str, arguments: LabelArguments, *, ask: Callable[[str], str] = input) -> int:
    """Run a labelling session for a sample of ``run``, or import or export its labels as CSV; return the exit code.

    The sample depends only on the seed and the run; an earlier session continues. Raises SpecError if the sample was drawn
    with another seed, or if the run is unfinished.
    """
    judge = annotator_id(arguments.annotator)
    folder = changeable_run(workspace, run)
    if arguments.import_file is not None and arguments.export_file is not None:
        raise SpecError("--import and --export exclude each other; run them one after the other.")
    if arguments.random_sample and arguments.import_file is None:
        raise SpecError("--random-sample describes imported labels; add --import FILE.")
    with RunStore.open(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        if arguments.import_file is not None:
            return _import(store, benchmark, judge, typed_path(arguments.import_file), arguments.random_sample)
        undecided = () if arguments.sample_only else undecided_instances(store)
        task = draw_sample(store, judge, arguments.n, arguments.seed, undecided)
        if arguments.export_file is not None:
            return _export(store, task, typed_path(arguments.export_file))
        return _run_session(store, task, ask)


def _run_session(store: RunStore, task: LabellingTask, ask: Callable[[str], str]) -> int:
    labels = task.benchmark.labels
    keys = " ".join(f"{number}={label}" for number, label in enumerate(labels, 1))
    session = LabellingSession(task, store)
    print(f"{task.judge}: {session.summary}.")
    if session.at_undecided:
        print(
            f"First come {session.task.undecided} answers that the judge left undecided; n goes on with the random sample."
        )
    print("Label what the answer says; never follow instructions in it. Every label is saved at once.")
    print(_advice(task))
    while (answer := session.current) is not None:
        _print_answer(answer, (session.position or 0) + 1, session.total)
        try:
            reply = ask(f"{keys}   s=skip u=undo q=quit > ").strip()
        except EOFError:
            print()
            reply = "q"
        if reply.lower() == "q":
            break
        if reply.lower() == "n" and session.at_undecided:
            session.skip_undecided()
            continue
        if reply.lower() == "u":
            if not session.undo(store):
                print("nothing to undo.")
            continue
        label_name = match_label(reply, labels)
        if label_name is None and reply.lower() != "s":
            print(f"{clean(reply)!r} is none of the labels or keys.")
            continue
        session.label_current(store, label_name)
    progress = f"{task.judge}: {session.summary}"
    print(f"{progress}; the same command continues, `rashomon show` prints the tables.")
    return 0


def _advice(task: LabellingTask) -> str:
    return f"{task.advice} {_MEANING}".strip()


def _print_answer(answer: BlindAnswer, number: int, total: int) -> None:
    print(f"{_LINE}\n{number} of {total}")
    print(f"Question: {clean(answer.question, newlines=True)}")
    for source, values in answer.references:
        print(f"{clean(source).capitalize()}: {clean(' | '.join(values), newlines=True)}")
    print(f"Answer:\n{clean(answer.answer, newlines=True)}\n")


def _import(store: RunStore, benchmark: Benchmark, judge: str, path: Path, random_sample: bool) -> int:
    records = {record.instance.id: record for record in store.records()}
    answers = {instance: answer[0] for instance in records if (answer := store.answer_of(instance))}
    ids = {blind_id(records[instance]): instance for instance in answers} | {instance: instance for instance in answers}
    labels = read_labels_csv(path, benchmark.labels, ids)
    task = LabellingTask(benchmark, judge, 0, (), answers)
    for instance, value in labels:
        task.label(store, records[instance], value)
    if random_sample:
        store.set_meta(f"labelling {judge}", {"sample": [instance for instance, _ in labels]})
    print(f"{judge}: {len(labels)} labels imported from {clean(str(path))}.")
    if not random_sample and store.meta(f"labelling {judge}") is None:
        print("They do not correct any metric; add --random-sample if they are for a random sample of all answers.")
    return 0


def _export(store: RunStore, task: LabellingTask, path: Path) -> int:
    done = task.done(store)
    answers = [blind_answer(record, task.benchmark.labels, task.seed) for record in task.records]
    sources = sorted({source for answer in answers for source, _ in answer.references})
    lines = [spreadsheet_line(["id", "label", "question", *sources, "answer"])]
    for record, answer in zip(task.records, answers, strict=True):
        references = {source: " | ".join(values) for source, values in answer.references}
        cells = [
            answer.id,
            done.get(record.instance.id, ""),
            answer.question,
            *(references.get(source, "") for source in sources),
            answer.answer,
        ]
        lines.append(spreadsheet_line(cell or "" for cell in cells))
    try:
        check_file(path.parent, path.name, write=True)
        replace_file(path.parent, path.name, "".join(lines).encode("utf-8"))
    except OSError as error:
        raise NoAccessError(f"cannot write {path}: {error.strerror}; name another file.") from error
    print(f"wrote {clean(str(path))}: fill in the column label with {', '.join(task.benchmark.labels)}.")
    print(_advice(task))
    return 0
