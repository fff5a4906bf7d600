"""The command line: groups, commands, arguments and options.

The commands' code is in ``app.commands``, which is imported only when a command runs, so that ``rashomon --help`` and shell
completion start quickly. Nothing in this package may import a heavy library at module level.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from app.cli import (
    comparing_commands,
    data_commands,
    model_commands,
    people_commands,
    results_commands,
    run_commands,
    sharing_commands,
    system_commands,
    training_commands,
)
from app.cli.cli_options import ARGUMENTS, COMMAND_ARGUMENTS, EVENT_COMMANDS, PATH, on_terminal
from app.exit_codes import MEANINGS
from app.system.numpy_threads import use_one_thread

_READERS = (
    *("runs", "show", "view", "compare", "check", "recommend", "history", "report", "export", "parity", "published"),
    *("audit", "bundle", "cite", "benchmarks", "judges", "prompts", "doctor", "completion", "schema"),
)
"""The commands that can read a bundle, which nothing writes to, in place of a workspace."""

_TABLES = (
    *(None, "open", "show", "view", "compare", "check", "recommend", "try", "history", "report", "export", "audit"),
    *("build", "baselines", "learning-curve", "bundle", "push"),
)
"""The commands that compute tables; None is the terminal interface."""


SECTIONS: Mapping[str, tuple[click.Command, ...]] = {
    "Evaluate": (
        system_commands.demo,
        run_commands.batch,
        comparing_commands.try_command,
        run_commands.resume,
        run_commands.judge_command,
        results_commands.baselines,
        run_commands.import_command,
    ),
    "Look": (
        *(results_commands.runs, results_commands.show, results_commands.view),
        *(
            comparing_commands.compare,
            comparing_commands.check,
            comparing_commands.recommend,
            comparing_commands.history,
            comparing_commands.parity,
        ),
        *(results_commands.report, results_commands.published, results_commands.audit),
    ),
    "People": (run_commands.label, run_commands.override, people_commands.review, people_commands.answer),
    "Data and models": (
        *(
            data_commands.build,
            data_commands.sets,
            data_commands.data,
            model_commands.models,
            data_commands.benchmarks,
            data_commands.judges,
            data_commands.prompts,
        ),
        *(data_commands.vary, data_commands.passages, data_commands.figures),
        *(
            training_commands.training,
            training_commands.train,
            training_commands.trainings,
            training_commands.learning_curve,
        ),
    ),
    "Share": (
        results_commands.export,
        sharing_commands.bundle,
        sharing_commands.open_bundle,
        run_commands.adopt,
        sharing_commands.cite,
        sharing_commands.push,
    ),
    "Machine": (
        system_commands.doctor,
        system_commands.serve,
        system_commands.completion_script,
        system_commands.schema,
    ),
}
"""The commands by the section of ``--help``; completion has the same order."""


class RashomonGroup(click.Group):
    """A group that lists its commands in sections.

    It accepts ``--workspace`` anywhere on the line and ``--batch`` as a name of the command ``batch``.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the sections."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of commands, then the options."""
        width = max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([((command.name or "").ljust(width), _summary(command)) for command in commands])
        click.Command.format_options(self, ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments with ``--workspace FOLDER`` moved to the front and ``--batch`` replaced by ``batch``."""
        ctx.meta[ARGUMENTS] = list(args)
        front: list[str] = []
        rest: list[str] = []
        remaining = iter(args)
        for argument in remaining:
            if argument == "--workspace":
                folder = next(remaining, None)
                if folder is not None:
                    front += [argument, folder]
                elif not ctx.resilient_parsing:
                    raise click.BadOptionUsage(argument, "--workspace needs a folder.", ctx)
            elif argument.startswith("--workspace="):
                front.append(argument)
            else:
                rest.append(argument)
        if "--batch" in rest and rest[0] not in self.commands:
            rest.remove("--batch")
            rest.insert(0, "batch")
        ctx.meta[COMMAND_ARGUMENTS] = super().parse_args(ctx, front + rest)
        return ctx.args


def _summary(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    return re.split(r"\.(?:\s|$)", command.help or "", maxsplit=1)[0]


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from app.system.version import rashomon_version

        click.echo(f"rashomon {rashomon_version()}")
        context.exit()


_HELP = """\
Evaluate vision-language models whose sources disagree.

Three ways to begin, as commands. `rashomon` alone opens the interface, which has a key for each.

\b
Your own documents: a folder of charts, and a spreadsheet of questions
  rashomon build cmc-bench --from FILE --check
A paper's benchmark and results, with a model from the Hugging Face Hub
  rashomon data get cmc-bench
The demo: a tiny model reads drawn charts; a minute or two, no download
  rashomon demo

To run a model without the interface: `rashomon --batch --benchmark NAME --model ID`, or `rashomon --batch SPEC.toml`.
"""


@click.group(
    cls=RashomonGroup,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
    invoke_without_command=True,
    epilog=f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in MEANINGS.items())}.",
)
@click.option(
    "--workspace",
    type=PATH,
    help="The folder for runs and builds; default: RASHOMON_WORKSPACE, or else your user data folder.",
)
@click.option(
    "--images",
    type=click.Choice(["auto", "sixel", "kitty", "blocks", "half", "off"]),
    help="How the terminal interface draws images; default: as in its settings, or else the best the terminal supports.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(context: click.Context, workspace: Path | None, images: str | None) -> int:
    """Open the interface, or print the help page where there is no terminal; a command does its own work."""
    if context.invoked_subcommand == run_commands.batch.name:
        run_commands.start_worker(context)
    from app.store.workspace import Workspace

    if context.invoked_subcommand in _TABLES:
        use_one_thread()
    context.obj = Workspace.find(workspace)
    if context.invoked_subcommand in EVENT_COMMANDS:
        from app.json_output.json_events import outcome

        outcome.begin(context.obj.path)
    if context.invoked_subcommand not in (None, *_READERS):
        context.obj.require_writable()
    if context.invoked_subcommand is None:
        if on_terminal():
            from app.tui.tui_app import open_app

            return open_app(context.obj, images=images)
        click.echo(context.get_help())
    return 0


for _commands in SECTIONS.values():
    for _command in _commands:
        cli.add_command(_command)


def run_cli(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code. Raises SpecError for a wrong option or argument."""
    from benchmarks.errors import SpecError

    try:
        # cli.main() would handle a closed pipe itself and end the process.
        with cli.make_context("rashomon", list(arguments)) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        message = re.sub(r"\s*\n\s*", " ", error.format_message()).removesuffix(".")
        separator = " " if message.endswith("?") else "; "
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "rashomon"
        raise SpecError(f"{message[:1].lower()}{message[1:]}{separator}see `{command} --help`.") from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return code if isinstance(code, int) else 0
