"""Options shared by several commands, and the parsing of their values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import click

from app.cli import shell_completion
from app.key_declarations import Keys, keys_of
from app.spec_keys import ApiKeys, spec_keys
from benchmarks import number_ranges as ranges
from benchmarks.number_ranges import NumberRange, shortened

PATH = click.Path(path_type=Path)
ARGUMENTS, COMMAND_ARGUMENTS = "rashomon.arguments", "rashomon.command-arguments"
"""The keys in a context's ``meta`` of the command line as it was typed, and of the arguments that follow the command's name."""
_Command = TypeVar("_Command", bound=Callable[..., Any])

RUN_HELP = (
    "RUN is a run's name or a unique prefix of it, its folder, FILE:RUN of a bundle, latest:MODEL or latest:MODEL@SET for the "
    "newest run with answers, or @SET for the run of the model in use on a question set."
)


class BuildFolder(click.ParamType):  # type: ignore[type-arg]
    """A build by its folder, or the version of a question set, as SET or SET@NUMBER."""

    name = "build"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if isinstance(value, Path) or context is None or context.obj is None:
            return Path(value)
        return context.obj.data_folder(value)


BUILD = BuildFolder()


class Number(click.ParamType):  # type: ignore[type-arg]
    """Option value that is a number of a range."""

    def __init__(self, number_range: NumberRange) -> None:
        self._range = number_range
        self.name = "integer" if number_range.whole else "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number that ``value`` writes; fail with the range for any other text."""
        number = self._range.parse(value) if isinstance(value, str) else value
        if not self._range.holds(number):
            self.fail(f"{shortened(value)} is not {self._range}.", param, ctx)
        return number


class Wait(Number):
    """Option value that is a number of seconds, or "no" for none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds."""
        return 0.0 if value == "no" else super().convert(value, param, ctx)


class Commas(click.ParamType):  # type: ignore[type-arg]
    """Option value that is a list of texts, separated by commas."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the texts."""
        return split_commas(value) if isinstance(value, str) else value


COMMAS = Commas()


def calls(target: str, *classes: str, workspace: bool = True) -> Callable[[Callable[[], None]], Callable[..., Any]]:
    """Return a decorator for a command that has its help here and its code at ``target``, written "module:function".

    The module is imported when the command runs; that of a group runs where no subcommand is named. The function is called with
    the ``workspace``, unless it needs none, the command's arguments in their order, and its options by name; ``api_options`` are
    a mapping ``api``. ``classes`` are names of dataclasses in that module: what is a field of theirs is given as an instance,
    after the arguments.
    """

    def decorate(command: Callable[[], None]) -> Callable[..., Any]:
        @click.pass_context
        @wraps(command)
        def run(context: click.Context, /, **options: Any) -> Any:
            if context.invoked_subcommand is not None:
                return None
            if keys_of(ApiKeys).keys() <= options.keys():
                options["api"] = pop_api_options(options)
            module, _, _ = target.partition(":")
            kinds = [resolve_name(f"{module}:{name}") for name in classes]
            instances = [kind(**_pop(options, [item.name for item in fields(kind)])) for kind in kinds]
            arguments = [item.name for item in context.command.params if isinstance(item, click.Argument) and item.name]
            positional = [*[context.obj] * workspace, *_pop(options, arguments).values(), *instances]
            return resolve_name(target)(*positional, **options)

        return run

    return decorate


