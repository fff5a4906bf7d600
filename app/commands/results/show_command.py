"""``rashomon show``: a run's headline and tables, one of its instances, or its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.commands.terminal.spinner import spinner
from app.json_output.json_envelope import print_json
from app.json_output.samples_json import SampleJson, sample
from app.json_output.show_json import (
    ShownRun,
    ShownSamples,
    ShownSpecs,
    ShownSpeeds,
    ShownTables,
    spec_json,
    speed_json,
)
from app.json_output.tables_json import table_json
from app.report.progress.run_speed import lines as speed_lines
from app.report.progress.run_speed import read_speed
from app.report.runs.portable_facts import portable_message
from app.report.runs.run_error_messages import error_lines
from app.report.runs.run_provenance import spec_toml
from app.report.runs.stored_run_checks import stored_check
from app.report.samples.sample_media import media_path
from app.report.samples.sample_rows import origin_clause
from app.report.tables.remedy_advice import Remedy, remedies_title
from app.report.tables.run_headline import asked_clause, other_tables_note
from app.report.tables.run_overview import lead_table, run_headlines, run_remedies
from app.report.tables.run_tables import tables_from
from app.report.tables.table_inputs import TableInputs, read_inputs
from app.report.tables.table_rendering import print_table
from app.store.answer_sums import ENDPOINT_KEY
from app.store.reusable_answers import ReusedAnswers
from app.store.run_facts import ExcludedInstances, worker_deaths
from app.store.run_references import run_folders
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.sample_lookup import find_sample_id
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.answer_confidence import likelihood_remarks
from benchmarks.errors import StoreError
from benchmarks.registry import get_benchmark
from benchmarks.tables.repeats_table import NAME as REPEATS
from benchmarks.vocabulary import Media


@dataclass(frozen=True, slots=True)
class ShowArguments:
    """The options of ``rashomon show``: ``speed``, one ``table`` or ``sample``, the ``spec``, or the headlines and tables.

    ``trust`` says what should win where sources disagree; then, and on own documents, the scorecard comes first.
    """

    speed: bool = False
    table: str | None = None
    sample: str | None = None
    spec: bool = False
    judge: str | None = None
    as_json: bool = False
    all_tables: bool = False
    trust: str | None = None


def show(workspace: Workspace, runs: Sequence[str], arguments: ShowArguments) -> None:
    """Print the headlines and main table of ``runs``, or what the arguments name instead."""
    if arguments.speed:
        show_speed(workspace, runs, as_json=arguments.as_json)
        return
    folders = run_folders(workspace, runs)
    if arguments.spec:
        _show_specs(workspace, folders, as_json=arguments.as_json)
    elif arguments.sample is not None:
        _show_samples(workspace, folders, arguments.sample, as_json=arguments.as_json)
    else:
        _show_tables(folders, arguments)


def _show_specs(workspace: Workspace, folders: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        specs = tuple(spec_json(folder, workspace) for folder in folders)
        print_json("show", ShownSpecs(specs=specs), folders=folders)
    else:
        print("\n".join(spec_toml(folder) for folder in folders), end="")


def _show_samples(workspace: Workspace, folders: Sequence[Path], instance: str, *, as_json: bool) -> None:
    samples = tuple(_sample(workspace, folder, instance) for folder in folders)
    if as_json:
        print_json("show", ShownSamples(samples=samples), folders=folders)
    else:
        for shown in samples:
            _print_sample(shown)


def _show_tables(folders: Sequence[Path], arguments: ShowArguments) -> None:
    table = arguments.table
    with spinner("computing the tables"):
        inputs = read_inputs(folders, arguments.judge).with_trust(arguments.trust)
        tables = tables_from(inputs, only=table)
        headlines = run_headlines(inputs, tables) if table is None else []
        runs = [_shown_run(folder, label, inputs) for folder, label in zip(folders, inputs.runs, strict=True)]
        to_try = run_remedies(folders[0], inputs) if table is None and len(folders) == 1 else []
    if arguments.as_json:
        result = ShownTables(
            runs=tuple(runs),
            trust=arguments.trust,
            headlines=tuple(headlines),
            tables=tuple(map(table_json, tables)),
            to_try=tuple(to_try),
        )
        print_json("show", result, folders=folders, judge=inputs.judge)
        return
    for run in runs:
        _print_run(run)
    for line in headlines:
        print(clean(line))
    print()
    lead = lead_table(inputs, tables)
    printed = tables
    if table is None and not arguments.all_tables:
        printed = [tables[0] if lead is None else lead, *(table_ for table_ in tables[1:] if table_.name == REPEATS)]
    for table_ in printed:
        print_table(replace(table_, notes=tuple(note for note in table_.notes if note not in headlines)))
    for run in runs:
        for line in run.computed:
            print(f"  {clean(line)}")
    if table is None:
        _print_next(inputs, other_tables_note(tables, [table_.name for table_ in printed]), to_try)


def _shown_run(folder: Path, label: str, inputs: TableInputs) -> ShownRun:
    """Return a run in words. Raises StoreError if it cannot be read."""
    run, answers = read_summary(folder), inputs.runs[label]
    if run.problem is not None:
        raise StoreError(run.problem)
    with RunStore.read(folder) as store:
        remarks = (ExcludedInstances.load(store).sentence, ReusedAnswers.load(store).sentence)
        return ShownRun(
            name=run.name,
            label=label,
            state=run.state,
            note=portable_message(run.note, folder.parent.parent, run.spec),
            answered=asked_clause(answers, inputs.judge, inputs.benchmark),
            remarks=(*filter(None, remarks), *(answers.quality.clauses if answers.quality else ())),
            deaths=tuple(death.sentence() for death in worker_deaths(store)),
            faults=tuple(_faults(store)),
            computed=tuple(_answering_modes(store)),
        )


def _faults(store: RunStore) -> Iterator[str]:
    """Yield the most frequent errors, and that a server could not be shown to give its model the pictures."""
    remarks = [check["remark"] for check in store.meta(ENDPOINT_KEY, [])[-1:] if check.get("remark")]
    yield from (line[:1].upper() + line[1:] for line in (*error_lines(store), *remarks))


def _print_next(inputs: TableInputs, other_tables: str, steps: Sequence[Remedy]) -> None:
    """Print which other tables there are, and what to try with the model of a single run."""
    if any(map(inputs.benchmark.origins, inputs.runs.values())) and inputs.leads_with_scorecard:
        print(
            "--table scorecard-as-found has the conflicts that your rows came with, scorecard-constructed those made from them."
        )
    if other_tables:
        print(other_tables)
    if steps:
        print(f"\n{remedies_title()}:")
        print("\n".join(clean(f"  {step}") for step in steps))


def _print_run(run: ShownRun) -> None:
    """Print the state of a run, and what has gone wrong in it."""
    reason = f" ({run.note})" if run.state == "stopped" else ""
    print(clean(f"{run.name}: {run.state}{reason}, {'; '.join((run.answered, *run.remarks))}"))
    for death in run.deaths:
        print(clean(f"{run.name}: {death}"))
    for fault in run.faults:
        print(f"  {clean(fault)}")


def show_speed(workspace: Workspace, runs: Sequence[str], *, as_json: bool) -> None:
    """Print how fast ``runs`` were, and what was computed only once for several answers."""
    folders = run_folders(workspace, runs)
    speeds = [read_speed(folder) for folder in folders]
    if as_json:
        print_json("show", ShownSpeeds(speeds=tuple(map(speed_json, speeds))), folders=folders)
    else:
        print("\n".join(clean(line) for speed in speeds for line in speed_lines(speed)))


def _answering_modes(store: RunStore) -> Iterator[str]:
    """Yield lines on how the run's answers were computed, as measured when each model was loaded."""
    if store.meta("spec").get("exact"):
        yield "each answer was computed separately (--exact)"
    if bits := store.meta("spec").get("kv_bits"):
        yield f"the key-value cache was quantised to {bits} bits (--kv-bits)"
    for sight in store.meta("sight", [])[-1:]:
        answered = any(condition.done for condition in store.progress())
        yield _sight_line(sight, forced=sight.get("forced", answered))  # runs before 0.3 do not say
        yield from stored_check(sight, "image")
        yield from filter(None, [sight.get("family")])
    for check in store.meta(ENDPOINT_KEY, [])[-1:]:
        yield _endpoint_line(check)
    for proof in store.meta("canary", []):
        cause, moved = ("padding", proof["noise"]) if proof["noise"] else ("sharing", proof.get("shift", 0.0))
        noise = f"{cause} moves a logit by {moved:.2g}"
        compared = f"compared with sequential answers on {proof['cases']} requests and {proof['tokens']} tokens"
        yield f"{proof['model']} answered {proof['way']}: {compared}, where {noise}"
        yield from stored_check(proof, "token")
        for way, reason in proof["failed"].items():
            yield f"not {way}: {reason}"
        if proof.get("lacks"):
            yield proof["lacks"]


