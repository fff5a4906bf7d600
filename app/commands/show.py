"""``rashomon show``: a run's headline and tables, one of its instances, or its spec."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.commands.spinner import spinner
from app.report.checks import stored_check
from app.report.error_messages import error_lines
from app.report.headline import asked_clause, counted_answers, headline, other_tables_note
from app.report.media import media_path, preview_media
from app.report.provenance import read_provenance, spec_of, spec_toml
from app.report.remedies import Remedy, remedies, remedies_title
from app.report.render import print_table, to_json
from app.report.samples import origin_clause, sample_to_json
from app.report.speed import lines as speed_lines
from app.report.speed import read_speed
from app.report.speed import to_json as speed_to_json
from app.report.tables import TableInputs, read_inputs, tables_from
from app.store.answer_sums import ENDPOINT_KEY
from app.store.lending import ReusedAnswers
from app.store.run import RunStore
from app.store.run_facts import ExcludedInstances, worker_deaths
from app.store.run_references import run_folder, run_folders
from app.store.sample_lookup import find_sample_id
from app.store.workspace import Workspace, read_summary
from app.text.escape import clean
from benchmarks.answer_confidence import likelihood_remarks
from benchmarks.errors import StoreError
from benchmarks.registry import get_benchmark
from benchmarks.repeats_table import NAME as REPEATS
from benchmarks.scorecard import NAME as SCORECARD
from benchmarks.scorecard import scorecard_sentences
from benchmarks.stats.intervals import few_pages
from benchmarks.vocabulary import Media, Table


@dataclass(frozen=True, slots=True)
class ShowArguments:
    """The options of ``rashomon show``: one ``table`` or ``sample``, or the ``spec``, or the headlines and tables.

    ``trust`` says what should win where sources disagree; then, and on own documents, the scorecard comes first.
    """

    table: str | None = None
    sample: str | None = None
    spec: bool = False
    judge: str | None = None
    as_json: bool = False
    all_tables: bool = False
    trust: str | None = None


def show(workspace: Workspace, runs: Sequence[str], arguments: ShowArguments) -> None:
    """Print the headlines and main table of ``runs``, or what the arguments name instead."""
    folders = run_folders(workspace, runs)
    if arguments.spec:
        _show_specs(folders, as_json=arguments.as_json)
    elif arguments.sample is not None:
        _show_samples(workspace, folders, arguments.sample, as_json=arguments.as_json)
    else:
        _show_tables(folders, arguments)


def _show_specs(folders: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        specs = [{"spec": spec_of(folder), "provenance": read_provenance(folder)} for folder in folders]
        print(json.dumps(specs, indent=2))
    else:
        print("\n".join(spec_toml(folder) for folder in folders), end="")


def _show_samples(workspace: Workspace, folders: Sequence[Path], sample: str, *, as_json: bool) -> None:
    samples = [_sample(workspace, folder, sample) for folder in folders]
    if as_json:
        print(json.dumps([details for details, _ in samples], indent=2, ensure_ascii=True))
    else:
        for folder, (details, media) in zip(folders, samples, strict=True):
            _print_sample(folder, details, media)


def _show_tables(folders: Sequence[Path], arguments: ShowArguments) -> None:
    table = arguments.table
    with spinner("computing the tables"):
        inputs = read_inputs(folders, arguments.judge).with_trust(arguments.trust)
        tables = tables_from(inputs, only=table)
        headlines = _headlines(inputs, tables)
    if arguments.as_json:
        print(json.dumps([to_json(table_) for table_ in tables], indent=2))
        return
    for folder, answers in zip(folders, inputs.runs.values(), strict=True):
        run = read_summary(folder)
        if run.problem is not None:
            raise StoreError(run.problem)
        reason = f" ({clean(run.note)})" if run.state == "stopped" else ""
        poor = "".join(f"; {clause}" for clause in (answers.quality.clauses if answers.quality else ()))
        asked = clean(asked_clause(answers, inputs.judge, inputs.benchmark))
        with RunStore.read(folder) as store:
            facts = ExcludedInstances.load(store).sentence, clean(ReusedAnswers.load(store).sentence)
            more = "".join(f"; {sentence}" for sentence in facts if sentence)
            print(f"{clean(run.name)}: {run.state}{reason}, {asked}{more}{poor}")
            for death in worker_deaths(store):
                print(clean(f"{folder.name}: {death.sentence()}"))
            _print_faults(store)
    for line in headlines if table is None else ():
        print(clean(line))
    print()
    lead = _lead(inputs, tables)
    printed = tables
    if table is None and not arguments.all_tables:
        printed = [tables[0] if lead is None else lead, *(table_ for table_ in tables[1:] if table_.name == REPEATS)]
    for table_ in printed:
        notes = [note for note in table_.notes if table is not None or note not in headlines]
        print_table(replace(table_, notes=tuple(notes)))
    for folder in folders:
        for line in _answering_modes(folder):
            print(f"  {clean(line)}")
    if table is None:
        _print_next(folders, inputs, other_tables_note(tables, [table_.name for table_ in printed]))


def _print_faults(store: RunStore) -> None:
    """Print the most frequent errors, and that a server could not be shown to give its model the pictures."""
    remarks = [check["remark"] for check in store.meta(ENDPOINT_KEY, [])[-1:] if check.get("remark")]
    for line in [*error_lines(store), *remarks]:
        print(f"  {clean(line[:1].upper() + line[1:])}")


def _lead(inputs: TableInputs, tables: Sequence[Table]) -> Table | None:
    """Return the scorecard where that is what a user reads first."""
    return next((table for table in tables if inputs.leads_with_scorecard and table.name == SCORECARD), None)


def _headlines(inputs: TableInputs, tables: Sequence[Table]) -> list[str]:
    """Return a line for each run: its scorecard where that leads, else its accuracy and behaviour; then what qualifies them."""
    if (lead := _lead(inputs, tables)) is None:
        lines = [" ".join(headline(label, run, inputs.judge, inputs.benchmark)) for label, run in inputs.runs.items()]
    else:
        lines = [" ".join(scorecard_sentences(label, lead, run)) for run, label in enumerate(inputs.runs)]
    few = few_pages(*(run.clusters.own_count for run in inputs.runs.values()))
    asks = "Say what should win where they disagree with --trust image, text or flag."
    return [
        *lines,
        *inputs.not_shown,
        *filter(None, [few, asks if lead is not None and inputs.asks_what_should_win else ""]),
    ]


def _print_next(folders: Sequence[Path], inputs: TableInputs, other_tables: str) -> None:
    """Print which other tables there are, and what to try with the model of a single run."""
    if any(map(inputs.benchmark.origins, inputs.runs.values())) and inputs.leads_with_scorecard:
        print(
            "--table scorecard-as-found has the conflicts that your rows came with, scorecard-constructed those made from them."
        )
    if other_tables:
        print(other_tables)
    if len(folders) == 1 and (steps := _to_try(folders[0], inputs)):
        print(f"\n{remedies_title()}:")
        print("\n".join(clean(f"  {step}") for step in steps))


def show_speed(workspace: Workspace, runs: Sequence[str], *, as_json: bool) -> None:
    """Print how fast ``runs`` were, and what was computed only once for several answers."""
    speeds = [read_speed(run_folder(workspace, run)) for run in runs]
    if as_json:
        print(json.dumps([speed_to_json(speed) for speed in speeds], indent=2))
    else:
        print("\n".join(clean(line) for speed in speeds for line in speed_lines(speed)))


def _to_try(folder: Path, inputs: TableInputs) -> list[Remedy]:
    """Return what to try with the model of the only run among ``inputs``."""
    (answers,), benchmark, judge = inputs.runs.values(), inputs.benchmark, inputs.judge
    return remedies(folder.name, spec_of(folder), benchmark, counted_answers(answers, judge, benchmark))


def _answering_modes(folder: Path) -> Iterator[str]:
    """Yield lines on how the run's answers were computed, as measured when each model was loaded."""
    with RunStore.read(folder) as store:
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
            noise = f"padding moves a logit by {proof['noise']:.2g}"
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


