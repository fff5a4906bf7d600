"""Performs every command on each of some homes, and the interface; prints how each ended, a line of JSON a home.

``python -m tests.support.every_command NAMES HOME ...`` does those commands in turn, in a process a home that is forked when
all is loaded; workers work in that process too, unless ``apart`` is among the names. ``interface-N`` opens the
interface on the Nth home. What takes longer than ``LONGEST`` seconds is said to hang.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path

from app.new_run import spec_form
from app.run_spec import BatchSpec
from app.store.workspace import Workspace
from app.tui.tui_processes import RunProcesses
from app.tui.tui_settings import Settings, save_settings
from benchmarks.errors import RashomonError
from tests.support.command import ROOT, Rashomon
from tests.support.inside import run_inside

LONGEST = 60
RUN, OTHER, SEEING, THEIRS = "r", "other", "seeing", "theirs"
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
    "parity theirs": ("parity", THEIRS, OTHER, "--probe", "2"),
    "remote": ("batch", "--benchmark", "cmc-bench", "--model", "endpoint:m@http://127.0.0.1:9", "--limit", "1"),
    "demo": ("demo",),
    "build --replace": ("build", "cmc-bench", "--source", "sources", "--seed", "1", "--replace"),
}


class _Hangs(BaseException):
    pass


def _alarm(*_: object) -> None:
    raise _Hangs


Ended = tuple[str, str]
"""The end of a command: an exit code or an unexpected outcome, and its standard error."""


def _ended(do: Callable[[], tuple[int, str, str]]) -> Ended:
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(LONGEST)
    try:
        code, _, err = do()
        return str(code), err
    except _Hangs:
        return "hangs: " + traceback.format_exc()[-900:], ""
    except BaseException:
        return traceback.format_exc()[-900:], ""
    finally:
        signal.alarm(0)


def _apart(arguments: list[str], home: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        Rashomon(home).command(*arguments),
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout, done.stderr


def environment(home: Path) -> dict[str, str]:
    """The environment of a command, whose private files are the home's too."""
    return {**Rashomon(home).environment, "XDG_STATE_HOME": str(home / "state")}


def _interface(home: Path) -> None:
    from app.store.workspace import Workspace
    from app.tui.tui_app import RashomonApp

    async def look() -> None:
        app = RashomonApp(Workspace(home / "workspace"), images="half")
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(0.2)
            folder = home / "workspace" / "runs" / RUN
            for screen in ("live", "tables", "samples", "label", "export", "settings", "doctor"):
                app.open_screen(screen, [folder])
                await pilot.pause(0.1)
                await pilot.press("enter", *("L" if screen == "live" else ()))
                await pilot.pause(0.3)
            app.exit()

    asyncio.run(look())


def _in_interface(home: Path) -> tuple[int, str, str]:
    os.environ.update(environment(home))
    os.chdir(home)
    messages = []
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        _interface(home)
        workspace = Workspace(home / "workspace")
        jobs, spec = RunProcesses(workspace), BatchSpec(benchmark="cmc-bench", model=("policy:always-text",))
        for act in (
            lambda: save_settings(Settings()),
            lambda: spec_form.save_spec(spec, home / "workspace" / "jobs" / "new.toml", replace=True),
            lambda: jobs.start(["runs"]),
        ):
            try:
                act()
            except RashomonError as error:
                messages.append(f"{error}\n")
        jobs.stop_all([])
    return 2 if messages else 0, "", "".join(messages)


def perform(home: Path, names: list[str]) -> dict[str, Ended]:
    """Return how each of the commands ended."""
    instance = (home / "instance").read_text()
    ended = {}
    for name in names:
        if name == "interface":
            ended[name] = _ended(lambda: _in_interface(home))
        elif name in COMMANDS:
            arguments = [instance if word == "ID" else word for word in COMMANDS[name]]
            ended[name] = _ended(
                partial(_apart, arguments, home)
                if "apart" in names
                else partial(run_inside, arguments, environment(home), home)
            )
    return ended


def _in_fork(home: Path, names: list[str]) -> None:
    if child := os.fork():
        os.waitpid(child, 0)
        return
    print(json.dumps(perform(home, names)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    for module in (
        "app.tui.tui_app",
        *(f"app.commands.{path.parent.name}.{path.stem}" for path in (ROOT / "app" / "commands").glob("*/[a-z]*.py")),
    ):
        import_module(module)
    for number, place in enumerate(sys.argv[2:]):
        names = sys.argv[1].split(",")
        _in_fork(Path(place), [*names, "interface"] if f"interface-{number}" in names else names)
