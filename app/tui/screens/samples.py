"""Samples: a run's samples, chosen by what is typed, each with everything there is to see of it; labels can be overridden."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from app.annotation.override import override, take_back
from app.report.judge_selection import effective, present
from app.report.sample_detail import SampleDetail, detail
from app.report.samples import sample
from app.store.run import RunStore
from app.store.samples import SampleFilter
from app.tui.commands import bindings
from app.tui.hostile_text import harmless, literal
from app.tui.open_external import open_outside, person
from app.tui.sample_query import QueryVocabulary, hint, parse_query
from app.tui.screens.base import RashomonScreen
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.override import NewLabel, OverrideDialog
from app.tui.widgets.sample_view import SampleView, look_of
from app.tui.widgets.virtual_table import Column, Row, VirtualTable
from app.tui.workspace_watcher import Snapshot
from benchmarks.base import Verdict, get_benchmark
from benchmarks.errors import RashomonError
from benchmarks.text.answer_text import visible_answer
from judges.human_labels import override_id

_COLUMNS = (Column("label", 13), Column("condition", 14), Column("answer", 0, least=12))
_AGAIN_SECONDS = 1.0
"""While a run goes on its list is made again no more often than this."""


@dataclass(frozen=True)
class _Listed:
    """The list as it was read: the ordinals that fit, and what there is to choose by."""

    ordinals: list[int]
    total: int
    known: QueryVocabulary
    wanted: SampleFilter


class SamplesScreen(RashomonScreen):
    """The samples of a run: the list, and beside it or in its place the sample under the cursor."""

    name_ = "samples"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    AUTO_FOCUS = "#samples"
    DEFAULT_CSS = """
    SamplesScreen #filter, SamplesScreen #hint { display: none; }
    SamplesScreen.-filtering #filter, SamplesScreen.-filtering #hint { display: block; }
    SamplesScreen #hint { color: #909090; padding: 0 1; height: auto; max-height: 7; }
    SamplesScreen #hint.-wrong { color: $error; }
    SamplesScreen VirtualTable { width: 2fr; }
    SamplesScreen SampleView { width: 3fr; border-left: solid #3a3a3a; }
    SamplesScreen.-narrow SampleView { display: none; border-left: none; }
    SamplesScreen.-narrow.-detail SampleView { display: block; }
    SamplesScreen.-narrow.-detail VirtualTable { display: none; }
    """

    def __init__(self, folder: Path, query: str = "") -> None:
        super().__init__()
        self.folder = folder
        self.query_text = query
        self.table = VirtualTable(_COLUMNS, empty="no sample fits; / changes what is shown", id="samples")
        self.view = SampleView(id="sample")
        self.listed = _Listed([], 0, QueryVocabulary(), SampleFilter())
        self._seen: object = None
        self._loading = self._stale = False
        self._shown: int | None = None
        self._medium = 0
        self._overridden: list[tuple[int, str, str, Verdict | None]] = []
        """What was overridden in this sitting: ordinal, instance, person, what they had said before."""

    # --- drawing ---------------------------------------------------------------------------------

    def shown_runs(self) -> tuple[Path, ...]:
        return (self.folder,)

    def heading(self) -> Content:
        found, total = len(self.listed.ordinals), self.listed.total
        count = f"{found:,} of {total:,}" if self.query_text else f"{total:,}"
        shown = Content("Samples  ") + literal(self.folder.name, "bold", limit=60) + Content(f"  {count}")
        return shown + (literal(f"  {self.query_text}", "#f0e442", limit=120) if self.query_text else Content(""))

    def body(self) -> ComposeResult:
        yield Input(
            self.query_text, placeholder='is:wrong condition:NAME label:LABEL "words"', id="filter", compact=True
        )
        yield Static(id="hint")
        with Horizontal():
            yield self.table
            yield self.view

    # --- the list --------------------------------------------------------------------------------

    def changed(self, snapshot: Snapshot) -> None:
        now = self.run_now(self.folder)
        seen = None if now is None else now.summary.progress
        if self._seen is None or seen != self._seen:
            self._seen = seen or ()
            self.reload()

    def reload(self, *, at_once: bool = False) -> None:
        """Read the list again; while it is being read, once more afterwards, or ``at_once`` in its place."""
        if self._loading and not at_once:
            self._stale = True
            return
        self._loading, self._stale = True, False
        query = self.query_text
        self.in_thread(lambda: self._try_to_list(query), self._take, group="list")

    def _try_to_list(self, query: str) -> _Listed | Exception:
        try:
            return _listed(self.folder, query)
        except (RashomonError, sqlite3.Error) as error:
            return error

    def _take(self, listed: _Listed | Exception) -> None:
        self._loading = False
        if isinstance(listed, Exception):
            self.rashomon.failed(listed)
            return
        self.listed = listed
        ordinals, judges = listed.ordinals, listed.wanted.judges

        def page(first: int, count: int) -> Sequence[Row]:
            return _rows(self.folder, ordinals[first : first + count], judges)

        self.table.show(len(ordinals), page, keys=ordinals)
        self.retitle()
        self._tell_hint()
        key = self.table.cursor_key
        self.look_at(key if isinstance(key, int) else None, again=True)
        if self._stale:
            self.set_timer(_AGAIN_SECONDS, self.reload)

    @on(VirtualTable.Moved)
    def _moved(self, event: VirtualTable.Moved) -> None:
        self.look_at(event.key if isinstance(event.key, int) else None)

    def look_at(self, ordinal: int | None, *, again: bool = False) -> None:
        """Show a sample, also one that is not in the list."""
        if ordinal == self._shown and not again:
            return
        if ordinal != self._shown:
            self._medium = 0
        self._shown = ordinal
        if ordinal is None:
            self.view.show(None)
            return
        workspace, folder, judges = self.rashomon.workspace, self.folder, self.listed.wanted.judges
        self.in_thread(lambda: detail(workspace, folder, ordinal, judges), self.view.show, group="detail")

    # --- choosing --------------------------------------------------------------------------------

    def action_filter(self) -> None:
        self.add_class("-filtering")
        self._tell_hint()
        self.set_focus(self.query_one("#filter", Input))

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        typed = harmless(event.value)
        if typed != event.value:  # what is pasted can hold anything, and an Input shows it as it is
            event.input.value = typed
        self._tell_hint()

    def _tell_hint(self) -> bool:
        """Say what is wrong with what is typed, or what can be; whether nothing is wrong."""
        line = self.query_one("#hint", Static)
        try:
            parse_query(self.query_one("#filter", Input).value, self.listed.known)
        except RashomonError as error:
            line.update(literal(f"! {error}", limit=300))
            line.add_class("-wrong")
            return False
        line.update(literal(hint(self.listed.known), limit=600))
        line.remove_class("-wrong")
        return True

    @on(Input.Submitted, "#filter")
    def _choose(self, event: Input.Submitted) -> None:
        if self._tell_hint():
            self.query_text = event.value.strip()
            self.remove_class("-filtering")
            self.set_focus(self.table)
            self.reload(at_once=True)

    async def action_back(self) -> None:
        if self.has_class("-filtering"):
            self.remove_class("-filtering")
            self.query_one("#filter", Input).value = self.query_text
            self.set_focus(self.table)
        elif self.has_class("-detail") or self.view.has_focus:
            self.remove_class("-detail")
            self.set_focus(self.table)
        else:
            await self.rashomon.action_back()

    @on(VirtualTable.Selected)
    def _opened(self) -> None:
        self.add_class("-detail")
        self.set_focus(self.view)

    def action_next(self) -> None:
        self._to_mismatch(1)

    def action_previous(self) -> None:
        self._to_mismatch(-1)

    def _to_mismatch(self, way: int) -> None:
        wanted, folder = replace(self.listed.wanted, mismatch=True, order="run"), self.folder

        def find() -> list[int]:
            with RunStore.read(folder) as store:
                return store.sample_ordinals(wanted)

        def go(found: list[int]) -> None:
            places = self._places(found)
            at = bisect_left(places, self.table.cursor + (way > 0))
            at = at if way > 0 else at - 1
            if 0 <= at < len(places):
                self.table.cursor = places[at]
            else:
                self.rashomon.tell(
                    "no wrong or disputed answer " + ("after this one" if way > 0 else "before this one")
                )

        self.in_thread(find, go, group="mismatch")

    def _places(self, found: Sequence[int]) -> list[int]:
        wanted = set(found)
        return [place for place, ordinal in enumerate(self.listed.ordinals) if ordinal in wanted]

    def action_sibling(self, way: str) -> None:
        shown = self.view.detail
        if shown is None or len(shown.siblings) < 2:
            return
        ordinals = [row.ordinal for row in shown.siblings]
        step = 1 if way == "next" else -1
        ordinal = ordinals[(ordinals.index(shown.row.ordinal) + step) % len(ordinals)]
        if ordinal in self.listed.ordinals:
            self.table.cursor = self.listed.ordinals.index(ordinal)
        self.look_at(ordinal)

    # --- what can be done with one ---------------------------------------------------------------

    def action_more(self) -> None:
        self.view.toggle_whole()

    def action_override(self) -> None:
        shown = self.view.detail
        if shown is None:
            return
        if shown.record.answer is None or shown.record.answer.finish_reason == "error":
            self.rashomon.tell("there is no answer here that could be labelled")
            return
        self.app.push_screen(
            OverrideDialog(shown.benchmark.labels, str(look_of(shown.row)), self._person()),
            lambda said: self._override(shown, said) if said else None,
        )

    def _person(self) -> str:
        return self._overridden[-1][2] if self._overridden else person()

    def _override(self, shown: SampleDetail, said: NewLabel) -> None:
        instance, folder = shown.record.instance.id, self.folder

        def done(before: Verdict | None) -> None:
            self._overridden.append((shown.row.ordinal, instance, said.person, before))
            self.rashomon.tell(f"{said.label} by {said.person}; u takes it back")
            self.reload(at_once=True)

        self.in_thread(lambda: override(folder, said.person, instance, said.label, said.reason), done, group="override")

    def action_undo(self) -> None:
        """Take back the last override of this screen; after a question one of an earlier time, of the sample shown."""
        shown, who = self.view.detail, self._person()
        if self._overridden:
            self._take_back(*self._overridden.pop())
        elif shown is not None and override_id(who) in shown.record.verdicts:
            given = shown.record.verdicts[override_id(who)]
            text = f"{shown.record.instance.id}: {given.label} by {who}, given before this screen was opened: {given.reason}"

            def answered(yes: bool | None) -> None:
                if yes:
                    self._take_back(shown.row.ordinal, shown.record.instance.id, who, None)

            self.app.push_screen(Confirm("Take the override back?", text, yes="Take back"), answered)
        else:
            self.rashomon.tell(f"{who} has overridden nothing here")

    def _take_back(self, ordinal: int, instance: str, who: str, before: Verdict | None) -> None:
        folder = self.folder

        def done(found: bool) -> None:
            self.rashomon.tell("taken back" if found else f"{who} has overridden nothing here")
            if found:
                if ordinal in self.listed.ordinals:
                    self.table.cursor = self.listed.ordinals.index(ordinal)
                self.reload(at_once=True)

        self.in_thread(lambda: take_back(folder, who, instance, before), done, group="override")

    def action_outside(self) -> None:
        """Open the sample's media outside, with several of them one after the other."""
        media = self.view.detail.media if self.view.detail else ()
        there = [path for _, path in media if path is not None]
        if not there:
            self.rashomon.tell("its media are not there" if media else "it has no media")
            return
        path = there[self._medium % len(there)]
        self._medium += 1
        self.in_thread(lambda: open_outside(path), lambda _: None, group="outside")

    def action_copy(self) -> None:
        record = self.view.detail.record if self.view.detail else None
        if record is not None and record.answer is not None:
            self.rashomon.copy(visible_answer(record.answer.text))

    def action_copy_record(self) -> None:
        shown = self.view.detail
        if shown is not None:
            whole: dict[str, Any] = sample(shown.record, remarks=shown.remarks)
            self.rashomon.copy(json.dumps(whole, indent=2, ensure_ascii=True))


def _listed(folder: Path, query: str) -> _Listed:
    with RunStore.read(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        there = [p for p in store.progress() if p.total]
        known = QueryVocabulary(
            [p.condition for p in there], benchmark.labels, store.strata(), present([store]), effective(store)
        )
        wanted = parse_query(query, known)
        return _Listed(store.sample_ordinals(wanted), sum(p.total for p in there), known, wanted)


def _rows(folder: Path, ordinals: Sequence[int], judges: Sequence[str]) -> list[Row]:
    try:
        with RunStore.read(folder) as store:
            rows = store.sample_rows(ordinals, judges)
    except (RashomonError, sqlite3.Error):  # the run was deleted meanwhile
        return []
    made: list[Row] = []
    for row in rows:
        look = look_of(row)
        made.append([[(str(look), look.colour)], row.condition, row.answer or row.id])
    return made