def _pop(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Remove those of ``names`` that are among the values, and return them."""
    return {name: values.pop(name) for name in names if name in values}


def number(name: str, number_range: NumberRange, *names: str, **settings: Any) -> Callable[[_Command], _Command]:
    """Return the decorator :func:`click.option` of an option that is a number of a range."""
    return click.option(name, *names, type=Number(number_range), **settings)


def option_group(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds several options, in the order in which the help lists them."""

    def add_options(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add_options


_SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "benchmark": {"shell_complete": shell_completion.benchmarks, "is_eager": True},
    "model": {"shell_complete": shell_completion.models},
    "data": {"type": BUILD, "shell_complete": shell_completion.builds},
    "judge": {"shell_complete": shell_completion.judges},
    "conditions": {"type": COMMAS, "default": "", "multiple": False, "shell_complete": shell_completion.conditions},
    "strata": {"multiple": True, "callback": lambda context, parameter, value: parse_strata(value)},
}
"""The settings of the options of some keys that do not follow from their types."""


def key_option(key: str) -> Callable[[_Command], _Command]:
    """Return the decorator of the option of a spec's key; its value is None where it is not given, or empty for a list."""
    declared = spec_keys()[key]
    settings: dict[str, Any] = {"help": declared.key.help, "metavar": declared.key.metavar}
    if declared.number_range is not None:
        settings["type"] = Number(declared.number_range)
    elif declared.choices:
        settings["type"] = click.Choice(declared.choices)
    elif declared.is_flag:
        settings |= {"is_flag": True, "default": None}
    elif declared.is_list:
        settings["multiple"] = True
    return click.option(f"--{key.replace('_', '-')}", **{**settings, **_SPECIAL.get(key, {})})


def key_options(*classes: type[Keys]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options of the keys of ``classes``, in the order in which the help lists them."""
    return option_group(*(key_option(key) for keys in classes for key in keys_of(keys) if spec_keys()[key].key.help))


run_name = click.argument("run", shell_complete=shell_completion.runs)
run_names = click.argument("run", nargs=-1, required=True, shell_complete=shell_completion.runs)
some_run_names = click.argument("run", nargs=-1, shell_complete=shell_completion.runs)
benchmark_name = click.argument("benchmark", shell_complete=shell_completion.benchmarks)
build_folder = key_option("data")
width = click.option(
    "--width", default="column", show_default=True, metavar="WIDTH", help="Width of figures: column or page."
)
display = click.option(
    "--display",
    type=click.Choice(["full", "plain", "json", "none"]),
    help="How to show progress; default: full in a terminal, plain otherwise.",
)
display_without_events = click.option(
    "--display",
    type=click.Choice(["full", "plain", "none"]),
    help="How to show progress; default: full in a terminal, plain otherwise.",
)
EVENT_COMMANDS = ("batch", "resume", "judge", "demo", "try", "import", "baselines")
"""The commands whose ``--display json`` prints events; all else that they print then is on standard error."""


def asks_for_events(arguments: Sequence[str]) -> bool:
    """Return whether a command line, which may be wrong, is of such a command with ``--display json``."""
    words = ["batch" if word == "--batch" else word for word in arguments]
    is_chosen = "--display=json" in words or ("--display", "json") in pairwise(words)
    return is_chosen and "--json" not in words and not {*EVENT_COMMANDS}.isdisjoint(words)


force = click.option(
    "--force", is_flag=True, help="Use the model even if it seems too large for the memory or fails the sight check."
)
until_width = number(
    "--until-width",
    ranges.UNTIL_WIDTH,
    metavar="W",
    help="Ask the examples in random order, and stop when the 95% interval of every condition's accuracy is this narrow.",
)
accept_engine = click.option(
    "--accept-engine",
    is_flag=True,
    help="Accept another device or other engine versions, of this machine or of nodes; each answer records which it used.",
)
allow_address = click.option(
    "--allow-address",
    "allowed",
    multiple=True,
    metavar="URL",
    help="Allow this server (or URL,proxy=PROXY) to receive questions, images and API keys; remembered. Repeatable.",
)
allow_open_cluster = click.option(
    "--allow-open-cluster",
    is_flag=True,
    help="Use a cluster without token authentication, where whoever reaches it can run any code.",
)
wait = click.option(
    "--wait",
    type=Wait(ranges.WAIT),
    metavar="SECONDS|no",
    help="The longest wait for the device while another process has it; then exit code 4. Default: until it is free.",
)
worker_options = option_group(display, force, accept_engine, allow_address, wait)
"""Options for starting models that answer or judge."""
WORKER_KEYS = ("display", "force", "accept_engine", "allowed", "wait")
"""The values of these options, which are fields of ``ExecutionOptions``."""
cluster_options = option_group(key_option("workers"), allow_open_cluster)
"""Options for letting a cluster answer."""
run_options = option_group(until_width, key_option("restarts"), cluster_options, worker_options)
"""Options for executing a run."""
exact_and_fresh = option_group(key_option("exact"), key_option("fresh"))
conditions = key_option("conditions")
strata = key_option("strata")
judge = click.option(
    "--judge",
    metavar="NAME",
    shell_complete=shell_completion.judges,
    help="The judge whose labels count; default: the run's first judge. Also any(A,B), all(A,B), majority(A,B,C) and "
    "first(A,B).",
)
_RULES = ("image", "text", "flag")
_TRUST = "What should win where sources disagree: the image, the text, or a flag on the conflict"
trust = click.option("--trust", type=click.Choice(_RULES), help=f"{_TRUST}.")
trust_or_none = click.option(
    "--trust",
    type=click.Choice([*_RULES, "none"]),
    help=f"{_TRUST}; none: right answers count. Default: the set's remembered rule.",
)
fetch_options = option_group(
    click.option("--yes", is_flag=True, help="Fetch without asking for confirmation."),
    click.option("--dry-run", is_flag=True, help="Show what would be fetched; fetch nothing."),
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


api_options = key_options(ApiKeys)
"""Limits and prices of remote models; the keys of a spec's ``api`` section."""


def pop_api_options(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the values of ``api_options`` from a command's options, and return those that were set."""
    return {name: value for name in keys_of(ApiKeys) if (value := options.pop(name)) is not None}


def typed_command(*without: str) -> str:
    """Return the command line of the running command for a shell, ``without`` these options."""
    from app.text.shell_quoting import shell_quote

    words: list[str] = click.get_current_context().meta[ARGUMENTS]
    return " ".join(["rashomon", *(shell_quote(word) for word in words if word not in without)])


def on_terminal() -> bool:
    """Return whether the terminal interface can be opened here."""
    return (sys.stdin.isatty() and sys.stdout.isatty()) or "TEXTUAL_DRIVER" in os.environ


def split_commas(text: str | None) -> list[str]:
    """Split text at commas and strip white space; a backslash makes the next character literal."""
    pieces = re.findall(r"(?:\\.|[^,\\]|\\$)+", text or "", re.DOTALL)
    return [word for piece in pieces if (word := _unescape(piece))]


def _unescape(piece: str) -> str:
    characters = re.findall(r"\\.|.", piece, re.DOTALL)
    while characters and characters[0].isspace():
        characters.pop(0)
    while characters and characters[-1].isspace():
        characters.pop()
    return "".join(character[-1] for character in characters)


def parse_strata(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of ``--strata KEY=VALUE,VALUE`` by key. Raises SpecError for another form."""
    from benchmarks.errors import SpecError

    strata: dict[str, list[str]] = {}
    for option in options:
        key, _, values = option.partition("=")
        if not key or not split_commas(values):
            raise SpecError(f"--strata {option!r} is not of the form KEY=VALUE,VALUE.")
        strata[key] = split_commas(values)
    return strata
