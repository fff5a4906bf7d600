"""Outputs of two runs and the comparisons that need their stores only: requests, answers, decoding and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from app.parity.input_stages import prompt_difference
from app.parity.parity_stages import StageFinding, count_finding
from app.run_spec import RunSpec, parse_stored
from app.store.run_store import RunStore
from benchmarks.errors import SpecError
from benchmarks.protocols.remedy_protocols import DIRECT
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Media, Record, Request, Text
from judges.base import newest
from mlx_backends.imported_engine import IMPORTED


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """A run's records by instance, its spec and identity, and the results of its batch-invariance checks.

    ``judge`` is the latest version of the judge that the spec names first.
    """

    folder: Path
    spec: RunSpec
    identity: Mapping[str, object]
    records: Mapping[str, Record]
    judge: str | None
    canaries: Sequence[Mapping[str, Any]] = ()

    def request(self, instance: str) -> Request:
        """Return the first request of an instance."""
        protocol = get_benchmark(self.spec.benchmark).protocol(self.spec.to_decoding())
        request = protocol.next(self.records[instance].instance, ())
        assert request is not None
        return request

    @property
    def quantisation(self) -> str | None:
        quantisation = self.identity.get("quantisation")
        return None if quantisation is None else str(quantisation)


def load_outputs(folder: Path) -> RunOutputs:
    """Read the run in ``folder``.

    Raises:
        StoreError: The folder is no run.
        SpecError: The run's spec is not valid, or its answers take several calls each.
    """
    with RunStore.read(folder) as store:
        spec = parse_stored(RunSpec, store.meta("spec"), str(folder))
        if spec.protocol != DIRECT:
            raise SpecError(
                f"{folder.name} took several calls for each answer (--protocol {spec.protocol}); parity compares direct runs."
            )
        judge_names = {judge for p in store.progress() for judge in p.judged}
        records = {record.instance.id: record for record in store.records()}
        judge = newest(spec.judge[0], sorted(judge_names))
        return RunOutputs(folder, spec, store.meta("identity", {}), records, judge, store.meta("canary", []))


@dataclass(frozen=True, slots=True)
class DifferingAnswer:
    """An answer that differs: both texts, and the first place, from 1, at which they do."""

    instance: str
    at: int
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class AnswerAgreement:
    """Agreement of two runs' answers on the ``shared`` instances, those answered in both.

    ``texts`` answers are equal as texts, ignoring white space at their edges; ``tokens`` are equal token by token, of the
    ``with_tokens`` answers that have tokens in both. ``first`` holds the first differing place of each other answer, from 1: the
    token if ``by_tokens``, else the character.
    """

    shared: int
    texts: int
    with_tokens: int
    tokens: int
    first: tuple[int, ...]
    by_tokens: bool
    examples: tuple[DifferingAnswer, ...]
    """The answers that differ."""

    @property
    def differing(self) -> list[str]:
        """The instances whose answers differ."""
        return [example.instance for example in self.examples]

    @property
    def same(self) -> int:
        return self.tokens if self.by_tokens else self.texts

    def sentence(self) -> str:
        """Return the number of equal answers, and the place where the others diverge."""
        if not self.shared:
            return "no instance is answered in both"
        exact = ", token for token" if self.by_tokens else ""
        if not self.first:
            return f"{self.same} of {self.shared} answers are the same{exact}"
        unit = "token" if self.by_tokens else "character"
        place = f"{unit} {median(self.first):g}"
        where = (
            f"from {place} on"
            if len(self.first) == 1
            else f"from {place} on at the median, {min(self.first)} at the earliest"
        )
        return f"{self.same} of {self.shared} answers are the same{exact}; the others diverge {where}"


def compare_answers(a: RunOutputs, b: RunOutputs) -> AnswerAgreement:
    """Compare the answers to the instances that both runs have answered without an error."""
    shared = [i for i, record in a.records.items() if _answered(record) and _answered(b.records.get(i))]
    with_tokens = [i for i in shared if _tokens(a.records[i]) and _tokens(b.records[i])]
    by_tokens = bool(shared) and len(with_tokens) == len(shared)
    texts = tokens = 0
    examples: list[DifferingAnswer] = []
    for instance in shared:
        records = (a.records[instance], b.records[instance])
        # Servers strip the space that many answers begin with.
        steps_a, steps_b = ([step.text.strip() for step in record.generations] for record in records)
        pair: tuple[Sequence[object], Sequence[object]] = (
            (_tokens(records[0]), _tokens(records[1])) if by_tokens else ("\n".join(steps_a), "\n".join(steps_b))
        )
        texts += steps_a == steps_b
        place = first_divergence(*pair)
        tokens += by_tokens and place is None
        if place is not None:
            examples.append(DifferingAnswer(instance, place, steps_a[-1], steps_b[-1]))
    first = tuple(example.at for example in examples)
    return AnswerAgreement(len(shared), texts, len(with_tokens), tokens, first, by_tokens, tuple(examples))


def first_divergence(a: Sequence[object], b: Sequence[object]) -> int | None:
    """Return the first place, from 1, at which two sequences differ; None where they are equal."""
    if list(a) == list(b):
        return None
    shorter = min(len(a), len(b))
    return 1 + next((i for i in range(shorter) if a[i] != b[i]), shorter)


def request_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Return the finding on the requests: texts, images by content, and their order."""
    shared = [i for i in a.records if i in b.records]
    if not shared:
        return StageFinding("asked", "differs", "the runs share no instance", "the runs share no instance")
    return count_finding("asked", (request_difference(a.request(i), b.request(i)) for i in shared), "questions")


