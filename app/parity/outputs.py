"""What two runs answered, instance by instance, and what they were asked: read from their stores alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from app.parity.inputs import prompt_difference
from app.parity.stages import StageFinding, counted
from app.run_spec import RunSpec, parse
from app.store.run import RunStore
from benchmarks.base import Generation, Media, Record, Request, Text, get_benchmark
from judges.base import newest
from mlx_backends.registry import IMPORTED


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """A run as parity needs it: its records by instance, its spec, what it is, the judge that its spec names first, and what its
    canaries found (``Proof``s)."""

    folder: Path
    spec: RunSpec
    identity: Mapping[str, object]
    records: Mapping[str, Record]
    judge: str | None
    canaries: Sequence[Mapping[str, Any]] = ()

    def request(self, instance: str) -> Request:
        """The first request of an instance."""
        protocol = get_benchmark(self.spec.benchmark).protocol(self.spec.to_decoding())
        found = protocol.next(self.records[instance].instance, ())
        assert found is not None
        return found

    @property
    def quantisation(self) -> str | None:
        told = self.identity.get("quantisation")
        return None if told is None else str(told)


def told(folder: Path) -> RunOutputs:
    """Read the run in ``folder``. Raises StoreError, SpecError."""
    with RunStore.read(folder) as store:
        spec = parse(RunSpec, store.meta("spec"), str(folder))
        judged = {judge for p in store.progress() for judge in p.judged}
        records = {record.instance.id: record for record in store.records()}
        judge = newest(spec.judge[0], sorted(judged))
        return RunOutputs(folder, spec, store.meta("identity", {}), records, judge, store.meta("canary", []))


@dataclass(frozen=True, slots=True)
class AnswerAgreement:
    """The answers of two runs to the ``shared`` instances that both have answered.

    ``texts`` are equal as texts, white space at their edges aside, ``tokens`` token for token of the ``with_tokens`` that have
    them in both. ``first`` is where each answer that differs first does so, from 1: the token, or where there are none
    the character (``by_tokens``).
    """

    shared: int
    texts: int
    with_tokens: int
    tokens: int
    first: tuple[int, ...]
    by_tokens: bool
    examples: tuple[Mapping[str, object], ...]
    """Of each that differs: instance, place, and both texts."""

    @property
    def differing(self) -> list[str]:
        """The instances whose answers differ."""
        return [str(each["instance"]) for each in self.examples]

    @property
    def same(self) -> int:
        return self.tokens if self.by_tokens else self.texts

    def sentence(self) -> str:
        """How many are the same and where the others part."""
        if not self.shared:
            return "no instance is answered in both"
        exact = ", token for token" if self.by_tokens else ""
        if not self.first:
            return f"{self.same} of {self.shared} answers are the same{exact}"
        what = "token" if self.by_tokens else "character"
        place = f"{what} {median(self.first):g}"
        where = (
            f"from {place} on" if len(self.first) == 1 else f"from {place} on at the median, {min(self.first)} at first"
        )
        return f"{self.same} of {self.shared} answers are the same{exact}; the others part {where}"


def compare_answers(a: RunOutputs, b: RunOutputs) -> AnswerAgreement:
    """The answers to the instances that both runs have answered without an error."""
    shared = [i for i, one in a.records.items() if _answered(one) and _answered(b.records.get(i))]
    with_tokens = [i for i in shared if _tokens(a.records[i]) and _tokens(b.records[i])]
    by_tokens = bool(shared) and len(with_tokens) == len(shared)
    texts = tokens = 0
    examples: list[Mapping[str, object]] = []
    for instance in shared:
        one, other = a.records[instance], b.records[instance]
        # Servers leave out the space that many answers begin with.
        said = [[step.text.strip() for step in record.generations] for record in (one, other)]
        pair: tuple[Sequence[object], Sequence[object]] = (
            (_tokens(one), _tokens(other)) if by_tokens else ("\n".join(said[0]), "\n".join(said[1]))
        )
        texts += said[0] == said[1]
        at = diverging(*pair)
        tokens += by_tokens and at is None
        if at is not None:
            examples.append({"instance": instance, "at": at, "a": said[0][-1], "b": said[1][-1]})
    first = tuple(int(str(each["at"])) for each in examples)
    return AnswerAgreement(len(shared), texts, len(with_tokens), tokens, first, by_tokens, tuple(examples))


def diverging(a: Sequence[object], b: Sequence[object]) -> int | None:
    """The first place, from 1, at which two sequences differ; None where they are equal."""
    if list(a) == list(b):
        return None
    both = min(len(a), len(b))
    return 1 + next((i for i in range(both) if a[i] != b[i]), both)


def asked_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Whether the two runs asked the same: texts, images by content, and their order."""
    shared = [i for i in a.records if i in b.records]
    if not shared:
        return StageFinding("asked", "differs", "the runs share no instance", "the runs share no instance")
    return counted("asked", (asked_difference(a.request(i), b.request(i)) for i in shared), "questions")


