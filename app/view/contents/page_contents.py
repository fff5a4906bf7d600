"""Contents of the page: several runs of one benchmark, read again as they change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock

from app.compare.fine_tuning.fine_tuning_verdict import MARGIN
from app.compare.result_cache import ResultCache
from app.compare.runs.run_view import reject_duplicates
from app.report.samples.sample_detail import SampleDetail, sample_details
from app.report.tables.judge_selection import resolve_judge
from app.report.tables.run_labels import run_labels, shared_benchmark, unique_labels
from app.store.run_store import RunStore
from app.store.sample_lists import SampleFilter, SampleRow
from app.store.workspace import Workspace
from app.system.version import rashomon_version
from app.text.text_escaping import clean
from app.view.contents.answer_columns import AnswerColumns
from app.view.contents.live_run import UNREADABLE, Judging, LiveRun, RunNames, outcome_by
from app.view.contents.page_instance import RunAnswer, answer_text, sibling_names, unreadable_answer, viewed_instance
from app.view.contents.page_instances import Instances
from app.view.contents.page_json import column
from app.view.contents.page_media import MediaFiles
from app.view.contents.page_overview import read_overview
from app.view.contents.page_types import (
    HEAD,
    LACKING,
    LONGEST,
    Changes,
    Head,
    Index,
    Overview,
    Repeat,
    Sibling,
    ViewedAnswer,
    ViewedInstance,
    ViewRow,
)
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError, SpecError
from benchmarks.vocabulary import RULES

_MOST_CHANGES = 5_000
"""The number of changes from which the page reads the whole index again."""
_MOST_REPEATS = 100
_MOST_RECORDS = 600
"""The number of answers of all runs that are in memory at a time where many instances are read."""
_MOST_WORDS = 12
_TITLED = 3
_ANSWER_CACHE = 2


class Contents:
    """Contents of the page of several runs. Thread-safe; errors of a run become its ``problem``, and the others stay usable.

    Attributes:
        revision: A number that grows with each change of a run.
        runs: The runs of the page, the baseline first.
    """

    def __init__(
        self,
        workspace: Workspace,
        folders: Sequence[Path],
        *,
        judge: str | None = None,
        rule: str | None = None,
        margin: float = MARGIN,
        saved: bool = False,
    ) -> None:
        """Open the page of the runs in ``folders``, with the labels of ``judge``; None stands for those that samples show.

        ``margin`` is that of verdicts on fine-tuned models.

        Raises SpecError if the runs are of several benchmarks or the judge is unknown, StoreError for an unreadable run.
        """
        reject_duplicates(folders)
        self.workspace, self.folders, self.rule, self._margin = workspace, tuple(folders), rule, margin
        self.media = MediaFiles()
        self.revision = 1
        self._requested_judge, self._saved = judge, saved
        self._results, self._lock = ResultCache(), RLock()
        self._answers: OrderedDict[tuple[int, int, int], str] = OrderedDict()
        with ExitStack() as stack:
            stores = [stack.enter_context(RunStore.read(folder)) for folder in folders]
            self.benchmark = shared_benchmark(stores, "view runs of one")
            judge_id = resolve_judge(stores, judge)
            self.instances = Instances(stores, self.benchmark.conditions)
            self.labels = tuple(self.benchmark.labels)[:LACKING]
            names = map(RunNames, unique_labels([folder.name for folder in folders]), run_labels(stores))
            judging = Judging(judge_id, is_default=judge is None)
            self.runs = tuple(
                LiveRun(store, workspace, name, judging, AnswerColumns(places, self.labels))
                for store, name, places in zip(stores, names, self.instances.places, strict=True)
            )
        self._present = [run.present for run in self.runs]

    # --- the whole page --------------------------------------------------------------------------

    def head(self) -> Head:
        """Return what the page needs at first."""
        labels = [run.viewed.label for run in self.runs]
        more = f" and {len(labels) - _TITLED} more" if len(labels) > _TITLED else ""
        return Head(
            version=rashomon_version(),
            saved=self._saved,
            benchmark=self.benchmark.name,
            title=f"{clean(self.benchmark.title)}: {', '.join(labels[:_TITLED])}{more}",
            paper=clean(self.benchmark.paper),
            rule=None if self.rule is None else RULES.get(self.rule, self.rule),
            conditions=self.instances.conditions,
            labels=tuple(map(clean, self.labels)),
            kinds={
                condition: {clean(label): kind_of(self.benchmark, condition, label) for label in self.labels}
                for condition in self.instances.conditions
            },
            meanings={clean(label): clean(words) for label, words in self.benchmark.behaviours.items()},
            runs=tuple(run.viewed for run in self.runs),
            instances=len(self.instances),
            revision=self.revision,
        )

    def index(self) -> Index:
        """Return the columns that the list is filtered and sorted by."""
        with self._lock:
            return Index(
                revision=self.revision,
                condition=column(self.instances.condition, "u1"),
                group=column(self.instances.group, "u4"),
                strata=self.instances.strata,
                runs=tuple(run.columns.encoded() for run in self.runs),
            )

    def overview(self, *, whole: bool = True) -> Overview:
        """Return the results above the answers; unless ``whole``, without the comparison of runs, which takes longest."""
        with self._lock:
            revision, done = self.revision, tuple(run.viewed.done for run in self.runs)
        for run in self.runs:
            if run.viewed.problem is not None:
                return Overview(revision=revision, problem=f"{run.viewed.label}: {run.viewed.problem}")
        numbers = self.instances.number_of
        judge, rule = self._requested_judge, self.rule
        overview = read_overview(
            self._results, self.folders, judge, rule, numbers, revision, margin=self._margin, whole=whole
        )
        return replace(overview, done=done)

    def refresh(self) -> int:
        """Read what has changed in the runs, and return the revision; it costs little where nothing has."""
        with self._lock:
            revision = self.revision + 1
            changed = [run.refresh(revision) for run in self.runs]
            if self._select_judge():
                changed += [run.refresh(revision) for run in self.runs]
            if any(changed):
                self.revision = revision
            return self.revision

    def _select_judge(self) -> bool:
        """Choose the judge again if another one has labelled anything, as tables do; return whether it is another."""
        present = [run.present for run in self.runs]
        if present == self._present:
            return False
        self._present = present
        try:
            with ExitStack() as stack:
                stores = [stack.enter_context(run.open()) for run in self.runs if run.viewed.problem is None]
                judge = resolve_judge(stores, self._requested_judge) if stores else self.runs[0].judge
        except UNREADABLE:  # it stays as it was
            return False
        is_other = judge != self.runs[0].judge
        for run in self.runs:
            run.judging = Judging(judge, run.judging.is_default)
        return is_other

    def changes(self, since: int) -> Changes:
        """Return what has changed since a revision of the page."""
        with self._lock:
            runs = tuple(run.viewed for run in self.runs)
            is_whole = not 0 < since <= self.revision
            is_whole = is_whole or sum(int((run.columns.changed > since).sum()) for run in self.runs) > _MOST_CHANGES
            if is_whole:
                return Changes(revision=self.revision, runs=runs, whole=True)
            changes = [change for place, run in enumerate(self.runs) for change in run.columns.changes(place, since)]
            return Changes(revision=self.revision, runs=runs, changes=tuple(changes))

    # --- instances -------------------------------------------------------------------------------

    def number(self, instance: str) -> int:
        """Return the number of an instance by its id, or an unambiguous beginning of it. Raises SpecError."""
        numbers = self.instances.numbers
        with suppress(KeyError):
            return self.instances.number_of(instance)
        matches = [number for id_, number in numbers.items() if clean(id_) == instance]
        matches = matches or [number for id_, number in numbers.items() if clean(id_).startswith(instance)]
        if len(matches) == 1:
            return matches[0]
        problem = (
            f"matches {len(matches)} instances; type more of the id" if matches else "is no instance of these runs"
        )
        raise SpecError(f"{instance!r} {problem}.")

    def instance_id(self, number: int) -> str:
        """Return the id of an instance by its number. Raises SpecError for a number that the page does not have."""
        self._check([number])
        return self.instances.ids[number]

    def rows(self, numbers: Sequence[int]) -> tuple[ViewRow, ...]:
        """Return rows of the list. Raises SpecError for a number that the page does not have."""
        self._check(numbers)
        rows_by_run = [self._sample_rows(run, numbers) for run in self.runs]
        viewed = []
        for number in numbers:
            rows = [rows.get(number) for rows in rows_by_run]
            question = next((row.question for row in rows if row is not None), "")
            viewed.append(
                ViewRow(
                    number=number,
                    id=clean(self.instances.ids[number]),
                    question=clean(question)[:HEAD],
                    answers=tuple(map(_answer_head, self.runs, rows)),
                )
            )
        return tuple(viewed)

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Hold the stores of all runs that can be read open, where this thread alone reads many instances."""
        with ExitStack() as stack:
            for run in self.runs:
                with suppress(*UNREADABLE):
                    stack.enter_context(run.held_open())
            yield

    def instance(self, number: int) -> ViewedInstance:
        """Return an instance with each run's answer. Raises SpecError if there is none, RashomonError if no run can be read."""
        return next(self.read_instances([number]))

    def read_instances(self, numbers: Sequence[int]) -> Iterator[ViewedInstance]:
        """Yield what :meth:`instance` returns of each of these instances, reading many at a time."""
        self._check(numbers)
        size = max(1, _MOST_RECORDS // len(self.runs))
        for start in range(0, len(numbers), size):
            yield from self._viewed(numbers[start : start + size])

    def _viewed(self, numbers: Sequence[int]) -> Iterator[ViewedInstance]:
        repeats = [self.instances.repeats(number) for number in numbers]
        by_run = [self._read_answers(run, numbers, repeats) for run in self.runs]
        for number, *answers in zip(numbers, *by_run, strict=True):
            instance = viewed_instance(number, self._siblings(number), answers, self.media)
            if instance is None:
                problems = [answer.error for answer in answers if isinstance(answer, ViewedAnswer)]
                raise RashomonError(problems[0] if problems and problems[0] else "no run has this instance any more.")
            yield instance

    def _siblings(self, number: int) -> list[Sibling]:
        numbers = self.instances.siblings(number)
        ids = [self.instances.ids[other] for other in numbers]
        conditions = [self.instances.conditions[self.instances.condition[other]] for other in numbers]
        siblings = zip(numbers, ids, conditions, sibling_names(ids, conditions), strict=True)
        return [
            Sibling(number=other, id=clean(id_), condition=condition, name=name)
            for other, id_, condition, name in siblings
        ]

    def answer_text(self, number: int, run: int, start: int) -> tuple[str, int]:
        """Return a part of an answer from a character on, and the number of all its characters."""
        self._check([number])
        if run >= len(self.runs) or (ordinal := self.runs[run].columns.ordinal(number)) is None:
            raise SpecError("the run has no such answer.")
        key = (number, run, int(self.runs[run].columns.changed[number]))
        with self._lock:
            text = self._answers.get(key)
        if text is None:
            with self.runs[run].open() as store:
                text = "".join(map(answer_text, store.records(at=[ordinal])))
            with self._lock:
                self._answers[key] = text
                while len(self._answers) > _ANSWER_CACHE:
                    self._answers.popitem(last=False)
        return text[start : start + LONGEST], len(text)

    def search(self, words: str) -> list[int]:
        """Return the numbers of the instances in which all words occur: in the id, the question or an answer of any run."""
        matches: set[int] | None = None
        for word in list(dict.fromkeys(words.split()))[:_MOST_WORDS]:
            numbers: set[int] = set()
            for run in self.runs:
                try:
                    with run.open() as store:
                        numbers.update(run.columns.numbers(store.sample_ordinals(SampleFilter(words=(word,)))).tolist())
                except UNREADABLE:
                    continue
            matches = numbers if matches is None else matches & numbers
        return sorted(range(len(self.instances)) if matches is None else matches)

    def _check(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if not 0 <= number < len(self.instances):
                raise SpecError(f"there is no instance {number} on this page.")

    def _sample_rows(self, run: LiveRun, places: Sequence[int]) -> dict[int, SampleRow]:
        """Return the rows of those instances and repeats that the run has; none if it cannot be read."""
        by_ordinal = {ordinal: place for place in places if (ordinal := run.columns.ordinal(place)) is not None}
        try:
            with run.open() as store:
                rows = store.sample_rows([*by_ordinal], run.judges)
        except UNREADABLE:
            return {}
        return {by_ordinal[row.ordinal]: row for row in rows}

    def _read_answers(
        self, run: LiveRun, numbers: Sequence[int], repeats: Sequence[Sequence[int]]
    ) -> list[RunAnswer | ViewedAnswer | None]:
        """Return a run's answer to each instance. Where they cannot be read together, each is read by itself."""
        ordinals = [run.columns.ordinal(number) for number in numbers]
        try:
            with run.open() as store:
                wanted = [ordinal for ordinal in ordinals if ordinal is not None]
                details = sample_details(self.workspace, store, wanted, run.judges)
        except UNREADABLE as error:
            if len(numbers) > 1:
                pairs = zip(numbers, repeats, strict=True)
                return [self._read_answers(run, [number], [others])[0] for number, others in pairs]
            return [unreadable_answer(run.columns.outcome(numbers[0]), run.message(error))]
        places = [
            [*run.columns.repeats(number), *others][:_MOST_REPEATS]
            for number, others in zip(numbers, repeats, strict=True)
        ]
        rows = self._sample_rows(run, sorted({place for others in places for place in others}))
        answers: list[RunAnswer | ViewedAnswer | None] = []
        for number, ordinal, others in zip(numbers, ordinals, places, strict=True):
            if ordinal is None:
                answers.append(None)
            elif ordinal in details:
                answers.append(self._answer(run, details[ordinal], self._repeats(run, others, rows)))
            else:
                answers.append(unreadable_answer(run.columns.outcome(number), "the instance is gone."))
        return answers

    def _answer(self, run: LiveRun, detail: SampleDetail, repeats: tuple[Repeat, ...]) -> RunAnswer:
        record, row = run.judged(detail.record), detail.row
        judge = next((name for name in run.judges if name in record.verdicts), None)
        if run.is_panel:
            judge = run.judge if run.judge in record.verdicts else None
            label = None if judge is None else record.verdicts[judge].label
            row = replace(row, outcome=outcome_by(record, run.judge, self.benchmark), label=label, overridden=False)
        problem = record.answer.error if record.answer is not None else None
        message = None if problem is None else run.message(problem)
        return RunAnswer(detail, record, judge, row, repeats, message)

    def _repeats(self, run: LiveRun, places: Sequence[int], rows: Mapping[int, SampleRow]) -> tuple[Repeat, ...]:
        """Return the repetitions at these places that the run has; ``rows`` are by place."""
        return tuple(
            Repeat(
                number=place if place < len(self.instances) else None,
                outcome=run.columns.outcome(place),
                label=run.columns.label(place),
                answer=_answer_text(run, rows[place]),
            )
            for place in places
            if place in rows
        )


def _answer_head(run: LiveRun, row: SampleRow | None) -> str | None:
    """Return the start of an answer, or its error; None where there is none."""
    if row is None or (row.outcome == "pending" and not row.answer):
        return None
    return _answer_text(run, row)[:HEAD]


def _answer_text(run: LiveRun, row: SampleRow) -> str:
    """Return an answer on one line, or its error."""
    return run.message(row.answer) if row.outcome == "error" else clean(row.answer)


def kind_of(benchmark: Benchmark, condition: str, label: str) -> str:
    """Return what a label counts as under a condition; an answer's outcome, right or wrong, goes before it."""
    score = benchmark.score(condition, label) if condition in benchmark.conditions else 0.0
    if score == 1 and label not in benchmark.inventions:
        return "right"
    if 0 < score < 1:
        return "partial"
    abstention = benchmark.abstention
    if abstention is not None and label in abstention.labels.get(condition, ()):
        return "abstained"
    return "wrong"
