"""Labelling sessions: a person's random sample of a run, and their progress through it. Used by the CLI and the TUI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from app.store.run_store import RunStore
from benchmarks import number_ranges as ranges
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError, StoreError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Record, Verdict
from judges.human_labels_and_samples import BlindAnswer, blind_answer
from judges.human_labels_and_samples import draw_sample as draw_ids
from judges.prediction_powered import MIN_LABELS

DEFAULT_SAMPLE_SIZE = 100
"""The default number of answers to label."""


@dataclass(frozen=True)
class LabellingTask:
    """One person's answers to label of one run; ``answers`` maps instance ids to the generation ids of the displayed answers.

    The first ``undecided`` of the records are those that the run's judge left undecided; the others are a random sample.
    """

    benchmark: Benchmark
    judge: str
    seed: int
    records: tuple[Record, ...]
    answers: Mapping[str, int]
    advice: str = ""
    """One or two sentences on whether the sample is large enough to correct metrics, and which number would be."""
    undecided: int = 0

    def label(self, store: RunStore, record: Record, label: str | None) -> None:
        """Store ``label`` in place of this person's earlier one; None means that they skip the answer.

        Raises StoreError if the answer has changed since it was displayed.
        """
        answer = store.answer_of(record.instance.id)
        if answer is None or answer[0] != self.answers[record.instance.id]:
            # The run is not named, because its name can reveal the model.
            raise StoreError("the answers have changed in the meantime; start a new labelling session.")
        generation, condition = answer
        if label is None:
            verdict = Verdict(self.judge, "unparsed", reason="skipped by hand")
        else:
            verdict = Verdict(self.judge, "labelled", label, "by hand")
        store.add_verdicts([(generation, condition, verdict)])

    def done(self, store: RunStore) -> dict[str, str | None]:
        """Return this person's labels by instance id; None for a skipped answer."""
        verdicts = ((record.instance.id, record.verdicts.get(self.judge)) for record in store.records())
        return {instance: verdict.label for instance, verdict in verdicts if verdict is not None}


def draw_sample(
    store: RunStore, judge: str, n: int | None = None, seed: int | None = None, undecided: Collection[str] = ()
) -> LabellingTask:
    """Draw the sample of ``n`` answers for the person ``judge``, or return the one drawn before; it is stored with the run.

    All of ``undecided``, the instances whose answers the run's judge left undecided, come before it.

    Raises SpecError if the sample was drawn with another seed, or if the run is unfinished: a sample drawn then would not be
    one of all its answers.
    """
    benchmark = get_benchmark(store.meta("spec")["benchmark"])
    stored_sample = store.meta(f"labelling {judge}", {"n": DEFAULT_SAMPLE_SIZE, "seed": 0 if seed is None else seed})
    if "seed" not in stored_sample:
        raise SpecError(f"the labels of {judge} were imported with their own sample; label under another name.")
    if seed is not None and seed != stored_sample["seed"]:
        raise SpecError(
            f"{judge} has a sample drawn with --seed {stored_sample['seed']}; use that seed, or label under another name."
        )
    ranges.ROWS.check("--n", n)
    done, total = (sum(getattr(p, field) for p in store.progress()) for field in ("done", "total"))
    if done < total:
        raise SpecError(
            f"{store.folder.name} has {done} of {total} answers; finish it first, because a sample drawn now would not be one "
            "of all its answers."
        )
    by_id = {record.instance.id: record for record in store.records()}
    # A sample only grows, so that no label drops out of it.
    settings = {"n": max(n or stored_sample["n"], len(stored_sample.get("sample", ()))), "seed": stored_sample["seed"]}
    order = draw_ids(by_id.values(), len(by_id), settings["seed"], stratify_by=benchmark.stratum)
    sample_ids = order[: settings["n"]]
    if not sample_ids:
        raise SpecError(f"{store.folder.name} has no answers to label.")
    store.set_meta(f"labelling {judge}", {**settings, "sample": sample_ids})
    first = [instance for instance in order if instance in undecided]
    chosen = [*first, *(instance for instance in sample_ids if instance not in undecided)]
    answers = {instance: answer[0] for instance in chosen if (answer := store.answer_of(instance))}
    advice = sample_size_advice(benchmark, [by_id[instance].instance.condition for instance in order], len(sample_ids))
    records = tuple(by_id[instance] for instance in chosen)
    return LabellingTask(benchmark, judge, settings["seed"], records, answers, advice, len(first))


