"""Human labels on a random sample: the labels that may correct metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from app.store.run_store import RunStore
from benchmarks.answers import AnswerKind, Answers
from benchmarks.vocabulary import Record


def drawn_samples(stores: Mapping[str, RunStore], person: str) -> dict[str, list[str]]:
    """Return the sample drawn for ``person`` in each run, as instance ids; empty for a run without one."""
    return {run: store.meta(f"labelling {person}", {}).get("sample", []) for run, store in stores.items()}


def restrict_to_sample(
    runs: Mapping[str, Answers], person: str, drawn: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Answers], int]:
    """Return the runs without those verdicts of ``person`` that are not on a random sample, and the number removed.

    Every beginning of a sample is random. Labels after the first unlabelled answer do not count, because the person may have
    chosen the answers that are easier to label.
    """
    restricted: dict[str, Answers] = {}
    outside_count = 0
    for run, answers in runs.items():
        positions = answers.mask(lambda kind: person in kind.verdicts).nonzero()[0].tolist()
        records = {record.instance.id: record for record in answers.read(positions)}
        labelled = dict(zip(records, positions, strict=True))
        beginning = list(takewhile(labelled.__contains__, drawn[run]))
        if len(beginning) < len(drawn[run]):  # those at its end may have been labelled because they are undecided
            while beginning and _is_undecided(records[beginning[-1]]):
                beginning.pop()
        for instance in beginning:
            del labelled[instance]
        outside_count += len(labelled)
        restricted[run] = answers.derive_at([*labelled.values()], lambda kind: _without(kind, person))
    return restricted, outside_count


def _is_undecided(record: Record) -> bool:
    return any(verdict.status == "undecided" for verdict in record.verdicts.values())


def _without(kind: AnswerKind, person: str) -> AnswerKind:
    return replace(kind, verdicts={judge: verdict for judge, verdict in kind.verdicts.items() if judge != person})
