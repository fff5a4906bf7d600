"""The terminal interface as a user plays it: looks at runs, resumes or starts one, and leaves in some way."""

from __future__ import annotations

from random import Random

from tests.soak.commands import Command
from tests.soak.ledger import Ledger, Step

_F6, _F8, _F10 = "\x1b[17~", "\x1b[19~", "\x1b[21~"
_LOOKS: tuple[tuple[str, ...], ...] = (
    ("3", "j", "n", "]", "t", "z", "z", "1"),
    ("3", "G", "k", "/", "is:wrong\r", "j", "1"),
    ("3", "W", "\x1b", "1"),
    ("4", "t", "t", "i", "N", "1"),
    (" ", "j", " ", "c", "t", "f", "x", "i", "1"),
    ("2", "L", "L", "1"),
    ("e", "w", "1"),
    ("?", "\x1b"),
    ("\x10", "doctor", "\x1b", "\x1b"),
    ("7", "1"),
    ("9", "r", "1"),
    (_F6, "1"),
    (_F8, "1"),
    (_F10, "i", "N", "1"),
    ("S", "I", "b", "b", "j", "\r", "1"),
    ("/", "no such run\r", "\x1b"),
    ("\x0e", "\x0e", "\x02", "\x1b"),
)
"""Keys that change nothing, from the list of runs and back to it."""
_NEW = ("\x0e", "\x0e", "g", "{policy}", " ", "\x0e", "1", "\x12", "y")
"""Keys that start a run of one of the policies on one example: the form, its models, its scope, and the start."""
_LEAVINGS = ("", "", "y", "x")
"""Keys to quit where runs are active: none of them, let them run, or stop them."""


def interface(chance: Random, ledger: Ledger) -> Step:
    """Play the terminal interface, with a run that it resumes or starts in some cases, and leave it."""
    keys: list[str] = ["1"]
    runs: tuple[str, ...] = ()
    kind = chance.choice(["look", "resume", "resume", "new", "new"])
    for piece in chance.sample(_LOOKS, chance.choice([1, 2])):
        keys += piece
    if kind == "resume" and ledger.incomplete():
        run = chance.choice(ledger.incomplete())
        keys += ["/", f"{run.name}\r", "R", "y", "y", "2", "L"]  # the second agrees to the address of a server
        runs = (run.name,)
    elif kind == "new":
        keys += [piece.replace("{policy}", "j" * chance.choice([2, 3, 4])) for piece in _NEW] + ["2"]
    signal = chance.choice(["", "", "INT", "TERM", "HUP", "CLOSE", "KILL", "TREE"])
    if not signal:
        leaving = chance.choice(_LEAVINGS)
        keys += ["\x03", "\x11", leaving] if leaving else ["q"] * chance.choice([0, 2])
    command = Command((), (0,), signal, round(chance.uniform(0, 6), 3), tuple(keys), patience=5)
    return Step("interface", ((command,),), runs, adopts=kind == "new")
