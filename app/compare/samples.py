"""One instance in several runs: what was asked, and what each of them answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.compare.pairs import RunPair
from app.report.judge_selection import judged_records
from app.report.media import media_path
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Instance, Media, Outcome, Text
from benchmarks.errors import SpecError
from benchmarks.text.answer_text import visible_answer


@dataclass(frozen=True, slots=True)
class Flip:
    """An instance that two runs share, what came of it in each, and how both answers begin."""

    instance: str
    condition: str
    was: str
    now: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """What a run said of an instance. ``label`` is None where it has none, which ``outcome`` tells; ``reason`` is the judge's."""

    answer: str
    outcome: Outcome
    label: str | None
    reason: str
    cut: bool
    """Whether the answer ended at the token limit."""


@dataclass(frozen=True, slots=True)
class InstanceComparison:
    """An instance and what each run said of it; None for a run that was not asked it. ``media`` are those that are there."""

    instance: Instance
    prompt: str
    media: tuple[tuple[Media, Path], ...]
    told: tuple[AnswerSummary | None, ...]


def flips(pair: RunPair, was: str | None = None, now: str | None = None) -> list[Flip]:
    """The shared instances whose label is another, in the first run's order; of one cell where ``was`` and ``now`` say which.

    None stands for all. A cell of the diagonal gives those that are the same in both.
    """
    found = []
    for instance in pair.shared:
        one, other = pair.first.said[instance], pair.second.said[instance]
        kept = was in (None, one.outcome) and now in (None, other.outcome)
        if kept and (one.outcome != other.outcome or (was is not None and was == now)):
            found.append(Flip(instance, one.condition, one.outcome, other.outcome, one.begins, other.begins))
    return found


def beside_each_other(
    workspace: Workspace, folders: Sequence[Path], instance: str, judge: str | None, judge_id: str
) -> InstanceComparison:
    """What the runs in ``folders`` said of one instance, by ``judge``, whose id is ``judge_id`` (``Sides.judge``).

    Raises SpecError where none of them was asked it.
    """
    asked: Instance | None = None
    prompt, media = "", tuple[tuple[Media, Path], ...]()
    told: list[AnswerSummary | None] = []
    for folder in folders:
        with RunStore.read(folder) as store:
            records = judged_records(store, judge, only=instance)
            if records and asked is None:
                asked, prompt = records[0].instance, _prompt(records[0].instance)
                build = workspace.build_of(store)
                shown = (part for part in asked.parts if isinstance(part, Media))
                media = tuple((part, path) for part in shown if (path := media_path(build, part)))
            told.append(None)
            for record in records:
                verdict, answer = record.verdicts.get(judge_id), record.answer
                said = "" if answer is None else answer.error or visible_answer(answer.text)
                outcome = record.outcome(judge_id)
                label = verdict.label if verdict and outcome == "labelled" else None
                cut = answer is not None and answer.finish_reason == "length"
                told[-1] = AnswerSummary(said, outcome, label, verdict.reason if verdict else "", cut)
    if asked is None:
        raise SpecError(f"none of these runs has an instance {instance!r}.")
    return InstanceComparison(asked, prompt, media, tuple(told))


def _prompt(instance: Instance) -> str:
    """The prompt with every medium as ``[image 1]``, numbered in order."""
    told, media = [], 0
    for part in instance.parts:
        if isinstance(part, Text):
            told.append(part.text)
        else:
            media += 1
            told.append(f"[{part.modality.replace('_', ' ')} {media}]")
    return "".join(told)
