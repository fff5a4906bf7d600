"""The user's keys: command ids to keys, checked against the registry."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from textual.keys import format_key

from app.tui.commands import COMMANDS, EVERYWHERE, Command
from benchmarks.base import did_you_mean

_KEY = re.compile(r"(?:(?:ctrl|shift|alt|super|hyper|meta)\+)*(?:[^\s,+]|[a-z][a-z0-9_]*|\+)")
_NEVER = {"ctrl+m": "enter", "ctrl+i": "tab", "ctrl+h": "backspace", "ctrl+j": "enter", "ctrl+c": "interrupt"}


def keymap(asked: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The keys that can be used, by command id, and a sentence for each that cannot."""
    known = {command.id: command for command in COMMANDS}
    good: dict[str, str] = {}
    told = []
    for name, keys in asked.items():
        each = [key.strip() for key in keys.split(",")]
        bad = [key for key in each if not _KEY.fullmatch(key)]
        same = [key for key in each if key in _NEVER]
        if name not in known:
            told.append(f"keys: there is no command {name!r}; {did_you_mean(name, known)}")
        elif bad:
            told.append(f"keys: {name} = {keys!r}: {bad[0]!r} is no key; one looks like ctrl+r, f5 or x.")
        elif same:
            told.append(f"keys: {name} = {keys!r}: a terminal cannot tell {same[0]} from {_NEVER[same[0]]}.")
        elif other := _taken(known[name], each, {**{c.id: c.keys for c in COMMANDS}, **good}):
            told.append(f"keys: {name} = {keys!r}: that is the key of {other}.")
        else:
            good[name] = ",".join(each)
    return good, told


def _taken(command: Command, keys: list[str], now: Mapping[str, str]) -> str | None:
    """The command that has one of ``keys`` already, where ``command`` works."""
    places = {command.where} | ({EVERYWHERE} if command.where != EVERYWHERE else set())
    for other in COMMANDS:
        if other.id != command.id and other.where in places and set(keys) & set(now[other.id].split(",")):
            return other.id
    return None


def keys_of(command: Command, asked: Mapping[str, str]) -> list[str]:
    """A command's keys as Textual writes them: the user's, or its own."""
    return [key.strip() for key in asked.get(command.id, command.keys).split(",")]


def shown_keys(command: Command, asked: Mapping[str, str], *, but: Collection[str] = ()) -> str:
    """A command's keys for people, without those in ``but``: ``^r``, ``j``, ``page down``."""
    keys = (key for key in keys_of(command, asked) if key not in but)
    return " ".join(format_key(key).replace("ctrl+", "^") for key in keys)