_EVIDENCE = {
    "number": "the model read a number in a picture",
    "answers": "its answers to different pictures differ",
    "usage": "pictures count as prompt tokens",
}


def _endpoint_line(check: Mapping[str, Any]) -> str:
    """Return a line on the examination of the server by the run's last worker."""
    usage = f"{check['calls']} calls, {check.get('spot_checks', 0)} spot checks, {check.get('seconds', 0):.1f} s"
    if check["problem"]:
        return f"the server fails the examination ({usage}): {check['problem']}"
    evidence = _EVIDENCE.get(check.get("evidence", ""), "it could not be shown that the model sees pictures")
    return f"the server was examined: {evidence} ({usage})"


def _sight_line(sight: Mapping[str, Any], *, forced: bool) -> str:
    """Return a line on the run's last sight check; ``forced`` if the model answered although it failed."""
    if sight["problem"]:
        return f"sight check failed: {sight['problem']}{'; answered because of --force' if forced else ''}"
    return (
        f"sight check: logprobs change by at least {sight['changed']:.2g} when one of {sight['images']} images is replaced, "
        f"and by {sight['repeated']:.2g} when a request is repeated"
    )


def _sample(workspace: Workspace, folder: Path, instance: str) -> SampleJson:
    """Return an instance of the run in a folder, with what its media are."""
    with RunStore.read(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        build = workspace.build_of(store)
        record = next(store.records(only=find_sample_id(store, instance)))
        media = {part: media_path(build, part) for part in record.instance.parts if isinstance(part, Media)}
        remarks = (*benchmark.remarks(record), *likelihood_remarks(record, benchmark.options(record.instance)))
        return sample(folder.name, record, media, remarks)


def _print_sample(shown: SampleJson) -> None:
    def line(name: str, text: object) -> None:
        print(f"{name:<12} {clean(str(text), newlines=True)}")

    for key in ("run", "id", "condition", "question", "prompt"):
        line(key, getattr(shown, key))
    for medium in shown.media:
        line("medium", f"{medium.sha256[:8]}: {medium.facts}")
    for key, values in shown.references.items():
        line(f"{key} says", " | ".join(values))
    if shown.own_answer is not None:
        line("own answer", shown.own_answer)
    for step in shown.steps:
        line("answer", step.error or step.text)
        tokens = "" if step.completion_tokens is None else f", {step.completion_tokens} tokens"
        line("finished", step.finish_reason + tokens)
        if origin := origin_clause(step.origin):
            line("origin", origin)
    for remark in shown.remarks:
        line("remark", remark)
    for judge, verdict in shown.verdicts.items():
        line(judge, f"{verdict.label or verdict.status} ({verdict.reason})")
