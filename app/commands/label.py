"""``rashomon label``: a person labels a sample of a run's answers, in the terminal or through a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.paths import typed_path
from app.report.text import clean, spreadsheet_cell
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Benchmark, Record, Verdict, get_benchmark
from benchmarks.errors import SpecError, StoreError
from judges.human import annotator_id, blind, blind_id, read_labels_csv, sample

SAMPLE = 100
"""How many answers a person is asked to label unless told otherwise."""

_LINE = "─" * 60


@dataclass(frozen=True)
class Labelling:
    """One person's sample of one run; ``answers`` are the generation ids of what they are shown."""

    store: RunStore
    benchmark: Benchmark
    judge: str
    seed: int
    records: tuple[Record, ...]
    answers: Mapping[str, int]

    def label(self, record: Record, label: str | None) -> None:
        """Keep ``label``, durably, in place of what this person said of the answer before; None: they cannot label it.

        Raises StoreError where the answer is not the one that was shown any more.
        """
        answer = self.store.answer_of(record.instance.id)
        if answer is None or answer[0] != self.answers[record.instance.id]:
            raise StoreError(f"{self.store.folder.name} was asked again meanwhile; start labelling again.")
        generation, condition = answer
        if label is None:
            verdict = Verdict(self.judge, "unparsed", reason="skipped by hand")
        else:
            verdict = Verdict(self.judge, "labelled", label, "by hand")
        correct = label is not None and self.benchmark.correct(condition, label)
        self.store.add_verdicts([(generation, condition, verdict, correct)])

    def done(self) -> dict[str, str | None]:
        """What this person has looked at in the run: instance id to label, None where they skipped it."""
        verdicts = ((record.instance.id, record.verdicts.get(self.judge)) for record in self.store.records())
        return {instance: verdict.label for instance, verdict in verdicts if verdict is not None}


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
        labelling = _sample(store, benchmark, judge, n, seed)
        if export_file is not None:
            return _export(labelling, typed_path(export_file))
        return _converse(labelling, ask)


def _sample(store: RunStore, benchmark: Benchmark, judge: str, n: int | None, seed: int | None) -> Labelling:
    before = store.meta(f"labelling {judge}", {"n": SAMPLE, "seed": 0 if seed is None else seed})
    if "seed" not in before:
        raise SpecError(f"the labels of {judge} were imported as a sample of their own; label under another name.")
    if seed is not None and seed != before["seed"]:
        raise SpecError(f"{judge} began with --seed {before['seed']}; go on with it, or label under another name.")
    if n is not None and n < 1:
        raise SpecError("--n must be at least 1.")
    done, total = (sum(getattr(p, what) for p in store.progress()) for what in ("done", "total"))
    if done < total:
        raise SpecError(
            f"{store.folder.name} is answered to {done} of {total}; finish it first, since a sample drawn now would not be "
            "one of all its answers."
        )
    by_id = {record.instance.id: record for record in store.records()}
    # A sample only grows: labels that were given on it must not fall out of it.
    now = {"n": max(n or before["n"], len(before.get("sample", ()))), "seed": before["seed"]}
    chosen = sample(by_id.values(), now["n"], now["seed"], stratify_by=benchmark.stratum)
    if not chosen:
        raise SpecError(f"{store.folder.name} has no answers to label.")
    store.set_meta(f"labelling {judge}", {**now, "sample": chosen})
    answers = {each: answer[0] for each in chosen if (answer := store.answer_of(each))}
    return Labelling(store, benchmark, judge, now["seed"], tuple(by_id[each] for each in chosen), answers)


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
        except EOFError:
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
            done.pop(before, None)
            labelling.store.retract(labelling.judge, instance=before)
            continue
        chosen = _label(said, labels)
        if chosen is None and said.lower() != "s":
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
    if said.isascii() and said.isdigit() and len(said) < 4:
        return labels[int(said) - 1] if 1 <= int(said) <= len(labels) else None
    begun = [label for label in labels if said and label.startswith(said.upper())]
    return begun[0] if len(begun) == 1 else None


def _import(store: RunStore, benchmark: Benchmark, judge: str, path: Path, random_sample: bool) -> int:
    records = {record.instance.id: record for record in store.records()}
    answers = {each: answer[0] for each in records if (answer := store.answer_of(each))}
    names = {blind_id(records[each]): each for each in answers} | {each: each for each in answers}
    found = read_labels_csv(path, benchmark.labels, names)
    labelling = Labelling(store, benchmark, judge, 0, (), answers)
    for instance, said in found:
        labelling.label(records[instance], said)
    if random_sample:
        store.set_meta(f"labelling {judge}", {"sample": [instance for instance, _ in found]})
    print(f"{judge}: {len(found)} labels taken from {clean(str(path))}.")
    if not random_sample and store.meta(f"labelling {judge}") is None:
        print("They correct no figures, unless --random-sample says that they are on a random sample of all answers.")
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
        writer.writerow([spreadsheet_cell(cell or "") for cell in cells])
    try:
        path.write_text(out.getvalue(), "utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}.") from error
    print(f"wrote {clean(str(path))}: fill in the column label with {', '.join(labelling.benchmark.labels)}.")
    return 0
