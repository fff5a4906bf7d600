"""``rashomon view``: a page on which answers are looked at, served to the browser of this machine."""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence

from app.commands.terminal.spinner import spinner
from app.store.run_references import newest_of_a_build, run_folders
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import SpecError

PORT = 8124
"""The usual port, the same at each start so that addresses of views last; `rashomon serve` has the one before."""


def view(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    at: str | None,
    port: int | None,
    browser: bool | None,
    judge: str | None,
    trust: str | None,
) -> int:
    """Serve the page of ``runs``, or of the newest ones, until Ctrl-C; return the exit code.

    ``at`` is the id of the instance to open. A ``browser`` is opened if there is one, where that is None.
    The printed link holds a token that opens one session in one browser. Raises SpecError for runs of several benchmarks, an
    unknown judge or instance, and a port in use.
    """
    from app.view.contents.page_contents import Contents
    from app.view.served.page_server import serve_page

    folders = run_folders(workspace, runs) if runs else newest_of_a_build(workspace)
    with page_socket(port) as listener:
        with spinner("reading the runs"):
            contents = Contents(workspace, folders, judge=judge, rule=trust)
        anchor = "" if at is None else f"#instance={contents.number(at)}"
        opens = _has_browser() if browser is None else browser

        def announce(link: str) -> None:
            print(f"{link}{anchor}", flush=True)
            if not runs:
                names = ", ".join(folder.name for folder in folders)
                print(clean(f"The newest runs on the same data: {names}. For runs that start later, run it again."))
            print("The link opens the page in one browser. Ctrl-C ends the server; runs continue.", flush=True)
            if opens:
                threading.Thread(target=webbrowser.open, args=(f"{link}{anchor}",), daemon=True).start()

        serve_page(contents, listener, announce)
    return 0


def page_socket(port: int | None) -> socket.socket:
    """Return a socket at the port; None stands for the usual one, or a free one if that is taken. Raises SpecError."""
    from app.view.served.page_server import listen

    if port is not None:
        return listen(port)
    try:
        return listen(PORT)
    except SpecError:
        return listen(0)


def _has_browser() -> bool:
    """Return whether a browser can be opened beside this terminal."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ or "SSH_TTY" in os.environ:
        return False
    return sys.platform == "darwin" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
