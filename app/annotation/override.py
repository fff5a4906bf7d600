"""Overriding: a person gives an answer another label than its judge gave, with a reason. The judge's verdict stays."""

from __future__ import annotations

from pathlib import Path

from app.store.run import RunStore
from benchmarks.base import Verdict, did_you_mean, get_benchmark
from benchmarks.errors import SpecError
from judges.human_labels import override_id


def override(folder: Path, person: str, instance: str, label: str, reason: str) -> Verdict | None:
    """Keep ``label`` for an instance's answer as what ``person`` says; what they said of it before, if anything.

    Raises SpecError for an unknown label or instance, an answer that is an error or not there, and a missing reason.
    """
    judge = override_id(person)
    if not reason.strip():
        raise SpecError("an override needs a reason: what in the answer makes it this label?")
    with RunStore.open(folder) as store:
        labels = get_benchmark(store.meta("spec")["benchmark"]).labels
        if label not in labels:
            raise SpecError(f"there is no label {label!r}; {did_you_mean(label.upper(), labels)}")
        before = _said(store, judge, instance)
        _give(store, instance, Verdict(judge, "labelled", label, reason.strip()))
        return before


def take_back(folder: Path, person: str, instance: str, before: Verdict | None = None) -> bool:
    """Take back what ``person`` said of an instance's answer, in favour of ``before``; False where they had said nothing."""
    judge = override_id(person)
    with RunStore.open(folder) as store:
        if _said(store, judge, instance) is None:
            return False
        if before is None:
            store.retract(judge, instance=instance)
        else:
            _give(store, instance, before)
        return True


def _said(store: RunStore, judge: str, instance: str) -> Verdict | None:
    for record in store.records(only=instance):
        return record.verdicts.get(judge)
    raise SpecError(f"{store.folder.name} has no instance {instance!r}; the samples' ids are in `rashomon export`.")


def _give(store: RunStore, instance: str, verdict: Verdict) -> None:
    answer = store.answer_of(instance)
    if answer is None:
        raise SpecError(f"{instance!r} has no answer that could be labelled: it is an error, or not there yet.")
    generation, condition = answer
    right = verdict.label is not None and verdict.label in store.meta("correct", {}).get(condition, ())
    store.add_verdicts([(generation, condition, verdict, right)])
