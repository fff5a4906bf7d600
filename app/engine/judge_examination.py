"""Examination of a judge by labelled answers: its verdicts by rule at once, those of models as their replies come."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from app.engine.answer_loop import judge_record
from app.engine.plugin_result_checks import usable_answer
from app.typed_names import resolve_models
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.text_model import TextModel
from benchmarks.vocabulary import Generation, Record, Request, Verdict
from judges.base import FunctionJudge, Judge
from judges.examination.examination_result import Examination, Usage
from judges.examination.labelled_answers import BENCHMARK, LabelledAnswer
from judges.judge_registry import find_judges, judge_names
from judges.panel_judge import panel_id, panel_judge, parse_panel
from judges.rubric_judge import RubricJudge

_DRAWN, _SWAPPED = "drawn", "swapped"


class Stopwatch:
    """Stopwatch of the seconds since it was made or restarted."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin again at 0."""
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return time.monotonic() - self._start


class Examiner:
    """Examiner of the judge or panel called ``name``, by ``answers`` and ``hostile`` ones.

    Judges by rule label at once; :meth:`ask` asks one model after the other. Each answer is judged twice by a model, with its
    two references in both orders. Raises SpecError for a judge of other answers, for a person and for a panel that gives
    several labels, and ModelError for a model that is not there.
    """

    def __init__(self, name: str, answers: Sequence[LabelledAnswer], hostile: Sequence[LabelledAnswer]) -> None:
        self._benchmark = get_benchmark(BENCHMARK)
        self._panel = parse_panel(name)
        if self._panel is not None and self._panel.counts_flags:
            raise SpecError(f"{name} gives an answer several labels; examine majority, all or first.")
        names = resolve_models((name,) if self._panel is None else self._panel.members)
        is_first = self._panel is not None and self._panel.rule == "first" and names[0] in judge_names()
        self.judges: list[Judge] = find_judges(names, self._benchmark, names[0] if is_first else None)
        if self._panel is not None:
            self._panel = replace(self._panel, members=tuple(judge.id for judge in self.judges))
        self.answers, self._hostile = answers, hostile
        orders = (_DRAWN, _SWAPPED) if self.models else (_DRAWN,)
        self._records = {(order, answer.id): answer.record for order in orders for answer in answers}
        self._records |= {(_DRAWN, answer.id): answer.record for answer in hostile}
        self._usage = Usage()
        for judge in self.judges:
            if isinstance(judge, FunctionJudge):
                verdicts = {a.id: judge_record(judge, a.record, self._benchmark) for a in (*answers, *hostile)}
                self._add({key: verdicts[key[1]] for key in self._records})

    @property
    def models(self) -> list[RubricJudge]:
        """The judges that are models."""
        return [judge for judge in self.judges if isinstance(judge, RubricJudge)]

    @property
    def id(self) -> str:
        """The id of the judge, or of the panel by its members' ids."""
        ids = [judge.id for judge in self.judges]
        return ids[0] if self._panel is None else panel_id(self._panel, ids)

    def requests(self, judge: RubricJudge) -> list[Request]:
        """Return the first request for each label that ``judge`` is asked for."""
        return [
            case.request(key, record)
            for key, (case, record) in self._cases(judge).items()
            if case.verdict_without_model(record) is None
        ]

    def ask(self, judge: RubricJudge, model: TextModel, done: Callable[[], None], stopwatch: Stopwatch) -> None:
        """Have ``model`` judge as ``judge``, timed by ``stopwatch``; ``done`` is called after each verdict.

        Raises as :meth:`TextModel.generate`.
        """
        cases = self._cases(judge)
        replies: dict[str, tuple[Generation, ...]] = dict.fromkeys(cases, ())
        verdicts = {key: case.verdict_without_model(record) for key, (case, record) in cases.items()}
        asked = [key for key, verdict in verdicts.items() if verdict is None]
        while waiting := [key for key in asked if verdicts[key] is None]:
            requests = [cases[key][0].request(key, cases[key][1], replies[key]) for key in waiting]
            for reply in model.generate(requests):
                key = reply.request_id.rpartition("#")[0]
                replies[key] = (*replies[key], usable_answer(reply))
                verdicts[key] = judge.verdict(replies[key])
                if verdicts[key] is not None:
                    done()
        all_replies = [reply for key in asked for reply in replies[key]]
        self._usage = self._usage.plus(
            Usage(
                len(all_replies),
                sum(reply.finish_reason == "error" for reply in all_replies),
                sum(reply.calls == 0 for reply in all_replies),
                len(asked),
                stopwatch.seconds,
                sum(reply.prompt_tokens or 0 for reply in all_replies),
                sum(reply.completion_tokens or 0 for reply in all_replies),
            )
        )
        self._add({_place(key): verdict for key, verdict in verdicts.items() if verdict is not None})

    def result(self) -> Examination:
        """Return the result, once all models have judged."""
        records = self._records
        if self._panel is not None:
            add_verdict = panel_judge(self._panel, [judge.id for judge in self.judges], self._benchmark.labels)
            records = {key: add_verdict(record) for key, record in records.items()}

        def verdicts(order: str, answers: Sequence[LabelledAnswer]) -> list[Verdict]:
            return [records[order, answer.id].verdicts[self.id] for answer in answers]

        return Examination(
            self.id,
            self.answers,
            verdicts(_DRAWN, self.answers),
            verdicts(_SWAPPED, self.answers) if self.models else None,
            self._hostile,
            verdicts(_DRAWN, self._hostile),
            self._usage,
        )

    def _cases(self, judge: RubricJudge) -> dict[str, tuple[RubricJudge, Record]]:
        """Return the records that ``judge`` labels, by the key of their requests, each with the judge in the record's order."""
        judges = {_DRAWN: judge, _SWAPPED: judge.reversed()}
        return {
            f"{order}/{answer}": (judges[order], record)
            for (order, answer), record in self._records.items()
            if not judge.undecided_by or record.outcome(judge.undecided_by) == "undecided"
        }

    def _add(self, verdicts: Mapping[tuple[str, str], Verdict]) -> None:
        for key, verdict in verdicts.items():
            record = self._records[key]
            self._records[key] = replace(record, verdicts={**record.verdicts, verdict.judge: verdict})


def _place(key: str) -> tuple[str, str]:
    order, _, answer = key.partition("/")
    return order, answer
