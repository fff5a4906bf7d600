"""Reading of a run's answers as tables count them, at a few bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from app.store.cached_blind_scores import with_blind_scores
from app.store.integrity import stored_values
from app.store.parsed_texts import ParsedTexts
from app.store.run_store import RunStore
from app.store.verified_rows import Values
from app.system.parallel_processes import map_shares
from benchmarks.answer_confidence import Confidence, confidence_of
from benchmarks.answer_quality import AnswerQuality
from benchmarks.answers import AnswerColumns, AnswerKind, Answers, InstanceKind, instance_kind
from benchmarks.base import Benchmark
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Instance, Pages, Record, Verdict
from mlx_backends.imported_engine import IMPORTED


class KnownInstance(NamedTuple):
    """An instance that was parsed, and what tables use of it; equal ``kind_key`` mean equal ``kind``."""

    instance: Instance
    kind: InstanceKind
    kind_key: Hashable
    pages: Pages


class StepUsage(NamedTuple):
    """The cost of one step of an answer; see :class:`Generation`."""

    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    prefill_s: float | None
    decode_s: float | None
    peak_memory: int | None


Visit = Callable[[str, Instance, Sequence[StepUsage]], None]
"""A function that receives each instance: its stored text, what that was parsed to, and the steps of its answer."""


_SHARE = 10_000
"""The number of answers that is worth another process, which takes as long to start."""


def read_runs(stores: Sequence[RunStore], benchmark: Benchmark) -> list[Answers]:
    """Return :func:`read_answers` of each run, with blind scores; several processes read many answers."""
    return map_shares(partial(_read_share, benchmark.name), [store.folder for store in stores], runs_per_share(stores))


def runs_per_share(stores: Sequence[RunStore]) -> int:
    """Return the least number of runs that are worth a process of their own."""
    answers = sum(progress.total for store in stores for progress in store.progress())
    return max(1, ceil(len(stores) * _SHARE / max(1, answers)))


def _read_share(benchmark_name: str, folders: Sequence[Path]) -> list[Answers]:
    benchmark = get_benchmark(benchmark_name)
    known = ParsedTexts[KnownInstance]() if len(folders) > 1 else None
    runs = []
    for folder in folders:
        with RunStore.read(folder) as store:
            runs.append(with_blind_scores(store, benchmark, read_answers(store, benchmark, known)))
    return runs


def read_answers(
    store: RunStore,
    benchmark: Benchmark,
    known: ParsedTexts[KnownInstance] | None = None,
    visit: Visit | None = None,
) -> Answers:
    """Return the answers of a run as the tables of its benchmark count them; texts are read and dropped page by page.

    Runs that are read with the same ``known`` parse an instance that they share once. Raises DamagedError for a row that is not
    as it was written, or is missing.
    """
    columns, ordinals, quality = AnswerColumns(), array("q"), empty_quality(benchmark, store.meta("spec"))
    has_reading = type(benchmark).reading is not Benchmark.reading
    for page in store.pages():
        for row in page.instances:
            ordinal = row[0]
            ordinals.append(ordinal)
            about = _known_instance(store, row, benchmark, known)
            steps, verdicts = page.generations.get(ordinal, ()), page.verdicts.get(ordinal, ())
            if visit is not None:
                visit(row[3], about.instance, [StepUsage(step[6], *step[8:13]) for step in steps])
            reading = benchmark.reading(store.record(page, row, about.instance)) if has_reading else None
            finish_reason, is_empty, confidence = None, True, None
            if steps:
                _check_steps(store, steps)
                finish_reason, generated = steps[-1][6], stored_values.token_count(steps[-1])
                is_empty = not quality.add(
                    about.instance,
                    steps[-1][5],
                    finish_reason,
                    steps[-1][9],
                    generated=generated,
                    options=benchmark.options,
                )
                confidence = _confidence(store, steps[-1], about.instance, benchmark)
            # Judge, whether it counts, status, label, flags and behaviour.
            labels = tuple([(*verdict[2:6], verdict[8], verdict[13]) for verdict in verdicts])
            columns.add(
                about.instance.group,
                (about.kind_key, finish_reason, is_empty, labels, reading),
                lambda: AnswerKind(about.kind, finish_reason, is_empty, _verdicts(store, verdicts), reading),  # noqa: B023
                pages=about.pages,
                confidence=confidence,
            )
    return replace(columns.answers(partial(_read_again, store.folder, ordinals)), quality=quality)


def empty_quality(benchmark: Benchmark, spec: Mapping[str, Any]) -> AnswerQuality:
    """Return the quality of no answers yet of a run with the stored ``spec``."""
    limit = None if str(spec.get("model")).startswith(IMPORTED) else spec.get("decoding", {}).get("max_tokens")
    return AnswerQuality(frozenset((*benchmark.labels, benchmark.abstention_phrase)), limit)


def add_to_quality(quality: AnswerQuality, record: Record, benchmark: Benchmark) -> None:
    """Add the answer of a record, if there is one."""
    if (answer := record.answer) is not None:
        quality.add(
            record.instance,
            answer.text,
            answer.finish_reason,
            answer.completion_tokens,
            generated=len(answer.tokens),
            options=benchmark.options,
        )


def _known_instance(
    store: RunStore, row: Values, benchmark: Benchmark, known: ParsedTexts[KnownInstance] | None
) -> KnownInstance:
    about = None if known is None else known.get(row[3])
    if about is None:
        instance = store.instance(row)
        kind = instance_kind(instance, benchmark)
        about = KnownInstance(instance, kind, kind.key, benchmark.pages(instance))
        if known is not None:
            known.add(row[3], about)
    else:
        store.check_instance(row, about.instance)
    return about


def _check_steps(store: RunStore, steps: Sequence[Values]) -> None:
    for step in steps:
        try:
            stored_values.check_generation(step)
        except ValueError as error:
            raise store.damaged("generation", step, str(error)) from error


def _confidence(store: RunStore, step: Values, instance: Instance, benchmark: Benchmark) -> Confidence | None:
    """Return the confidence of an answer; None for one without likelihoods."""
    if step[17] is None:
        return None
    try:
        scores = stored_values.scores(step[17])
    except ValueError as error:
        raise store.damaged("generation", step, str(error)) from error
    tokens = stored_values.token_count(step)
    return confidence_of(instance, benchmark.options(instance), scores, tokens=tokens, finish_reason=step[6])


def _verdicts(store: RunStore, rows: Sequence[Values]) -> dict[str, Verdict]:
    return {
        judge: Verdict(judge, verdict.status, verdict.label, flags=verdict.flags, behaviour=verdict.behaviour)
        for judge, verdict in store.parse_verdicts(rows).items()
    }


def _read_again(folder: Path, ordinals: Sequence[int], positions: Sequence[int]) -> Iterator[Record]:
    if positions:
        with RunStore.read(folder) as store:
            yield from store.records(at=[ordinals[position] for position in positions])
