"""Labels and overrides that are given on the page, by the rules of the terminal interface."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from app.annotation.label_override import override, retract_override
from app.annotation.labelling_session import LabellingSession, draw_sample
from app.report.samples.reference_lines import reference_lines
from app.report.tables.judge_selection import undecided_instances
from app.store.bundles.bundle_opening import is_opened_bundle
from app.store.integrity.run_ownership import ForeignRunError
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.text.text_escaping import clean
from app.view.contents.live_run import BUNDLED, FOREIGN
from app.view.contents.page_types import BlindItem, LabellingProgress, OverrideReply
from benchmarks.errors import RashomonError, SpecError, StoreError, did_you_mean
from benchmarks.vocabulary import Verdict
from judges.human_labels_and_samples import BlindAnswer, annotator_id, override_id

_text = partial(clean, newlines=True)
_EARLIER_LABEL = "It is from an earlier session. The label is set aside, and the answer comes up again."


class ReadOnlyError(StoreError):
    """An attempt to label a run that takes no labels here."""


@dataclass
class _OpenSession:
    """A labelling session, and the instances that were labelled in it."""

    session: LabellingSession
    new: set[str] = field(default_factory=set)


class Labelling:
    """The labelling sessions and the overrides of a page.

    Pages on which the same person labels the same run share a session, so that none labels an answer which another one has
    labelled in the meantime. Methods raise RashomonError, whose message is to be displayed. One writes at a time.
    """

    def __init__(self, folders: Sequence[Path], instance_id: Callable[[int], str]) -> None:
        """``folders`` are the page's runs; ``instance_id`` returns the id of an instance by its number, or raises SpecError."""
        self._folders = folders
        self._instance_id = instance_id
        self._lock = threading.Lock()
        self._sessions: dict[tuple[Path, str], _OpenSession] = {}
        self._overrides: defaultdict[tuple[Path, str, str], list[Verdict | None]] = defaultdict(list)
        """The verdict before each override that was given here, by run, instance and annotator."""

    # --- labels ----------------------------------------------------------------------------------

    def begin(self, run: int, name: str) -> LabellingProgress:
        """Draw or resume the sample of this person, the undecided answers first, and return the current item."""
        with self._lock:
            folder, judge = self._folder(run), annotator_id(name)
            if (folder, judge) not in self._sessions:
                with _blindly(folder), RunStore.open(folder) as store:
                    task = draw_sample(store, judge, undecided=undecided_instances(store))
                    self._sessions[folder, judge] = _OpenSession(LabellingSession(task, store))
            return _progress(self._sessions[folder, judge].session)

    def give(self, run: int, name: str, item: str, label: str | None) -> LabellingProgress:
        """Save a label of the current item, whose id is ``item``, and return the next one; None skips it."""
        with self._current(run, name, item) as (folder, opened):
            session, position = opened.session, opened.session.position
            if position is None:
                raise StoreError("the whole sample is labelled.")
            labels = session.task.benchmark.labels
            if label is not None and label not in labels:
                raise SpecError(f"there is no label {label[:40]!r}; {did_you_mean(label[:40].upper(), labels)}")
            instance = session.task.records[position].instance.id
            with RunStore.open(folder) as store:
                if any(session.task.judge in record.verdicts for record in store.records(only=instance)):
                    raise StoreError("this answer was labelled elsewhere in the meantime; that label stays.")
                session.label_current(store, label)
            opened.new.add(instance)
            return _progress(session, message=f"{label or 'skip'} saved; u undoes it")

    def skip_undecided(self, run: int, name: str, item: str) -> LabellingProgress:
        """Go on with the random sample."""
        with self._current(run, name, item) as (_, opened):
            opened.session.skip_undecided()
            return _progress(opened.session)

    def undo(self, run: int, name: str, item: str, *, confirmed: bool = False) -> LabellingProgress:
        """Undo the last label and return to its answer; one of an earlier session only if that is confirmed."""
        with self._current(run, name, item) as (folder, opened):
            session = opened.session
            instance = session.last_labelled
            if instance is None:
                return _progress(session, message="nothing to undo")
            if instance not in opened.new and not confirmed:
                return _progress(session, confirm=f"Undo the last label? {_EARLIER_LABEL}")
            with RunStore.open(folder) as store:
                session.undo(store)
            opened.new.discard(instance)
            return _progress(session, message="the last label is undone")

    def end(self, run: int, name: str) -> None:
        """End the session; every label is saved."""
        with self._lock:
            self._sessions.pop((self._folder(run), annotator_id(name)), None)

    @contextmanager
    def _current(self, run: int, name: str, item: str) -> Iterator[tuple[Path, _OpenSession]]:
        """Yield the run and the session of this person, in which ``item`` is on display; "" at the end."""
        with self._lock:
            folder, judge = self._folder(run), annotator_id(name)
            opened = self._sessions.get((folder, judge))
            if opened is None:
                raise StoreError("this labelling session has ended; begin it again. Every label is saved.")
            answer = opened.session.current
            if item != (answer.id if answer else ""):
                raise StoreError("another answer is current by now; look at it before you label it.")
            try:
                with _blindly(folder):
                    yield folder, opened
            except StoreError:  # the sample has to be read again
                del self._sessions[folder, judge]
                raise

    # --- overrides -------------------------------------------------------------------------------

    def override(self, run: int, number: int, answer: str, label: str, reason: str, name: str) -> OverrideReply:
        """Save an override of the label of ``answer``, a :class:`ViewedAnswer`'s id, to the instance of that number."""
        with self._lock:
            folder, instance, judge = self._folder(run), self._instance_id(number), override_id(name)
            with _blindly(folder):
                before = override(folder, name, instance, label, reason, answer=answer)
            self._overrides[folder, instance, judge].append(before)
            return OverrideReply(message=f"{label} by {name} saved")

    def undo_override(self, run: int, number: int, name: str, *, confirmed: bool = False) -> OverrideReply:
        """Undo this person's last override of an instance; one that was not given here only if that is confirmed."""
        with self._lock:
            folder, instance, judge = self._folder(run), self._instance_id(number), override_id(name)
            stack = self._overrides[folder, instance, judge]
            with _blindly(folder):
                if not stack and not confirmed and (verdict := _verdict(folder, instance, judge)):
                    earlier = f"{verdict.label} by {name}, from an earlier session: {clean(verdict.reason)}"
                    return OverrideReply(confirm=f"Undo the override? {earlier}")
                undone = retract_override(folder, name, instance, stack[-1] if stack else None)
            if not undone:
                stack.clear()
                raise SpecError(f"there is no override by {name} to undo.")
            if stack:
                stack.pop()
            return OverrideReply(message="override undone")

    def _folder(self, run: int) -> Path:
        """Return the folder of a run that takes labels. Raises SpecError, StoreError and ReadOnlyError."""
        if not 0 <= run < len(self._folders):
            raise SpecError(f"there is no run {run} on this page.")
        folder = self._folders[run]
        if is_opened_bundle(folder.parent.parent):
            raise ReadOnlyError(BUNDLED)
        try:
            with _blindly(folder):
                RunStore.require_own(folder)
        except ForeignRunError as error:
            raise ReadOnlyError(FOREIGN) from error
        return folder


