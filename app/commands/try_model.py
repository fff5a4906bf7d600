"""``rashomon try``: a model on a saved question set, beside the incumbent; better, worse or not shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from app.commands.batch import ExecutionOptions, batch, print_message
from app.compare.claims import BETTER, NOT_SHOWN, WORSE, Claim
from app.compare.non_inferiority import ALPHA, format_points
from app.compare.run_view import RunView
from app.compare.sample_size import examples_to_show
from app.compare.set_history import (
    ChangedAnswer,
    SetHistory,
    changed_answers,
    history_table,
    rule_words,
    set_history,
    unbeaten_sentence,
)
from app.compare.spec_diff import difference_warnings
from app.engine.command_runs import fresh_name
from app.engine.plan import identity_of
from app.engine.training.spec import plain_name
from app.exit_codes import DONE, FAILURES, INCONCLUSIVE, REGRESSED, STOPPED, EndedError
from app.exports.verdict_files import VerdictCase, VerdictReport, check_files, is_printed, write_verdict
from app.json_output.envelope import print_json
from app.json_output.events import outcome
from app.json_output.question_sets import ChangedAnswerJson, LeadJson, TryResult
from app.report.run_labels import model_label
from app.run_spec import RunSpec, parse_spec
from app.store.question_sets import QuestionSet, changed_media
from app.store.run_summary import read_summary
from app.store.set_runs import FINAL, SetRun, all_subjects, read_runs, subject_of
from app.store.tried_models import TriedModels, read_tried, update_tried
from app.store.workspace import Workspace
from app.text.elide import elide_shared
from app.text.escape import clean, size
from app.text.plural import count_of
from app.text.shell import shell_quote
from benchmarks.acts import EACH_ROW, check_rule, names_sources
from benchmarks.build import Build
from benchmarks.errors import ModelError, SourceError, SpecError, StoreError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import digest
from mlx_backends.registry import describe
from mlx_backends.shared_names import without_folders

_CODES = {BETTER: DONE, WORSE: REGRESSED, NOT_SHOWN: INCONCLUSIVE}
_CHANGED = 3
"""The number of changed answers that are listed."""
_LABEL, _PICTURE, _QUESTION, _ANSWER = 24, 14, 24, 12
"""The widths of a model's name, of a picture's name, of a question and of an answer in a line of 80 columns."""
NO_RULE = "none"
"""The name of no rule: right answers count."""
_LEAST_DIFFERENCE = 0.03
"""The smallest difference of shares for which the rows are estimated that show it: the margin of ``recommend``."""
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
        try:
            batch(workspace, None, subject.overrides, quiet, tables=False)
        except EndedError as end:
            if end.exit_code != FAILURES:
                raise
        if (run := read_summary(workspace.runs_folder / subject.name)).state != "done":
            raise EndedError(STOPPED, f"{run.name} is not finished ({run.state}); the same command resumes it.")
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
    verdict = Verdict.of(history, candidate.key, Build.open(question_set.latest.build), arguments)
    if arguments.as_json:
        folders = [workspace.runs_folder / run.name for run in history.runs]
        print_json("try", verdict.result(), folders=folders, judge=history.views.judge)
    elif not is_printed(arguments.markdown):
        for line in verdict.remarks():
            print_message(line, options.display)
        outcome.message = verdict.sentence()
        output = sys.stderr if options.display == "json" else sys.stdout
        print(file=output)
        for line in verdict.lines():
            print(clean(line), file=output)
    write_verdict(verdict.report(), arguments.junit, arguments.markdown)
    if (code := _CODES[verdict.word]) != DONE:
        raise EndedError(code, verdict.sentence())
    return DONE


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


@dataclass(frozen=True)
class Verdict:
    """The verdict on the run at a place of a history.

    ``pictures`` has the picture's name, or else the row, of each example. Where ``arguments`` name no incumbent or rule, a
    remembered one is in use.
    """

    history: SetHistory
    run: int
    claim: Claim | None
    pictures: Mapping[str, str]
    arguments: TryArguments

    @classmethod
    def of(cls, history: SetHistory, candidate: str, build: Build, arguments: TryArguments) -> Verdict:
        """Return the verdict on the model with the key ``candidate``. Raises StoreError if its run is gone."""
        run = next((place for place, run in enumerate(history.runs) if run.subject == candidate), None)
        if run is None:
            raise StoreError("the run was removed while it was asked; try the model again.")
        pictures = {row.group: f"{row.picture or row.row}" for row in build.built_rows()}
        return cls(history, run, history.claims.get(run), pictures, arguments)

    @property
    def word(self) -> str:
        """One of "better", "worse" and "not shown"."""
        return NOT_SHOWN if self.claim is None else self.claim.verdict

    def lines(self) -> Iterator[str]:
        """Yield what was compared, then five lines: the verdict, what it costs, and the answers that changed most."""
        history = self.history
        part = ", held-out rows" if history.runs[self.run].is_final else ""
        yield (
            f"{self._labels[0]} on {history.question_set.name}@{history.question_set.latest.number}{part}: "
            f"{count_of(history.answers, 'answer')} to {count_of(history.rows, 'row')}, {self._tried}"
        )
        if memory := [*self._remembered()]:
            yield f"Remembered: {', '.join(memory)}"
        yield self.sentence()
        yield self._costs()
        if self.claim is not None:
            yield from self._change_lines()

    @property
    def _labels(self) -> list[str]:
        """The names of the model and, if there is one, of its rival, at the length of a line."""
        rival = [] if self.claim is None else [self.claim.rival]
        return elide_shared([self.history.views.runs[place].label for place in (self.run, *rival)], _LABEL)

    @property
    def _tried(self) -> str:
        count = self.history.tried
        if self.history.runs[self.run].is_final:
            return f"decision {count}" if count > 1 else "the first decision"
        return f"{count} models tried" if count > 1 else "the first model tried"

    def _remembered(self) -> Iterator[str]:
        """Yield what an earlier command has chosen, with the option that undoes it."""
        history, arguments = self.history, self.arguments
        if (
            self.claim is not None
            and history.incumbent is not None
            and arguments.against is None
            and not arguments.final
        ):
            yield f"beside {self._labels[1]} (--against best: the best so far)"
        if history.rule and history.rule != EACH_ROW and arguments.trust is None:
            yield f"{rule_wins(history.rule)} (--trust none: right answers)"

    @property
    def _right(self) -> str:
        """The ground for credit, in words: "by your rule, text wins", or "right"."""
        rule = self.history.rule
        if rule == EACH_ROW:
            return "by your rows' rules"
        return f"by your rule, {rule_wins(rule)}" if rule else "right"

    def sentence(self) -> str:
        """Return the verdict with its shares and its interval, as one sentence."""
        history = self.history
        rival = None if self.claim is None else self.claim.rival
        here = f"{history.share(self.run, rival).value or 0:.0%} {self._right}"
        if self.claim is None:
            return f"Not shown: {here}; there is no other model yet to compare with."
        there = history.share(self.claim.rival, self.run).value or 0
        words = {NOT_SHOWN: "Not shown to differ from", BETTER: "Better than", WORSE: "Worse than"}
        the_best = "" if history.incumbent is not None or len(history.runs) == 2 else "the best, "
        ends = f"{_points(self.claim.low)} to {_points(self.claim.high)} points"
        return f"{words[self.word]} {the_best}{self._labels[1]}: {here}{';' if ',' in here else ','} there {there:.0%} ({ends})."

    def _costs(self) -> str:
        runs = self.history.views.runs
        own = _cost_words(runs[self.run])
        if not own:
            return "Its memory and time were not measured."
        if self.claim is None:
            return f"It takes {own} an answer."
        other = _cost_words(runs[self.claim.rival])
        return f"It takes {own} an answer; {self._labels[1]} {f'takes {other}' if other else 'was not measured'}."

    def _changes(self) -> list[ChangedAnswer]:
        return [] if self.claim is None else changed_answers(self.history, self.claim, _CHANGED)

    def _change_lines(self) -> Iterator[str]:
        changes = self._changes()
        places = [self.pictures.get(change.group, change.group) for change in changes]
        questions = elide_shared([" ".join(change.question.split()) for change in changes], _QUESTION)
        for change, place, question in zip(changes, elide_shared(places, _PICTURE), questions, strict=True):
            before, after = (_short(text, _ANSWER) or "(nothing)" for text in (change.before, change.after))
            yield f"{change.change}: {place}: {question} {before} -> {after}"
        if len(changes) < _CHANGED:
            yield "no other answer differs" if changes else "no answer differs"

    def remarks(self) -> Iterator[str]:
        """Yield what a reader must know besides: other differences, missing answers, rows that were asked before."""
        history = self.history
        runs = history.views.runs
        if history.shares.every is not None and self.claim is not None:
            for place in (self.run, self.claim.rival):
                if count := history.shares.every.counts[place]:
                    ends = (
                        ", which counts against any claim"
                        if self.word == NOT_SHOWN
                        else "; the verdict holds whatever it is"
                    )
                    yield f"{runs[place].label} lacks the label of {count_of(count, 'answer')}{ends}."
        yield from self._rows_needed()
        if self.claim is not None:
            compared = [runs[self.claim.rival], runs[self.run]]
            warnings = difference_warnings(compared)
            yield from (w for w in warnings if w.startswith(("The runs differ", "Up to")) and "data digest" not in w)
        for run in history.left_out:
            yield f"Not compared with {model_label(run.model)}, which shares too few answers; try it again."
        if history.look(self.run) == "again":
            yield "This model was tried before with other prompts, settings or weights: this is no first look."
        if history.runs[self.run].is_final:
            asked = [run.name for run in history.every if not run.part]
            if asked:
                yield f"{asked[0]} asked all rows of the set, the held-out ones too: this is no fresh look."
        yield from map(unbeaten_sentence, history.unbeaten)
        if not history.rule and history.views.own_rows_only:
            yield "By right answers; --trust image, text or flag decides by what should win."

    def _rows_needed(self) -> Iterator[str]:
        """Yield the number of rows that a difference like this one takes to be shown, if that is why it is not."""
        history, claim = self.history, self.claim
        if claim is None or self.word != NOT_SHOWN:
            return
        lead, difference = max(abs(claim.lead), _LEAST_DIFFERENCE), history.shares.least(claim.run, claim.rival)
        if difference.clusters < 2:
            return  # one page says nothing of others
        needed = examples_to_show(history.rows, difference.error, lead, ALPHA / (2 * history.comparisons))
        if needed > history.rows:
            yield (
                f"Showing a difference of {100 * lead:.0f} points takes about {count_of(needed, 'row')}, on as many more "
                f"pages; there are {history.rows:,}."
            )

    def report(self) -> VerdictReport:
        """Return the verdict for files: the model and its rival as in the history."""
        history, name = self.history, self.history.views.runs[self.run].name
        table = history_table(history)
        places = [self.run] if self.claim is None else [self.claim.rival, self.run]
        table = replace(table, rows=tuple(table.rows[place] for place in places), notes=table.notes[1:])
        case = VerdictCase(name, _CODES[self.word], self.sentence(), "\n".join(self.lines()))
        return VerdictReport("rashomon try", name, self.sentence(), (case,), table, tuple(self.remarks()))

    def result(self) -> TryResult:
        """Return the verdict as it is printed in JSON."""
        history, runs, claim = self.history, self.history.views.runs, self.claim
        question_set = history.question_set
        rival = None if claim is None else claim.rival
        return TryResult(
            set=question_set.name,
            version=question_set.latest.number,
            part=history.runs[self.run].part or None,
            verdict=self.word,
            sentences=tuple(self.lines()),
            remarks=tuple(self.remarks()),
            model=without_folders(history.runs[self.run].model),
            run=runs[self.run].name,
            against=None if rival is None else without_folders(history.runs[rival].model),
            against_run=None if rival is None else runs[rival].name,
            named=history.incumbent is not None,
            tried=history.tried,
            rule=rule_words(history),
            answers=history.answers,
            rows=history.rows,
            reused=0 if (reused := runs[self.run].reused) is None else sum(reused.lenders.values()),
            share=history.share(self.run, rival).value,
            against_share=None if rival is None else history.share(rival, self.run).value,
            lead=None if claim is None else LeadJson(value=claim.lead, low=claim.low, high=claim.high),
            p=None if claim is None else claim.p,
            peak_memory=runs[self.run].cost.peak_memory,
            seconds_per_answer=runs[self.run].cost.seconds_per_answer,
            changed=tuple(
                ChangedAnswerJson(
                    id=change.instance,
                    picture=self.pictures.get(change.group),
                    question=change.question,
                    before=change.before,
                    after=change.after,
                    change=change.change,
                )
                for change in self._changes()
            ),
        )


def rule_wins(rule: str) -> str:
    """Return a rule in words: "text wins"."""
    return f"{'a flag' if rule == 'flag' else rule} wins"


def _points(share: float) -> str:
    """Return a difference of shares in points, with a decimal where it is near 0."""
    return f"{100 * share:+.0f}" if abs(share) >= 0.01 else format_points(share, sign=True)


def _cost_words(run: RunView) -> str:
    """Return the peak memory and the seconds per answer, as far as they were measured."""
    peak, seconds = run.cost.peak_memory, run.cost.seconds_per_answer
    return " and ".join([*([size(peak)] if peak else []), *([f"{seconds:.2g} s"] if seconds else [])])


def _short(text: str, length: int) -> str:
    """Return a text in one line of at most ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
