"""The Trainings screen: all trainings of the workspace, with the loss curve of the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from app.engine.training.training_answer_checks import check_line
from app.engine.training.training_folder import DIVERGED, Training, read_trainings
from app.engine.training.training_log import Curve, LogReader
from app.engine.training.training_supervisor import stop_training
from app.engine.training.training_verdict import TrainingVerdict, chosen_rate, rate_sentence
from app.exit_codes import INCONCLUSIVE, REGRESSED
from app.report.progress.remaining_time import duration
from app.text.plural import count_of
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, state_appearance
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.loss_plot import BASE, BASE_MARK, MARK, TRAIN, VALIDATION, loss_plot
from app.tui.widgets.table_columns import Cell, Column, Row, fit_to_contents
from app.tui.widgets.text_bars import Parts, progress_bar
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.errors import RashomonError

_POLL_SECONDS = 0.5
_BAR_WIDTH = 10
_ACTIVE = ("queued", "loading", "training")
_WORSE, _UNKNOWN = "do not use", "cannot tell"
_RUN_STATES = {"training": "running", DIVERGED: "failed", _WORSE: "failed", _UNKNOWN: "stopped"}
"""The states of a training whose glyph and colour are those of another state of a run."""
_DONE_STATES = {REGRESSED: _WORSE, INCONCLUSIVE: _UNKNOWN}
"""The words for a training that is done, by its verdict."""


@dataclass(frozen=True, slots=True)
class _TrainingRow:
    """A training as displayed; its curve is replaced while it grows."""

    training: Training
    state: str
    note: str
    verdict: TrainingVerdict | None
    curve: Curve = field(compare=False)
    drawn: tuple[int, int, int, int]
    """The numbers of updates, of those of trials, of validations and of checks in the curve."""

    @property
    def active(self) -> bool:
        return self.state in _ACTIVE

    @property
    def resumable(self) -> bool:
        return self.state not in (*_ACTIVE, "done", DIVERGED)


class TrainingsScreen(RashomonScreen):
    """The trainings, newest first; below, the curve of the one under the cursor, its speed and the time left."""

    name_ = "trainings"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[_TrainingRow] = []
        self._readers: dict[Path, LogReader] = {}
        self._problems: list[str] = []
        self._reading = False

    def heading(self) -> Content:
        active = sum(row.active for row in self._rows)
        count = len(self._rows)
        return Content(f"Trainings  {count}" + (f", {active} active" if active else "") if count else "Trainings")

    def body(self) -> ComposeResult:
        table = VirtualTable(empty="no trainings yet; n starts one", id="trainings")
        yield panel(table, "Trainings")
        yield panel(Static(id="curve"), "Loss")
        yield panel(Static(id="facts"), "Training")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))
        self._read()
        self.set_interval(_POLL_SECONDS, self._read)

    def on_resize(self) -> None:
        if self.ready:
            self._show()

    # --- reading ---------------------------------------------------------------------------------

    def _read(self) -> None:
        if not self._reading and self.has_widgets:
            self._reading = True
            self.attempt(self._read_all, self._show_all, group="trainings")

    def _read_all(self) -> tuple[list[_TrainingRow], list[str]]:
        rows, problems = [], []
        try:
            for training in read_trainings(self.rashomon.workspace):
                if not isinstance(training, Training):
                    problems.append(str(training))
                    continue
                reader = self._readers.setdefault(training.path, LogReader(training.path))
                reader.poll()
                curve = reader.curve
                searched = curve.searched + len(curve.trials)
                drawn = len(curve.losses), searched, len(curve.validation_seconds), len(curve.checks)
                rows.append(_TrainingRow(training, *training.state(), training.verdict(), curve, drawn))
            return rows[::-1], problems
        finally:
            self._reading = False

    def _show_all(self, result: tuple[list[_TrainingRow], list[str]]) -> None:
        rows, problems = result
        if (rows, problems) == (self._rows, self._problems):
            return
        states_changed = [row.state for row in rows] != [row.state for row in self._rows]
        self._rows, self._problems = rows, problems
        self._show()
        if states_changed:
            self.refresh_bindings()

    # --- drawing ---------------------------------------------------------------------------------

    @property
    def _current(self) -> _TrainingRow | None:
        place = self.query_one(VirtualTable).cursor
        return self._rows[place] if place < len(self._rows) else None

    def _show(self) -> None:
        self.update_title()
        table = self.query_one(VirtualTable)
        rows = [_cells(row) for row in self._rows]
        columns = (
            Column("training", 0, tail=0.5),
            Column("state", 13),
            Column("", _BAR_WIDTH),
            Column("updates", 11, right=True),
            Column("loss", 7, right=True),
            Column("valid.", 7, right=True),
        )
        shown: Sequence[Column] = columns if self.size.width >= 100 else (*columns[:2], *columns[3:])
        if shown is not columns:
            rows = [[*row[:2], *row[3:]] for row in rows]
        keys = [row.training.name for row in self._rows]
        shown = fit_to_contents(shown, rows) if rows else shown
        table.show(len(rows), lambda first, count: rows[first : first + count], keys=keys, columns=shown)
        table.styles.height = min(len(rows) + 3, max(5, self.size.height // 3)) if rows else 5
        self._show_current()

    @on(VirtualTable.Moved)
    def _show_current(self) -> None:
        row, facts = self._current, self.query_one("#facts", Static)
        self.query_one("#curve").display = facts.display = row is not None
        if row is None:
            return
        set_panel_title(facts, literal(row.training.name, newlines=False))
        self.update_static("#facts", Content("\n").join(_facts(row, self.size.width)))
        base = (("  ", ""), (BASE_MARK, BASE), " base") if row.curve.base is not None else ()
        set_panel_title(
            self.query_one("#curve"),
            Content.assemble("Loss: ", ("⣿", TRAIN), " training  ", (MARK, VALIDATION), " validation", *base),
        )
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        row = self._current
        if row is None or not self.has_widgets:
            return
        size = self.query_one("#curve").content_size
        curve = row.curve
        lines = loss_plot(curve.losses, curve.validations, row.training.steps, size.width, size.height, curve.base)
        nothing = literal("no update yet" if not row.curve.losses else "", DIM)
        self.update_static("#curve", Content("\n").join(lines) if lines else nothing)

    # --- actions ---------------------------------------------------------------------------------

    def action_new(self) -> None:
        self.rashomon.open_screen("train", on_top=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        row = self._current if self.ready else None
        if action == "stop":
            return row is not None and row.active
        if action == "resume":
            return row is not None and row.resumable
        if action == "copy":
            return row is not None and row.state == "done"
        return True

    def action_stop(self) -> None:
        row = self._current
        if row is None or not row.active:
            return

        def on_answer(yes: bool | None) -> None:
            if yes:
                self._try(lambda: stop_training(row.training), f"{row.training.name} stops at a checkpoint")

        text = f"{row.training.name}\n\nIt saves a checkpoint and stops; R resumes it from there."
        self.rashomon.push_screen(Confirm("Stop?", text, yes="Stop"), on_answer)

    def action_resume(self) -> None:
        row = self._current
        if row is None or not row.resumable:
            return

        def start() -> None:
            self.rashomon.processes.start(["train", "--resume", row.training.name])

        def on_answer(yes: bool | None) -> None:
            if yes:
                self._try(start, f"{row.training.name} resumes")

        text = f"{row.training.name}\n\n{row.training.steps - row.curve.step:,} of {row.training.steps:,} updates are left."
        self.rashomon.push_screen(Confirm("Resume?", text, yes="Resume"), on_answer)

    def action_copy(self) -> None:
        if (row := self._current) is not None:
            self.rashomon.copy(str(row.training.advised_adapter()))

    def _try(self, work: Callable[[], object], message: str) -> None:
        """Do ``work`` and show ``message``, or the error."""
        try:
            work()
        except RashomonError as error:
            self.rashomon.show_error(error)
        else:
            self.rashomon.toast(message)


def _cells(row: _TrainingRow) -> Row:
    curve = row.curve
    words = _DONE_STATES.get(row.verdict.code, row.state) if row.verdict and row.state == "done" else row.state
    appearance = state_appearance(_RUN_STATES.get(words, words))
    state: Cell = [(f"{appearance.glyph} {words}", appearance.colour)]
    return [
        row.training.name,
        state,
        progress_bar(curve.step, row.training.steps, _BAR_WIDTH),
        f"{curve.step}/{row.training.steps}",
        f"{curve.losses[-1][1]:.3f}" if curve.losses else "-",
        f"{curve.validations[-1][1]:.3f}" if curve.validations else "-",
    ]


def _facts(row: _TrainingRow, width: int) -> list[Content]:
    """Return what is known of a training: its state, speed and losses, then its settings."""
    spec, curve = row.training.spec, row.curve
    progress: Parts = [*progress_bar(curve.step, row.training.steps, 10 if width < 100 else 24)]
    progress.append((f" {curve.step}/{row.training.steps}", ""))
    if row.state == "training" and curve.tokens_per_second:
        progress.append((f"  {curve.tokens_per_second:,.0f} tokens/s", ""))
        progress.append((f"  {duration(curve.seconds_left(row.training.steps))} left", ""))
    elif curve.seconds:
        progress.append((f"  {duration(curve.seconds)} of training", ""))
    if curve.peak_memory:
        progress.append((f"  peak {curve.peak_memory / 1e9:.2f} GB", ""))
    lines = [literal(row.state + (f": {row.note}" if row.note else ""), limit=300)]
    if row.verdict is not None:
        lines.append(literal(row.verdict.sentence, limit=300))
    lines.append(Content.assemble(*(literal(text, style) for text, style in progress)))
    if curve.best is not None and row.verdict is None:
        base = f", {curve.base:.4f} of the base" if curve.base is not None else ""
        lines.append(literal(f"lowest validation loss {curve.best[1]:.4f} at update {curve.best[0]}{base}"))
    for check in curve.checks[:1] + curve.checks[1:][-1:]:
        lines.append(literal(f"{f'update {check.step}' if check.step else 'base'}: {check_line(check)}"))
    rates = spec.tried_rates
    if curve.trial is not None and not curve.losses:
        lines.append(literal(f"trying learning rate {curve.trial[0]:g}: update {curve.trial[1]}"))
    chosen = chosen_rate(curve, rates)
    if sentence := rate_sentence(curve.trials, chosen):
        lines.append(literal(sentence, limit=300))
    rate = "" if rates and chosen is None else f"{spec.learning_rate if chosen is None else chosen:g} "
    lines.append(
        literal(
            f"{row.training.identity.get('model')}  rank {spec.rank}  alpha {spec.alpha:g}  rate {rate}"
            f"({spec.schedule})  {count_of(spec.batch_size, 'row')} an update",
            DIM,
            limit=200,
        )
    )
    return lines