def _sample(workspace: Workspace, folder: Path, instance: str) -> tuple[dict[str, Any], dict[Media, Path | None]]:
    """Return an instance's details, and its media with their files; None for a file that is missing."""
    with RunStore.read(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        build = workspace.build_of(store)
        record = next(store.records(only=find_sample_id(store, instance)))
        media = {part: media_path(build, part) for part in record.instance.parts if isinstance(part, Media)}
        remarks = (*benchmark.remarks(record), *likelihood_remarks(record, benchmark.options(record.instance)))
        return sample_to_json(record, remarks=remarks), media


def _print_sample(folder: Path, details: dict[str, Any], media: Mapping[Media, Path | None]) -> None:
    def line(name: str, text: object) -> None:
        print(f"{name:<12} {clean(str(text), newlines=True)}")

    line("run", folder.name)
    for key in ("id", "condition", "question", "prompt"):
        line(key, details[key])
    for medium, path in media.items():
        line("medium", f"{medium.sha256[:8]}: {preview_media(medium, path, 1).facts}")
    for key, values in details["references"].items():
        line(f"{key} says", " | ".join(values))
    if "own answer" in details:
        line("own answer", details["own answer"])
    for step in details["steps"]:
        line("answer", step["error"] or step["text"])
        tokens = "" if step["completion_tokens"] is None else f", {step['completion_tokens']} tokens"
        line("finished", step["finish_reason"] + tokens)
        if origin := origin_clause(step.get("origin")):
            line("origin", origin)
    for remark in details.get("remarks", ()):
        line("remark", remark)
    for judge, verdict in details["verdicts"].items():
        line(judge, f"{verdict['label'] or verdict['status']} ({verdict['reason']})")
