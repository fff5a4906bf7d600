"""Baselines that cost nothing: runs made of another run's answers to each source alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from app.engine.run_plan import create_run
from app.run_spec import RunSpec, parse_stored
from app.store.run_facts import UNJUDGED_STATE
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.answer_confidence import confidence_of
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.protocols.repeats import in_repeat, split_repeat
from benchmarks.registry import get_benchmark
from benchmarks.text.answer_text import visible_answer
from benchmarks.values import compare
from benchmarks.vocabulary import Generation, Instance, Record, digest, digest_of_list
from judges.base import FunctionJudge
from judges.judge_registry import find_judge
from mlx_backends.baseline_engine import BASELINE, ORACLE, baseline_name
from mlx_backends.engine_registry import describe
from mlx_backends.policy_engine import ABSTAIN

Alone = Mapping[str, Record]
"""The record of each source alone, by source."""
Choose = Callable[[Instance, Alone, "Reader"], str | None]
"""A rule: the source whose answer it takes; None if it abstains."""

AGREE = "agree"
CONFIDENT = "confident"
LIKELIHOOD = "likelihood"
_PAGE = 500


class Reader:
    """Reading of answers by a benchmark's rule judge."""

    def __init__(self, benchmark: Benchmark) -> None:
        judge = find_judge(benchmark.judges[0], benchmark)
        assert isinstance(judge, FunctionJudge)
        self.benchmark, self._judge = benchmark, judge

    def label(self, instance: Instance, answer: Generation) -> str | None:
        """Return the label of an answer, as if it had been given to ``instance``."""
        return self._judge.judge(Record(instance, (answer,))).label

    def is_right(self, record: Record) -> bool:
        """Return whether the record's answer is right."""
        label = self.label(record.instance, record.generations[-1])
        return label is not None and self.benchmark.correct(record.instance.condition, label)

    def agree(self, instance: Instance, first: Generation, second: Generation) -> bool:
        """Return whether two answers state the same value: by their texts, or by the value that ``instance`` names."""
        texts = [visible_answer(answer.text) for answer in (first, second)]
        if not all(texts):
            return False
        labels = {self.label(instance, answer) for answer in (first, second)}
        is_same = compare(texts[0], texts[1], instance.question).verdict == "same"
        return is_same or (len(labels) == 1 and labels <= self.benchmark.value_labels)


def take_if_they_agree(instance: Instance, alone: Alone, reader: Reader) -> str | None:
    """Return the first source if all sources alone give the same value; else None, to abstain."""
    first, *rest = (record.generations[-1] for record in alone.values())
    return next(iter(alone)) if all(reader.agree(instance, first, other) for other in rest) else None


def take_the_right_source(instance: Instance, alone: Alone, reader: Reader) -> str | None:
    """Return a right source, one whose answer is right if there is one; None if no source is right."""
    sources = reader.benchmark.right_sources(instance)
    return next((source for source in sources if reader.is_right(alone[source])), next(iter(sources), None))


def take_the_more_confident(instance: Instance, alone: Alone, reader: Reader) -> str | None:
    """Return the source whose answer the model is most confident of; of equal ones the first."""
    return max(alone, key=lambda source: _confidence(alone[source], reader.benchmark))


RULES: Mapping[str, Choose] = {
    AGREE: take_if_they_agree,
    CONFIDENT: take_the_more_confident,
    ORACLE: take_the_right_source,
}

DESCRIPTIONS = {
    AGREE: "asks each source alone, and abstains if the answers differ",
    CONFIDENT: "asks each source alone, and takes the answer that the model is more confident of",
    ORACLE: "asks each source alone, and picks the right source; abstains if none is right",
}


@dataclass(frozen=True, slots=True)
class MadeBaseline:
    """A baseline's run: its folder, the number of its answers, and whether it was there already."""

    folder: Path
    answers: int
    existing: bool = False


def available_rules(source: Path) -> list[str]:
    """Return the rules that a run's answers suffice for: without likelihoods, all but the one that needs them."""
    with RunStore.read(source) as store:
        return [rule for rule in RULES if rule != CONFIDENT or store.meta("spec").get("score") == LIKELIHOOD]


def make_baseline(workspace: Workspace, source: Path, rule: str) -> MadeBaseline:
    """Make the run of ``rule`` from the answers of the run ``source``; one that exists already is returned as it is.

    Raises:
        SpecError: The rule is unknown, or the run lacks answers to each source alone, or their likelihoods.
    """
    if rule not in RULES:
        raise SpecError(f"there is no baseline {rule!r}; {did_you_mean(rule, RULES)}")
    with RunStore.read(source) as store:
        spec = parse_stored(RunSpec, store.meta("spec"), str(source))
        benchmark = get_benchmark(spec.benchmark)
        _check_source(spec, source)
        if rule == CONFIDENT and spec.score != LIKELIHOOD:
            raise SpecError(
                f"{source.name} has no likelihoods, which tell how confident it is; run it with --score likelihood, or choose "
                "another --rule."
            )
        conditions = Counter(instance.condition for _, instance, _ in _with_alone(store, benchmark))
        if not conditions:
            raise SpecError(
                f"{source.name} has no answers to an example's sources alone, which baselines are made of; run conditions that "
                "show one source, as CMC-Bench's image-only and text-only, together with the others."
            )
        name = f"{source.name[: 79 - len(rule)]}-{rule}"
        answers_digest = digest([rule, digest_of_list(_texts(store))])
        folder = workspace.runs_folder / name
        workspace.check_run_name(name)
        if folder.exists():
            return _existing(folder, answers_digest, conditions.total())
        made_spec = spec.model_copy(
            update={
                "model": baseline_name(rule, spec.model),
                "name": name,
                "conditions": tuple(c for c in benchmark.conditions if c in conditions),
            }
        )
        identity = {
            **store.meta("identity"),
            **made_spec.identity(),
            "engine": "baseline",
            "answers digest": answers_digest,
        }
        workspace.make()
        data = store.meta("data")
        create_run(
            workspace,
            made_spec,
            folder,
            identity,
            (instance for _, instance, _ in _with_alone(store, benchmark)),
            data=None if data is None else Path(data),
            fill=lambda made: _fill(made, store, benchmark, made_spec, RULES[rule]),
        )
    return MadeBaseline(folder, conditions.total())


