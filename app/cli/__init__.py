"""The command line: what there is to type.

What each command does stands in ``app.commands``, imported only when it runs: nothing here may import what is heavy.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from app.cli import data, results, run, system
from app.cli.options import PATH


def _version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"rashomon {version('rashomon')}")
        context.exit()


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False, invoke_without_command=True
)
@click.option(
    "--workspace", type=PATH, help="The folder of runs and builds; default: RASHOMON_WORKSPACE, else your data folder."
)
@click.option(
    "--images",
    type=click.Choice(["auto", "sixel", "kitty", "half", "off"]),
    help="How the terminal interface shows pictures; default: as the settings say, else as the terminal can.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="The version.")
@click.pass_context
def cli(context: click.Context, workspace: Path | None, images: str | None) -> int:
    """What a vision-language model does when its sources disagree.

    `rashomon` on a terminal opens the interface.

    `rashomon --batch SPEC.toml` runs headless; so does `rashomon --batch --benchmark NAME --model ID ...`.

    Exit codes: 0 done; 1 the run ended with failures recorded, or could not go on; 2 the command or the spec is
    wrong; 130 interrupted.
    """
    from app.store.workspace import Workspace

    context.obj = Workspace.find(workspace)
    if context.invoked_subcommand is None:
        if (sys.stdin.isatty() and sys.stdout.isatty()) or "TEXTUAL_DRIVER" in os.environ:
            from app.tui.app import open_app

            return open_app(context.obj, images=images)
        click.echo(context.get_help())
    return 0


for _command in (*run.COMMANDS, *data.COMMANDS, *results.COMMANDS, *system.COMMANDS):
    cli.add_command(_command)


def run_cli(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code. A wrong option or argument becomes a SpecError."""
    from benchmarks.errors import SpecError

    try:
        # Not cli.main(), which takes a closed pipe for its own and leaves.
        with cli.make_context("rashomon", list(arguments)) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        message = re.sub(r"\s*\n\s*", " ", error.format_message()).removesuffix(".")
        joint = " " if message.endswith("?") else "; "
        asked = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "rashomon"
        raise SpecError(f"{message[:1].lower()}{message[1:]}{joint}`{asked} --help` lists what there is.") from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return code if isinstance(code, int) else 0
