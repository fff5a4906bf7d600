"""A run of the page, which is read again as it changes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from app.report.runs.portable_facts import portable_message
from app.report.tables.judge_selection import count_overrides, present_judges, resolve_panel
from app.store.bundles.bundle_opening import is_opened_bundle
from app.store.run_store import RunStore
from app.store.run_summary import ACTIVE_STATES, RunSummary, read_summary
from app.store.sample_lists import AnswerFacts, SampleOutcome
from app.store.summary_cache import Stamp, run_stamp
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from app.view.contents.answer_columns import AnswerColumns
from app.view.contents.page_types import ViewedRun
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Record
from judges.panel_judge import Panel, panel_judge
from mlx_backends.baseline_engine import is_policy
from mlx_backends.portable_model_names import without_folders

UNREADABLE = (RashomonError, sqlite3.Error, OSError, ValueError)
"""The errors of a run that is gone, damaged or locked."""

BUNDLED = "this is a bundle's run, which nothing changes; `rashomon adopt` makes it one of yours."
FOREIGN = "this run was not made on this machine, or was altered elsewhere; `rashomon adopt` makes it one of yours."
"""The reasons why a run takes no labels."""

_STATE_SECONDS = 2.0
"""The time after which the state of a run at work is read again, whose worker may be gone without a trace."""
_AT_WORK = (*ACTIVE_STATES, "planned", "paused")


class RunNames(NamedTuple):
    """The names of a run: that of its folder, and that in tables; each is unique on the page."""

    name: str
    label: str


class Judging(NamedTuple):
    """The judge of the page; ``is_default`` if none was asked for, so that people's overrides come first."""

    judge: str
    is_default: bool


