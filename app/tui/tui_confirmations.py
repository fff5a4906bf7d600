"""Confirmations: a new address to send to, a received run to adopt, a build and a run on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from app.commands.building.sets_command import version_lines
from app.commands.terminal.confirm_addresses import address_warning
from app.engine.adopt_run import AdoptedRun, ReceivedRun, adopt, find_adopted, read_received_run, usable_build
from app.store.question_set_changes import latest_changes
from app.store.question_set_writer import is_version_link
from app.store.question_sets import set_of_build
from app.tui.key_commands import COMMANDS
from app.tui.keymap import format_keys
from app.tui.screen_services import BackgroundScreen, Services
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.dialogs import Confirm
from benchmarks.build import Build
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import path_exists
from benchmarks.varied_names import MANIFEST_KEY
from mlx_backends.remote import allowed_addresses

_CHANGES = 6
"""The most lines on what changed in a set."""


def confirm_addresses(app: Services, models: Iterable[object], then: Callable[[list[str]], None]) -> None:
    """Call ``then`` with the new addresses of ``models`` once the user agrees to them; at once if there are none."""
    new: list[str] = []
    with suppress(SpecError):  # an invalid name is reported when it is used
        new = allowed_addresses.new_addresses(model for model in models if isinstance(model, str))
    if not new:
        then([])
        return

    def on_answer(yes: bool | None) -> None:
        if yes:
            then(new)

    app.push_screen(Confirm("Agree to a new address?", address_warning(new), yes="Agree"), on_answer)


def confirm_adoption(screen: BackgroundScreen, folder: Path) -> None:
    """Show what a received run would use, and adopt it once the user confirms."""
    app = screen.rashomon

    def read() -> tuple[ReceivedRun, list[str]]:
        received = read_received_run(app.workspace, folder)
        return received, find_adopted(app.workspace, received)

    def show(run: tuple[ReceivedRun, list[str]]) -> None:
        received, names = run
        if names:
            app.toast(f"{folder.name} is in the workspace already, as {names[0]}")
            return
        if received.own:
            app.toast(f"{folder.name} was made on this machine; nothing to adopt")
            return
        lines = [f"{folder.name} was made on another machine. It would use:", *received.lines()]
        if received.needs_confirmed_build:
            lines.append("The media folder that it names is ignored; name one with `rashomon adopt --data`.")
        app.push_screen(Confirm("Adopt?", "\n".join(lines), yes="Adopt"), partial(on_answer, received))

    def on_answer(received: ReceivedRun, yes: bool | None) -> None:
        if yes:
            screen.attempt(lambda: copy(received), report, group="adopt")

    def copy(received: ReceivedRun) -> AdoptedRun:
        return adopt(app.workspace, received, data=usable_build(app.workspace, received))

    def report(adopted: AdoptedRun) -> None:
        damage_note = f"; {len(adopted.left_out)} damaged items were left out" if adopted.left_out else ""
        app.toast(
            f"{adopted.folder.name}: {adopted.answers} answers and {adopted.verdicts} verdicts adopted{damage_note}"
        )

    screen.attempt(read, show, group="adopt")


def confirm_build(
    screen: BackgroundScreen, arguments: Sequence[str], out: Path, *, text: str, preview: bool = False
) -> None:
    """Ask whether to build into ``out`` with a command, run it, and offer a run on the build.

    With ``preview`` the dialog first shows what the command's ``--dry-run`` prints.
    """
    replaced = path_exists(out) and not is_version_link(screen.rashomon.workspace.path, out)
    if replaced:
        text += "\n\nThe folder exists. Replacing it also deletes the pictures that runs of that build display."
    dialog = CommandDialog(
        screen.rashomon,
        "Replace the build" if replaced else "Build",
        [*arguments, *["--replace"] * replaced],
        preview=[*arguments, "--dry-run"] if preview else (),
        text=text,
        closes=True,
    )

    def on_end(succeeded: bool | None) -> None:
        if succeeded:
            _offer_run(screen, out)

    screen.rashomon.push_screen(dialog, on_end)


def _offer_run(screen: BackgroundScreen, folder: Path) -> None:
    """Show the size of a new build, and what changed since the version before; open New run with it if the user wants that."""
    app = screen.rashomon

    def read() -> tuple[Build, str, list[str]]:
        question_set = set_of_build(folder)
        if question_set is None:
            return Build.open(folder), str(folder), []
        latest, changes = question_set.latest, latest_changes(question_set)
        return Build.open(latest.build), f"{question_set.name}@{latest.number}", version_lines(question_set, changes)

    def show(read: tuple[Build, str, list[str]]) -> None:
        build, name, changes = read
        facts = build.manifest.get(MANIFEST_KEY, build.manifest)
        instances = facts.get("calls", facts["instances"])
        text = f"{name}\n\n{instances:,} instances of {build.benchmark}"
        if "distinct inputs" in facts:
            text += f", {facts['distinct inputs']:,} distinct inputs"
        if clause := get_benchmark(build.benchmark).origins_clause(facts):
            text += f"\n{clause}"
        if changes:
            more = len(changes) - _CHANGES
            text += "\n\n" + "\n".join([*changes[:_CHANGES], *[f"and {more} more rows"] * (more > 0)])
        app.push_screen(Confirm("Built: run it?", text, yes="New run", no="Stay"), partial(on_answer, name))

    def on_answer(name: str, yes: bool | None) -> None:
        if yes:
            app.open_screen("new", query=name)
        else:
            (command,) = (command for command in COMMANDS if command.id == "everywhere.go.new")
            app.toast(f"built; {format_keys(command, app.keys)} runs it")

    screen.attempt(read, show, group="built")