def sample_size_advice(benchmark: Benchmark, conditions: Sequence[str], n: int) -> str:
    """Return whether the first ``n`` answers of a sample are enough to correct metrics, and how many would be, in words.

    ``conditions`` are those of all answers in the sample's order. Empty if the benchmark has no metrics to correct.
    """
    label_metrics = benchmark.label_metrics()
    if label_metrics is None:
        return ""
    total, sample_counts = Counter(conditions), Counter(conditions[:n])
    needed = [condition for condition in label_metrics.conditions if total[condition]]
    smallest_count = min((sample_counts[condition] for condition in needed), default=0)
    if smallest_count >= MIN_LABELS:
        return f"{n} labels are enough to correct the metrics: each condition has at least {MIN_LABELS}."
    # The conditions are not named, because labelling is blind to them.
    sufficient = [condition for condition in needed if sample_counts[condition] >= MIN_LABELS]
    metrics = "every metric" if sufficient else "the metrics"
    advice = (
        f"{n} labels are too few to correct {metrics}: each condition needs {MIN_LABELS}, and one has {smallest_count}."
    )
    possible = [condition for condition in needed if total[condition] >= MIN_LABELS]
    if possible and (number := _sufficient_size(conditions, possible)) > n:
        advice += f" {number} labels are enough: --n {number}."
    if lacking := len(needed) - len(possible):
        conditions_lacking = "under each condition" if not possible else f"under {lacking} of {len(needed)} conditions"
        advice += f" The run has fewer than {MIN_LABELS} answers {conditions_lacking}."
    return advice


def _sufficient_size(conditions: Sequence[str], needed: Sequence[str]) -> int:
    """Return the smallest sample size with ``MIN_LABELS`` answers under each of the conditions ``needed``."""
    missing = dict.fromkeys(needed, MIN_LABELS)
    for number, condition in enumerate(conditions, 1):
        if condition in missing:
            missing[condition] -= 1
            if max(missing.values()) <= 0:
                return number
    return len(conditions)


class LabellingSession:
    """A person's labelling session: the current answer and the labels that can be undone, from earlier sessions too."""

    def __init__(self, task: LabellingTask, store: RunStore) -> None:
        self.task = task
        known = task.done(store)
        self._done = {r.instance.id: known[r.instance.id] for r in task.records if r.instance.id in known}
        self._undo = [number for number, r in enumerate(task.records) if r.instance.id in self._done]
        self._at = 0

    @property
    def total(self) -> int:
        return len(self.task.records)

    @property
    def count(self) -> int:
        """The number of answers that are labelled or skipped."""
        return len(self._done)

    @property
    def summary(self) -> str:
        """The numbers of labelled and skipped answers, in words."""
        skipped = sum(label is None for label in self._done.values())
        labelled = self.count - skipped
        return (
            f"{labelled} labelled, {skipped} skipped, of {self.total}"
            if skipped
            else f"{labelled} of {self.total} labelled"
        )

    @property
    def position(self) -> int | None:
        """The current answer's position in the sample; None at the end."""
        while self._at < self.total and self.task.records[self._at].instance.id in self._done:
            self._at += 1
        return self._at if self._at < self.total else None

    @property
    def current(self) -> BlindAnswer | None:
        """The current answer as displayed; None at the end."""
        position = self.position
        if position is None:
            return None
        return blind_answer(self.task.records[position], self.task.benchmark.labels, self.task.seed)

    @property
    def at_undecided(self) -> bool:
        """True if the current answer is one that the judge left undecided."""
        position = self.position
        return position is not None and position < self.task.undecided

    @property
    def last_labelled(self) -> str | None:
        """The instance whose label :meth:`undo` removes; None if there is none."""
        return self.task.records[self._undo[-1]].instance.id if self._undo else None

    def skip_undecided(self) -> None:
        """Go on with the random sample."""
        self._at = max(self._at, self.task.undecided)

    def label_current(self, store: RunStore, label: str | None) -> None:
        """Store the label of the current answer and advance; None skips it. Raises StoreError as LabellingTask.label does."""
        position = self.position
        if position is None:
            return
        record = self.task.records[position]
        self.task.label(store, record, label)
        self._done[record.instance.id] = label
        self._undo.append(position)

    def undo(self, store: RunStore) -> bool:
        """Remove the last label and return to its answer; return False if there is none."""
        if not self._undo:
            return False
        self._at = self._undo.pop()
        instance = self.task.records[self._at].instance.id
        self._done.pop(instance, None)
        store.retract(self.task.judge, instance=instance)
        return True


def match_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that ``text`` stands for: its number from 1, its name, or a unique prefix of its name."""
    if text.isascii() and text.isdigit() and len(text) < 4:
        return labels[int(text) - 1] if 1 <= int(text) <= len(labels) else None
    if text.upper() in labels:
        return text.upper()
    matches = [label for label in labels if text and label.upper().startswith(text.upper())]
    return matches[0] if len(matches) == 1 else None