def _check_source(spec: RunSpec, source: Path) -> None:
    if spec.model.startswith(BASELINE):
        raise SpecError(f"{source.name} is a baseline itself; name the run that it was made of.")


def _existing(folder: Path, answers_digest: str, answers: int) -> MadeBaseline:
    with RunStore.read(folder) as store:
        if store.meta("identity").get("answers digest") != answers_digest:
            raise SpecError(
                f"{folder.name} was made of other answers; delete it in the interface, or its folder, and repeat."
            )
    return MadeBaseline(folder, answers, existing=True)


def _texts(store: RunStore) -> Iterator[tuple[str, str]]:
    for record in store.records():
        if record.answer is not None:
            yield record.instance.id, record.answer.text


def _with_alone(store: RunStore, benchmark: Benchmark) -> Iterator[tuple[int, Instance, Alone]]:
    """Yield the instances that show several sources, numbered, with the answers to each of them alone.

    Those without such an answer are skipped. An example's instances stand together in a run.
    """
    number = 0
    for _, group in groupby(store.records(), key=lambda record: record.instance.group):
        records = {record.instance.id: record for record in group}
        for record in records.values():
            example, repeat = split_repeat(record.instance.group)
            siblings = benchmark.sources_alone(replace(record.instance, group=example))
            names = {source: in_repeat(name, repeat) for source, name in siblings.items()}
            alone = {source: records[name] for source, name in names.items() if name in records}
            if siblings and len(alone) == len(siblings) and all(sibling.generations for sibling in alone.values()):
                yield number, record.instance, alone
                number += 1


def _fill(made: RunStore, store: RunStore, benchmark: Benchmark, spec: RunSpec, choose: Choose) -> None:
    """Store the baseline's answers."""
    reader, engines = Reader(benchmark), store.engines()
    kept: dict[str, Any] = {
        key: engines[-1][key] for key in ("weights_bytes", "quantisation", "machine") if engines and key in engines[-1]
    }
    made.use_engine({**asdict(describe(spec.model)), **kept})
    page: list[NewAnswer] = []
    for number, instance, alone in _with_alone(store, benchmark):
        generation = _generation(instance, alone, choose, reader)
        request_digest = digest([spec.model, instance.id])
        page.append(NewAnswer(number, instance.condition, 0, request_digest, generation, last=True))
        if len(page) == _PAGE:
            made.commit(page)
            page = []
    made.commit(page)
    made.set_meta("state", UNJUDGED_STATE)


def _generation(instance: Instance, alone: Alone, choose: Choose, reader: Reader) -> Generation:
    """Return the baseline's answer, with the time and tokens of all the answers that it needs."""
    answers: Sequence[Generation] = [record.generations[-1] for record in alone.values()]
    request_id = f"{instance.id}#0"
    if failed := next((answer for answer in answers if answer.finish_reason == "error"), None):
        return replace(failed, request_id=request_id)
    source = choose(instance, alone, reader)
    taken = Generation(request_id, ABSTAIN, "stop") if source is None else alone[source].generations[-1]
    # A vote calls no model; the samples before it do.
    calls = [step for record in alone.values() for step in record.generations if step.calls] or answers
    peaks = [call.peak_memory for call in calls if call.peak_memory is not None]
    return Generation(
        request_id,
        taken.text,
        taken.finish_reason,
        prompt_tokens=_total([call.prompt_tokens for call in calls]),
        completion_tokens=_total([call.completion_tokens for call in calls]),
        prefill_s=_sum([call.prefill_s for call in calls]),
        decode_s=_sum([call.decode_s for call in calls]),
        peak_memory=max(peaks, default=None),
        calls=0,
    )


def _confidence(record: Record, benchmark: Benchmark) -> float:
    """Return the confidence in a record's answer; that of an answer without a score is the lowest."""
    answer, options = record.generations[-1], benchmark.options(record.instance)
    confidence = confidence_of(
        record.instance, options, answer.scores, tokens=len(answer.tokens), finish_reason=answer.finish_reason
    ).answer
    return -1.0 if math.isnan(confidence) else confidence


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _total(values: Sequence[int | None]) -> int | None:
    total = _sum(values)
    return None if total is None else int(total)
