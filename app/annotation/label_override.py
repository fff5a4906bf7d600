"""Overrides: a person's label for an answer, with a reason, in place of the judge's. The judge's verdict stays."""

from __future__ import annotations

from pathlib import Path

from app.store.run_store import RunStore
from benchmarks.errors import SpecError, StoreError, did_you_mean
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Record, Verdict
from judges.human_labels_and_samples import blind_id, override_id


def override(
    folder: Path, person: str, instance: str, label: str, reason: str, *, answer: str | None = None
) -> Verdict | None:
    """Store ``label`` as the override of an instance's answer by ``person``; return their earlier override, if any.

    ``answer`` is the ``blind_id`` of the answer that they saw. Raises SpecError for an unknown label or instance, an answer that
    failed or is missing, and a missing reason, and StoreError if the answer is another one by now.
    """
    judge = override_id(person)
    if not reason.strip():
        raise SpecError("an override needs a reason; say what in the answer makes it this label.")
    with RunStore.open(folder) as store:
        labels = get_benchmark(store.meta("spec")["benchmark"]).labels
        if label not in labels:
            raise SpecError(f"there is no label {label!r}; {did_you_mean(label.upper(), labels)}")
        record = _record_of(store, instance)
        if answer is not None and answer != blind_id(record):
            raise StoreError("the answer has changed in the meantime; look at the new one before you label it.")
        previous = record.verdicts.get(judge)
        _store(store, instance, Verdict(judge, "labelled", label, reason.strip()))
        return previous


def retract_override(folder: Path, person: str, instance: str, before: Verdict | None = None) -> bool:
    """Remove the override by ``person``, or replace it by the earlier one ``before``; return False if there was none."""
    judge = override_id(person)
    with RunStore.open(folder) as store:
        if judge not in _record_of(store, instance).verdicts:
            return False
        if before is None:
            store.retract(judge, instance=instance)
        else:
            _store(store, instance, before)
        return True


def _record_of(store: RunStore, instance: str) -> Record:
    for record in store.records(only=instance):
        return record
    raise SpecError(f"{store.folder.name} has no instance {instance!r}; `rashomon export` writes the ids.")


def _store(store: RunStore, instance: str, verdict: Verdict) -> None:
    answer = store.answer_of(instance)
    if answer is None:
        raise SpecError(f"{instance!r} has no answer to label: it ended in an error, or is not answered yet.")
    generation, condition = answer
    store.add_verdicts([(generation, condition, verdict)])
