"""What the shell is offered when Tab is pressed: runs, models, benchmarks, judges. Names only; nothing is opened or loaded."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

PROGRAM, VARIABLE = "rashomon", "_RASHOMON_COMPLETE"

_PLAIN = re.compile(r"[A-Za-z0-9_.,:/@+=-]+")
"""Names of other characters are not offered: a shell would have to quote them, and a hostile one could be code."""

Offered = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _offer(names: Callable[[click.Context], Iterable[str]], *, several: bool = False) -> Offered:
    """Offers ``names``; with ``several``, of a list with commas its last word is completed."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        found = (name for name in names(context) if name.startswith(last) and _PLAIN.fullmatch(name))
        return [CompletionItem(before + comma + name) for name in found]

    return complete


def _workspace(context: click.Context) -> Path:
    given = context.find_root().params.get("workspace") or os.environ.get("RASHOMON_WORKSPACE")
    if given:
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir(PROGRAM))


def _runs(context: click.Context) -> list[str]:
    try:
        with os.scandir(_workspace(context) / "runs") as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return []


def _benchmarks(context: click.Context) -> Sequence[str]:
    from benchmarks.base import benchmark_names

    return benchmark_names()


def _cached(context: click.Context) -> list[str]:
    from mlx_backends.models.discovery import hub_cache

    try:
        names = sorted(os.listdir(hub_cache()))
    except OSError:
        return []
    return [name.removeprefix("models--").replace("--", "/") for name in names if name.startswith("models--")]


def _models(context: click.Context) -> list[str]:
    from mlx_backends.policy import policy_names

    return [*policy_names(), *_cached(context)]


def _curated(context: click.Context) -> list[str]:
    from mlx_backends.models.catalog import curated

    return [each.id for each in curated()]


def _judges(context: click.Context) -> list[str]:
    from judges.base import judge_names
    from mlx_backends.remote.model_names import ENGINES

    return [*judge_names(), *_cached(context), *(f"{engine}:" for engine in ENGINES)]


def _conditions(context: click.Context) -> Sequence[str]:
    from benchmarks.base import get_benchmark
    from benchmarks.errors import RashomonError

    try:
        return tuple(get_benchmark(context.params.get("benchmark") or "").conditions)
    except RashomonError:
        return ()


runs = _offer(_runs)
benchmarks = _offer(_benchmarks)
models = _offer(_models)
to_fetch = _offer(_curated)
judges = _offer(_judges)
conditions = _offer(_conditions, several=True)
displays = _offer(lambda context: ("full", "plain", "json", "none"))


class _Arranged(ShellComplete):
    """Takes ``--batch`` for the command it is, and ``--workspace`` wherever it stands, as the command line does."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        from app.cli import cli
        from app.main import arranged
        from benchmarks.errors import RashomonError

        try:
            args = arranged(args, cli.commands)
        except RashomonError:  # --workspace, and its folder is what is being typed
            return [CompletionItem(incomplete, type="dir")]
        return super().get_completions(args, incomplete)


class Bash(_Arranged, BashComplete):
    """For bash from 3.2 on, which a Mac has. bash parts words at ``:``, so that is undone here: models' names have it."""

    source_template = """\
%(complete_func)s() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        [[ -n $line ]] && COMPREPLY+=("$line")
    done < <(env COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o bashdefault -o default -F %(complete_func)s %(prog_name)s
"""

    def source(self) -> str:
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        self._typed = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], self._typed

    def format_completion(self, item: CompletionItem) -> str:
        """The value from where bash's own word begins; "" for files, which bash completes itself."""
        if item.type != "plain":
            return ""
        typed = self._typed.partition("=")[2] if self._typed.startswith("--") else self._typed
        breaks = ":" in os.environ.get("COMP_WORDBREAKS", ":")
        return str(item.value)[typed.rfind(":") + 1 if breaks else 0 :]


class Zsh(_Arranged, ZshComplete):
    """For zsh."""


class Fish(_Arranged, FishComplete):
    """For fish."""


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def script(shell: str) -> str:
    """What the shell has to read."""
    from app.cli import cli

    return SHELLS[shell](cli, {}, PROGRAM, VARIABLE).source()


def answer() -> int:
    """Answer the shell, which asks through the environment; the exit code."""
    from app.cli import cli

    shell, _, wanted = os.environ[VARIABLE].partition("_")
    if shell not in SHELLS or wanted != "complete":
        return 1
    sys.stdout.write(SHELLS[shell](cli, {}, PROGRAM, VARIABLE).complete() + "\n")
    return 0
