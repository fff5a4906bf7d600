"""``rashomon try``: a model on a saved question set, beside the incumbent; better, worse or not shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from app.commands.results.try_verdict import CODES, Verdict
from app.commands.running.batch_command import batch
from app.commands.running.run_execution import ExecutionOptions, print_message
from app.compare.question_sets.question_set_history import set_history
from app.engine.run_plan import identity_of
from app.engine.runs_to_resume import fresh_name
from app.engine.training.training_spec_and_recipes import plain_name
from app.exit_codes import DONE, FAILURES, STOPPED, EndedError
from app.exports.junit_and_markdown import check_files, is_printed, write_verdict
from app.json_output.json_envelope import print_json
from app.json_output.json_events import outcome
from app.report.tables.run_labels import model_label
from app.run_spec import RunSpec, parse_spec
from app.store.question_set_runs import FINAL, SetRun, all_subjects, read_runs, subject_of
from app.store.question_sets import QuestionSet, changed_media
from app.store.run_summary import read_summary
from app.store.tried_models import TriedModels, read_tried, update_tried
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.shell_quoting import shell_quote
from app.text.text_escaping import clean
from benchmarks.answer_behaviour import check_rule, names_sources
from benchmarks.build import Build
from benchmarks.errors import ModelError, SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import digest
from mlx_backends.engine_registry import describe

NO_RULE = "none"
"""The name of no rule: right answers count."""
_OPEN = "open"


@dataclass(frozen=True, slots=True)
class TryArguments:
    """The options of ``rashomon try``.

    Attributes:
        name: The set; None for the only one of the workspace.
        against: The model to compare with, remembered for the set; None for the one that was remembered, or else the best so far;
            "best" forgets it.
        trust: The rule on what should win, remembered too; None for the one that was remembered; "none" forgets it.
        final: Whether the held-out rows are opened.
        settings: More keys of the spec: prompt set, judge, exact.
        junit, markdown: The files that the verdict is written to, too.
    """

    name: str | None = None
    against: str | None = None
    trust: str | None = None
    final: bool = False
    settings: Mapping[str, Any] | None = None
    as_json: bool = False
    junit: Path | None = None
    markdown: Path | None = None


def chosen_set(workspace: Workspace, name: str | None) -> QuestionSet:
    """Return the set called ``name``, or the only one. Raises SpecError."""
    if name is not None:
        return workspace.question_set(name)
    sets = workspace.question_sets()
    if len(sets) == 1:
        return sets[0]
    if sets:
        raise SpecError(f"there are several question sets; name one of them: {', '.join(s.name for s in sets)}.")
    raise SpecError("there is no question set yet; `rashomon build BENCHMARK --from TABLE` makes one.")


def try_model(workspace: Workspace, model: str, arguments: TryArguments, options: ExecutionOptions) -> int:
    """Ask a model the set's newest version, print the verdict in five lines; return 0 if it is better.

    Called again, it resumes what was interrupted and comes to the same verdict. Raises EndedError for another verdict, SpecError,
    SourceError, StoreError, ModelError.
    """
    check_rule(None if arguments.trust == NO_RULE else arguments.trust)
    check_files(arguments.junit, arguments.markdown, as_json=arguments.as_json or options.display == "json")
    question_set = chosen_set(workspace, arguments.name)
    if arguments.trust not in (None, NO_RULE) and not names_sources(get_benchmark(question_set.benchmark)):
        raise SpecError(f"the labels of {question_set.benchmark} name no source; leave --trust out.")
    folder = question_set.latest.build.parent
    _check_pictures(question_set)
    candidate = _Subject.of(workspace, question_set, model, arguments)
    remember = partial(_remember, arguments=arguments, question_set=question_set)
    remembered = remember(read_tried(folder))
    if remembered.incumbent == candidate.spec.model:
        if arguments.against is not None:
            raise SpecError(f"{model} cannot be compared with itself; name another model with --against.")
        remembered = replace(remembered, incumbent="")  # beside the best of the others
    runs = read_runs(workspace, question_set)
    incumbent = _incumbent(workspace, question_set, candidate, runs, remembered, arguments)
    against = remembered.incumbent if incumbent is None else incumbent.spec.model
    opened = [(candidate.key, incumbent.key)] if arguments.final and incumbent is not None else []
    update_tried(
        folder,
        lambda tried: replace(
            remember(tried),
            subjects=all_subjects(runs, tried),
            decisions=tuple(dict.fromkeys([*tried.decisions, *opened])),
        ),
    )
    is_alone = arguments.as_json or is_printed(arguments.markdown)
    quiet = replace(options, display="none") if is_alone else options
    for subject in filter(None, (incumbent, candidate)):
        _ask(workspace, subject, quiet)
    history = set_history(
        workspace,
        question_set,
        read_tried(folder),
        trust=remembered.trust or None,
        judge=(arguments.settings or {}).get("judge"),
        candidate=candidate.key,
        against=against,
        final=arguments.final,
    )
    update_tried(folder, lambda tried: replace(tried, subjects=all_subjects(history.every, tried)))
    verdict = Verdict.of(
        history,
        candidate.key,
        Build.open(question_set.latest.build),
        names_rival=arguments.against is not None or arguments.final,
        names_rule=arguments.trust is not None,
    )
    if arguments.as_json:
        folders = [workspace.runs_folder / run.name for run in history.runs]
        print_json("try", verdict.result(), folders=folders, judge=history.views.judge)
    elif not is_printed(arguments.markdown):
        _print(verdict, options.display)
    write_verdict(verdict.report(), arguments.junit, arguments.markdown)
    if (code := CODES[verdict.word]) != DONE:
        raise EndedError(code, verdict.sentence())
    return DONE


def _ask(workspace: Workspace, subject: _Subject, options: ExecutionOptions) -> None:
    """Execute the run of a subject. Raises EndedError if it cannot be finished; answers may have failed."""
    try:
        batch(workspace, None, subject.overrides, options, tables=False)
    except EndedError as end:
        if end.exit_code != FAILURES:
            raise
    if (run := read_summary(workspace.runs_folder / subject.name)).state != "done":
        raise EndedError(STOPPED, f"{run.name} is not finished ({run.state}); the same command resumes it.")


def _print(verdict: Verdict, display: str | None) -> None:
    for line in verdict.remarks():
        print_message(line, display)
    outcome.message = verdict.sentence()
    output = sys.stderr if display == "json" else sys.stdout
    print(file=output)
    for line in verdict.lines():
        print(clean(line), file=output)


def _check_pictures(question_set: QuestionSet) -> None:
    """Raise SourceError if pictures of the newest version are not those that it was built with."""
    latest = question_set.latest
    try:
        changed = changed_media(latest.build)
    except OSError as error:
        raise SourceError(f"{latest.build} cannot be read: {error.strerror}; build the table again.") from error
    if changed:
        raise SourceError(
            f"{question_set.name}@{latest.number} has {count_of(len(changed), 'changed or lost picture')}; "
            f"`rashomon build {question_set.benchmark} --from {shell_quote(question_set.table)}` repairs this."
        )


@dataclass(frozen=True)
class _Subject:
    """A model with its settings on the newest version of a set, and the run that asks it."""

    spec: RunSpec
    overrides: Mapping[str, Any]
    key: str
    name: str

    @classmethod
    def of(cls, workspace: Workspace, question_set: QuestionSet, model: str, arguments: TryArguments) -> _Subject:
        """Return the subject of a model. Its weights are part of the run's name, so that a replaced model is another one."""
        latest = question_set.latest
        values = {
            "benchmark": question_set.benchmark,
            "model": [model],
            "data": str(latest.build),
            "part": (FINAL if arguments.final else _OPEN) if any(question_set.final_pages.values()) else None,
            **{key: value for key, value in (arguments.settings or {}).items() if value},
        }
        if arguments.final and values["part"] is None:
            raise SpecError(f"{question_set.name} has too few pages to hold any out; leave --final out.")
        (spec,) = parse_spec({}, values, "the command line").runs()
        identity = identity_of(spec, Build.open(latest.build), describe(spec.model))
        key = subject_of(identity)
        base = plain_name(question_set.name, "set", 30)
        base = base if base[0].isascii() and base[0].isalnum() else f"set{base}"
        label = plain_name(model_label(spec.model), "model", 30)
        part = "-final" if arguments.final else ""
        name = f"{base}-{latest.number}-{label}{part}-{digest([key, latest.digest, spec.fresh])[:6]}"
        if spec.fresh:
            name = fresh_name(workspace, name)
        return cls(spec, {**values, "name": name}, key, name)