def request_difference(a: Request, b: Request) -> str:
    """Return the difference between the messages of two requests, decoding ignored; empty where they are equal."""
    images = [
        [part.sha256 + repr(part.marks) for m in r.messages for part in m.parts if isinstance(part, Media)]
        for r in (a, b)
    ]
    if images[0] != images[1] and sorted(images[0]) == sorted(images[1]):
        position = next(i for i, (image_a, image_b) in enumerate(zip(*images, strict=True)) if image_a != image_b)
        place = images[1].index(images[0][position])
        return f"the images are in another order: image {position + 1} in A is image {place + 1} in B"
    if images[0] != images[1]:
        if len(images[0]) != len(images[1]):
            return f"A has {len(images[0])} images, B {len(images[1])}"
        return "the images differ"
    return prompt_difference(_script(a), _script(b))


def _script(request: Request) -> str:
    return "".join(
        f"<|{message.role}|>\n"
        + "".join(part.text if isinstance(part, Text) else "<image>" for part in message.parts)
        + "\n"
        for message in request.messages
    )


def prompt_length_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Return the finding on the number of prompt tokens: all that the stores tell of the engines' inputs."""
    causes = []
    for instance, record in a.records.items():
        count_a, count_b = _prompt_tokens(record), _prompt_tokens(b.records.get(instance))
        if count_a is not None and count_b is not None:
            longer = count_b - count_a
            causes.append(
                f"B's prompts are {abs(longer)} tokens {'longer' if longer > 0 else 'shorter'}" if longer else ""
            )
    if not causes:
        return StageFinding("tokens", "unknown", "an engine does not report the length of its prompts")
    finding = count_finding("tokens", causes, "prompt lengths")
    if finding.status == "differs":
        return finding
    return StageFinding("tokens", "unknown", f"{finding.summary}; the tokens were not compared")


def decoding_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Return the finding on the decoding parameters, which are unknown for imported answers."""
    if any(run.spec.model.startswith(IMPORTED) for run in (a, b)):
        return StageFinding("decoding", "unknown", "the decoding parameters of imported answers are unknown")
    first, second = a.spec.to_decoding(), b.spec.to_decoding()
    differences = [
        f"{name.replace('_', ' ')} {getattr(first, name)} in A, {getattr(second, name)} in B"
        for name in ("max_tokens", "temperature", "top_p", "seed", "max_pixels")
        if getattr(first, name) != getattr(second, name) and (name != "seed" or first.temperature or second.temperature)
    ]
    if differences:
        return StageFinding("decoding", "differs", "; ".join(differences), "; ".join(differences))
    if first.temperature:
        return StageFinding(
            "decoding",
            "same",
            f"temperature {first.temperature:g}: two engines sample different tokens even if nothing else differs",
        )
    return StageFinding("decoding", "same", f"greedy, {first.max_tokens} tokens")


def judge_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Return the finding on the labels of equal answers, each run labelled by its own judge."""
    if a.judge is None or b.judge is None:
        return StageFinding("judge", "unknown", f"{'A' if a.judge is None else 'B'} has no labels of its judge")
    equal = differing = 0
    for instance, first in a.records.items():
        second = b.records.get(instance)
        if _answered(first) and second is not None and _answered(second) and _text(first) == _text(second):
            equal += 1
            differing += (first.outcome(a.judge), _label(first, a.judge)) != (
                second.outcome(b.judge),
                _label(second, b.judge),
            )
    judges = a.judge if a.judge == b.judge else f"{a.judge} in A, {b.judge} in B"
    summary = f"{judges}: {differing} of {equal} equal answers have different labels"
    if differing:
        return StageFinding("judge", "differs", summary, f"equal answers have different labels ({judges})")
    return StageFinding("judge", "same" if equal else "unknown", summary)


def _answered(record: Record | None) -> bool:
    return record is not None and record.answer is not None and record.answer.finish_reason != "error"


def _tokens(record: Record) -> list[int]:
    """Return the tokens of all steps; empty where a step has none."""
    steps: Sequence[Generation] = record.generations
    return [token for step in steps for token in step.tokens] if all(step.tokens for step in steps) else []


def _prompt_tokens(record: Record | None) -> int | None:
    return record.generations[0].prompt_tokens if record is not None and record.generations else None


def _text(record: Record) -> str:
    return record.answer.text.strip() if record.answer else ""


def _label(record: Record, judge: str) -> str | None:
    return record.verdicts[judge].label if judge in record.verdicts else None
