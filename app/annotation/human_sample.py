"""Which labels by a person correct figures: those on the sample that was drawn for them, as far as they have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.store.run import RunStore
from benchmarks.base import Record


def samples(stores: Mapping[str, RunStore], person: str) -> dict[str, list[str]]:
    """The samples of answers, by instance id, that were drawn for ``person`` in each of these runs; empty where none was."""
    return {run: store.meta(f"labelling {person}", {}).get("sample", []) for run, store in stores.items()}


def on_the_sample(
    runs: Mapping[str, Sequence[Record]], person: str, drawn: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[Record]], int]:
    """The runs with those verdicts of ``person`` alone that are on a random sample, and how many are not.

    A sample is random from its beginning to any place. So what was looked at after the first answer that was not does not
    count: of two answers somebody may have chosen the one that is easier to label.
    """
    kept: dict[str, list[Record]] = {}
    outside = 0
    for run, records in runs.items():
        seen = {record.instance.id for record in records if person in record.verdicts}
        used: set[str] = set()
        for instance in drawn[run]:
            if instance not in seen:
                break
            used.add(instance)
        outside += len(seen - used)
        kept[run] = [
            record
            if record.instance.id in used or person not in record.verdicts
            else replace(record, verdicts={judge: v for judge, v in record.verdicts.items() if judge != person})
            for record in records
        ]
    return kept, outside
