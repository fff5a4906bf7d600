"""Shell completion of runs, models, benchmarks, setups and judges. It reads names only; nothing is opened or loaded."""

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

from benchmarks.untrusted.finder_files import is_finder_file

PROGRAM, VARIABLE = "rashomon", "_RASHOMON_COMPLETE"

_PLAIN = re.compile(r"[A-Za-z0-9_.,:/@+=-]+")
"""Names that are safe to complete; others would need quoting in the shell, and a hostile one could run code."""

_LATEST = "latest:"

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: Callable[[click.Context], Iterable[str]], *, comma_list: bool = False) -> Completer:
    """Return a completer for ``names``; with ``comma_list`` it completes the last item of a comma-separated list."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",") if comma_list else ("", "", incomplete)
        matches = (name for name in names(context) if name.startswith(last) and _PLAIN.fullmatch(name))
        return [CompletionItem(before + comma + name) for name in matches]

    return complete


def _workspace(context: click.Context) -> Path:
    folder = context.find_root().params.get("workspace") or os.environ.get("RASHOMON_WORKSPACE")
    if folder:
        return Path(os.path.expanduser(folder))
    import platformdirs

    return Path(platformdirs.user_data_dir(PROGRAM))


def _runs(context: click.Context) -> list[str]:
    return _folders(_workspace(context) / "runs")


def _references(context: click.Context) -> list[str]:
    return [*_runs(context), *(f"@{name}" for name in _sets(context))]


def _trainings(context: click.Context) -> list[str]:
    return _folders(_workspace(context) / "trainings")


def _sets(context: click.Context) -> list[str]:
    return _folders(_workspace(context) / "sets")


def _recipes(context: click.Context) -> list[str]:
    from app.engine.training.training_spec_and_recipes import RECIPES

    return list(RECIPES)


def _folders(parent: Path) -> list[str]:
    try:
        with os.scandir(parent) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.is_dir() and not entry.name.startswith(".") and not is_finder_file(entry.name)
            )
    except OSError:
        return []


def _benchmarks(context: click.Context) -> Sequence[str]:
    from benchmarks.registry import benchmark_names

    return benchmark_names()


def _setups(context: click.Context) -> list[str]:
    from app.papers.paper_setups import PREFIX, setup_names

    return [PREFIX + name for name in setup_names()]


def _cached(context: click.Context) -> list[str]:
    from benchmarks.fetch.hub_cache import hub_cache

    try:
        names = sorted(os.listdir(hub_cache()))
    except OSError:
        return []
    return [name.removeprefix("models--").replace("--", "/") for name in names if name.startswith("models--")]


def _models(context: click.Context) -> list[str]:
    from mlx_backends.ocr_engine import READERS
    from mlx_backends.policy_engine import policy_names

    return [*policy_names(), *READERS, *_cached(context)]


def _catalog(context: click.Context) -> list[str]:
    from mlx_backends.models.model_catalog import catalog_models

    return [model.id for model in catalog_models()]


def _judges(context: click.Context) -> list[str]:
    from judges.judge_registry import judge_names
    from mlx_backends.remote.remote_names_and_media import ENGINES

    return [*judge_names(), *_cached(context), *(f"{engine}:" for engine in ENGINES)]


def _factors(context: click.Context) -> list[str]:
    from benchmarks.varied_names import FACTOR_NAMES

    return [f"{name}=" for name in FACTOR_NAMES]


def _conditions(context: click.Context) -> Sequence[str]:
    from benchmarks.errors import RashomonError
    from benchmarks.registry import get_benchmark
    from benchmarks.vocabulary import WITHOUT_SOURCES

    try:
        return (*get_benchmark(context.params.get("benchmark") or "").conditions, WITHOUT_SOURCES)
    except RashomonError:
        return ()


def _or_file(complete: Completer) -> Completer:
    """Return a completer that also offers files."""

    def complete_or_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [*complete(context, parameter, incomplete), CompletionItem(incomplete, type="file")]

    return complete_or_file


def _or_latest(complete: Completer) -> Completer:
    """Return a completer that also offers ``latest:`` once it is begun, and then the models."""
    latest = _completer(lambda context: (f"{_LATEST}{model}" for model in _models(context)))

    def complete_or_latest(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith(_LATEST):
            return latest(context, parameter, incomplete)
        stem = [CompletionItem(_LATEST)] if incomplete and _LATEST.startswith(incomplete) else []
        return [*complete(context, parameter, incomplete), *stem]

    return complete_or_latest


trainings = _completer(_trainings)
recipes = _completer(_recipes)
runs = _or_latest(_completer(_references))
benchmarks = _completer(_benchmarks)
sets = _completer(_sets)
builds = _or_file(_completer(lambda context: [*_benchmarks(context), *_sets(context)]))
builds_and_runs = _or_file(
    _or_latest(_completer(lambda context: [*_benchmarks(context), *_sets(context), *_references(context)]))
)
specs = _or_file(_completer(_setups))
models = _completer(_models)
runs_and_models = _or_latest(_completer(lambda context: [*_references(context), *_models(context)]))
catalog_models = _completer(_catalog)
judges = _completer(_judges)
conditions = _completer(_conditions, comma_list=True)
factors = _completer(_factors)


class _RashomonComplete(ShellComplete):
    """Completion of a folder after ``--workspace``, wherever it is on the line; click completes the rest."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        if args[-1:] == ["--workspace"]:
            return [CompletionItem(incomplete, type="dir")]
        return super().get_completions(args, incomplete)


def _files(incomplete: str) -> list[str]:
    """Return the files that begin with ``incomplete``; a folder ends in "/"."""
    folder, start = os.path.split(incomplete)
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(
                os.path.join(folder, entry.name) + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(start) and not (entry.name.startswith(".") and not start)
            )
    except OSError:
        return []


class Bash(_RashomonComplete, BashComplete):
    """Completion for bash 3.2 (the version on macOS) and newer. bash splits words at ``:``, which model names contain."""

    source_template = """\
%(complete_func)s() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        [[ -n $line ]] && COMPREPLY+=("$line")
    done < <(env COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:/] ]] && compopt -o nospace 2>/dev/null
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

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the completions, with files by name if there are others: bash completes files itself only without any."""
        items = super().get_completions(args, incomplete)
        plain = [item for item in items if item.type == "plain"]
        if plain and any(item.type == "file" for item in items):
            return plain + [CompletionItem(name) for name in _files(incomplete) if _PLAIN.fullmatch(name)]
        return items

    def format_completion(self, item: CompletionItem) -> str:
        """Return the part of the value that replaces bash's current word; "" for files, which bash completes itself."""
        if item.type != "plain":
            return ""
        typed = self._typed.partition("=")[2] if self._typed.startswith("--") else self._typed
        breaks = ":" in os.environ.get("COMP_WORDBREAKS", ":")
        return str(item.value)[typed.rfind(":") + 1 if breaks else 0 :]


class Zsh(_RashomonComplete, ZshComplete):
    """Completion for zsh."""


class Fish(_RashomonComplete, FishComplete):
    """Completion for fish."""


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def script(cli: click.Command, shell: str) -> str:
    """Return the script that sets up completion of ``cli`` in ``shell``."""
    return SHELLS[shell](cli, {}, PROGRAM, VARIABLE).source()


def respond(cli: click.Command) -> int:
    """Print the completions that the shell requests through the environment; return the exit code."""
    shell, _, instruction = os.environ[VARIABLE].partition("_")
    if shell not in SHELLS or instruction != "complete":
        return 1
    sys.stdout.write(SHELLS[shell](cli, {}, PROGRAM, VARIABLE).complete() + "\n")
    return 0
