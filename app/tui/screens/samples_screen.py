"""The Samples screen: a run's records, filtered by a query, each with all its details; labels can be overridden."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from app.report.samples.sample_detail import SampleDetail, read_sample_detail
from app.report.samples.sample_rows import sample_to_json
from app.store.run_store import RunStore
from app.store.sample_lists import SampleFilter
from app.tui.hostile_text import literal, sanitize
from app.tui.key_commands import bindings
from app.tui.latest_only import LatestOnly
from app.tui.open_external import open_in_viewer
from app.tui.sample_query import QueryVocabulary, parse_query, query_hint
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.sample_list import SampleListing, hint_content, list_columns, list_rows, read_listing
from app.tui.screens.session_overrides import SessionOverrides
from app.tui.screens.zoom_screen import zoom
from app.tui.theme import PARTIAL
from app.tui.widgets.sample_text import question_text, sample_text
from app.tui.widgets.sample_view import SampleView, number_media
from app.tui.widgets.sibling_strip import SiblingStrip, sibling_names
from app.tui.widgets.table_columns import Column, Row
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable
from app.tui.workspace_watcher import WorkspaceSnapshot
from benchmarks.errors import RashomonError
from benchmarks.text.answer_text import visible_answer

_RELOAD_SECONDS = 1.0
"""The shortest interval at which the list of an active run is read again."""


class SamplesScreen(RashomonScreen):
    """The answers of a run: the list, and the details of the one under the cursor."""

    name_ = "samples"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    AUTO_FOCUS = "#samples"

    def __init__(self, folder: Path, query: str = "") -> None:
        super().__init__()
        self.folder = folder
        self.query_text = query
        self.table = VirtualTable(empty="no answer matches; / changes the filter", id="samples")
        self.view = SampleView(id="sample")
        self.strip = SiblingStrip(id="siblings")
        self.detail: SampleDetail | None = None
        """The record on display."""
        self.expanded = False
        """True to show reasoning, raw replies and long texts in full."""
        self.listing = SampleListing([], 0, QueryVocabulary(), SampleFilter())
        self._progress: object = None
        self._loading = self._stale = False
        self._current: int | None = None
        """The ordinal of the record that is on display or being read."""
        self._reader = LatestOnly(self, "detail")
        self._medium = 0
        """The number of media that were opened of this record."""
        self.overrides = SessionOverrides(self, folder, self._overridden)

    # --- drawing ---------------------------------------------------------------------------------

    def displayed_runs(self) -> tuple[Path, ...]:
        return (self.folder,)

    def page_at(self) -> str:
        return self.detail.row.id if self.detail is not None else ""

    def page_judge(self) -> str:
        judges, default = self.listing.filter.judges, self.listing.vocabulary.default
        return judges[0] if len(judges) == 1 and judges != tuple(default) else ""

    def heading(self) -> Content:
        matches, total = len(self.listing.ordinals), self.listing.total
        count = f"{matches:,} of {total:,} answers" if self.query_text else f"{total:,} answers"
        title = Content("Samples  ") + literal(self.folder.name, "bold", limit=60) + Content(f"  {count}")
        return title + (literal(f"  {self.query_text}", PARTIAL, limit=120) if self.query_text else Content(""))

    def body(self) -> ComposeResult:
        with panel(Vertical(id="filter-panel"), "Filter") as filter_panel:
            filter_panel.border_subtitle = Content("Enter applies it, Esc closes")
            yield Input(
                self.query_text, placeholder='is:wrong condition:NAME label:LABEL "words"', id="filter", compact=True
            )
            yield Static(id="hint")
        with Horizontal():
            yield panel(self.table, "Answers")
            with panel(Vertical(id="detail"), "Answer"):
                yield self.strip
                yield self.view

    def on_mount(self) -> None:
        self.strip.show((), None)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit_columns)

    def _fit_columns(self) -> None:
        """Give the list the columns that it has room for."""
        columns = list_columns(self.listing.vocabulary, self.table.size.width)
        if columns != self.table.columns:
            self._list(columns)

    # --- the list --------------------------------------------------------------------------------

    def workspace_changed(self, snapshot: WorkspaceSnapshot) -> None:
        run = self.current_run(self.folder)
        progress = () if run is None else run.summary.progress  # a run that is gone is reported once
        if progress != self._progress:
            self._progress = progress
            self.reload()

    def reload(self, *, at_once: bool = False) -> None:
        """Read the list again.

        If it is being read, read it once more afterwards, or, with ``at_once``, discard the reading in progress.
        """
        if self._loading and not at_once:
            self._stale = True
            return
        self._loading, self._stale = True, False
        query = self.query_text

        def end() -> None:
            self._loading = False

        self.attempt(lambda: read_listing(self.folder, query), self._show, ended=end, group="list")

    def _show(self, listing: SampleListing) -> None:
        self.listing = listing
        self._list(list_columns(listing.vocabulary, self.table.size.width))
        self.update_title()
        self._update_hint()
        key = self.table.cursor_key
        self.show_sample(key if isinstance(key, int) else None, again=True)
        if self._stale:
            self.set_timer(_RELOAD_SECONDS, self.reload)

    def _list(self, columns: Sequence[Column]) -> None:
        """Show the list with these columns."""
        ordinals, judges = self.listing.ordinals, self.listing.filter.judges
        with_answers = len(columns) > 3

        def page(first: int, count: int) -> Sequence[Row]:
            return list_rows(self.folder, ordinals[first : first + count], judges, with_answers)

        self.table.show(len(ordinals), page, keys=ordinals, columns=columns)
        self._show_position()

    def _show_position(self) -> None:
        """Display the number of the row under the cursor in the list's lower border."""
        count = self.table.row_count
        self.table.set_subtitle(Content(f"{self.table.cursor + 1:,} of {count:,}" if count else ""))

    @on(VirtualTable.Moved)
    def _moved(self, event: VirtualTable.Moved) -> None:
        self._show_position()
        self.show_sample(event.key if isinstance(event.key, int) else None)

    def show_sample(self, ordinal: int | None, *, again: bool = False) -> None:
        """Show a record, which need not be in the list; ``again`` reads it even if it is on display."""
        if ordinal == self._current and not again:
            return
        if ordinal != self._current:
            self._medium = 0
        self._current = ordinal
        if ordinal is None:
            self._show_detail(None)
            return
        workspace, folder, judges = self.rashomon.workspace, self.folder, self.listing.filter.judges
        self._reader.submit(lambda: read_sample_detail(workspace, folder, ordinal, judges), self._show_detail)

    def _show_detail(self, detail: SampleDetail | None) -> None:
        """Show a record, or nothing."""
        self.detail = detail
        pane = self.query_one("#detail")
        if detail is None:
            self.strip.show((), None)
            set_panel_title(pane, "Answer")
            self.view.show_message(Content("no answer selected"))
            return
        row = detail.row
        self.strip.show(detail.siblings, row.ordinal)
        set_panel_title(pane, literal(_name(detail), limit=60))
        pane.border_subtitle = Content("[ and ] switch conditions" if len(detail.siblings) > 1 else "")
        question, text = question_text(detail, self.expanded), sample_text(detail, self.expanded)
        self.view.show(row.ordinal, question, number_media(detail.media), text)

    # --- the filter ------------------------------------------------------------------------------

    def action_filter(self) -> None:
        self.add_class("-filtering")
        self._update_hint()
        self.set_focus(self.query_one("#filter", Input))

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        query = sanitize(event.value)
        if query != event.value:  # pasted text may be hostile, and an Input displays it as it is
            event.input.value = query
        self._update_hint()

    def _update_hint(self) -> bool:
        """Show the query's problem, or the keys and values of queries; return True if the query is valid."""
        line = self.query_one("#hint", Static)
        try:
            parse_query(self.query_one("#filter", Input).value, self.listing.vocabulary)
        except RashomonError as error:
            line.update(literal(f"! {error}", limit=300))
            line.add_class("-wrong")
            return False
        line.update(hint_content(query_hint(self.listing.vocabulary), self.size.width - 4))
        line.remove_class("-wrong")
        return True

    @on(Input.Submitted, "#filter")
    def _apply_filter(self, event: Input.Submitted) -> None:
        if self._update_hint():
            self.query_text = event.value.strip()
            self.remove_class("-filtering")
            self.set_focus(self.table)
            self.reload(at_once=True)

    async def action_back(self) -> None:
        if self.has_class("-filtering"):
            self.remove_class("-filtering")
            self.query_one("#filter", Input).value = self.query_text
            self.set_focus(self.table)
        elif self.view.has_focus:
            self._to_list()
        else:
            await self.rashomon.action_back()

    @on(VirtualTable.Selected)
    def _opened(self) -> None:
        self.add_class("-detail")  # in a narrow terminal, it replaces the list
        self.set_focus(self.view)

    def _to_list(self) -> None:
        self.remove_class("-detail")
        self.set_focus(self.table)

    def action_switch(self) -> None:
        """Move between the list and the answer."""
        if self.view.has_focus:
            self._to_list()
        else:
            self._opened()

    def action_step(self, direction: str) -> None:
        """Move the list's cursor from the answer."""
        self.table.cursor += 1 if direction == "next" else -1

    def action_next(self) -> None:
        self._to_mismatch(1)

    def action_previous(self) -> None:
        self._to_mismatch(-1)

    def _to_mismatch(self, step: int) -> None:
        mismatches, folder = replace(self.listing.filter, mismatch=True, order="run"), self.folder

        def find() -> list[int]:
            with RunStore.read(folder) as store:
                return store.sample_ordinals(mismatches)

        def move(ordinals: list[int]) -> None:
            places = self._places(ordinals)
            index = bisect_left(places, self.table.cursor + (step > 0))
            index = index if step > 0 else index - 1
            if 0 <= index < len(places):
                self.table.cursor = places[index]
            else:
                self.rashomon.toast(f"no wrong or disputed answer {'after' if step > 0 else 'before'} this one")

        self.attempt(find, move, group="mismatch")

    def _places(self, ordinals: Sequence[int]) -> list[int]:
        """Return the positions in the list of those ``ordinals`` that are in it."""
        members = set(ordinals)
        return [place for place, ordinal in enumerate(self.listing.ordinals) if ordinal in members]

    def action_sibling(self, direction: str) -> None:
        if self.detail is None or len(self.detail.siblings) < 2:
            return
        ordinals = [row.ordinal for row in self.detail.siblings]
        step = 1 if direction == "next" else -1
        current = self._current if self._current in ordinals else self.detail.row.ordinal  # it may still be being read
        self._to_sibling(ordinals[(ordinals.index(current) + step) % len(ordinals)])

    @on(SiblingStrip.Chosen)
    def _chosen(self, event: SiblingStrip.Chosen) -> None:
        self._to_sibling(event.ordinal)

    def _to_sibling(self, ordinal: int) -> None:
        """Show a sibling, which need not be in the list."""
        if ordinal in self.listing.ordinals:
            self.table.cursor = self.listing.ordinals.index(ordinal)
        self.show_sample(ordinal)

    # --- actions on one record -------------------------------------------------------------------

    def action_more(self) -> None:
        self.expanded = not self.expanded
        self._show_detail(self.detail)

    def action_zoom(self) -> None:
        """Show the media as large as the terminal allows."""
        if self.detail is not None:
            zoom(self, self.view.question, self.view.media)

    def action_override(self) -> None:
        if self.detail is not None:
            self.overrides.ask(self.detail)

    def action_undo(self) -> None:
        """Undo the last override of this session; without one, ask whether to undo an earlier one of this record."""
        self.overrides.undo(self.detail)

    def _overridden(self, ordinal: int | None) -> None:
        """Read the list again after an override, with the cursor at ``ordinal`` where one was undone."""
        if ordinal in self.listing.ordinals:
            self.table.cursor = self.listing.ordinals.index(ordinal)
        self.reload(at_once=True)

    def action_outside(self) -> None:
        """Open the record's media in the system's viewer, one after the other."""
        media = self.detail.media if self.detail else ()
        paths = [path for _, path in media if path is not None]
        if not paths:
            self.rashomon.toast("the media files are missing" if media else "no media")
            return
        path = paths[self._medium % len(paths)]
        self._medium += 1
        self.attempt(lambda: open_in_viewer(path), group="viewer")

    def action_copy(self) -> None:
        record = self.detail.record if self.detail else None
        if record is not None and record.answer is not None:
            self.rashomon.copy(visible_answer(record.answer.text))

    def action_copy_record(self) -> None:
        current = self.detail
        if current is not None:
            record: dict[str, Any] = sample_to_json(current.record, remarks=current.remarks)
            self.rashomon.copy(json.dumps(record, indent=2, ensure_ascii=True))


def _name(detail: SampleDetail) -> str:
    """Return the name of a record among its siblings."""
    names = dict(zip([row.ordinal for row in detail.siblings], sibling_names(detail.siblings), strict=True))
    return names.get(detail.row.ordinal, detail.row.condition)
