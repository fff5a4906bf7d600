"""Rows of a table, read a page at a time, in a thread where that takes long."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from textual.cache import LRUCache
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from app.tui.widgets.table_columns import Row

PAGE = 64
"""The number of rows requested at a time."""

Page = Callable[[int, int], Sequence[Row]]
"""A function of (first, count) that returns ``count`` rows from number ``first``, fewer at the end."""


class RowPages:
    """The rows that ``table`` shows, and their keys.

    Attributes:
        count: The number of rows.
    """

    def __init__(self, table: Widget) -> None:
        self._table = table
        self.count = 0
        self._page: Page = lambda first, count: ()
        self._keys: Sequence[Hashable] | None = None
        self._threaded = False
        self._generation = 0
        self._pages: LRUCache[int, Sequence[Row]] = LRUCache(64)
        self._requests: dict[Worker[Any], tuple[int, int]] = {}
        """The generation and first row of each page being read in a thread."""

    def replace(self, count: int, page: Page, keys: Sequence[Hashable] | None, *, threaded: bool) -> None:
        """Replace the rows by ``count`` others; see :meth:`VirtualTable.show`."""
        self.count, self._page, self._keys, self._threaded = count, page, keys, threaded
        self._generation += 1
        self._pages.clear()

    def key(self, row: int) -> Hashable:
        """Return a row's key; None if there is no such row."""
        if not 0 <= row < self.count:
            return None
        return row if self._keys is None else self._keys[row]

    def page(self, first: int) -> Sequence[Row] | None:
        """Return the page that begins with row ``first``; None while a thread reads it."""
        rows = self._pages.get(first)
        if rows is None:
            if self._threaded:
                self._request(first)
                return None
            rows = self._pages[first] = self._page(first, min(PAGE, self.count - first))
        return rows

    def _request(self, first: int) -> None:
        if (self._generation, first) in self._requests.values():
            return
        page, count = self._page, min(PAGE, self.count - first)
        worker = self._table.run_worker(
            lambda: page(first, count), thread=True, group="pages", exit_on_error=False, exclusive=False
        )
        self._requests[worker] = (self._generation, first)

    def take(self, event: Worker.StateChanged) -> bool:
        """Take the page that a thread has read, and return whether there is one to display; an error is shown."""
        if event.worker not in self._requests or event.state not in (WorkerState.SUCCESS, WorkerState.ERROR):
            return False
        event.stop()
        generation, first = self._requests.pop(event.worker)
        if generation != self._generation:
            return False
        if event.state == WorkerState.SUCCESS:
            self._pages[first] = event.worker.result or ()
        else:
            self._pages[first] = ()
            show_error = getattr(self._table.app, "show_error", None)
            if show_error is not None:
                show_error(event.worker.error)
        return True