def asked_difference(a: Request, b: Request) -> str:
    """How one request differs from another in what is asked, decoding apart; empty where it does not."""
    images = [
        [part.sha256 + repr(part.marks) for m in r.messages for part in m.parts if isinstance(part, Media)]
        for r in (a, b)
    ]
    if images[0] != images[1] and sorted(images[0]) == sorted(images[1]):
        at = next(i for i, (one, other) in enumerate(zip(*images, strict=True)) if one != other)
        return (
            f"the images come in another order: image {at + 1} in A is image {images[1].index(images[0][at]) + 1} in B"
        )
    if images[0] != images[1]:
        if len(images[0]) != len(images[1]):
            return f"A shows {len(images[0])} images, B {len(images[1])}"
        return "other images are shown"
    return prompt_difference(_script(a), _script(b))


def _script(request: Request) -> str:
    return "".join(
        f"<|{message.role}|>\n"
        + "".join(part.text if isinstance(part, Text) else "<image>" for part in message.parts)
        + "\n"
        for message in request.messages
    )


def counts_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Whether both engines counted as many prompt tokens: all that two runs alone tell of what their engines read."""
    causes = []
    for instance, one in a.records.items():
        other = b.records.get(instance)
        counts = [_prompt_tokens(record) for record in (one, other)]
        if None not in counts:
            short = (counts[1] or 0) - (counts[0] or 0)
            causes.append(
                f"B's prompts are {abs(short)} tokens {'longer' if short > 0 else 'shorter'}" if short else ""
            )
    if not causes:
        return StageFinding("tokens", "unknown", "an engine does not tell how long its prompts were")
    found = counted("tokens", causes, "prompt lengths")
    return (
        found
        if found.found == "differs"
        else StageFinding("tokens", "unknown", f"{found.said}; the tokens were not looked at")
    )


def decoding_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Whether both runs decode in the same way; a difference is named. How imported answers were decoded is unknown."""
    if any(side.spec.model.startswith(IMPORTED) for side in (a, b)):
        return StageFinding("decoding", "unknown", "nobody knows how the imported answers were decoded")
    one, other = a.spec.to_decoding(), b.spec.to_decoding()
    told = [
        f"{name.replace('_', ' ')} {getattr(one, name)} in A, {getattr(other, name)} in B"
        for name in ("max_tokens", "temperature", "top_p", "seed", "max_pixels")
        if getattr(one, name) != getattr(other, name) and (name != "seed" or one.temperature or other.temperature)
    ]
    if told:
        return StageFinding("decoding", "differs", "; ".join(told), "; ".join(told))
    if one.temperature:
        return StageFinding(
            "decoding",
            "same",
            f"temperature {one.temperature:g}: two engines draw other tokens even if nothing else differs",
        )
    return StageFinding("decoding", "same", f"greedy, {one.max_tokens} tokens")


def judge_finding(a: RunOutputs, b: RunOutputs) -> StageFinding:
    """Whether equal answers got equal labels, each run by its own judge."""
    if a.judge is None or b.judge is None:
        return StageFinding("judge", "unknown", f"{'A' if a.judge is None else 'B'} has no labels of its judge")
    equal = other = 0
    for instance, one in a.records.items():
        two = b.records.get(instance)
        if _answered(one) and two is not None and _answered(two) and _text(one) == _text(two):
            equal += 1
            other += one.outcome(a.judge) != two.outcome(b.judge) or _label(one, a.judge) != _label(two, b.judge)
    who = a.judge if a.judge == b.judge else f"{a.judge} in A, {b.judge} in B"
    said = f"{who}: {other} of {equal} equal answers have another label"
    if other:
        return StageFinding("judge", "differs", said, f"equal answers are labelled otherwise ({who})")
    return StageFinding("judge", "same" if equal else "unknown", said)


def _answered(record: Record | None) -> bool:
    return record is not None and record.answer is not None and record.answer.finish_reason != "error"


def _tokens(record: Record) -> list[int]:
    """The tokens of all steps; empty where a step has none."""
    steps: Sequence[Generation] = record.generations
    return [token for step in steps for token in step.tokens] if all(step.tokens for step in steps) else []


def _prompt_tokens(record: Record | None) -> int | None:
    return record.generations[0].prompt_tokens if record is not None and record.generations else None


def _text(record: Record) -> str:
    return record.answer.text.strip() if record.answer else ""


def _label(record: Record, judge: str) -> str | None:
    return record.verdicts[judge].label if judge in record.verdicts else None
