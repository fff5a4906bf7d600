"""Commands for passing runs on: bundle, open, cite, push."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from app.cli.cli_options import PATH, RUN_HELP, as_json, calls, judge, on_terminal, run_names

FILE_HELP = "With --workspace FILE, or with FILE:RUN in place of RUN, other commands read a bundle too."


@click.command(epilog=RUN_HELP)
@run_names
@click.option("--out", type=PATH, metavar="FILE", help="The file to write; default: ./RUN.rashomon.zip.")
@click.option(
    "--media",
    type=click.Choice(["all", "thumbnails", "none"]),
    help="The media to include; default: all if the licences of their sources let you pass them on, else none.",
)
@as_json
@calls("app.commands.sharing.bundle_command:bundle_runs")
def bundle() -> None:
    """Write runs to one file, with builds, media and a report. Equal runs give equal bytes."""


@click.command("open", epilog=FILE_HELP)
@click.argument("file", type=PATH)
@click.option("--import", "imports", is_flag=True, help="Copy the runs to the workspace, after asking.")
@click.option("--yes", is_flag=True, help="With --import: copy without asking.")
@as_json
@click.pass_obj
def open_bundle(workspace: Any, /, file: Path, **options: Any) -> int:
    """Show a bundle's runs, read-only. On a terminal, open the interface; else list them."""
    if on_terminal() and not (options["imports"] or options["as_json"]):
        from app.store.workspace import Workspace
        from app.tui.tui_app import open_app
        from benchmarks.untrusted.typed_paths import typed_path

        return open_app(Workspace.open(typed_path(file)))
    from app.commands.sharing.bundle_command import list_bundle

    return list_bundle(workspace, file, **options)


@click.command(epilog=RUN_HELP)
@run_names
@as_json
@calls("app.commands.sharing.cite_command:cite_runs")
def cite() -> None:
    """Print BibTeX of the tool and of runs. It has their benchmarks, sources and engines, and the licences of data and models.

    Only what is stored is printed; the licence of a model is that of its card.
    """


@click.command(epilog=RUN_HELP)
@run_names
@click.argument("target", metavar="hub:OWNER/NAME")
@click.option("--public", is_flag=True, help="Let everybody see the data set; default: private.")
@click.option("--yes", is_flag=True, help="Send without asking for confirmation.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; send nothing. Needs no login and no network.")
@click.option("--out", type=PATH, metavar="FOLDER", help="Write the files to a folder instead, and send nothing.")
@judge
@calls("app.commands.sharing.push_command:push_runs")
def push() -> None:
    """Send runs to the Hugging Face Hub as a data set. It has records as Parquet and a card with the metrics, but no media.

    Shows the files, sizes, rows and licences first, and asks. The token is that of `hf auth login`, or HF_TOKEN.

    Exit codes: 0 sent; 2 wrong command; 3 the Hub refused or could not be reached.
    """
