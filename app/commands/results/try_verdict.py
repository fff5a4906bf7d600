"""Verdict of ``rashomon try``: its lines for people, and the same for files and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from app.compare.decision.model_claims import BETTER, NOT_SHOWN, WORSE, Claim
from app.compare.decision.sample_size import examples_to_show
from app.compare.decision.target_shares import ALPHA
from app.compare.question_sets.question_set_history import (
    ChangedAnswer,
    SetHistory,
    changed_answers,
    history_table,
    rule_words,
    unbeaten_sentence,
)
from app.compare.runs.run_view import RunView
from app.compare.runs.spec_diff import difference_warnings
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED
from app.exports.junit_and_markdown import VerdictCase, VerdictReport
from app.json_output.question_sets_json import ChangedAnswerJson, LeadJson, TryResult
from app.report.tables.run_labels import model_label
from app.text.percentage_points import format_points
from app.text.plural import count_of
from app.text.text_elision import elide_shared
from app.text.text_escaping import size
from benchmarks.answer_behaviour import EACH_ROW
from benchmarks.build import Build
from benchmarks.errors import StoreError
from mlx_backends.portable_model_names import without_folders

CODES = {BETTER: DONE, WORSE: REGRESSED, NOT_SHOWN: INCONCLUSIVE}
_CHANGED = 3
"""The number of changed answers that are listed."""
_LABEL, _PICTURE, _QUESTION, _ANSWER = 24, 14, 24, 12
"""The widths of a model's name, of a picture's name, of a question and of an answer in a line of 80 columns."""
_LEAST_DIFFERENCE = 0.03
"""The smallest difference of shares for which the rows are estimated that show it: the margin of ``recommend``."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on the run at a place of a history.

    ``pictures`` has the picture's name, or else the row, of each example. Where the command names no rival or rule, as
    ``names_rival`` and ``names_rule`` say, a remembered one is in use.
    """

    history: SetHistory
    run: int
    claim: Claim | None
    pictures: Mapping[str, str]
    names_rival: bool
    names_rule: bool

    @classmethod
    def of(cls, history: SetHistory, candidate: str, build: Build, *, names_rival: bool, names_rule: bool) -> Verdict:
        """Return the verdict on the model with the key ``candidate``. Raises StoreError if its run is gone."""
        run = next((place for place, run in enumerate(history.runs) if run.subject == candidate), None)
        if run is None:
            raise StoreError("the run was removed while it was asked; try the model again.")
        pictures = {row.group: f"{row.picture or row.row}" for row in build.built_rows()}
        return cls(history, run, history.claims.get(run), pictures, names_rival, names_rule)

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
        history = self.history
        if self.claim is not None and history.incumbent is not None and not self.names_rival:
            yield f"beside {self._labels[1]} (--against best: the best so far)"
        if history.rule and history.rule != EACH_ROW and not self.names_rule:
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
        here = f"{history.share(self.run, rival).value or 0:.0%}"
        if self.claim is None:
            return f"Not shown: {here} {self._right}; there is no other model yet to compare with."
        there = history.share(self.claim.rival, self.run).value or 0
        words = {NOT_SHOWN: "Not shown to differ from", BETTER: "Better than", WORSE: "Worse than"}
        the_best = "" if history.incumbent is not None or len(history.runs) == 2 else "the best, "
        ends = f"{_points(self.claim.low)} to {_points(self.claim.high)} points"
        return f"{words[self.word]} {the_best}{self._labels[1]}: {here} against {there:.0%} {self._right} ({ends})."

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
            yield from self._earlier_looks()
        yield from map(unbeaten_sentence, history.unbeaten)
        if not history.rule and history.views.own_rows_only:
            yield "By right answers; --trust image, text or flag decides by what should win."

    def _earlier_looks(self) -> Iterator[str]:
        """Yield the name of a run that asked rows without regard to those held out."""
        asked = sorted((run for run in self.history.every if not run.part), key=lambda run: not run.complete)
        if asked and asked[0].complete:
            yield f"{asked[0].name} asked all rows of the set, the held-out ones too: this is no fresh look."
        elif asked:
            yield f"{asked[0].name} asked rows of the set without sparing those held out: this may be no fresh look."

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
        case = VerdictCase(name, CODES[self.word], self.sentence(), "\n".join(self.lines()))
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
