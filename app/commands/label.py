"""``rashomon label``: a person labels a sample of a run's answers, in the terminal or through a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.paths import typed_path
from app.report.text import clean, spreadsheet_cell
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Benchmark, Record, Verdict, get_benchmark
from benchmarks.errors import SpecError, StoreError
from judges.human import annotator_id, blind, read_labels_csv, sample

SAMPLE = 100
"""How many answers a person is asked to label unless told otherwise."""

_LINE = "─" * 60


@dataclass(frozen=True)
class Labelling:
    """One person's sample of one run."""

    store: RunStore
    benchmark: Benchmark
    judge: str
    seed: int
    records: tuple[Record, ...]

    def label(self, record: Record, label: str) -> None:
        """Keep ``label``, durably, in place of what this person said of the answer before."""
        answer = self.store.answer_of(record.instance.id)
        if answer is None:  # it is being asked again
            raise StoreError(f"{record.instance.id} has no answer any more; start labelling again.")
        generation, condition = answer
        verdict = Verdict(self.judge, "labelled", label, "by hand")
        self.store.add_verdicts([(generation, condition, verdict, self.benchmark.correct(condition, label))])

    def done(self) -> dict[str, str]:
        """What this person has labelled in the run: instance id to label."""
        found = {}
        for record in self.store.records():
            verdict = record.verdicts.get(self.judge)
            if verdict is not None and verdict.label is not None:
                found[record.instance.id] = verdict.label
        return found


def label(
    workspace: Workspace,
    run: str,
    *,
    annotator: str,
    n: int | None,
    seed: int | None,
    import_file: Path | None,
    export_file: Path | None,
    ask: Callable[[str], str] = input,
) -> int:
    """Let the person called ``annotator`` label ``n`` answers of ``run``, or take or give them as CSV; the exit code.

    Which answers is decided by ``seed`` and the run alone; what was begun is gone on with. Raises SpecError where a sample
    was begun with another seed.
    """
    judge = annotator_id(annotator)
    folder = workspace.run_folder(run)
    with RunStore.open(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        if import_file is not None:
            return _import(store, benchmark, judge, typed_path(import_file))
        labelling = _sample(store, benchmark, judge, n, seed)
        if export_file is not None:
            return _export(labelling, typed_path(export_file))
        return _converse(labelling, ask)


def _sample(store: RunStore, benchmark: Benchmark, judge: str, n: int | None, seed: int | None) -> Labelling:
    begun = store.meta("labelling", {})
    before = begun.get(judge, {"n": SAMPLE, "seed": 0 if seed is None else seed})
    if seed is not None and seed != before["seed"]:
        raise SpecError(f"{judge} began with --seed {before['seed']}; go on with it, or label under another name.")
    if n is not None and n < 1:
        raise SpecError("--n must be at least 1.")
    now = {"n": n or before["n"], "seed": before["seed"]}
    store.set_meta("labelling", {**begun, judge: now})
    by_id = {record.instance.id: record for record in store.records()}
    chosen = sample(by_id.values(), now["n"], now["seed"], stratify_by=benchmark.stratum)
    if not chosen:
        raise SpecError(f"{store.folder.name} has no answers to label yet.")
    return Labelling(store, benchmark, judge, now["seed"], tuple(by_id[each] for each in chosen))


def _converse(labelling: Labelling, ask: Callable[[str], str]) -> int:
    labels = labelling.benchmark.labels
    keys = " ".join(f"{number}={label}" for number, label in enumerate(labels, 1))
    done = labelling.done()
    # What was labelled in an earlier sitting can be undone too.
    undo = [number for number, record in enumerate(labelling.records) if record.instance.id in done]
    at = 0
    total = len(labelling.records)
    print(f"{labelling.judge}: {sum(r.instance.id in done for r in labelling.records)} of {total} labelled.")
    print("What stands in the answer is to be labelled, never obeyed. Every label is kept at once.")
    while at < total:
        record = labelling.records[at]
        if record.instance.id in done:
            at += 1
            continue
        _show(labelling, record, at + 1, total)
        try:
            said = ask(f"{keys}   s=skip u=undo q=quit > ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            said = "q"
        if said.lower() == "q":
            break
        if said.lower() == "u":
            if not undo:
                print("nothing to undo.")
                continue
            at = undo.pop()
            before = labelling.records[at].instance.id
            if done.pop(before, None) is not None:
                labelling.store.retract(labelling.judge, instance=before)
            continue
        if said.lower() == "s":
            undo.append(at)
            at += 1
            continue
        chosen = _label(said, labels)
        if chosen is None:
            print(f"{clean(said)!r} is none of them.")
            continue
        labelling.label(record, chosen)
        done[record.instance.id] = chosen
        undo.append(at)
        at += 1
    count = sum(record.instance.id in done for record in labelling.records)
    print(f"{labelling.judge}: {count} of {total} labelled; the same command goes on, `rashomon show` has the tables.")
    return 0


def _show(labelling: Labelling, record: Record, number: int, total: int) -> None:
    shown = blind(record, labelling.benchmark.labels, labelling.seed)
    print(f"{_LINE}\n{number} of {total}")
    print(f"Question: {clean(shown.question, newlines=True)}")
    for source, values in shown.references:
        print(f"{clean(source).capitalize()}: {clean(' | '.join(values), newlines=True)}")
    print(f"Answer:\n{clean(shown.answer, newlines=True)}\n")


def _label(said: str, labels: Sequence[str]) -> str | None:
    """The label that ``said`` means: its number, or its name or the beginning of it that no other has."""
    if said.isascii() and said.isdigit():
        return labels[int(said) - 1] if 1 <= int(said) <= len(labels) else None
    begun = [label for label in labels if said and label.startswith(said.upper())]
    return begun[0] if len(begun) == 1 else None


def _import(store: RunStore, benchmark: Benchmark, judge: str, path: Path) -> int:
    records = {record.instance.id: record for record in store.records()}
    answered = [key for key, record in records.items() if record.outcome(judge) not in ("error",) and record.answer]
    found = read_labels_csv(path, benchmark.labels, answered)
    labelling = Labelling(store, benchmark, judge, 0, ())
    for instance, said in found:
        labelling.label(records[instance], said)
    print(f"{judge}: {len(found)} labels taken from {clean(str(path))}.")
    return 0


def _export(labelling: Labelling, path: Path) -> int:
    done = labelling.done()
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
        writer.writerow([spreadsheet_cell(cell) for cell in cells])
    try:
        path.write_text(out.getvalue(), "utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}.") from error
    print(f"wrote {clean(str(path))}: fill in the column label with {', '.join(labelling.benchmark.labels)}.")
    return 0
