"""Labelling: one person's sample of a run, and a sitting in which they label it. For the command line and the screen alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.store.run import RunStore
from benchmarks.base import Benchmark, Record, Verdict, get_benchmark
from benchmarks.errors import SpecError, StoreError
from judges.human_labels import BlindAnswer, blind, sample
from judges.prediction_powered import FEWEST

SAMPLE = 100
"""How many answers a person is asked to label unless told otherwise."""


@dataclass(frozen=True)
class LabellingTask:
    """One person's sample of one run; ``answers`` are the generation ids of what they are shown."""

    benchmark: Benchmark
    judge: str
    seed: int
    records: tuple[Record, ...]
    answers: Mapping[str, int]
    enough: str = ""
    """Whether the sample is large enough to correct figures, and if not, the number that is; a sentence or two."""

    def label(self, store: RunStore, record: Record, label: str | None) -> None:
        """Keep ``label``, durably, in place of what this person said of the answer before; None: they cannot label it.

        Raises StoreError where the answer is not the one that was shown any more.
        """
        answer = store.answer_of(record.instance.id)
        if answer is None or answer[0] != self.answers[record.instance.id]:
            raise StoreError(f"{store.folder.name} was asked again meanwhile; start labelling again.")
        generation, condition = answer
        if label is None:
            verdict = Verdict(self.judge, "unparsed", reason="skipped by hand")
        else:
            verdict = Verdict(self.judge, "labelled", label, "by hand")
        correct = label is not None and self.benchmark.correct(condition, label)
        store.add_verdicts([(generation, condition, verdict, correct)])

    def done(self, store: RunStore) -> dict[str, str | None]:
        """What this person has looked at in the run: instance id to label, None where they skipped it."""
        verdicts = ((record.instance.id, record.verdicts.get(self.judge)) for record in store.records())
        return {instance: verdict.label for instance, verdict in verdicts if verdict is not None}


def draw(store: RunStore, judge: str, n: int | None = None, seed: int | None = None) -> LabellingTask:
    """The sample of ``n`` answers that the person ``judge`` is shown, which is kept with the run; what was begun is gone on with.

    Raises SpecError where a sample was begun with another seed, and where the run is not answered to the end: a sample drawn
    then is none of all its answers.
    """
    benchmark = get_benchmark(store.meta("spec")["benchmark"])
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
    order = sample(by_id.values(), len(by_id), now["seed"], stratify_by=benchmark.stratum)
    chosen = order[: now["n"]]
    if not chosen:
        raise SpecError(f"{store.folder.name} has no answers to label.")
    store.set_meta(f"labelling {judge}", {**now, "sample": chosen})
    answers = {each: answer[0] for each in chosen if (answer := store.answer_of(each))}
    enough = enough_sentence(benchmark, [by_id[each].instance.condition for each in order], len(chosen))
    return LabellingTask(benchmark, judge, now["seed"], tuple(by_id[each] for each in chosen), answers, enough)


def enough_sentence(benchmark: Benchmark, conditions: Sequence[str], n: int) -> str:
    """Say whether the first ``n`` answers of a sample suffice to correct figures, and how many do.

    ``conditions`` are those of all answers in the sample's order. Empty where the benchmark has no figures to correct.
    """
    figures = benchmark.figures()
    if figures is None:
        return ""
    total, drawn = Counter(conditions), Counter(conditions[:n])
    needed = [condition for condition in figures.conditions if total[condition]]
    fewest = min((drawn[condition] for condition in needed), default=0)
    if fewest >= FEWEST:
        return f"{n} labels are enough to correct figures: each condition has {FEWEST} or more of them."
    # The conditions have no names here: whoever labels is not shown them.
    some = [condition for condition in needed if drawn[condition] >= FEWEST]
    what = "not every figure" if some else "no figure"
    told = f"{n} labels correct {what}: {FEWEST} are needed under each condition, and one has {fewest} of them."
    possible = [condition for condition in needed if total[condition] >= FEWEST]
    if possible and (number := _suffices(conditions, possible)) > n:
        told += f" {number} labels are enough: --n {number}."
    if lacking := len(needed) - len(possible):
        told += f" {lacking} of {len(needed)} conditions have fewer answers than that; figures that need them stay uncorrected."
    return told


def _suffices(conditions: Sequence[str], needed: Sequence[str]) -> int:
    """Return how many of the first answers have ``FEWEST`` under each of ``needed``."""
    missing = dict.fromkeys(needed, FEWEST)
    for number, condition in enumerate(conditions, 1):
        if condition in missing:
            missing[condition] -= 1
            if max(missing.values()) <= 0:
                return number
    return len(conditions)


class LabellingSession:
    """A person going through their sample: the answer they are at, and what can be undone, of earlier sittings too."""

    def __init__(self, labelling: LabellingTask, store: RunStore) -> None:
        self.labelling = labelling
        known = labelling.done(store)
        self._done = {r.instance.id for r in labelling.records if r.instance.id in known}
        self._undo = [number for number, r in enumerate(labelling.records) if r.instance.id in self._done]
        self._at = 0

    @property
    def total(self) -> int:
        return len(self.labelling.records)

    @property
    def count(self) -> int:
        """How many answers they have looked at."""
        return len(self._done)

    @property
    def place(self) -> int | None:
        """The place in the sample of the answer they are at; None where none is left."""
        while self._at < self.total and self.labelling.records[self._at].instance.id in self._done:
            self._at += 1
        return self._at if self._at < self.total else None

    @property
    def shown(self) -> BlindAnswer | None:
        """What they are shown of it."""
        place = self.place
        if place is None:
            return None
        return blind(self.labelling.records[place], self.labelling.benchmark.labels, self.labelling.seed)

    def give(self, store: RunStore, label: str | None) -> None:
        """Label the answer they are at, durably, and go on; None: they cannot label it. Raises StoreError as Labelling.label."""
        place = self.place
        if place is None:
            return
        record = self.labelling.records[place]
        self.labelling.label(store, record, label)
        self._done.add(record.instance.id)
        self._undo.append(place)

    def undo(self, store: RunStore) -> bool:
        """Take back the last label and go back to its answer; False where there is none."""
        if not self._undo:
            return False
        self._at = self._undo.pop()
        before = self.labelling.records[self._at].instance.id
        self._done.discard(before)
        store.retract(self.labelling.judge, instance=before)
        return True


def meant(said: str, labels: Sequence[str]) -> str | None:
    """The label that ``said`` means: its number from 1, or its name or the beginning of it that no other has."""
    if said.isascii() and said.isdigit() and len(said) < 4:
        return labels[int(said) - 1] if 1 <= int(said) <= len(labels) else None
    if said.upper() in labels:
        return said.upper()
    begun = [label for label in labels if said and label.upper().startswith(said.upper())]
    return begun[0] if len(begun) == 1 else None
