"""Performs every command on each of some homes, and the interface; prints how each ended, a line of JSON a home.

``python -m tests.support.every_command NAMES HOME ...`` does those commands in turn, in a process a home that is forked when
all is loaded. What takes longer than ``LONGEST`` seconds is said to hang.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from app.main import main
from tests.support.command import ROOT, Rashomon

LONGEST = 60
RUN, OTHER, SEEING = "r", "other", "seeing"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "runs": ("runs",),
    "show": ("show", RUN),
    "export": ("export", RUN, "--format", "csv,md,json", "--out", "export"),
    "label": ("label", RUN, "--as", "me", "--n", "3", "--export", "sheet.csv"),
    "override": ("override", RUN, "ID", "IMAGE", "--as", "me", "--reason", "so"),
    "judge": ("judge", RUN, "--judge", "match", "--retry-failed", "--display", "none"),
    "compare": ("compare", RUN, OTHER, "--format", "csv", "--out", "comparison"),
    "parity": ("parity", SEEING, OTHER, "--probe", "2"),
    "resume": ("resume", RUN, "--display", "none"),
    "resume --repeat": ("resume", RUN, "--repeat", "--display", "none"),
    "batch": (
        "batch",
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:always-text",
        "--limit",
        "1",
        "--display",
        "none",
    ),
    "build --replace": ("build", "cmc-bench", "--source", "sources", "--seed", "1", "--replace"),
}


class _Hangs(BaseException):
    pass


def _alarm(*_: object) -> None:
    raise _Hangs


def _ended(do: Callable[[], object]) -> str:
    """How something ended: an exit code, or what it should not have come to."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(LONGEST)
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            do()
        return "0"
    except SystemExit as end:
        return str(end.code or 0)
    except _Hangs:
        return "hangs: " + "".join(traceback.format_exc()[-600:])
    except BaseException:
        return traceback.format_exc()[-600:]
    finally:
        signal.alarm(0)


def _interface(home: Path) -> None:
    from app.store.workspace import Workspace
    from app.tui.app import RashomonApp

    async def look() -> None:
        app = RashomonApp(Workspace(home / "workspace"), images="half")
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(0.2)
            folder = home / "workspace" / "runs" / RUN
            for screen in ("live", "tables", "samples", "label", "export", "settings", "doctor"):
                app.go(screen, [folder])
                await pilot.pause(0.1)
                await pilot.press("enter", *("L" if screen == "live" else ()))
                await pilot.pause(0.3)
            app.exit()

    asyncio.run(look())


def perform(home: Path, names: list[str]) -> dict[str, str]:
    """How each of the commands ended."""
    instance = (home / "instance").read_text()
    ended = {}
    for name in names:
        if name == "interface":
            ended[name] = _ended(lambda: _interface(home))
            continue
        arguments = [instance if word == "ID" else word for word in COMMANDS[name]]
        ended[name] = _ended(lambda arguments=arguments: main(arguments))  # type: ignore[misc]
    return ended


def _in_fork(home: Path, names: list[str]) -> None:
    if child := os.fork():
        os.waitpid(child, 0)
        return
    os.environ.update(Rashomon(home).environment)
    os.chdir(home)
    print(json.dumps(perform(home, names)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    for module in (
        "app.tui.app",
        *(f"app.commands.{path.stem}" for path in (ROOT / "app" / "commands").glob("[a-z]*.py")),
    ):
        import_module(module)
    for each in sys.argv[2:]:
        _in_fork(Path(each), sys.argv[1].split(","))
