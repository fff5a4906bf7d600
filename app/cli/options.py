"""Options that several commands share, and how their words are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from app.cli import completion

PATH = click.Path(path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., Any])

RUN_HELP = "RUN is a run's name, or the beginning of one."


def together(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Several options as one, in their order in the help."""

    def added(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


run_name = click.argument("run", shell_complete=completion.runs)
run_names = click.argument("run", nargs=-1, required=True, shell_complete=completion.runs)
benchmark_name = click.argument("benchmark", shell_complete=completion.benchmarks)
build_folder = click.option("--data", type=PATH, help="The built benchmark's folder; default: the workspace's.")
width = click.option(
    "--width", default="column", show_default=True, metavar="WIDTH", help="Of figures: column or page."
)
display = click.option(
    "--display",
    metavar="KIND",
    shell_complete=completion.displays,
    help="full, plain, json or none; default: full on a terminal.",
)
force = click.option("--force", is_flag=True, help="Load the model even if it does not seem to fit in memory.")
restarts = click.option(
    "--restarts",
    type=click.IntRange(0, 100),
    metavar="N",
    help="Start a worker that died for want of memory again, so often in a row without an answer; default 2.",
)
until_width = click.option(
    "--until-width",
    type=float,
    metavar="W",
    help="Ask examples in random order, and stop when each condition's accuracy has a 95% interval this wide.",
)
accept_engine = click.option(
    "--accept-engine", is_flag=True, help="Go on with other versions of the engine; each answer records its own."
)
allow_address = click.option(
    "--allow-address",
    "allowed",
    multiple=True,
    metavar="URL",
    help="Agree to send questions, pictures and keys to this server; remembered. Repeatable.",
)
worker = together(display, force, accept_engine, allow_address)
"""How models are started that answer or judge."""
answering = together(until_width, restarts, worker)
"""How a run is gone on with, and how long."""
conditions = click.option(
    "--conditions",
    metavar="C,C",
    shell_complete=completion.conditions,
    help="Only these conditions, with commas between; `rashomon benchmarks` lists them.",
)
judge = click.option(
    "--judge",
    metavar="NAME",
    shell_complete=completion.judges,
    help="Whose labels; default: the run's first judge. Also any(A,B), all(A,B), majority(A,B,C), first(A,B).",
)
fetching = together(
    click.option("--yes", is_flag=True, help="Fetch without asking, after saying what."),
    click.option("--dry-run", is_flag=True, help="Say what would be fetched; fetch nothing."),
)
as_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")


_TERMS: dict[str, tuple[type, str]] = {
    "token_ceiling": (int, "Remote engines: at most so many tokens, a run and a judge."),
    "cost_ceiling": (float, "The same in money; needs the prices."),
    "input_price": (float, "What a million tokens in cost, in any currency."),
    "output_price": (float, "What a million tokens out cost."),
    "concurrency": (int, "Remote engines: at most so many calls at once; default 8."),
    "timeout": (float, "Remote engines: seconds a call may take; default 120."),
    "attempts": (int, "Remote engines: how often a failing call is made; default 6."),
}

api = together(
    *(click.option(f"--{name.replace('_', '-')}", type=kind, help=told) for name, (kind, told) in _TERMS.items())
)
"""On what terms remote engines are used."""


def terms(how: dict[str, Any]) -> dict[str, Any]:
    """What of ``api`` is said, taken out of ``how``."""
    return {name: value for name in _TERMS if (value := how.pop(name)) is not None}


def words(text: str | None) -> list[str]:
    """The words between commas, without white space around them; a backslash takes the next character as it is."""
    pieces = re.findall(r"(?:\\.|[^,\\]|\\$)+", text or "", re.DOTALL)
    return [word for piece in pieces if (word := _unescaped(piece))]


def _unescaped(piece: str) -> str:
    characters = re.findall(r"\\.|.", piece, re.DOTALL)
    while characters and characters[0].isspace():
        characters.pop(0)
    while characters and characters[-1].isspace():
        characters.pop()
    return "".join(character[-1] for character in characters)


def strata(given: Sequence[str]) -> dict[str, list[str]]:
    from benchmarks.errors import SpecError

    chosen: dict[str, list[str]] = {}
    for item in given:
        key, _, values = item.partition("=")
        if not key or not words(values):
            raise SpecError(f"--strata takes KEY=VALUE,VALUE, not {item!r}.")
        chosen[key] = words(values)
    return chosen
