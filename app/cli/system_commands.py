"""Commands for this machine: doctor, completion, serve, demo."""

from __future__ import annotations

import click

from app.cli import shell_completion
from app.cli.cli_options import RUN_HELP, as_json, calls, display, number
from benchmarks import number_ranges as ranges


@click.command(epilog=RUN_HELP)
@click.argument("run", required=False, shell_complete=shell_completion.runs)
@as_json
@click.option(
    "--report",
    metavar="[FILE]",
    is_flag=False,
    flag_value="rashomon-report.txt",
    help="Measure this machine and write a report without personal data; default: rashomon-report.txt.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Also run the demo and a pilot of a cached model, compare tokens, memory and speed with a plain loop, and write the "
    "report. It downloads nothing.",
)
@click.option(
    "--model", metavar="ID", shell_complete=shell_completion.models, help="The model for --full; default: a cached one."
)
@click.option("--read", metavar="FILE", help="Check whether a report was edited after it was written.")
@click.option(
    "--forget-checks",
    is_flag=True,
    help="Forget the stored batch-invariance and sight checks of all models, so that the next runs repeat them.",
)
@click.option(
    "--forget-features",
    is_flag=True,
    help="Remove the vision features on disk, so that the next runs encode their images again.",
)
@calls("app.commands.system.doctor_command:doctor", "DoctorOptions")
def doctor() -> None:
    """Check this machine or a run, and suggest fixes.

    With RUN, the run's database is checked for damage. With --full, each step prints a line, and a step that fails does not stop
    the others; the same command resumes the pilot.

    Exit codes: 0 everything works ("see" marks advice, "skipped" says why); 1 something does not; 130 interrupted, with a
    report on what was done.
    """


@click.command(
    "completion",
    epilog='bash: `eval "$(rashomon completion bash)"` in ~/.bashrc. zsh: the same in ~/.zshrc, after compinit. '
    "fish: `rashomon completion fish > ~/.config/fish/completions/rashomon.fish`.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_script(context: click.Context, shell: str) -> None:
    """Print a shell's completion script. It completes commands, options, runs, models, benchmarks, setups and judges."""
    click.echo(shell_completion.script(context.find_root().command, shell), nl=False)


@click.command()
@click.argument("command", nargs=-1, metavar="[COMMAND]")
@calls("app.commands.system.schema_command:print_schema", workspace=False)
def schema() -> None:
    """Print the JSON Schema of a command's JSON. Without COMMAND, the commands that have one are listed.

    That of batch, resume, judge, demo, import and baselines is of a line of --display json, and batch's that of try's lines.
    """


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Another than the default can be reached from other machines, unencrypted.",
)
@number("--port", ranges.PORT, default=8123, show_default=True, help="The port.")
@click.option("--images", type=click.Choice(["half", "off"]), help="How to draw images; default: half.")
@calls("app.commands.system.serve_command:serve")
def serve() -> None:
    """Serve the terminal interface to a browser. Only this machine can reach it, unless --host is set.

    The printed link opens one session in one browser; all other requests are refused.
    """


@click.command()
@click.argument("benchmark", default="cmc-bench", shell_complete=shell_completion.benchmarks)
@display
@calls("app.commands.system.demo_command:demo")
def demo() -> None:
    """Run a small complete evaluation that needs no download.

    BENCHMARK is cmc-bench (the default), clash, mmkc-bench or crosscheck-bench.
    """
