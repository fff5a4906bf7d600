"""Single instances in several runs: the prompt and each run's answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.compare.differences.lost_and_gained import GAINED, LOST, Transitions
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunView
from app.report.samples.sample_media import media_path
from app.report.tables.judge_selection import judged_records
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.answer_behaviour import names_sources
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.protocols.repeats import split_repeat
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Instance, Media, Outcome, Record, Text

_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class Change:
    """An instance that two runs share and answer differently, and its outcome in each."""

    instance: str
    condition: str
    was: str
    now: str

    @property
    def is_flip(self) -> bool:
        """True if the labels differ, False if only the texts do."""
        return self.was != self.now


@dataclass(frozen=True, slots=True)
class AnswerExcerpts:
    """The question of an instance and the beginnings of both answers, in one line each."""

    question: str
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


def flips(pair: RunPair, was: str | None = None, now: str | None = None) -> list[Change]:
    """Return the shared instances whose label differs, in the first run's order.

    ``was`` and ``now`` restrict them to one cell, None stands for all labels. A cell of the diagonal gives the instances with
    the same label in both.
    """
    return [
        change
        for change in _shared_changes(pair)
        if was in (None, change.was)
        and now in (None, change.now)
        and (change.is_flip or (was is not None and was == now))
    ]


def lost_and_gained(pair: RunPair, benchmark: Benchmark) -> dict[str, list[Change]]:
    """Return the shared instances that the second run lost, and those that it gained, in the first run's order.

    Some of them have the same label in both, such as an answer that was cut off. It is empty where labels name no source.
    """
    if not names_sources(benchmark):
        return {}
    changes: dict[str, list[Change]] = {LOST: [], GAINED: []}
    effects = Transitions.of(pair, benchmark).effect_names()
    for change, effect in zip(_shared_changes(pair), effects, strict=True):
        if effect in changes:
            changes[effect].append(change)
    return changes


def text_changes(pair: RunPair) -> list[Change]:
    """Return the shared instances with the same label but another answer, in the first run's order; reads both runs.

    Reasoning does not count as part of an answer.
    """
    same_label = [change for change in _shared_changes(pair) if not change.is_flip]
    first, second = (
        {name: hash(_visible_text(record)) for name, record in _records(run, same_label)}
        for run in (pair.first, pair.second)
    )
    return [change for change in same_label if first.get(change.instance) != second.get(change.instance)]


def read_excerpts(pair: RunPair, changes: Sequence[Change]) -> list[AnswerExcerpts]:
    """Return the question of each of ``changes`` and the beginnings of both answers, read from the runs."""
    questions: dict[str, str] = {}
    answers: list[dict[str, str]] = []
    for run in (pair.first, pair.second):
        texts = {}
        for name, record in _records(run, changes):
            questions[name] = _one_line(record.instance.question)
            texts[name] = _one_line(_visible_text(record))
        answers.append(texts)
    first, second = answers
    return [
        AnswerExcerpts(
            questions.get(change.instance, ""), first.get(change.instance, ""), second.get(change.instance, "")
        )
        for change in changes
    ]


def _shared_changes(pair: RunPair) -> Iterator[Change]:
    """Yield all shared instances with their outcomes, also if they are the same."""
    for outcomes in pair.outcomes():
        yield Change(*outcomes)


def _records(run: RunView, changes: Sequence[Change]) -> Iterator[tuple[str, Record]]:
    return run.records([change.instance for change in changes])


def _visible_text(record: Record) -> str:
    return visible_answer(record.answer.text) if record.answer else ""


def _one_line(text: str) -> str:
    return " ".join(text[:_EXCERPT].split())


def compare_instance(workspace: Workspace, folders: Sequence[Path], instance: str, judge_id: str) -> InstanceComparison:
    """Return one instance with the answers of the runs in ``folders``, labelled by ``judge_id`` (:attr:`RunViews.judge`).

    Raises:
        SpecError: No run has the instance.
    """
    shared: Instance | None = None
    prompt, media = "", tuple[tuple[Media, Path], ...]()
    answers: list[AnswerSummary | None] = []
    for folder in folders:
        with RunStore.read(folder) as store:
            is_repeated = store.meta("spec").get("repeats", 1) > 1
            name = instance if is_repeated else split_repeat(instance)[0]
            records = list(judged_records(store, judge_id, only=name))
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
        record.is_cut_off,
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
