"""Single instances in several runs: the prompt and each run's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.compare.pairs import RunPair
from app.report.judge_selection import judged_records
from app.report.media import media_path
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Instance, Media, Outcome, Record, Text


@dataclass(frozen=True, slots=True)
class Flip:
    """An instance that two runs share, its outcome in each, and the beginnings of both answers."""

    instance: str
    condition: str
    was: str
    now: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """A run's answer to an instance. ``label`` is None where ``outcome`` is no label; ``reason`` is the judge's."""

    answer: str
    outcome: Outcome
    label: str | None
    reason: str
    truncated: bool
    """True if the answer ended at the token limit."""


@dataclass(frozen=True, slots=True)
class InstanceComparison:
    """An instance with each run's answer, None for a run that lacks the instance. ``media`` are the files that exist."""

    instance: Instance
    prompt: str
    media: tuple[tuple[Media, Path], ...]
    answers: tuple[AnswerSummary | None, ...]


def flips(pair: RunPair, was: str | None = None, now: str | None = None) -> list[Flip]:
    """Return the shared instances whose label differs, in the first run's order.

    ``was`` and ``now`` restrict them to one cell, None stands for all labels. A cell of the diagonal gives the instances with
    the same label in both.
    """
    selected = []
    for instance in pair.shared:
        first, second = pair.first.answers[instance], pair.second.answers[instance]
        in_cell = was in (None, first.outcome) and now in (None, second.outcome)
        if in_cell and (first.outcome != second.outcome or (was is not None and was == now)):
            selected.append((instance, first.condition, first.outcome, second.outcome))
    names = [instance for instance, *_ in selected]
    before, after = pair.first.excerpts(names), pair.second.excerpts(names)
    return [Flip(*fields, before.get(fields[0], ""), after.get(fields[0], "")) for fields in selected]


def compare_instance(
    workspace: Workspace, folders: Sequence[Path], instance: str, judge: str | None, judge_id: str
) -> InstanceComparison:
    """Return one instance with the answers of the runs in ``folders``, labelled by ``judge``.

    ``judge_id`` is the id of ``judge`` (:attr:`RunViews.judge`).

    Raises:
        SpecError: No run has the instance.
    """
    shared: Instance | None = None
    prompt, media = "", tuple[tuple[Media, Path], ...]()
    answers: list[AnswerSummary | None] = []
    for folder in folders:
        with RunStore.read(folder) as store:
            records = list(judged_records(store, judge, only=instance))
            if records and shared is None:
                shared, prompt = records[0].instance, _prompt(records[0].instance)
                build = workspace.build_of(store)
                parts = (part for part in shared.parts if isinstance(part, Media))
                media = tuple((part, path) for part in parts if (path := media_path(build, part)))
            answers.append(_summary(records[-1], judge_id) if records else None)
    if shared is None:
        raise SpecError(f"none of these runs has an instance {instance!r}.")
    return InstanceComparison(shared, prompt, media, tuple(answers))


def _summary(record: Record, judge_id: str) -> AnswerSummary:
    verdict, answer = record.verdicts.get(judge_id), record.answer
    outcome = record.outcome(judge_id)
    return AnswerSummary(
        "" if answer is None else answer.error or visible_answer(answer.text),
        outcome,
        verdict.label if verdict and outcome == "labelled" else None,
        verdict.reason if verdict else "",
        answer is not None and answer.finish_reason == "length",
    )


def _prompt(instance: Instance) -> str:
    """Return the prompt with every medium as ``[image 1]``, numbered in order."""
    texts, media = [], 0
    for part in instance.parts:
        if isinstance(part, Text):
            texts.append(part.text)
        else:
            media += 1
            texts.append(f"[{part.modality.replace('_', ' ')} {media}]")
    return "".join(texts)
