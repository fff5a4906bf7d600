"""Parity report: two runs compared at every stage, from their stores and from probes of their models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.compare.differences.label_flips import changes_table
from app.compare.runs.cost_tables import accuracy, accuracy_difference
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunViews, reject_duplicates
from app.compare.runs.view_reader import load_views
from app.parity.batching_stage import batching_finding
from app.parity.input_stages import TokenText, compare_inputs
from app.parity.model_probing import (
    MAX_FORCED_TOKENS,
    ProbeOptions,
    ProbeResult,
    choose_instances,
    load_with_probes,
    probe_run,
)
from app.parity.numerics_stage import Numerics, compare_numerics, numerics_finding, rounding_noise
from app.parity.output_stages import (
    AnswerAgreement,
    RunOutputs,
    compare_answers,
    decoding_finding,
    judge_finding,
    prompt_length_finding,
    request_finding,
)
from app.parity.parity_diagnosis import verdict_sentence, weights_cause
from app.parity.parity_stages import StageFinding
from app.parity.probe_store import FOLDER, RefusedRequest, StoredProbes, probe_location
from app.report.runs.portable_facts import portable_message
from app.report.tables.run_tables import RESAMPLES
from benchmarks.errors import ModelError
from benchmarks.stats.intervals import span
from benchmarks.vocabulary import Estimate
from mlx_backends.core.engine_probe import Probe
from mlx_backends.models.model_discovery import resolve
from mlx_backends.pytorch import torch_names_and_devices


@dataclass(frozen=True)
class LabelEffect:
    """The effect on the labels: agreement of the answers ``labelled`` in both, and both accuracies with their difference."""

    labelled: int
    same_labels: Estimate
    kappa: Estimate
    accuracies: tuple[Estimate, Estimate]
    difference: Estimate

    def sentence(self) -> str:
        if not self.labelled:
            return "no answer is labelled in both"
        same_count = round((self.same_labels.value or 0) * self.labelled)
        kappa = "" if self.kappa.value is None else f" (kappa {self.kappa.value:.2f})"
        agreement = f"{same_count} of {self.labelled} labels are the same{kappa}"
        accuracy_a, accuracy_b = (estimate.value for estimate in self.accuracies)
        if accuracy_a is None or accuracy_b is None or self.difference.value is None:
            return agreement
        interval = ""
        if self.difference.low is not None and self.difference.high is not None:
            interval = f"; {span(f'{self.difference.low:+.3f}', f'{self.difference.high:+.3f}')}"
        difference = f"{self.difference.value:+.3f}{interval}"
        return f"{agreement}; accuracy {accuracy_a:.3f} in A, {accuracy_b:.3f} in B ({difference})"


@dataclass(frozen=True)
class ParityReport:
    """Two runs compared: the findings in the order of the stages, the answers, the effect on labels, and the verdict."""

    a: RunOutputs
    b: RunOutputs
    labels: tuple[str, str]
    findings: tuple[StageFinding, ...]
    answers: AnswerAgreement
    numerics: Numerics | None
    probed: tuple[str, ...]
    """The instances that were probed."""
    not_probed: tuple[str, ...]
    """Sentences on models that were not probed and on requests that were left out."""
    views: RunViews
    pair: RunPair
    effect: LabelEffect
    verdict: str


def compare_runs(folders: tuple[Path, Path], options: ProbeOptions, *, judge: str | None = None) -> ParityReport:
    """Compare the runs in two folders, probing their models with ``options``.

    Raises:
        SpecError: The runs cannot be compared.
        StoreError: A folder is no run.
    """
    reject_duplicates(folders)
    views = load_views(folders, judge=judge)
    known_a, known_b = load_with_probes(folders, options)
    a, b = known_a[0], known_b[0]
    answers = compare_answers(a, b)
    instances = choose_instances(known_a, known_b, options.probes, answers.differing)
    forced = forced_answers(a, b, instances)
    results = [probe_run(known, forced, options) if forced else ProbeResult(None) for known in (known_a, known_b)]
    return build_report(a, b, results[0], results[1], instances, views, answers)


def forced_answers(a: RunOutputs, b: RunOutputs, instances: Sequence[str]) -> dict[str, list[list[int]]]:
    """Return the answers to force through both models, by instance: A's and B's, without duplicates."""
    answers: dict[str, list[list[int]]] = {}
    for instance in instances:
        token_lists = [list(run.records[instance].generations[0].tokens[:MAX_FORCED_TOKENS]) for run in (a, b)]
        answers[instance] = [
            tokens for number, tokens in enumerate(token_lists) if tokens and tokens not in token_lists[:number]
        ]
    return answers


def store_probes(folder: Path, options: ProbeOptions) -> str:
    """Probe the model of one run and store the probes in its folder, for comparison on another machine.

    Returns:
        A message.

    Raises:
        ModelError: The model cannot be probed.
    """
    (known,) = load_with_probes([folder], options)
    run = known[0]
    instances = choose_instances(known, known, options.probes, ())
    result = probe_run(known, forced_answers(run, run, instances), options)
    if result.stored is None:
        raise ModelError(result.why)
    refusals = list(result.stored.refused.values())
    less = f" ({left_out_sentence(refusals, len(result.stored.digests))})" if refusals else ""
    return (
        f"{len(result.stored.digests) - len(refusals)} requests of {folder.name} were probed{less}; the probes are in "
        f"{Path(*probe_location(folder), FOLDER)}. Copy the run's folder to compare it on a machine without its model."
    )


def build_report(
    a: RunOutputs,
    b: RunOutputs,
    result_a: ProbeResult,
    result_b: ProbeResult,
    instances: Sequence[str],
    views: RunViews,
    answers: AnswerAgreement,
) -> ParityReport:
    """Build the report on two runs from the probes of their models on ``instances``."""
    pair = RunPair(views.runs[0], views.runs[1], views.label_metrics, RESAMPLES, views.seed)
    effect = label_effect(pair, views)
    numerics, model_findings = _model_findings(a, b, result_a, result_b, instances)
    refusals = {i: reason for i in instances if (reason := _refused(i, (a, result_a), (b, result_b)))}
    findings = (request_finding(a, b), *model_findings, decoding_finding(a, b), judge_finding(a, b))
    consequence = f"{answers.sentence()}; {effect.sentence()}."
    return ParityReport(
        a,
        b,
        (views.runs[0].label, views.runs[1].label),
        findings,
        answers,
        numerics,
        tuple(i for i in instances if i not in refusals),
        (
            *(
                f"{name}: {_portable(result.why, run)}"
                for name, run, result in (("A", a, result_a), ("B", b, result_b))
                if result.why
            ),
            *([left_out_sentence(list(refusals.values()), len(instances))] if refusals else []),
        ),
        views,
        pair,
        effect,
        verdict_sentence(findings, consequence[:1].upper() + consequence[1:]),
    )


def _portable(message: str, run: RunOutputs) -> str:
    """Return a message about a run without the folders of its model, judges and workspace."""
    return portable_message(message, run.folder.parent.parent, run.spec.model_dump())


def _refused(instance: str, *probed: tuple[RunOutputs, ProbeResult]) -> RefusedRequest | None:
    """Return why a model was not probed on an instance; None where both were."""
    for run, result in probed:
        request, stored_probes = run.request(instance).id, result.stored
        if stored_probes is None:
            continue
        if request in stored_probes.refused:
            return stored_probes.refused[request]
        if request not in stored_probes.alone and stored_probes.any_probe(request) is None:
            return RefusedRequest("its model was not probed on them")
    return None


def left_out_sentence(reasons: Sequence[RefusedRequest], count: int) -> str:
    """Return the number of requests left out, of ``count``, with the first reason."""
    media_missing = all(reason.lost for reason in reasons)
    reason_text = "their pictures are no longer in the build" if media_missing else reasons[0].why.removesuffix(".")
    return f"{len(reasons)} of {count} left out: {reason_text}"


def label_effect(pair: RunPair, views: RunViews) -> LabelEffect:
    """Return the effect of the difference between two runs on their labels."""
    row = changes_table([pair], views).rows[0][1] if pair.shared else (0, 0, Estimate(None), Estimate(None), 0, 0)
    same_share, kappa = row[2], row[3]
    assert isinstance(same_share, Estimate)
    assert isinstance(kappa, Estimate)
    accuracies = (accuracy(pair.first, views), accuracy(pair.second, views))
    return LabelEffect(int(str(row[1])), same_share, kappa, accuracies, accuracy_difference(pair, views))


def _model_findings(
    a: RunOutputs, b: RunOutputs, result_a: ProbeResult, result_b: ProbeResult, instances: Sequence[str]
) -> tuple[Numerics | None, list[StageFinding]]:
    """Return the findings of the stages between request and decoding, which rest on probes."""
    stored_a, stored_b = result_a.stored, result_b.stored
    batching = batching_finding((a, stored_a), (b, stored_b), instances)
    if stored_a is None or stored_b is None:
        return None, [prompt_length_finding(a, b), *batching]
    pairs = [
        (probe_a, probe_b)
        for instance in instances
        if (probe_a := stored_a.any_probe(a.request(instance).id))
        and (probe_b := stored_b.any_probe(b.request(instance).id))
    ]
    if not pairs:
        return None, [prompt_length_finding(a, b), *batching]
    numerics = compare_numerics(_forced_pairs(a, b, stored_a, stored_b, instances))
    noise = rounding_noise(a.quantisation, b.quantisation)
    return numerics, [
        *compare_inputs(pairs, token_decoder(a)),
        numerics_finding(numerics, weights_cause(a, b), noise),
        *batching,
    ]


def _forced_pairs(
    a: RunOutputs, b: RunOutputs, stored_a: StoredProbes, stored_b: StoredProbes, instances: Sequence[str]
) -> list[tuple[Probe, Probe]]:
    """Return for each request the first pair of probes with the same forced answer."""
    pairs = []
    for instance in instances:
        request_a, request_b = a.request(instance).id, b.request(instance).id
        for probe_a in stored_a.probes:
            if probe_a.request_id != request_a or not probe_a.forced:
                continue
            if (probe_b := stored_b.forced_probe(request_b, probe_a.forced)) is not None:
                pairs.append((probe_a, probe_b))
                break
    return pairs


def token_decoder(run: RunOutputs) -> TokenText:
    """Return a function from a token of the run's model to its text; to None where the tokenizer is not on this machine."""
    try:
        from tokenizers import Tokenizer  # slow to import

        tokenizer: Any = Tokenizer.from_file(
            str(resolve(torch_names_and_devices.split_name(run.spec.model)[1]) / "tokenizer.json")
        )
    except Exception:  # tokenizers raises nothing more specific
        return lambda token: None
    return lambda token: tokenizer.decode([token], skip_special_tokens=False) or tokenizer.id_to_token(token)
