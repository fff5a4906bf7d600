"""Overrides of labels in a session on a run's samples, which can be undone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.annotation.default_annotator import default_annotator
from app.annotation.label_override import override, retract_override
from app.report.samples.sample_detail import SampleDetail
from app.tui.screen_services import BackgroundScreen
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.override_dialog import NewLabel, OverrideDialog
from app.tui.widgets.sample_text import sample_appearance
from benchmarks.vocabulary import Verdict
from judges.human_labels_and_samples import override_id


class SessionOverrides:
    """The overrides that a user gives on a ``screen``, which is told after each by ``changed``.

    It is called with the ordinal of the answer whose override was undone, else with None.
    """

    def __init__(self, screen: BackgroundScreen, folder: Path, changed: Callable[[int | None], None]) -> None:
        self._screen, self._folder, self._changed = screen, folder, changed
        self._history: list[tuple[int, str, str, Verdict | None]] = []
        """Ordinal, instance, annotator, and the annotator's previous verdict of each."""

    def _annotator(self) -> str:
        return self._history[-1][2] if self._history else default_annotator()

    def ask(self, current: SampleDetail) -> None:
        """Ask for a label of an answer."""
        app = self._screen.rashomon
        if not app.may_write():
            return
        if current.record.answer is None or current.record.answer.finish_reason == "error":
            app.toast("there is no answer to label")
            return
        app.push_screen(
            OverrideDialog(current.benchmark.labels, str(sample_appearance(current.row)), self._annotator()),
            lambda new: self._override(current, new) if new else None,
        )

    def _override(self, current: SampleDetail, new: NewLabel) -> None:
        instance, folder = current.record.instance.id, self._folder

        def finish(previous: Verdict | None) -> None:
            self._history.append((current.row.ordinal, instance, new.person, previous))
            self._screen.rashomon.toast(f"{new.label} by {new.person}; u undoes it")
            self._changed(None)

        self._screen.attempt(
            lambda: override(folder, new.person, instance, new.label, new.reason), finish, group="override"
        )

    def undo(self, current: SampleDetail | None) -> None:
        """Undo the last override of this session; without one, ask whether to undo an earlier one of this answer."""
        app, annotator = self._screen.rashomon, self._annotator()
        if self._history:
            self._undo(*self._history.pop())
        elif current is not None and override_id(annotator) in current.record.verdicts:
            verdict = current.record.verdicts[override_id(annotator)]
            text = f"{current.record.instance.id}: {verdict.label} by {annotator}, from an earlier session: {verdict.reason}"

            def on_answer(yes: bool | None) -> None:
                if yes:
                    self._undo(current.row.ordinal, current.record.instance.id, annotator, None)

            app.push_screen(Confirm("Undo the override?", text, yes="Undo"), on_answer)
        else:
            app.toast(f"no override by {annotator} to undo")

    def _undo(self, ordinal: int, instance: str, annotator: str, previous: Verdict | None) -> None:
        folder = self._folder

        def finish(undone: bool) -> None:
            self._screen.rashomon.toast("override undone" if undone else f"no override by {annotator} to undo")
            if undone:
                self._changed(ordinal)

        self._screen.attempt(lambda: retract_override(folder, annotator, instance, previous), finish, group="override")
