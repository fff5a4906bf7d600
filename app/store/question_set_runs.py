"""Runs of a question set: those whose data digest is that of one of its versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.store.question_sets import QuestionSet
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.tried_models import TriedModels
from app.store.workspace import Workspace
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import digest
from mlx_backends.baseline_engine import split_baseline
from mlx_backends.person_engine import PERSON
from mlx_backends.policy_engine import PREFIX

FINAL = "final"
_NOT_SUBJECT = ("data digest", "part", "device", "seed", "fresh")
_ALL_ASKED: Mapping[str, Any] = {"conditions": [], "limit": None, "strata": {}}
"""The values of an identity's keys under which every instance is asked: a look at a few is a look at the same subject."""
_VERSION = "version of "
"""The beginning of an identity's keys that are versions of the engine."""


@dataclass(frozen=True)
class SetRun:
    """A run of a set.

    Attributes:
        version: The number of the version that it was asked.
        part: The part that it was asked: "open", "final", or "" for all rows.
        subject: The key of its model with its weights, prompts and settings; two versions of a set have one subject.
        complete: Whether every instance of its part was answered and judged.
        created: When it was planned, by that clock.
    """

    name: str
    version: int
    model: str
    part: str
    subject: str
    complete: bool
    created: float

    @property
    def is_model(self) -> bool:
        """False for a policy, a baseline and a person, which no decision is about."""
        return not self.model.startswith((PREFIX, PERSON)) and not split_baseline(self.model)[0]

    @property
    def is_policy(self) -> bool:
        """True for a policy and a baseline."""
        return not self.is_model and not self.model.startswith(PERSON)

    @property
    def is_final(self) -> bool:
        return self.part == FINAL


def read_runs(workspace: Workspace, question_set: QuestionSet, names: Iterable[str] | None = None) -> list[SetRun]:
    """Return the runs of a set that were begun, all or those of these ``names``, oldest first by the clock."""
    benchmark = get_benchmark(question_set.benchmark)
    conditions = set(benchmark.default_conditions or benchmark.conditions)
    runs = []
    by_data = workspace.runs_by_data(names)
    for build_digest, version in {version.digest: version.number for version in question_set.versions}.items():
        for name in by_data.get(build_digest, ()):
            folder = workspace.runs_folder / name
            with RunStore.read(folder) as store:
                spec, identity, created = store.meta("spec"), store.meta("identity"), store.meta("created", 0.0)
            summary = read_summary(folder)
            if not summary.done:
                continue
            asked = set(spec["conditions"]) or conditions
            selects = spec.get("limit") or spec.get("strata") or not conditions <= asked
            runs.append(
                SetRun(
                    name,
                    version,
                    str(spec["model"]),
                    str(spec.get("part") or ""),
                    subject_of(identity),
                    summary.state == "done" and not selects,
                    float(created),
                )
            )
    return sorted(runs, key=lambda run: (run.created, run.name))


def subject_of(identity: Mapping[str, Any]) -> str:
    """Return the key of what a run's identity says of its model, prompts and settings, whatever data and engine."""
    unnamed = ("model",) if identity.get("weights digest") else ()  # the folder of a local model may move
    facts = {key: _ALL_ASKED.get(key, value) for key, value in identity.items() if key not in (*_NOT_SUBJECT, *unnamed)}
    return digest({key: value for key, value in facts.items() if not key.startswith(_VERSION)})[:16]


def all_subjects(runs: Sequence[SetRun], tried: TriedModels) -> tuple[str, ...]:
    """Return the subjects of the models tried on a set: first those remembered, then others in the order of their runs."""
    return tuple(dict.fromkeys([*tried.subjects, *(run.subject for run in runs if run.is_model)]))


def newest_runs(runs: Sequence[SetRun], tried: TriedModels, *, final: bool = False) -> list[SetRun]:
    """Return the run of each subject that has a complete one, in the order of the subjects: that of the newest version."""
    order = {subject: place for place, subject in enumerate(all_subjects(runs, tried))}
    newest: dict[str, SetRun] = {}
    for run in runs:
        before = newest.get(run.subject)
        if run.complete and run.is_final == final and (before is None or run.version >= before.version):
            newest[run.subject] = run
    return sorted(newest.values(), key=lambda run: order.get(run.subject, len(order)))