def _remember(tried: TriedModels, arguments: TryArguments, question_set: QuestionSet) -> TriedModels:
    """Return the memory with the incumbent and the rule that were typed."""
    incumbent = tried.incumbent
    if arguments.against == "best":
        incumbent = ""
    elif arguments.against is not None:
        values = {"benchmark": question_set.benchmark, "model": [arguments.against]}
        incumbent = parse_spec({}, values, "the command line").runs()[0].model
    trust = tried.trust if arguments.trust is None else "" if arguments.trust == NO_RULE else arguments.trust
    return replace(tried, incumbent=incumbent, trust=trust)


def _incumbent(
    workspace: Workspace,
    question_set: QuestionSet,
    candidate: _Subject,
    runs: Sequence[SetRun],
    remembered: TriedModels,
    arguments: TryArguments,
) -> _Subject | None:
    """Return the incumbent if it has to be asked, too.

    A named one is without a complete run on the newest version; on the held-out rows, it always is.
    """
    model = remembered.incumbent
    if not model and arguments.final:
        undecided = replace(remembered, decisions=())  # earlier decisions choose no rival
        history = set_history(workspace, question_set, undecided, trust=remembered.trust or None)
        others = [place for place, run in enumerate(history.runs) if run.model != candidate.spec.model]
        if not others:
            raise SpecError("there is no other model to decide between; try one without --final first.")
        model = history.runs[max(others, key=lambda place: history.share(place).value or 0.0)].model
    answered = [run for run in runs if run.complete and run.model == model and run.is_final == arguments.final]
    if not model or (not arguments.final and any(run.version == question_set.latest.number for run in answered)):
        return None
    try:
        return _Subject.of(workspace, question_set, model, arguments)
    except (SpecError, ModelError) as error:
        if answered and not arguments.final:
            return None  # its answers to an earlier version, on the rows that stayed
        raise SpecError(
            f"the incumbent {model_label(model)} has no answers to these rows, and cannot give them: {error} Name another with "
            "--against, or --against best."
        ) from error
