"""This machine: doctor, completion, serve, demo."""

from __future__ import annotations

from typing import Any

import click

from app.cli import completion
from app.cli.options import as_json, display


@click.command()
@click.argument("run", required=False, shell_complete=completion.runs)
@as_json
@click.pass_obj
def doctor(workspace: Any, /, run: str | None, as_json: bool) -> int:
    """Say what works on this machine, or what of RUN is damaged, and how to fix what does not.

    Exit codes: 0 all of it works (what is marked "see" is advice); 1 something does not.
    """
    from app.commands.doctor import doctor as examine

    return examine(workspace, run, as_json=as_json)


@click.command(
    "completion",
    epilog='bash: `eval "$(rashomon completion bash)"` in ~/.bashrc. zsh: the same in ~/.zshrc, after compinit. '
    "fish: `rashomon completion fish > ~/.config/fish/completions/rashomon.fish`.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_script(shell: str) -> None:
    """Print what makes Tab complete commands, options, runs, models, benchmarks and judges in a shell."""
    click.echo(completion.script(shell), nl=False)


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Another can be reached from elsewhere, without encryption."
)
@click.option("--port", type=click.IntRange(1, 65535), default=8123, show_default=True)
@click.option("--images", type=click.Choice(["half", "off"]), help="How pictures are shown; default: half.")
@click.pass_obj
def serve(workspace: Any, /, **how: Any) -> int:
    """Show the terminal interface in a browser. On this machine alone, unless --host says otherwise.

    The link that it prints opens one session, in one browser; all else is refused.
    """
    from app.commands.serve import serve as show_in_browser

    return show_in_browser(workspace, **how)


@click.command()
@click.argument("benchmark", default="cmc-bench", shell_complete=completion.benchmarks)
@display
@click.pass_obj
def demo(workspace: Any, /, benchmark: str, display: str | None) -> int:
    """Perform a complete small run, no download.

    BENCHMARK is cmc-bench (the default), clash, mmkc-bench or crosscheck-bench.
    """
    from app.commands.demo import demo as perform

    return perform(workspace, benchmark, display=display)


COMMANDS = (doctor, completion_script, serve, demo)
