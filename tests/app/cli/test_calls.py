"""A command passes its arguments and options on to the function that has its code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from pkgutil import resolve_name
from typing import Any

import click
import pytest

from app.cli import cli, cli_options


def _commands(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        yield command
        if isinstance(command, click.Group):
            yield from _commands(command)


def test_every_command_fits_the_signature_of_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[str] = []

    def bind(target: str) -> Any:
        code = resolve_name(target)
        bound.append(target)
        if is_dataclass(code):
            return code
        return lambda *positional, **named: inspect.signature(code).bind(*positional, **named)

    monkeypatch.setattr(cli_options, "resolve_name", bind)
    for command in _commands(cli):
        callback = command.callback
        if callback is not None and not inspect.signature(inspect.unwrap(callback)).parameters:
            with click.Context(command):
                callback(**{item.name: None for item in command.params if item.name and item.expose_value})
    assert {"app.commands.sharing.cite_command:cite_runs", "app.commands.results.compare_command:CompareArguments"} <= {
        *bound
    }
