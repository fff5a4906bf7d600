"""The human baseline: the answers of several people to one benchmark, their mean, and how far they agree."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.annotation.review_outcomes import agreement_table
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.answers import kind_of
from benchmarks.base import Benchmark
from benchmarks.stats.intervals import wilson
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Cell, Estimate, Table
from judges.judge_registry import find_judge
from mlx_backends.person_engine import PERSON

if TYPE_CHECKING:
    from benchmarks.vocabulary import Record

_ALL = "all"


@dataclass(frozen=True, slots=True)
class PersonAnswers:
    """One person's answers: labels and right answers by instance, seconds of each answer, and the size of the run."""

    person: str
    labels: Mapping[str, str]
    right: Mapping[str, bool]
    """By instance, of the answers that the benchmark's tables count."""
    groups: Mapping[str, tuple[str, str]]
    """The condition and the stratum of each answered instance."""
    seconds: Sequence[float]
    total: int
    justified: int = 0
    """The number of answers with a justification."""


def people_runs(workspace: Workspace, benchmark: str, build_digest: str) -> list[Path]:
    """Return the runs of people for a build of a benchmark, by name."""
    folders = []
    for name in workspace.run_names():
        folder = workspace.runs_folder / name
        with RunStore.read(folder) as store:
            spec, identity = store.meta("spec", {}), store.meta("identity", {})
        is_person = str(spec.get("model", "")).startswith(PERSON)
        if is_person and spec["benchmark"] == benchmark and identity.get("data digest") == build_digest:
            folders.append(folder)
    return folders


def read_people(folders: Sequence[Path], benchmark: Benchmark, judge: str | None) -> list[PersonAnswers]:
    """Return the people's answers as ``judge`` labels them, by default each run's first judge."""
    return [_read(folder, benchmark, judge) for folder in folders]


def _read(folder: Path, benchmark: Benchmark, judge: str | None) -> PersonAnswers:
    labels, right, seconds, groups, total, justified = {}, {}, [], {}, 0, 0
    with RunStore.read(folder) as store:
        spec = store.meta("spec")
        judge_id = find_judge(judge or spec["judge"][0], benchmark).id
        for record in store.records():
            total += 1
            if record.answer is None:
                continue
            instance = record.instance
            groups[instance.id] = instance.condition, instance.strata.get(benchmark.stratum, "")
            justified += visible_answer(record.answer.text) != record.answer.text
            seconds.append(_seconds(record))
            if (score := benchmark.counted_score(kind_of(record, benchmark), judge_id)) is not None:
                right[instance.id] = score == 1
            if record.outcome(judge_id) == "labelled":
                labels[instance.id] = str(record.verdicts[judge_id].label)
    return PersonAnswers(str(spec["model"]).removeprefix(PERSON), labels, right, groups, seconds, total, justified)


def _seconds(record: Record) -> float:
    return sum(generation.decode_s or 0.0 for generation in record.generations)


def people_tables(people: Sequence[PersonAnswers], benchmark: Benchmark, *, seed: int = 0) -> list[Table]:
    """Return the tables people and strata; for two or more people, also agreement and right."""
    return [_people(people, benchmark), _strata(people, benchmark), *_agreements(people, benchmark, seed)]


def _people(people: Sequence[PersonAnswers], benchmark: Benchmark) -> Table:
    conditions = [c for c in benchmark.conditions if any(c == group[0] for p in people for group in p.groups.values())]
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    by_person = [_shares(person, 0) for person in people]
    justified = any(person.justified for person in people)
    for person, shares in zip(people, by_person, strict=True):
        cells = [shares.get(column, Estimate(None, reason="not answered")) for column in (*conditions, _ALL)]
        median = Estimate(statistics.median(person.seconds), n=len(person.seconds)) if person.seconds else None
        reasons = [person.justified] if justified else []
        rows.append((person.person, (f"{len(person.groups)} of {person.total}", *cells, median, *reasons)))
    means = [_mean([shares[column] for shares in by_person if column in shares]) for column in (*conditions, _ALL)]
    rows.append(("mean", ("", *means, None, *([None] if justified else []))))
    note = (
        "The share of right answers, with Wilson's 95% interval; an answer without a label counts as in the tables. mean: over "
        "people, ± the standard deviation between them.",
        "seconds: the median time of an answer.",
    )
    columns = ("answered", *conditions, _ALL, "seconds", *(["justified"] if justified else []))
    return Table("people", "Human baseline", columns, tuple(rows), note, judges=())


def _agreements(people: Sequence[PersonAnswers], benchmark: Benchmark, seed: int) -> list[Table]:
    """Return the agreement of labels and of right answers between people; nothing of a single person."""
    labels = {person.person: person.labels for person in people if person.labels}
    if len(people) < 2 or len(labels) < 2:
        return []
    right = {
        person.person: {item: "right" if is_right else "wrong" for item, is_right in person.right.items()}
        for person in people
    }
    title = "Agreement of the labels of people's answers"
    right_title = "Agreement on which questions are answered right"
    return [
        agreement_table("agreement", title, labels, benchmark.labels, seed),
        agreement_table("right", right_title, right, ("right", "wrong"), seed),
    ]


def _strata(people: Sequence[PersonAnswers], benchmark: Benchmark) -> Table:
    by_person = [_shares(person, 1) for person in people]
    names = sorted({name for shares in by_person for name in shares if name != _ALL})
    rows = []
    for name in names:
        values = [shares[name] for shares in by_person if name in shares]
        rows.append((name, (*(shares.get(name) for shares in by_person), _mean(values))))
    columns = (*(person.person for person in people), "mean")
    return Table("strata", f"Human baseline by {benchmark.stratum}", columns, tuple(rows), judges=())


def _shares(person: PersonAnswers, which: int) -> dict[str, Estimate]:
    """Return the shares of right answers by condition (0) or stratum (1), and of all."""
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for item, is_right in person.right.items():
        for name in (person.groups[item][which], _ALL):
            counts[name][0] += is_right
            counts[name][1] += 1
    return {name: wilson(right, n) for name, (right, n) in counts.items()}


def _mean(shares: Sequence[Estimate]) -> Estimate:
    """Return the mean over people, with the standard deviation between them; of one person, without."""
    values = [share.value for share in shares if share.value is not None]
    if not values:
        return Estimate(None, reason="nobody has answered")
    return Estimate(statistics.fmean(values), n=len(values), sd=statistics.stdev(values) if len(values) > 1 else None)