class LiveRun:
    """A run of the page.

    Attributes:
        judging: The judge whose labels are displayed; a change of it takes effect with the next :meth:`refresh`.
        judges: The ids of the judges whose labels count, the first that has judged; not used where :attr:`is_panel`.
        present: The ids of the judges that have labelled anything.
        viewed: The run as the page displays it.
    """

    def __init__(
        self, store: RunStore, workspace: Workspace, names: RunNames, judging: Judging, columns: AnswerColumns
    ) -> None:
        """Read a run. Raises RashomonError if that fails."""
        self._held: RunStore | None = None
        self.folder, self.columns, self.judging = store.folder, columns, judging
        self._workspace, self._names = workspace, names
        self._spec, self._identity = store.meta("spec"), _identity(store)
        self._benchmark = get_benchmark(self._spec["benchmark"])
        self._received = is_opened_bundle(self.folder.parent.parent)
        self._panel: Panel | None = None
        self.judges: tuple[str, ...] = ()
        self.present: tuple[str, ...] = ()
        self._version: tuple[int, ...] | None = None
        self._used: Judging | None = None
        """The judge that the columns were written by."""
        self._stamp: Stamp | None = None
        self._checked = 0.0
        self._update(store, 1)
        self.viewed = self._view(read_summary(self.folder))

    @property
    def judge(self) -> str:
        """The id of the judge whose labels are displayed."""
        return self.judging.judge

    @property
    def is_panel(self) -> bool:
        """True if labels are computed from those of a panel's members."""
        return self._panel is not None and not self.judging.is_default

    @contextmanager
    def open(self) -> Iterator[RunStore]:
        """Open the run's store, unless it is held open. Raises RashomonError if it is gone, or another run is in its place."""
        if self._held is not None:
            yield self._held
            return
        with self._opened() as store:
            yield store

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Hold the run's store open, where many instances are read one after the other by this thread."""
        with self._opened() as self._held:
            try:
                yield
            finally:
                self._held = None

    def _opened(self) -> RunStore:
        store = RunStore.read(self.folder)
        try:
            if _identity(store) != self._identity:
                raise RashomonError("another run has this name now; run `rashomon view` again.")
        except BaseException:
            store.close()
            raise
        return store

    def refresh(self, revision: int) -> bool:
        """Read what has changed in the run, as of ``revision``; return whether anything has."""
        stamp, now = run_stamp(self.folder), time.monotonic()
        is_due = self.viewed.state in _AT_WORK and now - self._checked > _STATE_SECONDS
        is_due = is_due or self.viewed.judge != clean(self.judge)
        if stamp == self._stamp and not is_due:
            return False
        self._stamp, self._checked = stamp, now
        before, has_changed = self.viewed, False
        try:
            with self.open() as store:
                has_changed = self._update(store, revision)
            self.viewed = self._view(read_summary(self.folder))
        except UNREADABLE as error:
            self._stamp = None  # it is tried again
            self.viewed = replace(self.viewed, problem=self.message(error), writable=False, read_only="")
        return has_changed or self.viewed != before

    def judged(self, record: Record) -> Record:
        """Return a record with the panel's verdict, if the page displays a panel's."""
        return self._adder()(record) if self.is_panel else record

    def message(self, error: BaseException | str) -> str:
        """Return a message for the page, without the folders of this machine."""
        text = str(error) or type(error).__name__
        return clean(portable_message(text, self._workspace.path, self._spec), newlines=True)

    def _update(self, store: RunStore, revision: int) -> bool:
        version, judging = store.version(), self.judging
        if (version, judging) == (self._version, self._used):
            return False
        ordinals = None if self._version is None else store.changed_since(self._version)
        self.present = tuple(present_judges([store]))
        self._panel = resolve_panel(self.judge, self.present)
        # As where samples are browsed: people's overrides come first, then the model that labels what a rule leaves undecided.
        members = (self.judge,) if self._panel is None else tuple(reversed(self._panel.members))
        judges = (*(sorted(count_overrides([store])) if judging.is_default else ()), *members)
        if (judges, judging) != (self.judges, self._used):
            ordinals = None
        facts = [] if ordinals == [] else list(self._facts(store, judges, ordinals))
        has_changed = self.columns.write(facts, revision)
        self.judges, self._version, self._used = judges, version, judging
        return has_changed

    def _facts(self, store: RunStore, judges: Sequence[str], ordinals: Sequence[int] | None) -> Iterator[AnswerFacts]:
        return self._panel_facts(store, ordinals) if self.is_panel else store.answer_facts(judges, ordinals)

    def _panel_facts(self, store: RunStore, ordinals: Sequence[int] | None) -> Iterator[AnswerFacts]:
        """Yield what :meth:`Samples.answer_facts` does, by a panel's verdicts, which are computed from whole records."""
        add = self._adder()
        for page in store.pages(at=ordinals):
            for row in page.instances:
                record = add(store.record(page, row, store.instance(row)))
                answer, verdict = record.answer, record.verdicts.get(self.judge)
                labels = {other.label for name, other in record.verdicts.items() if name != self.judge and other.label}
                yield AnswerFacts(
                    row[0],
                    outcome_by(record, self.judge, self._benchmark),
                    None if verdict is None else verdict.label,
                    overridden=False,
                    disputed=len(labels) > 1,
                    truncated=record.is_cut_off,
                    tokens=None if answer is None else answer.completion_tokens,
                    seconds=0.0 if answer is None else (answer.prefill_s or 0) + (answer.decode_s or 0),
                )

    def _adder(self) -> Callable[[Record], Record]:
        assert self._panel is not None
        return panel_judge(self._panel, self._panel.members, self._benchmark.labels)

    def _view(self, run: RunSummary) -> ViewedRun:
        if run.problem is not None:
            raise RashomonError(run.problem)
        read_only = BUNDLED if self._received else "" if run.own else FOREIGN
        return ViewedRun(
            name=clean(self._names.name),
            label=clean(self._names.label),
            model=clean(without_folders(str(self._spec["model"]))),
            is_policy=is_policy(str(self._spec["model"])),
            state=clean(run.state),
            note=self.message(run.note) if run.note else "",
            problem=None,
            done=run.done,
            total=run.total,
            errors=run.errors,
            judge=clean(self.judge),
            writable=not read_only,
            read_only=read_only,
        )


def outcome_by(record: Record, judge: str, benchmark: Benchmark) -> SampleOutcome:
    """Return the outcome of a record by a judge, with right or wrong for a label, as lists of samples have it."""
    outcome = record.outcome(judge)
    if outcome != "labelled":
        return outcome
    verdict = record.verdicts[judge]
    labels = (verdict.flags if benchmark.counts_flags else ()) or (verdict.label or "",)
    is_right = any(benchmark.score(record.instance.condition, label) == 1 for label in labels)
    return "right" if is_right and not benchmark.is_invention(verdict.label, verdict.behaviour) else "wrong"


def _identity(store: RunStore) -> tuple[object, ...]:
    return store.meta("id", ""), store.meta("created")