def _progress(session: LabellingSession, *, message: str = "", confirm: str = "") -> LabellingProgress:
    answer, position = session.current, session.position
    return LabellingProgress(
        annotator=session.task.judge,
        item=None if answer is None else _item(answer),
        position=session.total if position is None else position + 1,
        total=session.total,
        count=session.count,
        summary=session.summary,
        undecided=session.at_undecided,
        advice=session.task.advice,
        message=message,
        confirm=confirm,
    )


def _item(answer: BlindAnswer) -> BlindItem:
    return BlindItem(
        id=answer.id,
        question=_text(answer.question),
        references=tuple(
            (clean(heading), _text(value) + (f" ({clean(letter)})" if letter else ""))
            for heading, value, letter in reference_lines(answer.references)
        ),
        answer=_text(answer.answer),
        labels=answer.labels,
    )


def _verdict(folder: Path, instance: str, judge: str) -> Verdict | None:
    with RunStore.read(folder) as store:
        return next((record.verdicts.get(judge) for record in store.records(only=instance)), None)


@contextmanager
def _blindly(folder: Path) -> Iterator[None]:
    """Remove the run's name from errors, because it can reveal the model."""
    try:
        yield
    except RashomonError as error:
        text = str(error).replace(str(folder / DATABASE), "this run").replace(str(folder), "this run")
        error.args = (re.sub(rf"(?<![\w-]){re.escape(folder.name)}(?![\w-])", "this run", text),)
        raise
