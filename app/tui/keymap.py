"""The user's keymap: command ids to keys, validated against the registry of commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from textual.keys import format_key

from app.tui.key_commands import COMMANDS, EVERYWHERE, Command
from benchmarks.errors import did_you_mean

_KEY = re.compile(r"(?:(?:ctrl|shift|alt|super|hyper|meta)\+)*(?:[^\s,+]|[a-z][a-z0-9_]*|\+)")
_INDISTINGUISHABLE = {
    "ctrl+m": "enter",
    "ctrl+i": "tab",
    "ctrl+h": "backspace",
    "ctrl+j": "enter",
    "ctrl+c": "interrupt",
}


def keymap(settings: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the valid keys by command id, and one sentence for each invalid entry."""
    commands = {command.id: command for command in COMMANDS}
    valid_keys: dict[str, str] = {}
    problems = []
    for name, keys in settings.items():
        names = [key.strip() for key in keys.split(",")]
        unknown = [key for key in names if not _KEY.fullmatch(key)]
        same_keys = [key for key in names if key in _INDISTINGUISHABLE]
        if name not in commands:
            problems.append(f"keys: no command {name!r}; {did_you_mean(name, commands)}")
        elif unknown:
            problems.append(f"keys: {name} = {keys!r}: {unknown[0]!r} is not a key; write keys like ctrl+r, f5 or x.")
        elif same_keys:
            problems.append(
                f"keys: {name} = {keys!r}: a terminal cannot distinguish {same_keys[0]} from {_INDISTINGUISHABLE[same_keys[0]]}."
            )
        elif other := _conflict(commands[name], names, {**{c.id: c.keys for c in COMMANDS}, **valid_keys}):
            problems.append(f"keys: {name} = {keys!r}: the key already belongs to {other}.")
        else:
            valid_keys[name] = ",".join(names)
    return valid_keys, problems


def _conflict(command: Command, keys: list[str], current: Mapping[str, str]) -> str | None:
    """Return the id of another command that uses one of ``keys`` in the same scope."""
    scopes = {command.where} | ({EVERYWHERE} if command.where != EVERYWHERE else set())
    for other in COMMANDS:
        if other.id != command.id and other.where in scopes and set(keys) & set(current[other.id].split(",")):
            return other.id
    return None


def keys_of(command: Command, user_keys: Mapping[str, str]) -> list[str]:
    """Return a command's keys as Textual names them: the user's, or the default ones."""
    return [key.strip() for key in user_keys.get(command.id, command.keys).split(",")]


def format_keys(command: Command, user_keys: Mapping[str, str], *, exclude: Collection[str] = ()) -> str:
    """Return a command's keys for display, without those in ``exclude``: ``^r``, ``j``, ``page down``."""
    keys = (key for key in keys_of(command, user_keys) if key not in exclude)
    return " ".join(format_key(key).replace("ctrl+", "^") for key in keys)
