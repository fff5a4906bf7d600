"""Limitations of a report, each computed from its runs, the gravest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from app.compare.recommend.recommendation_caveats import FEW_EXAMPLES
from app.compare.runs.run_view import RunView
from app.exports.report.report_inputs import Evidence
from app.report.runs.imported_settings import is_imported
from app.report.tables.judge_selection import caveat
from app.report.tables.single_source_accuracy import join_names
from benchmarks.stats.intervals import percent
from judges.base import HUMAN
from mlx_backends.remote.remote_names_and_media import ENGINES as REMOTE_ENGINES

_WIDE = 0.05
"""The half width of an interval above which it is named."""

_FEW_BITS = re.compile(r"\b[2-8](?:/[2-8])?-bit")


class Limitation(NamedTuple):
    """A limitation: its name, and one or two sentences; ``short`` replaces them on the first page unless it is empty."""

    name: str
    text: str
    short: str = ""


def limitations(evidence: Evidence) -> list[Limitation]:
    """Return the limitations that follow from the runs."""
    return [limitation for rule in _RULES for limitation in rule(evidence)]


def _unfinished(evidence: Evidence) -> Iterator[Limitation]:
    missing = {run.label: pending for run in evidence.export.runs if (pending := run.outcomes["pending"])}
    if missing:
        listing = ", ".join(f"{run} lacks {count:,}" for run, count in missing.items())
        yield Limitation("Not finished", f"Some answers are not there yet or not labelled ({listing}).")


def _no_conflicts(evidence: Evidence) -> Iterator[Limitation]:
    if evidence.lacks_conflicts:
        yield Limitation(
            "No disagreement",
            "In no prompt of these runs do the sources disagree, so nothing here tells what happens if they do.",
        )


def _few_examples(evidence: Evidence) -> Iterator[Limitation]:
    run = evidence.subject.label
    examples = evidence.examples(run)
    share = evidence.share_right(run, evidence.conflicts or evidence.counted)
    known = f"{run}'s share of right answers {'where sources disagree' if evidence.conflicts else 'in all'}"
    if acts := evidence.acts_of(run):  # none without answers to conflicts
        known, share = max(acts.items(), key=lambda act: act[1].value or 0.0)
        known = f"how often {run} {known} where sources disagree"
    low, high = (None, None) if share is None else (share.low, share.high)
    pages = evidence.pages(run)
    if examples < FEW_EXAMPLES:
        yield Limitation("Very few questions", f"{examples:,} questions are too few for reliable percentages.")
    elif low is not None and high is not None and high - low > 2 * _WIDE:
        what, more = (
            (f"{pages:,} pages", " More questions about the same pages add little.")
            if pages < examples
            else (f"{examples:,} questions", "")
        )
        between = f"{known} is only known to lie between {percent(low)} and {percent(high)}"
        yield Limitation(f"Few {what.partition(' ')[2]}", f"With {what}, {between}.{more}")


def _unlabelled(evidence: Evidence) -> Iterator[Limitation]:
    counted = evidence.benchmark.unparsed_label is not None
    for outcome, name, what in (
        ("unparsed", "Answers without a score", "hold nothing that can be scored"),
        ("undecided", "Undecided answers", "were left undecided by the judge"),
        ("judge-failed", "Judge failed", "got no usable reply from the judge"),
        ("error", "Errors", "ended in an error"),
    ):
        shares = {
            run.label: run.outcomes[outcome] / len(run.records)  # type: ignore[index]
            for run in evidence.export.runs
            if len(run.records) and run.outcomes[outcome]  # type: ignore[index]
        }
        if shares:
            listing = ", ".join(f"{run} {_share(share)}" for run, share in shares.items())
            fate = "count as wrong in the tables" if outcome == "unparsed" and counted else "count in no percentage"
            yield Limitation(name, f"Some answers {what} ({listing}); they {fate}.")


def _truncated(evidence: Evidence) -> Iterator[Limitation]:
    shares = {}
    for run in evidence.views.runs:
        counts = evidence.count(run.label, lambda kind: kind.finish_reason)
        if counts["length"]:
            shares[run.label] = counts["length"] / counts.total()
    if shares:
        listing = ", ".join(f"{run} {_share(share)}" for run, share in shares.items())
        yield Limitation("Truncated answers", f"Some answers reached the token limit and are cut off ({listing}).")


def _no_person(evidence: Evidence) -> Iterator[Limitation]:
    if evidence.judge.startswith(HUMAN) or any(judge.startswith(HUMAN) for judge in evidence.inputs.judges):
        return
    checked = f"{evidence.inputs.checked} " if evidence.inputs.checked else ""
    by = f"Which answers are right was decided by a program ({evidence.judge}{caveat(evidence.judge)}), not by people."
    yield Limitation("No person checked the scores", f"{by} {checked}Its quality on these answers is unknown.", by)


def _no_policy(evidence: Evidence) -> Iterator[Limitation]:
    if evidence.models and not evidence.policies and not all(run.gain for run in evidence.models):
        yield Limitation(
            "No baseline",
            "No simple rule, such as always the text's value, was run, so it is unknown whether a model does better than one.",
        )


def _remarks(evidence: Evidence) -> Iterator[Limitation]:
    if evidence.inputs.remarks:
        text = " ".join(remark if remark.endswith(".") else f"{remark}." for remark in evidence.inputs.remarks)
        yield Limitation("Notes on these runs", text)


def _one_prompt_set(evidence: Evidence) -> Iterator[Limitation]:
    prompt_sets = sorted({str(run.spec["prompt_set"]) for run in evidence.export.runs})
    if len(prompt_sets) == 1:
        yield Limitation(
            "One wording",
            f"Every question was put in the words of one prompt template ({prompt_sets[0]}); another can change the answers.",
        )


def _quantised(evidence: Evidence) -> Iterator[Limitation]:
    compared = {run for pair in evidence.inputs.quantisations for run in pair}
    quantised = [
        run.label
        for run in evidence.models
        if run.quantisation and _FEW_BITS.search(run.quantisation) and run.label not in compared
    ]
    if quantised:
        verb = "was" if len(quantised) == 1 else "were"
        yield Limitation(
            "Compressed weights",
            f"{join_names(quantised)} {verb} run with compressed (quantised) weights; nothing here tells how the original ones "
            "answer.",
        )


def _pooled(evidence: Evidence) -> Iterator[Limitation]:
    if not evidence.conflicts or len(evidence.counted) < 2:
        return
    run = evidence.subject.label
    counts = evidence.count(run, lambda kind: kind.condition if kind.condition in evidence.counted else None)
    share = sum(counts[name] for name in evidence.conflicts) / max(1, counts.total())
    yield Limitation(
        "Mixture of cases",
        f"In {percent(share)} of the prompts with several sources they disagree. Where your own share differs, so do overall "
        "figures; read those for agreement and for disagreement separately.",
        f"In {percent(share)} of the prompts with several sources they disagree. If they do so more or less often in your own "
        "data, read the two columns above, not the overall percentage.",
    )


def _sources(evidence: Evidence) -> Iterator[Limitation]:
    sources = sorted(
        {
            source
            for answers in evidence.answers.values()
            for kind in answers.kinds
            if (source := kind.strata.get("source"))
        }
    )
    if len(sources) == 1:
        origin = (
            "a table of your own"
            if sources[0] == evidence.benchmark.rows_source and sources[0] == "rows"
            else sources[0]
        )
        yield Limitation(
            "One origin of questions", f"All questions come from {origin}; other material can give other results."
        )


def _subset(evidence: Evidence) -> Iterator[Limitation]:
    limits = {int(limit) for run in evidence.export.runs if (limit := run.identity.get("limit"))}
    if limits:
        most = max(limits)
        yield Limitation("Sample", f"The runs cover a random sample of at most {most:,} questions of the data.")


def _decoding(evidence: Evidence) -> Iterator[Limitation]:
    models = {run.label for run in evidence.models}
    temperatures = {
        float(value)
        for run in evidence.export.runs
        if run.label in models and (value := run.identity.get("temperature")) is not None
    }
    if any(temperatures):
        yield Limitation("Answers drawn by chance", "Each answer was drawn once at random; another draw can differ.")


def _imported(evidence: Evidence) -> Iterator[Limitation]:
    imported = [run.label for run in evidence.export.runs if is_imported(run.spec)]
    if imported:
        yield Limitation("Imported answers", f"How {join_names(imported)} was asked is not known in full.")


def _remote(evidence: Evidence) -> Iterator[Limitation]:
    remote = [run.label for run in evidence.models if _is_remote(run)]
    if remote:
        yield Limitation(
            "Remote models", f"{join_names(remote)} answered through a service whose model can change without notice."
        )


def _is_remote(run: RunView) -> bool:
    return str(run.spec.get("model")).partition(":")[0] in REMOTE_ENGINES


def _reused(evidence: Evidence) -> Iterator[Limitation]:
    for run in evidence.export.runs:
        if run.reused and not evidence.export.options.canonical:
            yield Limitation("Reused answers", f"{run.label}: {run.reused}.")


def _engines(evidence: Evidence) -> Iterator[Limitation]:
    several = [run.label for run in evidence.export.runs if len(run.engines) > 1]
    if several:
        yield Limitation(
            "Several machines or versions",
            f"Answers of {join_names(several)} were computed by more than one engine, machine or version; see the appendix.",
        )


def _machines(evidence: Evidence) -> Iterator[Limitation]:
    if any(run.cost.seconds_per_answer for run in evidence.models) and not evidence.export.options.canonical:
        yield Limitation(
            "Speed and memory", "They were measured on the machines named in the appendix, and differ on others."
        )


def _paper(evidence: Evidence) -> Iterator[Limitation]:
    if evidence.export.main.published:
        benchmark = evidence.benchmark
        yield Limitation(
            "The paper's rows",
            f"They rest on {benchmark.paper_rows}, with labels by {benchmark.paper_judge}: compare them with care.",
        )


def _share(share: float) -> str:
    return "less than 1%" if share < 0.005 else f"{share:.0%}"


_RULES: tuple[Callable[[Evidence], Iterator[Limitation]], ...] = (
    _unfinished,
    _no_conflicts,
    _few_examples,
    _unlabelled,
    _truncated,
    _no_person,
    _no_policy,
    _remarks,
    _one_prompt_set,
    _quantised,
    _pooled,
    _sources,
    _subset,
    _decoding,
    _imported,
    _remote,
    _reused,
    _engines,
    _machines,
    _paper,
)
"""The rules, in order of gravity."""
