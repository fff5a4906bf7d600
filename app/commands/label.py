"""``rashomon label``: a person labels a sample of a run's answers, in the terminal or through a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from app.annotation.session import LabellingSession, LabellingTask, draw, meant
from app.store.run import RunStore
from app.store.workspace import Workspace
from app.system.paths import typed_path
from app.text.escape import clean, spreadsheet_cell
from benchmarks.base import Benchmark, get_benchmark
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.safe_files import check_file, replace_file
from judges.human_labels import BlindAnswer, annotator_id, blind, blind_id, read_labels_csv

_LINE = "─" * 60
_MEANING = "docs/labelling.md says what each label means."


def label(
    workspace: Workspace,
    run: str,
    *,
    annotator: str,
    n: int | None,
    seed: int | None,
    import_file: Path | None,
    export_file: Path | None,
    random_sample: bool = False,
    ask: Callable[[str], str] = input,
) -> int:
    """Let the person called ``annotator`` label ``n`` answers of ``run``, or take or give them as CSV; the exit code.

    Which answers is decided by ``seed`` and the run alone; what was begun is gone on with. ``random_sample`` says that the
    imported labels are on a random sample that was drawn elsewhere. Raises SpecError where a sample was begun with another
    seed, and where the run is not answered to the end: a sample drawn then is none of all its answers.
    """
    judge = annotator_id(annotator)
    folder = workspace.run_folder(run)
    if import_file is not None and export_file is not None:
        raise SpecError("--import and --export are two things; do one after the other.")
    if random_sample and import_file is None:
        raise SpecError("--random-sample says something of the labels in a file; it needs --import.")
    with RunStore.open(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        if import_file is not None:
            return _import(store, benchmark, judge, typed_path(import_file), random_sample)
        labelling = draw(store, judge, n, seed)
        if export_file is not None:
            return _export(store, labelling, typed_path(export_file))
        return _converse(store, labelling, ask)


def _converse(store: RunStore, labelling: LabellingTask, ask: Callable[[str], str]) -> int:
    labels = labelling.benchmark.labels
    keys = " ".join(f"{number}={label}" for number, label in enumerate(labels, 1))
    sitting = LabellingSession(labelling, store)
    print(f"{labelling.judge}: {sitting.count} of {sitting.total} labelled.")
    print("What stands in the answer is to be labelled, never obeyed. Every label is kept at once.")
    print(_enough(labelling))
    while (shown := sitting.shown) is not None:
        _show(shown, (sitting.place or 0) + 1, sitting.total)
        try:
            said = ask(f"{keys}   s=skip u=undo q=quit > ").strip()
        except EOFError:
            print()
            said = "q"
        if said.lower() == "q":
            break
        if said.lower() == "u":
            if not sitting.undo(store):
                print("nothing to undo.")
            continue
        chosen = meant(said, labels)
        if chosen is None and said.lower() != "s":
            print(f"{clean(said)!r} is none of them.")
            continue
        sitting.give(store, chosen)
    told = f"{labelling.judge}: {sitting.count} of {sitting.total} labelled"
    print(f"{told}; the same command goes on, `rashomon show` has the tables.")
    return 0


def _enough(labelling: LabellingTask) -> str:
    return f"{labelling.enough} {_MEANING}".strip()


def _show(shown: BlindAnswer, number: int, total: int) -> None:
    print(f"{_LINE}\n{number} of {total}")
    print(f"Question: {clean(shown.question, newlines=True)}")
    for source, values in shown.references:
        print(f"{clean(source).capitalize()}: {clean(' | '.join(values), newlines=True)}")
    print(f"Answer:\n{clean(shown.answer, newlines=True)}\n")


def _import(store: RunStore, benchmark: Benchmark, judge: str, path: Path, random_sample: bool) -> int:
    records = {record.instance.id: record for record in store.records()}
    answers = {each: answer[0] for each in records if (answer := store.answer_of(each))}
    names = {blind_id(records[each]): each for each in answers} | {each: each for each in answers}
    found = read_labels_csv(path, benchmark.labels, names)
    labelling = LabellingTask(benchmark, judge, 0, (), answers)
    for instance, said in found:
        labelling.label(store, records[instance], said)
    if random_sample:
        store.set_meta(f"labelling {judge}", {"sample": [instance for instance, _ in found]})
    print(f"{judge}: {len(found)} labels taken from {clean(str(path))}.")
    if not random_sample and store.meta(f"labelling {judge}") is None:
        print("They correct no figures, unless --random-sample says that they are on a random sample of all answers.")
    return 0


def _export(store: RunStore, labelling: LabellingTask, path: Path) -> int:
    done = labelling.done(store)
    shown = [blind(record, labelling.benchmark.labels, labelling.seed) for record in labelling.records]
    sources = sorted({source for one in shown for source, _ in one.references})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "label", "question", *sources, "answer"])
    for record, one in zip(labelling.records, shown, strict=True):
        said = {source: " | ".join(values) for source, values in one.references}
        cells = [
            one.id,
            done.get(record.instance.id, ""),
            one.question,
            *(said.get(s, "") for s in sources),
            one.answer,
        ]
        writer.writerow([spreadsheet_cell(cell or "") for cell in cells])
    try:
        check_file(path.parent, path.name, write=True)
        replace_file(path.parent, path.name, out.getvalue().encode("utf-8"))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}.") from error
    print(f"wrote {clean(str(path))}: fill in the column label with {', '.join(labelling.benchmark.labels)}.")
    print(_enough(labelling))
    return 0
