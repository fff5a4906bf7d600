"""Commands for results: runs, show, view, export, report, published, baselines, audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from app.cli import shell_completion
from app.cli.cli_options import (
    COMMAS,
    PATH,
    RUN_HELP,
    as_json,
    calls,
    display,
    judge,
    number,
    run_names,
    some_run_names,
    trust,
    width,
)
from benchmarks import number_ranges as ranges


@click.command()
@click.option("--prune", "action", flag_value="prune", help="Delete old runs, after a list of them and a confirmation.")
@click.option("--restore", "action", flag_value="restore", help="Restore what the last --prune deleted.")
@number(
    "--keep",
    ranges.KEEP,
    metavar="N",
    help="With --prune: keep the N newest finished runs of each model on the same questions.",
)
@click.option("--older-than", metavar="AGE", help="With --prune: only runs older than AGE, such as 12h, 30d or 8w.")
@click.option("--match", metavar="GLOB", help="With --prune: look only at runs whose names match, such as 'nightly-*'.")
@click.option("--include-used", is_flag=True, help="With --prune: delete also what something else rests on.")
@click.option("--yes", is_flag=True, help="With --prune: delete without asking for confirmation.")
@as_json
@click.pass_obj
def runs(workspace: Any, /, action: str | None, as_json: bool, **options: Any) -> None:
    """List the runs and their progress, condition by condition. --prune deletes old ones, --restore undoes that."""
    if action != "prune" and any(value not in (None, False) for value in options.values()):
        raise click.UsageError("--keep, --older-than, --match, --include-used and --yes belong to --prune.")
    if action is not None and as_json:
        raise click.UsageError("--json lists the runs; leave it out with --prune and --restore.")
    if action is None:
        from app.commands.results.runs_command import runs as list_runs

        list_runs(workspace, as_json=as_json)
    else:
        from app.commands.results.prune_command import PruneArguments, prune, restore

        if action == "prune":
            prune(workspace, PruneArguments(**options))
        else:
            restore(workspace)


@click.command(epilog=RUN_HELP)
@run_names
@click.option("--table", metavar="NAME", help="Print only this table.")
@click.option("--all", "all_tables", is_flag=True, help="Print every table, not only the main one.")
@click.option("--sample", metavar="ID", help="Show one instance instead: its prompt, answer and verdicts.")
@click.option(
    "--spec", is_flag=True, help="Show the spec that repeats the run instead; with --json also its provenance."
)
@trust
@click.option("--speed", is_flag=True, help="Show how fast the run was instead, and what was computed only once.")
@judge
@as_json
@calls("app.commands.results.show_command:show", "ShowArguments")
def show() -> None:
    """Show a run's headline and main table, even while it runs. With several runs, one row each."""


@click.command(epilog=RUN_HELP)
@some_run_names
@click.option("--at", metavar="ID", help="Open the page at this instance: its id, or the beginning of it.")
@number("--port", ranges.PORT, default=None, help="The port to serve at; default: 8124, or a free one if it is taken.")
@click.option(
    "--browser/--no-browser",
    default=None,
    help="Open the browser, or only print the link; default: open it if there is one here.",
)
@click.option(
    "--save", type=PATH, metavar="FILE", help="Write the page to one HTML file instead, which needs no server."
)
@click.option(
    "--media",
    type=click.Choice(["thumbnails", "full", "none"]),
    help="With --save: the media to include; full needs a licence that lets you pass them on. Default: thumbnails.",
)
@trust
@judge
@click.pass_obj
def view(workspace: Any, /, run: Sequence[str], **options: Any) -> int:
    """Look at answers side by side in the browser, with pictures. Even while runs answer.

    Without RUN, the newest runs on the same data are shown. Only this machine can reach the page, and only the browser that
    opens the printed link.
    """
    file, media = options.pop("save"), options.pop("media")
    if file is None and media is not None:
        raise click.UsageError("--media belongs to --save.")
    if file is not None:
        served = [options.pop(name) for name in ("at", "port", "browser")]
        if any(value is not None for value in served):
            raise click.UsageError("--at, --port and --browser belong to the page that is served; leave out --save.")
        from app.commands.results.save_page import save_page

        return save_page(workspace, run, file, media or "thumbnails", **options)
    from app.commands.results.view_command import view as view_runs

    return view_runs(workspace, run, **options)


@click.command(epilog=RUN_HELP)
@run_names
@click.option(
    "--format",
    "formats",
    type=COMMAS,
    default="csv,md,latex,json",
    show_default=True,
    metavar="F,F",
    help="Formats, separated by commas; also parquet, html, png, svg, pdf, lm-eval and inspect.",
)
@click.option("--out", type=PATH, help="The folder to write to; default: ./export/RUN.")
@judge
@click.option(
    "--canonical", is_flag=True, help="Leave out times, memory and paths, so that equal runs give equal files."
)
@width
@click.option(
    "--metric", metavar="COLUMN", help="The column of the main table to plot against memory; default: the first."
)
@click.option("--caption", multiple=True, metavar="TABLE=TEXT", help="A table's caption in LaTeX. Repeatable.")
@calls("app.commands.results.export_command:export", "ExportArguments")
def export() -> None:
    """Export tables, figures and samples as files. Several runs share their tables and figures."""


@click.command(epilog=RUN_HELP)
@run_names
@click.option("--out", type=PATH, help="The folder to write to; default: ./export/RUN.")
@judge
@trust
@click.option("--title", default="", metavar="TEXT", help="The title; default: the models' names.")
@number(
    "--margin", ranges.MARGIN, default=0.03, show_default=True, help="How much worse than the best run is acceptable."
)
@click.option(
    "--canonical", is_flag=True, help="Leave out times, memory and paths, so that equal runs give equal files."
)
@calls("app.commands.results.report_command:report")
def report() -> None:
    """Write a report: which model, why, and what it gets wrong.

    It has a page for decision makers, then setup, results, limitations and licences as a paper has them.
    It is report.html, which needs no network and prints well, and report.tex with its figures.
    """


@click.command()
@click.argument("benchmark", required=False, shell_complete=shell_completion.benchmarks)
@click.option("--table", metavar="NAME", help="Only this table, by its number in the paper.")
@as_json
@calls("app.commands.results.published_command:published", workspace=False)
def published() -> None:
    """Show the tables of a benchmark's paper. Without BENCHMARK, list the papers' tables."""


@click.command(epilog=RUN_HELP)
@run_names
@click.option(
    "--rule",
    "rules",
    type=COMMAS,
    default="",
    metavar="NAME,NAME",
    help="Make only these: agree, confident, oracle; default: all that can be.",
)
@display
@calls("app.commands.results.baselines_command:baselines")
def baselines() -> None:
    """Make baselines of a run's answers to each source alone. No model is called.

    They are runs of their own, beside which models appear in every table and figure.
    """


@click.command(
    epilog="BUILD is a build's folder, a question set (SET or SET@NUMBER), or the name of a benchmark that is built in the "
    f"workspace. {RUN_HELP}"
)
@click.argument("name", metavar="BUILD|SET|RUN", shell_complete=shell_completion.builds_and_runs)
@click.option("--all", "every", is_flag=True, help="Print all rules of every task.")
@judge
@as_json
@calls("app.commands.results.audit_command:audit")
def audit() -> None:
    """Try to answer a build's questions without looking. Rules that see no source are compared with chance, and with a run.

    They look at the place, length, likeness and numbers of the options, at modalities, files, categories, and at the words of
    the question or of the text alone. What beats chance gives the answer away.
    """
