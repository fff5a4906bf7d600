"""Human labels on a random sample: the labels that may correct metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.store.run import RunStore
from benchmarks.vocabulary import Record


def drawn_samples(stores: Mapping[str, RunStore], person: str) -> dict[str, list[str]]:
    """Return the sample drawn for ``person`` in each run, as instance ids; empty for a run without one."""
    return {run: store.meta(f"labelling {person}", {}).get("sample", []) for run, store in stores.items()}


def restrict_to_sample(
    runs: Mapping[str, Sequence[Record]], person: str, drawn: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[Record]], int]:
    """Return the runs without those verdicts of ``person`` that are not on a random sample, and the number removed.

    Every beginning of a sample is random. Labels after the first unlabelled answer do not count, because the person may have
    chosen the answers that are easier to label.
    """
    restricted: dict[str, list[Record]] = {}
    outside_count = 0
    for run, records in runs.items():
        labelled_ids = {record.instance.id for record in records if person in record.verdicts}
        in_sample: set[str] = set()
        for instance in drawn[run]:
            if instance not in labelled_ids:
                break
            in_sample.add(instance)
        outside_count += len(labelled_ids - in_sample)
        restricted[run] = [
            record
            if record.instance.id in in_sample or person not in record.verdicts
            else replace(record, verdicts={judge: v for judge, v in record.verdicts.items() if judge != person})
            for record in records
        ]
    return restricted, outside_count
