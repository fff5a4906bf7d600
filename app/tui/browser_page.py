"""The page in the browser, opened at what a screen shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.tui.open_external import open_in_browser
from app.tui.page_servers import PageServers, ServedPage
from app.tui.screens.base_screen import BlindError, RashomonScreen
from app.tui.widgets.dialogs import ErrorDialog

_ONE_BROWSER = (
    "It is served until you quit, to the browser that opens it first. For another browser, run `rashomon view RUN`."
)


def open_page(screen: RashomonScreen, pages: PageServers, folders: Sequence[Path]) -> None:
    """Open the page of the runs in ``folders`` in the browser, at the instance that ``screen`` shows."""
    app = screen.rashomon
    try:
        instance = screen.page_at()
    except BlindError as error:
        app.toast(error)
        return
    if not folders:
        app.toast("choose a run first")
        return
    page = ServedPage(app.workspace.path, tuple(folders), screen.page_judge(), app.settings.rule or "")

    def serve() -> tuple[str, bool]:
        link = pages.link(page, instance)
        return link, open_in_browser(link)

    def report(result: tuple[str, bool]) -> None:
        link, is_open = result
        if is_open:
            app.toast(f"the page is open in the browser: {link}")
        else:
            app.push_screen(ErrorDialog(f"{link}\n\n{_ONE_BROWSER}", heading="Open this link"))

    app.toast("◐ opening the page in the browser")
    screen.attempt(serve, report, group="page")
