"""Two runs side by side at every stage, from their stores and from what their models were seen to make of some requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.parity.batching import batching_finding
from app.parity.diagnosis import verdict, weights_cause
from app.parity.inputs import Word, compare_inputs
from app.parity.numerics import Numerics, compare_numerics, noise_of, numerics_finding
from app.parity.outputs import (
    AnswerAgreement,
    RunOutputs,
    asked_finding,
    compare_answers,
    counts_finding,
    decoding_finding,
    judge_finding,
)
from app.parity.probe_store import FOLDER, RefusedRequest, place_of
from app.parity.probing import FORCED, ProbeOptions, ProbeResult, choose, known_runs, probe
from app.parity.stages import StageFinding
from benchmarks.base import Estimate
from benchmarks.errors import ModelError

if TYPE_CHECKING:
    from app.compare.pairs import RunPair
    from app.compare.run_view import RunViews
    from app.parity.probe_store import StoredProbes
    from mlx_backends.core.probe import Probe


@dataclass(frozen=True)
class LabelEffect:
    """What it comes to: how many answers ``labelled`` in both have the same label, kappa, and both accuracies with their
    paired difference."""

    labelled: int
    same_labels: Estimate
    kappa: Estimate
    accuracies: tuple[Estimate, Estimate]
    difference: Estimate

    def sentence(self) -> str:
        if not self.labelled:
            return "no answer is labelled in both"
        same = round((self.same_labels.value or 0) * self.labelled)
        kappa = "" if self.kappa.value is None else f" (kappa {self.kappa.value:.2f})"
        told = f"{same} of {self.labelled} labels are the same{kappa}"
        one, other = (each.value for each in self.accuracies)
        if one is None or other is None or self.difference.value is None:
            return told
        interval = ""
        if self.difference.low is not None and self.difference.high is not None:
            interval = f"; {self.difference.low:+.3f} to {self.difference.high:+.3f}"
        return f"{told}; accuracy {one:.3f} in A, {other:.3f} in B ({self.difference.value:+.3f}{interval})"


@dataclass(frozen=True)
class ParityReport:
    """Two runs compared: the findings in the order of the stages, the answers, what it comes to, and the verdict."""

    a: RunOutputs
    b: RunOutputs
    labels: tuple[str, str]
    findings: tuple[StageFinding, ...]
    answers: AnswerAgreement
    numerics: Numerics | None
    probed: tuple[str, ...]
    """The instances that were looked at."""
    unseen: tuple[str, ...]
    """Why a model was not looked at, a sentence each, and how many requests were left out."""
    sides: RunViews
    pair: RunPair
    effect: LabelEffect
    verdict: str


def compare_runs(folders: tuple[Path, Path], look: ProbeOptions, *, judge: str | None = None) -> ParityReport:
    """Compare the runs in two folders, whose models are looked at as ``look`` says.

    Raises SpecError and StoreError for what cannot be compared.
    """
    from app.compare.run_view import load, refuse_twice

    refuse_twice(folders)
    sides = load(folders, judge=judge)
    one, other = known_runs(folders, look)
    a, b = one[0], other[0]
    answers = compare_answers(a, b)
    instances = choose(one, other, look.probes, answers.differing)
    asked = forced(a, b, instances)
    seen = [probe(each, asked, look) if asked else ProbeResult(None) for each in (one, other)]
    return assemble(a, b, seen[0], seen[1], instances, sides, answers)


def forced(a: RunOutputs, b: RunOutputs, instances: Sequence[str]) -> dict[str, list[list[int]]]:
    """The answers that both models are led through: A's and B's, each once."""
    found: dict[str, list[list[int]]] = {}
    for instance in instances:
        both = [list(side.records[instance].generations[0].tokens[:FORCED]) for side in (a, b)]
        found[instance] = [each for number, each in enumerate(both) if each and each not in both[:number]]
    return found


def keep(folder: Path, look: ProbeOptions) -> str:
    """Look at what the model of one run makes of some of its requests, and keep it in its folder, to be compared elsewhere.

    What was done, in a sentence. Raises ModelError where it cannot be looked at.
    """
    (side,) = known_runs([folder], look)
    run = side[0]
    instances = choose(side, side, look.probes, ())
    seen = probe(side, forced(run, run, instances), look)
    if seen.kept is None:
        raise ModelError(seen.why)
    refused = list(seen.kept.refused.values())
    less = f" ({left_out(refused, len(seen.kept.digests))})" if refused else ""
    return (
        f"{len(seen.kept.digests) - len(refused)} requests of {folder.name} were looked at{less}; what its model makes of "
        f"them lies in {Path(*place_of(folder), FOLDER)}: copy the run's folder, and compare it where its model is not."
    )


def assemble(
    a: RunOutputs,
    b: RunOutputs,
    seen_a: ProbeResult,
    seen_b: ProbeResult,
    instances: Sequence[str],
    sides: RunViews,
    answers: AnswerAgreement,
) -> ParityReport:
    """The comparison of two runs whose models were looked at."""
    from app.compare.pairs import RunPair
    from app.report.tables import RESAMPLES

    pair = RunPair(sides.sides[0], sides.sides[1], sides.figures, RESAMPLES, sides.seed)
    effect = effect_of(pair, sides)
    numerics, middle = _seen(a, b, seen_a, seen_b, instances)
    without = {i: why for i in instances if (why := _refused(i, (a, seen_a), (b, seen_b)))}
    findings = (asked_finding(a, b), *middle, decoding_finding(a, b), judge_finding(a, b))
    consequence = f"{answers.sentence()}; {effect.sentence()}."
    return ParityReport(
        a,
        b,
        (sides.sides[0].label, sides.sides[1].label),
        findings,
        answers,
        numerics,
        tuple(i for i in instances if i not in without),
        (
            *(f"{name}: {each.why}" for name, each in (("A", seen_a), ("B", seen_b)) if each.why),
            *([left_out(list(without.values()), len(instances))] if without else []),
        ),
        sides,
        pair,
        effect,
        verdict(findings, consequence[:1].upper() + consequence[1:]),
    )


def _refused(instance: str, *sides: tuple[RunOutputs, ProbeResult]) -> RefusedRequest | None:
    """Why a model was not shown the request of an instance; None where both were."""
    for run, seen in sides:
        request = run.request(instance).id
        if seen.kept is not None and request in seen.kept.refused:
            return seen.kept.refused[request]
        if seen.kept is not None and request not in seen.kept.alone and seen.kept.any(request) is None:
            return RefusedRequest("its model was not shown them")
    return None


def left_out(reasons: Sequence[RefusedRequest], count: int) -> str:
    """How many of ``count`` requests were left out, and why: what is said of each that could not be shown to a model."""
    lost = all(reason.lost for reason in reasons)
    why = "their pictures are not in the build any more" if lost else reasons[0].why.removesuffix(".")
    return f"{len(reasons)} of {count} left out: {why}"


def effect_of(pair: RunPair, sides: RunViews) -> LabelEffect:
    """What the difference between two runs comes to."""
    from app.compare.cost import accuracy, accuracy_difference
    from app.compare.flips import changes_table

    row = changes_table([pair], sides).rows[0][1] if pair.shared else (0, 0, Estimate(None), Estimate(None), 0, 0)
    same, kappa = row[2], row[3]
    assert isinstance(same, Estimate)
    assert isinstance(kappa, Estimate)
    both = tuple(accuracy(side, sides, pair.resamples) for side in (pair.first, pair.second))
    return LabelEffect(int(str(row[1])), same, kappa, (both[0], both[1]), accuracy_difference(pair, sides))


def _seen(
    a: RunOutputs, b: RunOutputs, seen_a: ProbeResult, seen_b: ProbeResult, instances: Sequence[str]
) -> tuple[Numerics | None, list[StageFinding]]:
    """What the models were seen to do: the stages between what is asked and how it is decoded."""
    batching = batching_finding((a, seen_a.kept), (b, seen_b.kept), instances)
    if seen_a.kept is None or seen_b.kept is None:
        return None, [counts_finding(a, b), *batching]
    pairs = [
        (one, other)
        for instance in instances
        if (one := seen_a.kept.any(a.request(instance).id)) and (other := seen_b.kept.any(b.request(instance).id))
    ]
    if not pairs:
        return None, [counts_finding(a, b), *batching]
    numerics = compare_numerics(_led(a, b, seen_a.kept, seen_b.kept, instances))
    noise = noise_of(a.quantisation, b.quantisation)
    return numerics, [
        *compare_inputs(pairs, words(a)),
        numerics_finding(numerics, weights_cause(a, b), noise),
        *batching,
    ]


def _led(
    a: RunOutputs, b: RunOutputs, one: StoredProbes, other: StoredProbes, instances: Sequence[str]
) -> list[tuple[Probe, Probe]]:
    """The probes that were led through the same answer: of each request the first that both were led through."""
    found = []
    for instance in instances:
        requests = a.request(instance).id, b.request(instance).id
        for ours in (each for each in one.probes if each.request_id == requests[0] and each.forced):
            theirs = other.of(requests[1], ours.forced)
            if theirs is not None:
                found.append((ours, theirs))
                break
    return found


def words(run: RunOutputs) -> Word:
    """The text of a token of the run's model, where its tokenizer lies here."""
    from mlx_backends.models.discovery import resolve
    from mlx_backends.pytorch import spec

    try:
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(str(resolve(spec.split(run.spec.model)[1]) / "tokenizer.json"))
    except Exception:  # tokenizers raises no other
        return lambda token: None
    return lambda token: tokenizer.decode([token], skip_special_tokens=False) or tokenizer.id_to_token(token)
