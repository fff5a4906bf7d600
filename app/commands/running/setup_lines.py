"""Lines that print the plan of a paper's setup, and the question before it is carried out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from app.fetch.benchmark_downloads import build_commands
from app.new_run.setup_plan import DataPlan, ModelPlan, RunPlan, SetupPlan
from app.papers.paper_setups import PREFIX
from app.report.progress.remaining_time import duration
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import size
from benchmarks.fetch.hub_cache import hub_cache

_STATES = {
    "built": "built",
    "fetched": "fetched, to build",
    "shipped": "here, to build",
    "begun": "partly fetched; to fetch the rest and to build",
    "none": "to fetch and to build",
    "unavailable": "cannot be had",
}


def plan_lines(plan: SetupPlan, workspace: Workspace, differences: Sequence[str], command: str) -> Iterator[str]:
    """Yield the plan of a setup, a line at a time, with its ``differences`` from the paper.

    ``command`` carries it out; empty where it is carried out now.
    """
    yield f"{PREFIX}{plan.name}: the plan, made without the network"
    yield ""
    yield from _data_lines(plan, workspace)
    yield from _model_lines(plan)
    yield from _call_lines(plan)
    yield from _time_lines(plan)
    yield from _judge_lines(plan)
    if differences:
        yield ""
        yield "not as in the paper:"
        yield from (f"  {sentence}" for sentence in differences)
    if command and not plan.problems:
        yield ""
        yield _next_step(plan, command)


def question(plan: SetupPlan) -> str:
    """Return the question before a plan that fetches something is carried out."""
    models = [model for model in plan.models if model.to_fetch]
    parts, places = [], []
    if plan.data.to_fetch:
        parts.append(f"the data of {plan.name} from {plan.data.origin}")
        places.append(str(plan.data.folder))
    if models:
        parts.append(f"{count_of(len(models), 'model')} from the Hub")
        places.append(str(hub_cache()))
    builds = ", build" if plan.data.to_build else ""
    return (
        f"Fetch {' and '.join(parts)} ({_total(plan)}) to {' and '.join(places)}{builds}, and run {_all_calls(plan)} "
        f"({_time(plan)})?"
    )


def _total(plan: SetupPlan) -> str:
    if plan.is_size_known:
        return f"about {size(plan.known_bytes)}"
    models = sum(model.to_fetch and model.bytes is None for model in plan.models)
    parts = (
        size(plan.known_bytes) if plan.known_bytes else "",
        plan.data.unknown_size,
        f"{count_of(models, 'model')} whose size only the Hub knows" if models else "",
    )
    return ", and ".join(filter(None, parts))


def _all_calls(plan: SetupPlan) -> str:
    if any(not run.calls and run.answers for run in plan.runs) or not plan.runs:
        return "a number of calls that is not known yet"
    return f"{'at most ' if any(run.at_most for run in plan.runs) else ''}{plan.calls:,} calls"


def _time(plan: SetupPlan) -> str:
    if plan.seconds is not None:
        return f"about {duration(plan.seconds)}"
    known = [run.seconds for run in plan.runs if run.seconds]
    if known:
        return f"about {duration(sum(known))} for {len(known)} of {len(plan.runs)} runs, not known for the others"
    return "time not known until a model has run here"


def _data_lines(plan: SetupPlan, workspace: Workspace) -> Iterator[str]:
    data = plan.data
    yield f"data: {_STATES[data.state]}{f': {data.what}' if data.what else ''}"
    if data.to_fetch:
        known = f"about {size(data.known_bytes)} by Rashomon's own records" if data.known_bytes else ""
        yield _line("size", ", and ".join(filter(None, [known, data.unknown_size])))
        yield _line("from", data.origin)
    if data.state != "unavailable":
        yield _line("in" if data.state in ("built", "fetched") else "to", str(data.folder))
    for licence in data.licences:
        yield _line("licence", licence)
    for sentence in data.missing:
        yield _line("missing", sentence)
    for command in _data_commands(plan, data, workspace):
        yield _line("command", command)


def _data_commands(plan: SetupPlan, data: DataPlan, workspace: Workspace) -> tuple[str, ...]:
    rashomon = workspace.command()
    if data.state == "shipped":
        sources = " ".join(f"--source {shlex.quote(source)}" for source in data.sources)
        return (f"{rashomon} build {plan.data_benchmark} {sources}",)
    return build_commands(rashomon, plan.data_benchmark, data.folder) if data.to_build else ()


def _model_lines(plan: SetupPlan) -> Iterator[str]:
    yield ""
    yield "models:"
    for model in plan.models:
        yield f"  {model.name}: {_model(model)}"
    for name, reason in plan.models_left_out:
        yield f"  {name}: left out: {reason}; --force runs it all the same"
    if any(model.to_fetch for model in plan.models):
        yield _line("to", str(hub_cache()))
        if any(model.bytes is not None for model in plan.models if model.to_fetch):
            note = "sizes are computed from the numbers of parameters in Rashomon's list of models, licences are from that list"
            yield _line("note", f"{note}; the Hub's own are printed before anything is downloaded")


def _model(model: ModelPlan) -> str:
    if model.problem:
        return f"cannot be had: {model.problem}"
    if not model.to_fetch:
        return "here"
    command = f"`rashomon models get {model.name}`"
    if model.bytes is None:
        return f"to fetch; its size and licence are known only to the Hub; {command}"
    return f"to fetch, {size(model.bytes)}, licence {model.licence or 'known only to the Hub'}; {command}"


def _call_lines(plan: SetupPlan) -> Iterator[str]:
    yield ""
    yield f"calls: {_all_calls(plan).removesuffix(' calls')}; {plan.counted}"
    for calls in dict.fromkeys(tuple(run.calls.items()) for run in plan.runs):
        models = [run.model for run in plan.runs if tuple(run.calls.items()) == calls]
        whose = f"each of {len(models)} models" if len(models) > 1 else models[0]
        counts = ", ".join(f"{name} {n:,}" for name, n in calls)
        yield f"  {whose}: {sum(n for _, n in calls):,}{f' ({counts})' if counts else ''}"
    for name, reason in plan.conditions_left_out:
        yield f"  the condition {name} is left out: {reason}"


def _time_lines(plan: SetupPlan) -> Iterator[str]:
    yield ""
    yield f"time: {_time(plan).removeprefix('time ')}"
    for run in plan.runs:
        if run.note or run.speed is not None:
            yield f"  {run.model}: {_run_time(run)}"
    untimed = dict.fromkeys(run.model for run in plan.runs if run.answers and run.speed is None)
    if untimed:
        names = "these models" if len(untimed) == len(plan.runs) > 1 else ", ".join(untimed)
        yield f"  no run of {names} on {plan.data_benchmark} was timed here; with --limit 20, the command times a short one"


def _run_time(run: RunPlan) -> str:
    parts = [run.note] if run.note else []
    if run.answers and run.speed is not None:
        seconds, of = run.speed.seconds * run.speed.calls, f"{run.speed.answers} of {run.speed.run}"
        parts.append(f"about {duration(run.seconds)}, at {seconds:.3g} s per answer over {of}")
    return "; ".join(parts)


def _judge_lines(plan: SetupPlan) -> Iterator[str]:
    yield ""
    yield f"judged by: {', '.join(plan.judges)}"
    if plan.judge_sentence:
        yield f"  {plan.judge_sentence}"
    yield "money:" if plan.costs else "money: none, because no model or judge is remote"
    for cost in plan.costs:
        yield f"  {cost}"
    for sentence in plan.not_ready:
        yield f"  not ready to run: {sentence}"


def _next_step(plan: SetupPlan, command: str) -> str:
    if plan.to_fetch:
        return f"next: `{command}` asks once, then fetches {_total(plan)}, builds what is not built, and runs."
    return f"next: `{command}` {'builds and runs' if plan.data.to_build else 'runs'} this; nothing is fetched."


def _line(label: str, text: str) -> str:
    return f"  {label:<9} {text}"
