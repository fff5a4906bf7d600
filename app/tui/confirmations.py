"""Questions before anything is sent to a new address, and before a received run is taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.confirm_addresses import FACTS
from app.engine.adopt import AdoptedRun, ReceivedRun, adopt, examine
from app.tui.widgets.dialogs import Confirm
from benchmarks.errors import SpecError
from mlx_backends.remote import addresses

if TYPE_CHECKING:
    from app.tui.app import RashomonApp
    from app.tui.screens.base import RashomonScreen


def with_agreement(app: RashomonApp, models: Iterable[object], then: Callable[[list[str]], None]) -> None:
    """Call ``then`` with the new addresses of ``models``, after the user has agreed to them; at once where there are none."""
    new: list[str] = []
    with suppress(SpecError):  # a name that is wrong is told when it is used
        new = addresses.new_addresses(model for model in models if isinstance(model, str))
    if not new:
        then([])
        return

    def answered(yes: bool | None) -> None:
        if yes:
            then(new)

    app.push_screen(Confirm("Agree to a new address?", f"{', '.join(new)} {FACTS}", yes="Agree"), answered)


def adopt_received(screen: RashomonScreen, folder: Path) -> None:
    """Show what a received run would use, and make a run of this machine of it once that is confirmed."""
    app = screen.rashomon

    def show(received: ReceivedRun) -> None:
        if received.own:
            app.tell(f"{folder.name} was made on this machine; there is nothing to adopt")
            return
        lines = [f"{folder.name} was not made on this machine. It would use:", *received.lines()]
        if received.here is None and received.named is not None:
            lines.append("The media folder that it names is not taken over; `rashomon adopt --data` names one.")
        app.push_screen(Confirm("Adopt it?", "\n".join(lines), yes="Adopt"), partial(answered, received))

    def answered(received: ReceivedRun, yes: bool | None) -> None:
        if yes:
            screen.in_thread(lambda: adopt(app.workspace, received, data=received.here), tell, group="adopt")

    def tell(adopted: AdoptedRun) -> None:
        lost = f"; {len(adopted.left_out)} damaged things were left out" if adopted.left_out else ""
        app.tell(f"{adopted.folder.name}: {adopted.answers} answers and {adopted.verdicts} verdicts adopted{lost}")

    screen.in_thread(lambda: examine(app.workspace, folder), show, group="adopt")
